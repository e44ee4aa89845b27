#include "ott/questions/faster/faster_answer.h"

#include "absl/strings/str_format.h"
#include "ott/questions/faster/report.h"

namespace ott::ab {
namespace {

Answer::Finding FindingOfComparison(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
    case Verdict::kSame:
      return Answer::GOOD;
    case Verdict::kSlower:
      return Answer::BAD;
    case Verdict::kCannotTell:
      break;
  }
  return Answer::CANNOT_TELL;
}

}  // namespace

Answer AnswerFaster(const Comparison& comparison, const SideNames& names) {
  Answer answer = MakeAnswer(kQuestion);
  answer.set_finding(FindingOfComparison(comparison.answer.verdict));
  answer.add_sentences(DescribeAnswer(comparison));
  answer.set_how_sure(
      absl::StrFormat("%d runs of %s and %d of %s; an answer is wrong in %.2g %% of such comparisons",
                      comparison.num_a, names.a, comparison.num_b, names.b, comparison.answer.error * 100));
  answer.add_pictures("comparison");
  return answer;
}

}  // namespace ott::ab
