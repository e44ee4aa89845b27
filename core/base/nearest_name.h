// What somebody probably meant who wrote a name that is none.

#ifndef OTT_CORE_BASE_NEAREST_NAME_H_
#define OTT_CORE_BASE_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace ott {

// Of the names the one that takes the fewest insertions, deletions and replacements of a character to make of
// `name` (Levenshtein 1966); the first of several. Empty if all take more than half of the longer one's
// length.
std::string NearestName(std::string_view name, const std::vector<std::string>& names);

}  // namespace ott

#endif  // OTT_CORE_BASE_NEAREST_NAME_H_
