#include "ott/questions/answer/answer_json.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "ott/core/base/check.h"
#include "ott/core/base/proto_json.h"

namespace ott {
namespace {

// Null if this program does not know the message.
Json EvidenceOf(const Answer& answer) {
  const google::protobuf::Descriptor* const type =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(answer.evidence_type());
  if (type == nullptr) return Json();
  const std::unique_ptr<google::protobuf::Message> evidence(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
  OTT_CHECK(evidence->ParseFromString(answer.evidence())) << answer.evidence_type();
  return Json::parse(ProtoToJson(*evidence, JsonLayout::kOneLine));
}

}  // namespace

Json AnswerToJson(const Answer& answer) {
  Json json = {{"question", answer.question()},
               {"title", answer.title()},
               {"finding", Answer::Finding_Name(answer.finding())},
               {"sentences", Json::array()},
               {"how_sure", answer.how_sure()},
               {"evidence_type", answer.evidence_type()},
               {"evidence", EvidenceOf(answer)},
               {"pictures", Json::array()},
               {"next", Json::array()},
               {"ranks", Json::array()}};
  for (const std::string& sentence : answer.sentences()) json["sentences"].push_back(sentence);
  for (const std::string& picture : answer.pictures()) json["pictures"].push_back(picture);
  for (const std::string& command : answer.next()) json["next"].push_back(command);
  for (const int rank : answer.ranks()) json["ranks"].push_back(rank);
  return json;
}

Json AnswersToJson(const std::vector<Answer>& answers) {
  Json json = Json::object();
  json["answers"] = Json::array();
  for (const Answer& answer : answers) json["answers"].push_back(AnswerToJson(answer));
  return json;
}

std::string AnswersToJsonText(const std::vector<Answer>& answers) {
  return AnswersToJson(answers).dump(1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

std::string WithAnswers(std::string object, const std::vector<Answer>& answers) {
  OTT_CHECK(object.size() > 3 && object.compare(object.size() - 2, 2, "}\n") == 0) << object.size();
  object.resize(object.size() - 2);
  while (object.back() == '\n') object.pop_back();
  return absl::StrCat(object, ",\n", AnswersToJsonText(answers).substr(2));
}

}  // namespace ott
