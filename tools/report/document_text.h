// A report for the terminal.

#ifndef OTT_TOOLS_REPORT_DOCUMENT_TEXT_H_
#define OTT_TOOLS_REPORT_DOCUMENT_TEXT_H_

#include <cstddef>
#include <string>

#include "ott/questions/answer/document.h"

namespace ott::report {

struct TextStyle {
  bool color = false;  // ANSI escape sequences
  // Lines of answers are broken, and those of tables cut, so that they have so many characters at most; 0: as
  // they come.
  size_t width = 0;
  // If the answers have more lines, how sure they are is told with the details; 0: any number.
  size_t height = 0;
};

// Returns the answers with a mark each (+ good, ! bad, ? cannot tell), what is missing, and then the details.
// Tells the first lines of an answer of many; the details have the rest. Ends with a newline.
std::string ToText(const Document& document, const TextStyle& style);

// Does the same without details.
std::string ToSummary(const Document& document, const TextStyle& style);

// auto: as the terminal is, if it is one; NO_COLOR (no-color.org) and TERM=dumb are obeyed. color: "auto",
// "always" or "never".
TextStyle StyleOfStandardOutput(const std::string& color);

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_DOCUMENT_TEXT_H_
