// Patterns over the paths of tensors and over names.

#ifndef OTT_CORE_BASE_GLOB_H_
#define OTT_CORE_BASE_GLOB_H_

#include <algorithm>
#include <string_view>

namespace ott {

// Returns true if the whole text matches. * stands for any number of characters, none and dots included, and
// ? for exactly one. Everything else, brackets and backslashes included, stands for itself.
bool MatchesGlob(std::string_view text, std::string_view glob);

// Returns true if any of a range of globs matches.
template <typename Globs>
bool MatchesAnyGlob(std::string_view text, const Globs& globs) {
  return std::any_of(globs.begin(), globs.end(),
                     [text](const auto& glob) { return MatchesGlob(text, glob); });
}

// MatchesGlob() for the name of a tensor. Both the name and the glob may begin with the file of a dump that
// has the tensor: "tensors.weights.w1" is the same as "weights.w1".
bool MatchesTensorGlob(std::string_view path, std::string_view glob);

template <typename Globs>
bool MatchesAnyTensorGlob(std::string_view path, const Globs& globs) {
  return std::any_of(globs.begin(), globs.end(),
                     [path](const auto& glob) { return MatchesTensorGlob(path, glob); });
}

}  // namespace ott

#endif  // OTT_CORE_BASE_GLOB_H_
