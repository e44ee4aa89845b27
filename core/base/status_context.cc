#include "ott/core/base/status_context.h"

#include "absl/strings/str_cat.h"

namespace ott {

absl::Status WithContext(const std::string& context, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace ott
