#include "ott/core/base/misuse.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/misuse_capture.h"

namespace ott::internal {

void ReportMisuse(OnMisuse on_misuse, std::string_view message) {
  if (MisuseCapture* const capture = MisuseCapture::Innermost()) return capture->Add(message);
  std::string line = "ott: ";
  line.append(message).append("\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  if (on_misuse == OnMisuse::kAbort) std::abort();
}

std::string Quoted(std::string_view name) {
  return absl::StrCat("\"", absl::Utf8SafeCEscape(absl::string_view(name.data(), name.size())), "\"");
}

std::string At(Place place) { return absl::StrCat(place.file, ":", place.line); }

int ThisThreadId() { return static_cast<int>(syscall(SYS_gettid)); }

}  // namespace ott::internal
