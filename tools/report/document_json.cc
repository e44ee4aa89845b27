#include "tools/report/document_json.h"

#include <utility>

#include "ott/core/base/version.h"
#include "ott/questions/answer/display_text.h"

namespace ott::report {
namespace {

constexpr size_t kMaxAnswerBytes = 10'000;
constexpr size_t kMaxDetailsBytes = 100'000;
constexpr size_t kMaxSubjectBytes = 500;

// Names in it may be of any length.
void Shorten(std::string* text) { *text = DisplayLines(*text, kMaxAnswerBytes); }

Json DrawAnswer(Answer answer) {
  for (std::string& sentence : *answer.mutable_sentences()) Shorten(&sentence);
  Shorten(answer.mutable_how_sure());
  for (std::string& line : *answer.mutable_next()) Shorten(&line);
  answer.clear_evidence_type();
  answer.clear_evidence();
  return AnswerToJson(answer);
}

}  // namespace

Json ToJson(const Document& document) {
  Json answers = Json::array();
  for (const Answer& answer : document.answers) {
    answers.push_back(DrawAnswer(answer));
  }
  Json problems = Json::array();
  for (const std::string& problem : document.problems)
    problems.push_back(DisplayLines(problem, kMaxAnswerBytes));
  Json details = Json::array();
  for (const Details& part : document.details) {
    details.push_back({{"title", part.title}, {"text", DisplayLines(part.text, kMaxDetailsBytes)}});
  }
  return {{"schema", "ott.report"},
          {"schema_version", kSchemaVersion},
          {"version", kVersion},
          {"title", DisplayLines(document.title, kMaxSubjectBytes)},
          {"subject", DisplayLines(document.subject, kMaxSubjectBytes)},
          {"answers", std::move(answers)},
          {"problems", std::move(problems)},
          {"pictures", document.pictures},
          {"thinned", document.thinned},
          {"details", std::move(details)}};
}

std::string Dump(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ott::report
