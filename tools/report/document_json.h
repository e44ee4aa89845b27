// A report for programs: the schema of docs/report.md.

#ifndef OTT_TOOLS_REPORT_DOCUMENT_JSON_H_
#define OTT_TOOLS_REPORT_DOCUMENT_JSON_H_

#include <string>

#include "ott/questions/answer/document.h"

namespace ott::report {

// Grows where a field goes or changes its meaning; not where one is added.
inline constexpr int kSchemaVersion = 4;

// Returns one object. Names and texts in it are as a page shows them (display_text.h): a name from a file may
// be shortened.
Json ToJson(const Document& document);

// Valid UTF-8, ending with a newline. indent: -1 for one line.
std::string Dump(const Json& json, int indent);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_DOCUMENT_JSON_H_
