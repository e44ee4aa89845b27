#include "ott/questions/learning/first_difference.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/text_table.h"
#include "ott/questions/origin/origin.h"
#include "ott/questions/origin/origin_answer.h"
#include "ott/questions/right/compare/compare_runs.h"

namespace ott::learning {
namespace {

std::string DescribeDivergence(const compare::RunsComparison& comparison) {
  const compare::DumpSummary* const first = comparison.first_divergence();
  if (first == nullptr) {
    return comparison.is_complete() ? "their dumps do not differ"
                                    : "not all of their dumps could be compared; what could does not differ";
  }
  std::string text = "their dumps first differ";
  if (first->iteration.has_value()) absl::StrAppend(&text, " in iteration ", *first->iteration);
  if (first->rank.has_value()) absl::StrAppend(&text, " on rank ", *first->rank);
  if (!first->failures.empty())
    absl::StrAppend(&text, ", in ", EscapeControlCharacters(first->failures.front().path));
  return text;
}

void SetNext(const std::vector<std::string>& words, LearningVerdict* verdict) {
  Answer quoted;
  AddNext(words, &quoted);
  verdict->set_next(quoted.next(0));
}

}  // namespace

void AddFirstDifference(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b,
                        LearningVerdict* verdict) {
  if (a.empty() || b.empty() || a[0].directory.empty() || b[0].directory.empty()) return;
  const std::string &one = a[0].directory, &other = b[0].directory;
  const std::string whose = absl::StrCat("of the first runs, ", EscapeControlCharacters(one), " and ",
                                         EscapeControlCharacters(other), ": ");
  if (const absl::StatusOr<OriginVerdict> origin = origin::FindOrigin(one, other, ""); origin.ok()) {
    const Answer answer = origin::AnswerOrigin(origin);
    verdict->set_first_difference(
        absl::StrCat(whose, answer.sentences_size() > 0 ? answer.sentences(0) : ""));
    SetNext({"origin", one, other}, verdict);
    return;
  }
  const absl::StatusOr<compare::RunsComparison> dumps = compare::CompareRuns(one, other);
  if (!dumps.ok() || dumps->dumps.empty()) return;
  verdict->set_first_difference(absl::StrCat(whose, DescribeDivergence(*dumps)));
  SetNext({"compare", one, other}, verdict);
}

}  // namespace ott::learning
