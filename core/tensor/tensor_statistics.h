// Describes what a tensor's numbers are like, without the numbers.

#ifndef OTT_CORE_TENSOR_TENSOR_STATISTICS_H_
#define OTT_CORE_TENSOR_TENSOR_STATISTICS_H_

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// Over the finite elements, complex ones by their magnitude.
struct TensorStatistics {
  std::optional<double> min;  // absent if no element is finite
  std::optional<double> max;
  std::optional<double> mean;
  double l2_norm = 0;  // root of the sum of squares
  int64_t num_nan = 0;
  int64_t num_inf = 0;
};

// Errors: as CloneToHost.
absl::StatusOr<TensorStatistics> ComputeStatistics(const TensorView& tensor);

}  // namespace ott

#endif  // OTT_CORE_TENSOR_TENSOR_STATISTICS_H_
