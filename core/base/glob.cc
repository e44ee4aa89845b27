#include "ott/core/base/glob.h"

#include <cstddef>

namespace ott {

bool MatchesGlob(std::string_view text, std::string_view glob) {
  // Where to go on after the last star, one character later.
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  size_t t = 0;
  size_t g = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      star_text = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

}  // namespace ott
