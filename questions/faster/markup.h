// Text inside of XML.

#ifndef OTT_QUESTIONS_FASTER_MARKUP_H_
#define OTT_QUESTIONS_FASTER_MARKUP_H_

#include <string>

#include "absl/strings/str_replace.h"
#include "ott/core/base/text_table.h"
#include "ott/core/base/utf8.h"

namespace ott::faster {

// Escapes for text and for attributes; control characters, which XML does not allow, become \xNN.
inline std::string EscapeMarkup(const std::string& text) {
  return absl::StrReplaceAll(ValidUtf8(EscapeControlCharacters(text)),
                             {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_MARKUP_H_
