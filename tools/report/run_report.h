// Collects what all questions find in a run.

#ifndef OTT_TOOLS_REPORT_RUN_REPORT_H_
#define OTT_TOOLS_REPORT_RUN_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/answer/document.h"
#include "ott/questions/answer/question.h"
#include "tools/report/run_files.h"

namespace ott::report {

struct RunReport {
  AskedRun run;
  // In the order of the questions.
  std::vector<Findings> findings;
  // Says which of several starts of the job this is, the latest; empty if it was started once.
  std::string starts;
  // Says what is missing or cannot be read: the report is INCOMPLETE where there is any.
  std::vector<std::string> problems;
  // True if tensors differ that are to be equal.
  bool diverged = false;
  // Nullopt: not looked at.
  std::optional<RunFiles> files;
};

// Asks the questions about run.run_dir; reads run.info and run.ranks. NOT_FOUND if that is no run directory,
// or no question finds anything in it; errors of the questions. before: null, or the last report of the same,
// of which the findings stay that follow from files that have not changed.
absl::StatusOr<RunReport> ReadRunReport(AskedRun run, const std::vector<Question>& questions,
                                        const RunReport* before = nullptr);

// Without pictures.
Document MakeDocument(const RunReport& report);

// Adds the pictures, for which some files of all ranks are read once more, one at a time. Their size is
// bounded, whatever the number of ranks and iterations.
void AddPictures(const RunReport& report, Document* document);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_RUN_REPORT_H_
