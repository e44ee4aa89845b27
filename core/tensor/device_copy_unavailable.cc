#include "ott/core/tensor/device_copy.h"

namespace ott {

absl::Status CopyToHost(const void*, int64_t, const Device&, void*) {
  return absl::UnimplementedError(
      "a tensor in CUDA memory cannot be read: this program was built without CUDA (set CUDA_HOME and build "
      "again)");
}

}  // namespace ott
