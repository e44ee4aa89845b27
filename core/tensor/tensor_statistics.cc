#include "ott/core/tensor/tensor_statistics.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/element.h"
#include "ott/core/tensor/strided_copy.h"
#include "ott/core/tensor/tensor.h"

namespace ott {
namespace {

constexpr int64_t kBlockElements = 1024;

double ToDouble(std::complex<float> value) { return std::abs(std::complex<double>(value)); }
double ToDouble(std::complex<double> value) { return std::abs(value); }
template <typename T>
double ToDouble(T value) {
  return static_cast<double>(value);
}

struct Sums {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double squares = 0;
  int64_t num_finite = 0;
};

template <typename T>
void AddBlock(const T* elements, int64_t count, Sums& sums, TensorStatistics& statistics) {
  for (int64_t i = 0; i < count; ++i) {
    const double value = ToDouble(elements[i]);
    if (std::isnan(value)) {
      ++statistics.num_nan;
    } else if (std::isinf(value)) {
      ++statistics.num_inf;
    } else {
      sums.min = std::min(sums.min, value);
      sums.max = std::max(sums.max, value);
      sums.sum += value;
      sums.squares += value * value;
      ++sums.num_finite;
    }
  }
}

}  // namespace

absl::StatusOr<TensorStatistics> ComputeStatistics(const TensorView& tensor) {
  OTT_ASSIGN_OR_RETURN(const Tensor host, ToHost(Tensor{tensor, nullptr}));
  TensorStatistics statistics;
  Sums sums;
  VisitDType(tensor.dtype(), [&](auto element) {
    // A byte that is neither 0 nor 1 is no C++ bool.
    using T = std::conditional_t<std::is_same_v<decltype(element), bool>, uint8_t, decltype(element)>;
    T block[kBlockElements];
    for (int64_t begin = 0; begin < tensor.num_elements(); begin += kBlockElements) {
      const int64_t end = std::min(begin + kBlockElements, tensor.num_elements());
      CopyElements(host.view, begin, end, block);
      AddBlock(block, end - begin, sums, statistics);
    }
  });
  if (sums.num_finite > 0) {
    statistics.min = sums.min;
    statistics.max = sums.max;
    statistics.mean = sums.sum / static_cast<double>(sums.num_finite);
  }
  statistics.l2_norm = std::sqrt(sums.squares);
  return statistics;
}

}  // namespace ott
