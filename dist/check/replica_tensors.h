// One rank's tensors in a check of replicas, and what it tells rank 0 of them.

#ifndef OTT_DIST_CHECK_REPLICA_TENSORS_H_
#define OTT_DIST_CHECK_REPLICA_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/core/digest/digest.h"
#include "ott/core/digest/digest_on_device.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/replica_check.pb.h"

namespace ott::internal {

// The size of a digest in the bytes that travel.
inline constexpr size_t kDigestBytes = 16;

// A text is a tensor whose length may differ: its dtype is called so, and its shape is not compared.
inline constexpr char kTextDType[] = "text";
bool IsText(const NamedTensor& tensor);
std::string DTypeNameOf(const NamedTensor& tensor);

class ReplicaTensors {
 public:
  // They must outlive it.
  explicit ReplicaTensors(absl::Span<const NamedTensor> tensors);

  // Digests of all, or the error that kept this rank from it. Called once, before Answer().
  ReplicaAnnouncement Announce(int64_t iteration);
  ReplicaAnswer Answer(const ReplicaRequest& request) const;

  // Returns the tensors by their paths, as ranks whose threads add tensors have them in no common order.
  size_t size() const { return tensors_.size(); }
  const NamedTensor& operator[](size_t tensor) const { return tensors_[by_path_[tensor]]; }
  // Returns its place among the tensors that this rank was given.
  size_t PlaceOf(size_t tensor) const { return by_path_[tensor]; }

 private:
  // A tensor without gaps that is in device memory stays there.
  struct OwnDigest {
    absl::Status Compute(const NamedTensor& tensor);
    absl::StatusOr<std::vector<Digest>> Leaves() const;

    Digest root;
    bool has_elements = true;
    std::vector<Digest> leaves;
    const DigestOnDevice* on_device = nullptr;
    std::shared_ptr<const DigestOnDevice> own;
  };

  absl::Status ComputeDigests(ReplicaAnnouncement& announcement);
  absl::StatusOr<std::string> Digests(const DigestRange& range) const;
  absl::StatusOr<std::string> Leaves(int64_t tensor) const;
  absl::StatusOr<std::string> Block(int64_t tensor, int64_t block) const;
  // Returns what Schema() says, more quickly, whatever the order.
  std::string SchemaBytes() const;
  // Returns the schema in this rank's own order.
  ReplicaSchema Schema() const;

  const absl::Span<const NamedTensor> tensors_;
  std::vector<size_t> by_path_;
  std::vector<OwnDigest> digests_;  // by path
};

}  // namespace ott::internal

#endif  // OTT_DIST_CHECK_REPLICA_TENSORS_H_
