// Text inside of XML and HTML.

#ifndef OTT_TOOLS_AB_MARKUP_H_
#define OTT_TOOLS_AB_MARKUP_H_

#include <string>

#include "absl/strings/str_replace.h"
#include "ott/core/base/text_table.h"
#include "ott/core/base/utf8.h"

namespace ott::ab {

// Lines of text without other control characters.
inline std::string EscapeLines(const std::string& text) {
  std::string valid;
  AppendValidUtf8(text, valid);
  return absl::StrReplaceAll(valid, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

// For text and for attributes; control characters, which XML does not allow, are escaped as \xNN.
inline std::string EscapeMarkup(const std::string& text) {
  return EscapeLines(EscapeControlCharacters(text));
}

}  // namespace ott::ab

#endif  // OTT_TOOLS_AB_MARKUP_H_
