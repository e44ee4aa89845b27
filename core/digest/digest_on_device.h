// Digests of tensors that stay in device memory.

#ifndef OTT_CORE_DIGEST_DIGEST_ON_DEVICE_H_
#define OTT_CORE_DIGEST_DIGEST_ON_DEVICE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/digest/digest.h"
#include "ott/core/tensor/tensor.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// The digest of a tensor in device memory at a moment of its stream: its root, and what else is asked for,
// comes to the host; the leaves, 16 bytes of each block, stay on the device. Thread-safe.
//
//   OTT_ASSIGN_OR_RETURN(auto digest, StartDigestOnDevice(view));   // nobody waits
//   OTT_RETURN_IF_ERROR(Train(view));                               // may change it, on the same stream
//   OTT_ASSIGN_OR_RETURN(const Digest root, digest->Root());
class DigestOnDevice {
 public:
  virtual ~DigestOnDevice() = default;

  // Wait for the digest, not for what the stream got after it. INTERNAL with CUDA's message where CUDA
  // failed.
  virtual absl::StatusOr<Digest> Root() const = 0;
  virtual absl::StatusOr<std::vector<Digest>> Leaves() const = 0;
  // Returns the bytes of one block of kDigestBlockBytes (the last may be shorter), as they were.
  // FAILED_PRECONDITION where the tensor has changed since. REQUIRES: the tensor's memory is still there, and
  // no work that changes it is running
  virtual absl::StatusOr<std::string> Block(int64_t block) const = 0;

  virtual const TensorView& tensor() const = 0;
};

// Takes the digest on the tensor's stream, behind its work so far and before what it gets later, and returns
// at once. UNIMPLEMENTED in a build without CUDA; INTERNAL with CUDA's message where CUDA fails. REQUIRES:
// the tensor is in device memory, contiguous, and has elements
absl::StatusOr<std::shared_ptr<const DigestOnDevice>> StartDigestOnDevice(const TensorView& tensor);

// Returns a tensor that stays where it is and brings the digest along, and the digest that a tensor brings;
// null where it brings none.
Tensor WithDigest(std::shared_ptr<const DigestOnDevice> digest);
const DigestOnDevice* FindDigest(const Tensor& tensor);

}  // namespace ott

#endif  // OTT_CORE_DIGEST_DIGEST_ON_DEVICE_H_
