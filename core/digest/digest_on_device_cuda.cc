#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "ott/core/base/status_macros.h"
#include "ott/core/digest/digest_kernel.h"
#include "ott/core/digest/digest_on_device.h"
#include "ott/core/digest/stream_scratch.h"
#include "ott/core/tensor/cuda_status.h"
#include "ott/core/tensor/device_copy.h"

namespace ott {
namespace {

using internal::CudaDeviceScope;
using internal::FromCuda;
using internal::StreamScratch;

class CudaDigest final : public DigestOnDevice {
 public:
  explicit CudaDigest(const TensorView& tensor)
      : tensor_(tensor),
        num_leaves_((tensor.num_bytes() + kDigestBlockBytes - 1) / kDigestBlockBytes),
        scratch_(tensor.device()) {}

  absl::Status Start() {
    const CudaDeviceScope device(tensor_.device().ordinal);
    OTT_RETURN_IF_ERROR(device.status());
    // The leaves and the root.
    OTT_RETURN_IF_ERROR(scratch_.Allocate((num_leaves_ + 1) * static_cast<int64_t>(sizeof(Digest))));
    auto* const leaves = scratch_.As<uint64_t>();
    OTT_RETURN_IF_ERROR(FromCuda(internal::LaunchDigestKernel(tensor_.data(), tensor_.num_bytes(),
                                                              kDigestBlockBytes, leaves, scratch_.stream()),
                                 "the digest's kernel"));
    const Digest header = DigestOfHeader(tensor_.dtype(), tensor_.shape());
    OTT_RETURN_IF_ERROR(
        FromCuda(internal::LaunchDigestRootKernel(header.low, header.high, leaves, num_leaves_,
                                                  leaves + 2 * num_leaves_, scratch_.stream()),
                 "the digest's kernel"));
    return scratch_.Finish();
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
    OTT_RETURN_IF_ERROR(CopyToHost(static_cast<const char*>(tensor_.data()) + begin,
                                   static_cast<int64_t>(bytes.size()), scratch_.OnCopyStream(),
                                   bytes.data()));
    if (DigestOfBlock(bytes) != leaf) {
      return absl::FailedPreconditionError(
          "the tensor has changed since its digest was taken, so its elements cannot be shown");
    }
    return bytes;
  }

  const TensorView& tensor() const override { return tensor_; }

 private:
  // Digests from number `first` on; the one behind the leaves is the root.
  absl::Status Copy(int64_t first, int64_t number, Digest* to) const {
    static_assert(sizeof(Digest) == 2 * sizeof(uint64_t));
    constexpr auto kBytes = static_cast<int64_t>(sizeof(Digest));
    return scratch_.Read(first * kBytes, number * kBytes, to);
  }

  const TensorView tensor_;
  const int64_t num_leaves_;
  StreamScratch scratch_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const DigestOnDevice>> StartDigestOnDevice(const TensorView& tensor) {
  const auto digest = std::make_shared<CudaDigest>(tensor);
  OTT_RETURN_IF_ERROR(digest->Start());
  return digest;
}

}  // namespace ott
