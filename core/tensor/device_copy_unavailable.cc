#include "ott/core/tensor/device_copy.h"

namespace ott {
namespace {

absl::Status Unimplemented() {
  return absl::UnimplementedError(
      "a tensor in CUDA memory cannot be read: this program was built without CUDA (set CUDA_HOME and build "
      "again)");
}

}  // namespace

absl::Status CopyToHost(const void*, int64_t, const Device&, void*) { return Unimplemented(); }

absl::StatusOr<CopyDone> StartCopyToHost(const void*, int64_t, const Device&, void*) {
  return Unimplemented();
}

absl::StatusOr<std::shared_ptr<void>> AllocatePinned(int64_t) { return Unimplemented(); }

}  // namespace ott
