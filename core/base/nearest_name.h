// Finds the name that was probably meant where an unknown one was written.

#ifndef OTT_CORE_BASE_NEAREST_NAME_H_
#define OTT_CORE_BASE_NEAREST_NAME_H_

#include <string>
#include <string_view>
#include <vector>

namespace ott {

// Returns the one of `names` with the smallest edit distance to `name`, that is the number of characters
// inserted, deleted or replaced (Levenshtein 1966); the first of several. Empty if every distance is more
// than half the length of the longer name.
std::string NearestName(std::string_view name, const std::vector<std::string>& names);

}  // namespace ott

#endif  // OTT_CORE_BASE_NEAREST_NAME_H_
