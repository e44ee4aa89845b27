// Writes what one would alert on, in the text format of Prometheus.

#ifndef OTT_TOOLS_REPORT_PROMETHEUS_H_
#define OTT_TOOLS_REPORT_PROMETHEUS_H_

#include <string>

#include "ott/questions/answer/document.h"
#include "tools/report/run_report.h"

namespace ott::report {

// Exposition format 0.0.4 (prometheus.io/docs/instrumenting/exposition_formats). Numbers that are not known
// are left out, but for those that say whether something is known.
// document: of the report.
std::string ToPrometheus(const RunReport& report, const Document& document);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_PROMETHEUS_H_
