// A report as one file for the browser.

#ifndef OTT_TOOLS_REPORT_PAGE_H_
#define OTT_TOOLS_REPORT_PAGE_H_

#include <cstddef>
#include <string>

#include "ott/questions/answer/document.h"

namespace ott::report {

inline constexpr size_t kMaxPageBytes = 2'000'000;

struct PageOptions {
  // The page reloads itself so often, for a run that goes on; 0: never.
  int reload_seconds = 0;
};

// At most kMaxPageBytes: what would make it larger is left out, which the page says. Needs no other file and
// no network. The answers and tables are there without scripts; the pictures are drawn by tools/report/page
// with D3, and where that was not built in, are tables.
std::string ToPage(const Document& document, const PageOptions& options = {});

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_PAGE_H_
