// Makes the arguments of posix_spawn().

#ifndef OTT_CORE_BASE_SPAWN_ARGUMENTS_H_
#define OTT_CORE_BASE_SPAWN_ARGUMENTS_H_

#include <map>
#include <string>
#include <vector>

namespace ott {

// This process's environment, with `added` in place of variables of the same names.
std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& added);

// To the strings, which stay as they are; null after the last.
std::vector<char*> Pointers(std::vector<std::string>& strings);

}  // namespace ott

#endif  // OTT_CORE_BASE_SPAWN_ARGUMENTS_H_
