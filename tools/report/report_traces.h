// `ott report` of traces of torch.profiler: who waits for whom, and where the time goes.

#ifndef OTT_TOOLS_REPORT_REPORT_TRACES_H_
#define OTT_TOOLS_REPORT_REPORT_TRACES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/answer/document.h"

namespace ott::report {

// The traces in a directory, by name; empty where there is none, or it is a run directory.
std::vector<std::string> ListTraces(const std::string& directory);

// With its pictures, of one trace a rank. Reads them side by side. Errors of prof::ReadProfile() if none can
// be read; those that cannot are named in the report.
absl::StatusOr<Document> ReportTraces(const std::string& directory, const std::vector<std::string>& paths);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_REPORT_TRACES_H_
