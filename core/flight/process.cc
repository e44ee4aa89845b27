#include "ott/core/flight/process.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace ott {

ProcessStatus ReadProcess(int64_t process) {
  ProcessStatus status;
  std::FILE* const file = std::fopen(absl::StrCat("/proc/", process, "/stat").c_str(), "re");
  if (file == nullptr) return status;
  char text[1024] = {};
  const size_t size = std::fread(text, 1, sizeof(text) - 1, file);
  std::fclose(file);
  text[size] = 0;
  // The name, which may hold anything, is in brackets; the state is the third field, the start the 22nd.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] != ' ') return status;
  status.state = at[2];
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  if (at != nullptr) status.started = std::strtoull(at, nullptr, 10);
  return status;
}

std::string ThisMachine() {
  char boot[64] = {};
  std::FILE* const file = std::fopen("/proc/sys/kernel/random/boot_id", "re");
  if (file == nullptr) return "";
  if (std::fscanf(file, "%36s", boot) != 1) boot[0] = 0;
  std::fclose(file);
  char name_space[64] = {};
  if (readlink("/proc/self/ns/pid", name_space, sizeof(name_space) - 1) < 0) return "";
  return absl::StrCat(boot, " ", name_space);
}

}  // namespace ott
