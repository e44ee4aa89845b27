#include "ott/questions/faster/faster_answer.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "ott/core/base/utf8.h"
#include "ott/questions/faster/comparison.pb.h"
#include "ott/questions/faster/report.h"

namespace ott::faster {
namespace {

Answer::Finding FindingOfComparison(AbResult::Verdict verdict) {
  switch (verdict) {
    case AbResult::FASTER:
    case AbResult::SAME:
      return Answer::GOOD;
    case AbResult::SLOWER:
      return Answer::BAD;
    default:
      break;
  }
  return Answer::CANNOT_TELL;
}

void SetResult(const Result& result, AbResult* proto) {
  proto->set_measurement(ValidUtf8(result.name));
  proto->set_verdict(result.verdict);
  if (result.ratio) proto->set_ratio(*result.ratio);
  if (result.low) proto->set_low(*result.low);
  if (result.high) proto->set_high(*result.high);
  if (result.runs_needed) proto->set_runs_needed(static_cast<int64_t>(*result.runs_needed));
  proto->set_seconds_a(result.seconds_a);
  proto->set_seconds_b(result.seconds_b);
}

}  // namespace

AbVerdict EvidenceOf(const Comparison& comparison) {
  AbVerdict verdict;
  SetResult(comparison.answer, verdict.mutable_answer());
  for (const Result& result : comparison.measurements) SetResult(result, verdict.add_measurements());
  verdict.set_confidence(1 - comparison.answer.error);
  verdict.set_margin(comparison.margin);
  verdict.set_num_a(static_cast<int64_t>(comparison.num_a));
  verdict.set_num_b(static_cast<int64_t>(comparison.num_b));
  for (const std::string& reason : comparison.voids) verdict.add_voids(ValidUtf8(reason));
  for (const std::string& note : comparison.notes) verdict.add_notes(ValidUtf8(note));
  return verdict;
}

Answer AnswerFaster(const Comparison& comparison, const SideNames& names) {
  Answer answer = MakeAnswer(kQuestion);
  answer.set_finding(FindingOfComparison(comparison.answer.verdict));
  answer.add_sentences(DescribeAnswer(comparison));
  answer.set_how_sure(
      absl::StrFormat("%d runs of %s and %d of %s; an answer is wrong in %.2g %% of such comparisons",
                      comparison.num_a, names.a, comparison.num_b, names.b, comparison.answer.error * 100));
  SetEvidence(EvidenceOf(comparison), &answer);
  answer.add_pictures("comparison");
  return answer;
}

}  // namespace ott::faster
