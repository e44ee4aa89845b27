#include "tools/report/document_json.h"

#include <utility>

#include "ott/core/base/version.h"
#include "tools/report/display_text.h"

namespace ott::report {
namespace {

constexpr size_t kMaxAnswerBytes = 10'000;
constexpr size_t kMaxDetailsBytes = 100'000;
constexpr size_t kMaxSubjectBytes = 500;

const char* NameOf(Grade grade) {
  switch (grade) {
    case Grade::kGood:
      return "good";
    case Grade::kBad:
      return "bad";
    case Grade::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace

Json ToJson(const Document& document) {
  Json answers = Json::array();
  for (const Answer& answer : document.answers) {
    answers.push_back({{"id", answer.id},
                       {"question", answer.question},
                       {"grade", NameOf(answer.grade)},
                       {"text", DisplayLines(answer.text, kMaxAnswerBytes)},
                       {"certainty", DisplayLines(answer.certainty, kMaxAnswerBytes)},
                       {"picture", answer.picture.empty() ? Json() : Json(answer.picture)}});
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
