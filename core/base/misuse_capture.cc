#include "ott/core/base/misuse_capture.h"

namespace ott::internal {

__thread MisuseCapture* MisuseCapture::innermost_ = nullptr;

void MisuseCapture::Add(std::string_view message, bool is_printed, bool aborts) {
  is_printed_ |= is_printed;
  aborts_ |= aborts;
  if (!message_.empty()) message_.append("\n");
  message_.append(message);
}

}  // namespace ott::internal
