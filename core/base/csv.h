// Comma-separated values as RFC 4180 has them.

#ifndef OTT_CORE_BASE_CSV_H_
#define OTT_CORE_BASE_CSV_H_

#include <string>
#include <string_view>

namespace ott {

// text, in quotes if it holds a comma, a quote or the end of a line; behind an apostrophe if a spreadsheet
// would take it for a formula. Not for numbers.
std::string CsvField(std::string_view text);

}  // namespace ott

#endif  // OTT_CORE_BASE_CSV_H_
