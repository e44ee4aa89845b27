// Expands patterns of paths as a shell does.

#ifndef OTT_CORE_BASE_EXPAND_PATH_H_
#define OTT_CORE_BASE_EXPAND_PATH_H_

#include <string>
#include <vector>

namespace ott {

// Returns the paths that the pattern matches, sorted; the pattern itself if it is a path that exists, or
// matches nothing.
std::vector<std::string> ExpandPath(const std::string& pattern);

}  // namespace ott

#endif  // OTT_CORE_BASE_EXPAND_PATH_H_
