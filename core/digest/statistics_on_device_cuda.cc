#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "ott/core/base/status_macros.h"
#include "ott/core/digest/statistics_kernel.h"
#include "ott/core/digest/statistics_on_device.h"
#include "ott/core/digest/stream_scratch.h"
#include "ott/core/tensor/cuda_status.h"
#include "ott/core/tensor/device_element.h"

namespace ott {
namespace {

using internal::DeviceStatistics;
using internal::FromCuda;
using internal::RealElements;
using internal::StreamScratch;
using internal::StridedElements;

StridedElements LayoutOf(const TensorView& tensor) {
  StridedElements layout = {};
  layout.num_dimensions = static_cast<int>(tensor.shape().size());
  layout.element_bytes = static_cast<int>(SizeOf(tensor.dtype()));
  for (int i = 0; i < layout.num_dimensions; ++i) {
    layout.shape[i] = tensor.shape()[i];
    layout.strides[i] = tensor.strides()[i] * layout.element_bytes;
  }
  return layout;
}

class CudaStatistics final : public StatisticsOnDevice {
 public:
  explicit CudaStatistics(const Device& device) : scratch_(device) {}

  absl::Status Start(const TensorView& tensor) {
    const internal::CudaDeviceScope device(tensor.device().ordinal);
    OTT_RETURN_IF_ERROR(device.status());
    num_blocks_ = (tensor.num_bytes() + kDigestBlockBytes - 1) / kDigestBlockBytes;
    OTT_RETURN_IF_ERROR(
        scratch_.Allocate((num_blocks_ + 1) * static_cast<int64_t>(sizeof(DeviceStatistics))));
    const RealElements elements = internal::RealElementsOf(tensor.dtype());
    const int64_t alignment = SizeOf(tensor.dtype()) / elements.number;
    const bool is_aligned = reinterpret_cast<uintptr_t>(tensor.data()) % alignment == 0;
    if (tensor.is_contiguous() && is_aligned) return Launch(tensor, tensor.data());
    void* gathered = nullptr;
    OTT_RETURN_IF_ERROR(
        FromCuda(cudaMallocAsync(&gathered, tensor.num_bytes(), scratch_.stream()), "cudaMallocAsync"));
    absl::Status status =
        FromCuda(internal::LaunchGatherKernel(tensor.data(), LayoutOf(tensor), tensor.num_elements(),
                                              gathered, scratch_.stream()),
                 "the kernel that gathers elements");
    if (status.ok()) status = Launch(tensor, gathered);
    status.Update(FromCuda(cudaFreeAsync(gathered, scratch_.stream()), "cudaFreeAsync"));
    return status;
  }

  absl::StatusOr<DigestAndStatistics> Get() const override {
    DeviceStatistics total;
    OTT_RETURN_IF_ERROR(
        scratch_.Read(num_blocks_ * static_cast<int64_t>(sizeof(total)), sizeof(total), &total));
    DigestAndStatistics result;
    result.digest = {total.digest[0], total.digest[1]};
    SketchedStatistics& statistics = result.statistics;
    statistics.norm = std::sqrt(total.squares);
    statistics.max_abs = total.max_abs;
    statistics.num_nan = total.num_nan;
    statistics.num_infinite = total.num_infinite;
    static_assert(std::size(decltype(total.sums){}) == TensorSketch::kNumSums);
    std::copy(std::begin(total.sums), std::end(total.sums), statistics.sketch.sums.begin());
    return result;
  }

 private:
  // data: the tensor's elements in row-major order without gaps.
  absl::Status Launch(const TensorView& tensor, const void* data) {
    auto* const blocks = scratch_.As<DeviceStatistics>();
    const Digest header = DigestOfHeader(tensor.dtype(), tensor.shape());
    cudaError_t launched =
        internal::LaunchStatisticsKernel(internal::RealElementsOf(tensor.dtype()).element, data,
                                         tensor.num_bytes(), kDigestBlockBytes, blocks, scratch_.stream());
    if (launched == cudaSuccess) {
      launched = internal::LaunchTotalStatisticsKernel(header.low, header.high, blocks, num_blocks_,
                                                       blocks + num_blocks_, scratch_.stream());
    }
    OTT_RETURN_IF_ERROR(FromCuda(launched, "the kernel of statistics"));
    return scratch_.Finish();
  }

  StreamScratch scratch_;
  int64_t num_blocks_ = 0;
};

}  // namespace

bool HasStatisticsOnDevice(const TensorView& tensor) {
  return tensor.device().kind == Device::Kind::kCuda && tensor.num_elements() > 0 &&
         tensor.shape().size() <= StridedElements::kMaxDimensions;
}

absl::StatusOr<std::unique_ptr<const StatisticsOnDevice>> StartStatisticsOnDevice(const TensorView& tensor) {
  auto statistics = std::make_unique<CudaStatistics>(tensor.device());
  OTT_RETURN_IF_ERROR(statistics->Start(tensor));
  return statistics;
}

}  // namespace ott
