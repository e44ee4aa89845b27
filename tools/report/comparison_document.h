// Puts into a report what `ott ab` found: with those of a run, or as a page of its own.

#ifndef OTT_TOOLS_REPORT_COMPARISON_DOCUMENT_H_
#define OTT_TOOLS_REPORT_COMPARISON_DOCUMENT_H_

#include <string>

#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/faster_answer.h"
#include "tools/report/document.h"

namespace ott::report {

// The names in a report on runs with `--before`.
inline constexpr ab::SideNames kBeforeAndAfter = {"before", "after"};

// The picture "comparison".
Json DrawComparison(const ab::Comparison& comparison, const ab::SideNames& names);

// The page of `ott ab`. subject: one line about what was compared.
std::string ToComparisonPage(const ab::Comparison& comparison, const std::string& subject);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_COMPARISON_DOCUMENT_H_
