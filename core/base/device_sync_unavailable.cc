#include "ott/core/base/device_sync.h"

namespace ott {
namespace {

absl::Status Unavailable() {
  return absl::UnimplementedError(
      "device synchronisation: built without the CUDA runtime; set CUDA_HOME to a CUDA toolkit and build "
      "again");
}

}  // namespace

absl::Status SynchronizeDevice() { return Unavailable(); }

absl::Status SynchronizeStream(void*) { return Unavailable(); }

}  // namespace ott
