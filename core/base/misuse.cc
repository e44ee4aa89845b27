#include "ott/core/base/misuse.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace ott::internal {

void PrintMisuse(std::string_view message) {
  std::string line = "ott: ";
  line.append(message).append("\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
}

std::string Quoted(std::string_view name) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(absl::string_view(name.data(), name.size())), "\"");
}

std::string At(Place place) { return absl::StrCat(place.file, ":", place.line); }

int ThisThreadId() { return static_cast<int>(syscall(SYS_gettid)); }

}  // namespace ott::internal
