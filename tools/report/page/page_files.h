// The files of this folder, embedded by its BUILD file.

#ifndef OTT_TOOLS_REPORT_PAGE_PAGE_FILES_H_
#define OTT_TOOLS_REPORT_PAGE_PAGE_FILES_H_

#include <string_view>

namespace ott::report {

extern const std::string_view kPage;    // HTML with {{places}}
extern const std::string_view kStyle;   // CSS
extern const std::string_view kScript;  // what draws
extern const std::string_view kD3;      // with its licence; empty if D3 was not found

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_PAGE_PAGE_FILES_H_
