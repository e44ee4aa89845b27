#include "ott/core/base/expand_path.h"

#include <glob.h>

#include <filesystem>
#include <system_error>

namespace ott {

std::vector<std::string> ExpandPath(const std::string& pattern) {
  std::error_code error;
  if (std::filesystem::exists(pattern, error)) return {pattern};
  std::vector<std::string> paths;
  glob_t matches;
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    paths.assign(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
    globfree(&matches);
  }
  return paths.empty() ? std::vector<std::string>{pattern} : paths;
}

}  // namespace ott
