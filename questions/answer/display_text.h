// Names and numbers as a page shows them, whatever a file says.

#ifndef OTT_QUESTIONS_ANSWER_DISPLAY_TEXT_H_
#define OTT_QUESTIONS_ANSWER_DISPLAY_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace ott {

// Makes a name one line, valid UTF-8, no longer than 120 characters, the middle left out; control characters
// and those that turn the direction of writing are escaped.
std::string DisplayName(std::string_view name);

// Lines as DisplayName() has names, but long ones; cut after max_bytes, which a last line says.
std::string DisplayLines(std::string_view text, size_t max_bytes);

// Returns the bytes that the first characters take, all of them where there are no more.
size_t FirstBytes(std::string_view text, size_t num_characters);

// Rounds to so many significant digits, so that JSON has no more; NaN for what is not finite.
double Rounded(double value, int digits = 5);

}  // namespace ott

#endif  // OTT_QUESTIONS_ANSWER_DISPLAY_TEXT_H_
