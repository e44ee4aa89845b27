// Patterns over the paths of tensors and over names.

#ifndef OTT_CORE_BASE_GLOB_H_
#define OTT_CORE_BASE_GLOB_H_

#include <algorithm>
#include <string_view>

namespace ott {

// Whether the whole text matches: * stands for any characters, also dots and none, and ? for one. Everything
// else, brackets and backslashes included, stands for itself.
bool MatchesGlob(std::string_view text, std::string_view glob);

// Whether any of a range of strings does.
template <typename Globs>
bool MatchesAnyGlob(std::string_view text, const Globs& globs) {
  return std::any_of(globs.begin(), globs.end(),
                     [text](const auto& glob) { return MatchesGlob(text, glob); });
}

// The same of a tensor's name, before which a glob, or the name, may say which file of a dump it is in:
// "tensors.weights.w1" is "weights.w1".
bool MatchesTensorGlob(std::string_view path, std::string_view glob);

template <typename Globs>
bool MatchesAnyTensorGlob(std::string_view path, const Globs& globs) {
  return std::any_of(globs.begin(), globs.end(),
                     [path](const auto& glob) { return MatchesTensorGlob(path, glob); });
}

}  // namespace ott

#endif  // OTT_CORE_BASE_GLOB_H_
