#include "ott/core/base/glob.h"

#include <cstddef>
#include <string>

namespace ott {

bool MatchesGlob(std::string_view text, std::string_view glob) {
  // Matching goes on after the last star, one character later.
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

bool MatchesTensorGlob(std::string_view path, std::string_view glob) {
  constexpr std::string_view kTensors = "tensors.";
  constexpr std::string_view kGradients = "grads.";
  const auto starts_with = [](std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
  };
  if (starts_with(path, kTensors)) path.remove_prefix(kTensors.size());
  if (MatchesGlob(path, glob)) return true;
  if (starts_with(path, kGradients)) return false;
  if (starts_with(glob, kTensors)) return MatchesGlob(path, glob.substr(kTensors.size()));
  // Only a wildcard can stand for a part of "tensors.".
  const size_t wildcard = glob.find_first_of("*?");
  if (wildcard > kTensors.size()) return false;
  return MatchesGlob(std::string(kTensors).append(path), glob);
}

}  // namespace ott
