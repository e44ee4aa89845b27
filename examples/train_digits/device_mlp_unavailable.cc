#include "examples/train_digits/device_mlp.h"

namespace ott::examples {

absl::StatusOr<int> DeviceOfRank(int) { return absl::UnimplementedError("--device: built without CUDA"); }

absl::StatusOr<std::unique_ptr<DeviceMlp>> CreateDeviceMlp(Mlp&, Kernel, int64_t, int) {
  return absl::UnimplementedError("--device: built without CUDA");
}

}  // namespace ott::examples
