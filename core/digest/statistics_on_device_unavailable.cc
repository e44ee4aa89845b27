#include "ott/core/digest/statistics_on_device.h"

namespace ott {

bool HasStatisticsOnDevice(const TensorView&) { return false; }

absl::StatusOr<std::unique_ptr<const StatisticsOnDevice>> StartStatisticsOnDevice(const TensorView&) {
  return absl::UnimplementedError(
      "a tensor in CUDA memory has no statistics: this program was built without CUDA (set CUDA_HOME and "
      "build again)");
}

}  // namespace ott
