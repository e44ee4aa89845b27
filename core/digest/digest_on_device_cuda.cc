#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "ott/core/base/forked_from_cuda.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/digest/digest_kernel.h"
#include "ott/core/digest/digest_on_device.h"
#include "ott/core/tensor/copy_stream.h"
#include "ott/core/tensor/cuda_status.h"
#include "ott/core/tensor/device_copy.h"

namespace ott {
namespace {

using internal::CopyStream;
using internal::CudaDeviceScope;
using internal::FromCuda;

class CudaDigest final : public DigestOnDevice {
 public:
  explicit CudaDigest(const TensorView& tensor)
      : tensor_(tensor), num_leaves_((tensor.num_bytes() + kDigestBlockBytes - 1) / kDigestBlockBytes) {}

  ~CudaDigest() override {
    if (IsForkedFromCuda()) return;
    const CudaDeviceScope device(tensor_.device().ordinal);
    // The copy stream waits for the kernels that still write there.
    if (memory_ != nullptr &&
        (done_ == nullptr || cudaStreamWaitEvent(copy_stream_, done_, 0) != cudaSuccess)) {
      cudaStreamSynchronize(Stream());
    }
    if (memory_ != nullptr) cudaFreeAsync(memory_, copy_stream_);
    if (done_ != nullptr) cudaEventDestroy(done_);
  }

  absl::Status Start() {
    const CudaDeviceScope device(tensor_.device().ordinal);
    OTT_RETURN_IF_ERROR(device.status());
    OTT_ASSIGN_OR_RETURN(copy_stream_, CopyStream(tensor_.device().ordinal));
    const size_t size = (num_leaves_ + 1) * sizeof(Digest);
    OTT_RETURN_IF_ERROR(FromCuda(cudaMallocAsync(&memory_, size, Stream()), "cudaMallocAsync"));
    OTT_RETURN_IF_ERROR(
        FromCuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming | cudaEventBlockingSync),
                 "cudaEventCreateWithFlags"));
    auto* const leaves = static_cast<uint64_t*>(memory_);
    OTT_RETURN_IF_ERROR(FromCuda(internal::LaunchDigestKernel(tensor_.data(), tensor_.num_bytes(),
                                                              kDigestBlockBytes, leaves, Stream()),
                                 "the digest's kernel"));
    const Digest prefix = DigestOfLeaves(tensor_.dtype(), tensor_.shape(), {});
    OTT_RETURN_IF_ERROR(
        FromCuda(internal::LaunchDigestRootKernel(prefix.low, prefix.high, leaves, num_leaves_,
                                                  leaves + 2 * num_leaves_, Stream()),
                 "the digest's kernel"));
    return FromCuda(cudaEventRecord(done_, Stream()), "cudaEventRecord");
  }

  absl::StatusOr<Digest> Root() const override {
    Digest root;
    OTT_RETURN_IF_ERROR(Copy(num_leaves_, 1, &root));
    return root;
  }

  absl::StatusOr<std::vector<Digest>> Leaves() const override {
    std::vector<Digest> leaves(num_leaves_);
    OTT_RETURN_IF_ERROR(Copy(0, num_leaves_, leaves.data()));
    return leaves;
  }

  absl::StatusOr<std::string> Block(int64_t block) const override {
    Digest leaf;
    OTT_RETURN_IF_ERROR(Copy(block, 1, &leaf));
    const int64_t begin = block * kDigestBlockBytes;
    std::string bytes(std::min(kDigestBlockBytes, tensor_.num_bytes() - begin), '\0');
    Device device = tensor_.device();
    device.stream = copy_stream_;
    OTT_RETURN_IF_ERROR(CopyToHost(static_cast<const char*>(tensor_.data()) + begin,
                                   static_cast<int64_t>(bytes.size()), device, bytes.data()));
    if (DigestOfBlock(bytes) != leaf) {
      return absl::FailedPreconditionError(
          "the tensor has changed since its digest was taken, so its elements cannot be shown");
    }
    return bytes;
  }

  const TensorView& tensor() const override { return tensor_; }

 private:
  cudaStream_t Stream() const { return static_cast<cudaStream_t>(tensor_.device().stream); }

  // Digests from number `first` on; the one behind the leaves is the root.
  absl::Status Copy(int64_t first, int64_t number, Digest* to) const {
    static_assert(sizeof(Digest) == 2 * sizeof(uint64_t));
    const CudaDeviceScope scope(tensor_.device().ordinal);
    OTT_RETURN_IF_ERROR(scope.status());
    OTT_RETURN_IF_ERROR(FromCuda(cudaStreamWaitEvent(copy_stream_, done_, 0), "cudaStreamWaitEvent"));
    Device device = tensor_.device();
    device.stream = copy_stream_;
    return CopyToHost(static_cast<const Digest*>(memory_) + first,
                      static_cast<int64_t>(number * sizeof(Digest)), device, to);
  }

  const TensorView tensor_;
  const int64_t num_leaves_;
  cudaStream_t copy_stream_ = nullptr;
  // The leaves and the root.
  void* memory_ = nullptr;
  cudaEvent_t done_ = nullptr;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const DigestOnDevice>> StartDigestOnDevice(const TensorView& tensor) {
  const auto digest = std::make_shared<CudaDigest>(tensor);
  OTT_RETURN_IF_ERROR(digest->Start());
  return digest;
}

}  // namespace ott
