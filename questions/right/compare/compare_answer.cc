#include "ott/questions/right/compare/compare_answer.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/compare/runs_report.h"
#include "ott/questions/right/crosscheck/check_history.h"

namespace ott::compare {
namespace {

Answer::Finding FindingOfVerdict(Verdict verdict) {
  switch (verdict) {
    case Verdict::kEqual:
      return Answer::GOOD;
    case Verdict::kDifferent:
      return Answer::BAD;
    case Verdict::kCouldNotCompare:
      break;
  }
  return Answer::CANNOT_TELL;
}

bool HasOpLog(const std::string& run) {
  const absl::StatusOr<RunInfo> info = ReadRunInfo(LatestAttempt(run));
  return info.ok() && info->config().has_op_log();
}

}  // namespace

Answer AnswerCompare(const RunsComparison& comparison) {
  Answer answer = MakeAnswer(crosscheck::kReferenceQuestion);
  answer.set_finding(FindingOfVerdict(comparison.verdict()));
  answer.add_sentences(absl::StrCat("verdict: ", std::string(Name(comparison.verdict()))));
  if (const std::string first = DescribeFirstDivergence(comparison); !first.empty()) {
    answer.add_sentences("first divergence: " + first);
  }
  if (const std::string unknown = DescribeNotCompared(comparison); !unknown.empty()) {
    answer.add_sentences("not compared: " + unknown);
  }
  for (const std::string& problem : comparison.problems) {
    answer.add_sentences("problem: " + EscapeControlCharacters(problem));
  }
  int64_t num_tensors = 0;
  for (const DumpSummary& dump : comparison.dumps) num_tensors += dump.num_tensors;
  // A difference decides, whatever could not be compared beside it.
  const bool is_complete = comparison.is_complete();
  answer.set_how_sure(absl::StrCat(is_complete ? "every element of " : "not all of ", num_tensors,
                                   " tensors in ", comparison.dumps.size(),
                                   is_complete ? " dumps was compared" : " dumps could be compared"));
  if (answer.finding() == Answer::BAD && HasOpLog(comparison.reference) && HasOpLog(comparison.current)) {
    AddNext({"origin", comparison.reference, comparison.current}, &answer);
  }
  return answer;
}

}  // namespace ott::compare
