// The report on a run.

#ifndef OTT_TOOLS_REPORT_RUN_DOCUMENT_H_
#define OTT_TOOLS_REPORT_RUN_DOCUMENT_H_

#include "tools/report/document.h"
#include "tools/report/run_report.h"

namespace ott::report {

// Without pictures.
Document MakeDocument(const RunReport& report);

// Adds the pictures, for which the files of all ranks are read once more, one at a time. Their size is
// bounded, whatever the number of ranks and iterations: rank_grid.h, sampled_timeline.h.
void AddPictures(const RunReport& report, Document* document);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_RUN_DOCUMENT_H_
