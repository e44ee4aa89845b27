// `ott report` of traces of torch.profiler: who waits for whom, and where the time goes.

#ifndef OTT_TOOLS_REPORT_REPORT_TRACES_H_
#define OTT_TOOLS_REPORT_REPORT_TRACES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/answer/document.h"

namespace ott::report {

// Returns the traces in a directory, by name; empty if there is none, or it is a run directory.
std::vector<std::string> ListTraces(const std::string& directory);

// With its pictures, of one trace a rank. with_timeline: that one, too. Reads them side by side. Errors of
// kernels::ReadProfile() if none can be read; those that cannot are named in the report.
absl::StatusOr<Document> ReportTraces(const std::string& directory, const std::vector<std::string>& paths,
                                      bool with_timeline = true);

// Adds what the traces tell that the program of a run wrote by torch.profiler, if there are any: the latest
// of each rank. Who is waited for is told by the run, which sees all iterations.
void AddTorchTraces(const std::string& run_dir, bool with_pictures, Document* document);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_REPORT_TRACES_H_
