#include "ott/questions/origin/origin_answer.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/text_table.h"

namespace ott::origin {
namespace {

Answer::Finding FindingOfOrigin(const OriginVerdict& origin) {
  switch (origin.kind()) {
    case OriginVerdict::NONE:
      return Answer::GOOD;
    case OriginVerdict::OPERATION:
    case OriginVerdict::UPDATE:
    case OriginVerdict::INPUT:
      return Answer::BAD;
    default:
      return Answer::CANNOT_TELL;
  }
}

}  // namespace

Answer AnswerOrigin(const absl::StatusOr<OriginVerdict>& origin) {
  Answer answer = MakeAnswer(kQuestion);
  if (!origin.ok()) {
    answer.set_finding(Answer::CANNOT_TELL);
    answer.add_sentences(EscapeControlCharacters(std::string(origin.status().message())));
    return answer;
  }
  answer.set_finding(FindingOfOrigin(*origin));
  answer.add_sentences(origin->verdict());
  answer.set_how_sure(
      absl::StrCat(origin->num_compared(), " operations on ", origin->world_size(), " ranks were compared ",
                   origin->perturbed().empty() ? "bit for bit" : "within what rounding explains"));
  SetEvidence(*origin, &answer);
  answer.add_pictures("origin");
  return answer;
}

}  // namespace ott::origin
