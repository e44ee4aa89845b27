#include "ott/questions/faster/faster_question.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/questions/faster/ab_command.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/comparison_picture.h"
#include "ott/questions/faster/faster_answer.h"
#include "ott/questions/faster/read_samples.h"
#include "ott/questions/faster/report.h"

namespace ott::faster {
namespace {

constexpr SideNames kBeforeAndAfter = {"before", "after"};

absl::StatusOr<Comparison> CompareRuns(const AskedRun& run) {
  OTT_ASSIGN_OR_RETURN(const Samples samples, ReadSides(run.before, run.runs, ClockKind::kWall));
  return Compare(samples, FasterOptions());
}

absl::StatusOr<Findings> Ask(const AskedRun& run) {
  Findings findings;
  if (run.before.empty()) return findings;
  absl::StatusOr<Comparison> comparison = CompareRuns(run);
  if (!comparison.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--before, as by `ott ab`: ", comparison.status().message()));
  }
  findings.answers = {AnswerFaster(*comparison, kBeforeAndAfter)};
  if (findings.answers[0].finding() == Answer::BAD) {
    AddNext({"whatif", run.run_dir}, &findings.answers[0]);
  }
  findings.details = {{"Before and after", ToText(*comparison)}};
  findings.draw = [comparison = *std::move(comparison)](const std::vector<int>&, Document* document) {
    document->pictures["comparison"] = DrawComparison(comparison, kBeforeAndAfter);
  };
  return findings;
}

}  // namespace

Question FasterQuestion() { return {kQuestion.title, AddAbCommand, Ask}; }

}  // namespace ott::faster
