// JSON's strings (RFC 8259): the text between their quotes, written and read.

#ifndef OTT_CORE_JSON_JSON_STRING_H_
#define OTT_CORE_JSON_JSON_STRING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ott {

enum class JsonCharset : uint8_t {
  kUtf8,   // characters beyond ASCII are written as they are
  kAscii,  // they are escaped, as Python's json module does
};

// Returns more than EscapeJson() writes for a text of this size.
constexpr size_t MaxEscapedJsonSize(size_t text_size) { return 6 * text_size; }

// Writes what stands between the quotes for a text, and returns the end. A byte that belongs to no character
// of UTF-8 becomes \ufffd.
// REQUIRES: there is room for MaxEscapedJsonSize(text.size()) bytes.
char* EscapeJson(std::string_view text, char* to, JsonCharset charset = JsonCharset::kUtf8);

// Appends it with quotes.
void AppendJsonString(std::string_view text, std::string& out, JsonCharset charset = JsonCharset::kUtf8);

// Says what is wrong between the quotes of a string, and at which byte.
struct JsonStringError {
  const char* what = nullptr;  // nullptr: nothing
  size_t position = 0;
};

// Appends the text that `raw`, what is between the quotes, stands for, and returns the first error, if any.
// Where one is, the text goes on: a character that cannot be escaped stands for itself, and half of a
// surrogate pair or an escape that lacks digits for U+FFFD. Python's \x and \U are such errors, but are
// undone. Bytes that are not UTF-8 are no error, and are copied.
JsonStringError UnescapeJson(std::string_view raw, std::string& out);

// Unescapes for callers that ignore errors.
std::string UnescapedJson(std::string_view raw);

// Returns true if a text between quotes is as RFC 8259 wants it, UTF-8 included.
bool IsJsonString(std::string_view raw);

}  // namespace ott

#endif  // OTT_CORE_JSON_JSON_STRING_H_
