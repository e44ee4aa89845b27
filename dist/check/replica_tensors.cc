#include "dist/check/replica_tensors.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott::internal {
namespace {

std::string ToBytes(const Digest& digest) {
  std::string bytes(kDigestBytes, '\0');
  static_assert(sizeof(digest.low) + sizeof(digest.high) == kDigestBytes);
  std::memcpy(bytes.data(), &digest.low, sizeof(digest.low));
  std::memcpy(bytes.data() + sizeof(digest.low), &digest.high, sizeof(digest.high));
  return bytes;
}

absl::StatusOr<std::string> DigestOf(std::string_view bytes) {
  OTT_ASSIGN_OR_RETURN(const Digest digest, DigestOfBytes(bytes));
  return ToBytes(digest);
}

constexpr char kNoElements[] = "only its digest was dumped, with its statistics or an image";

template <typename Set>
void SetOrError(absl::StatusOr<std::string> bytes, Set set, ReplicaAnswer& answer) {
  if (bytes.ok()) return set(*std::move(bytes));
  answer.set_error(std::string(bytes.status().message()));
}

int64_t NumBlocks(const TensorView& view) {
  return (view.num_bytes() + kDigestBlockBytes - 1) / kDigestBlockBytes;
}

}  // namespace

bool IsText(const NamedTensor& tensor) { return tensor.content == NamedTensor::Content::kText; }

std::string DTypeNameOf(const NamedTensor& tensor) {
  return IsText(tensor) ? kTextDType : std::string(Name(tensor.tensor.view.dtype()));
}

ReplicaTensors::ReplicaTensors(absl::Span<const NamedTensor> tensors)
    : tensors_(tensors), by_path_(tensors.size()) {
  std::iota(by_path_.begin(), by_path_.end(), size_t{0});
  std::stable_sort(by_path_.begin(), by_path_.end(),
                   [&](size_t a, size_t b) { return tensors_[a].path < tensors_[b].path; });
}

absl::Status ReplicaTensors::OwnDigest::Compute(const NamedTensor& named) {
  if (named.content == NamedTensor::Content::kDigest) {
    has_elements = false;
    OTT_ASSIGN_OR_RETURN(root, ParseDigest(named.digest));
    return absl::OkStatus();
  }
  const Tensor& tensor = named.tensor;
  const bool stays = tensor.view.device().kind == Device::Kind::kCuda && tensor.view.is_contiguous() &&
                     tensor.view.num_elements() > 0;
  if (!stays) {
    OTT_ASSIGN_OR_RETURN(TensorDigest digest, ComputeDigest(tensor.view));
    root = digest.root;
    leaves = std::move(digest.leaves);
    return absl::OkStatus();
  }
  on_device = FindDigest(tensor);
  if (on_device == nullptr) {
    OTT_ASSIGN_OR_RETURN(own, StartDigestOnDevice(tensor.view));
    on_device = own.get();
  }
  OTT_ASSIGN_OR_RETURN(root, on_device->Root());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Digest>> ReplicaTensors::OwnDigest::Leaves() const {
  if (!has_elements) return absl::FailedPreconditionError(kNoElements);
  if (on_device != nullptr) return on_device->Leaves();
  return leaves;
}

ReplicaAnnouncement ReplicaTensors::Announce(int64_t iteration) {
  ReplicaAnnouncement announcement;
  announcement.set_iteration(iteration);
  if (const absl::Status status = ComputeDigests(announcement); !status.ok()) {
    announcement.set_error(std::string(status.message()));
  }
  return announcement;
}

ReplicaAnswer ReplicaTensors::Answer(const ReplicaRequest& request) const {
  ReplicaAnswer answer;
  answer.set_check(request.check());
  if (request.has_schema()) {
    *answer.mutable_schema() = Schema();
  } else if (request.has_digests()) {
    SetOrError(
        Digests(request.digests()), [&](std::string bytes) { answer.set_digests(std::move(bytes)); }, answer);
  } else if (request.has_leaves_of_tensor()) {
    SetOrError(
        Leaves(request.leaves_of_tensor()), [&](std::string bytes) { answer.set_leaves(std::move(bytes)); },
        answer);
  } else {
    SetOrError(
        Block(request.block().tensor(), request.block().block()),
        [&](std::string bytes) { answer.set_block(std::move(bytes)); }, answer);
  }
  return answer;
}

absl::StatusOr<std::string> ReplicaTensors::Digests(const DigestRange& range) const {
  const auto size = static_cast<int64_t>(digests_.size());
  if (range.begin() < 0 || range.begin() > range.end() || range.end() > size) {
    return absl::OutOfRangeError(
        absl::StrCat("no tensors from ", range.begin(), " to ", range.end(), " of ", size));
  }
  std::string bytes;
  for (int64_t tensor = range.begin(); tensor < range.end(); ++tensor) {
    bytes.append(ToBytes(digests_[tensor].root));
  }
  if (!range.combined()) return bytes;
  return DigestOf(bytes);
}

absl::StatusOr<std::string> ReplicaTensors::Leaves(int64_t tensor) const {
  if (tensor < 0 || tensor >= static_cast<int64_t>(digests_.size())) {
    return absl::OutOfRangeError(absl::StrCat("no tensor ", tensor));
  }
  OTT_ASSIGN_OR_RETURN(const std::vector<Digest> leaves, digests_[tensor].Leaves());
  std::string bytes;
  for (const Digest& leaf : leaves) bytes.append(ToBytes(leaf));
  return bytes;
}

absl::Status ReplicaTensors::ComputeDigests(ReplicaAnnouncement& announcement) {
  std::string all;
  all.reserve(tensors_.size() * kDigestBytes);
  digests_.reserve(tensors_.size());
  for (size_t i = 0; i < size(); ++i) {
    const NamedTensor& tensor = (*this)[i];
    const absl::Status status = digests_.emplace_back().Compute(tensor);
    if (!status.ok()) {
      return absl::Status(status.code(), absl::StrCat(tensor.path, ": ", status.message()));
    }
    all.append(ToBytes(digests_.back().root));
  }
  OTT_ASSIGN_OR_RETURN(*announcement.mutable_tensors_digest(), DigestOf(all));
  OTT_ASSIGN_OR_RETURN(*announcement.mutable_schema_digest(), DigestOf(SchemaBytes()));
  return absl::OkStatus();
}

std::string ReplicaTensors::SchemaBytes() const {
  std::string bytes;
  for (size_t i = 0; i < size(); ++i) {
    const NamedTensor& tensor = (*this)[i];
    bytes.append(absl::StrCat(tensor.path.size(), " ", tensor.path));
    if (IsText(tensor)) {
      bytes.append(kTextDType);
      continue;
    }
    const TensorView& view = tensor.tensor.view;
    bytes.push_back(static_cast<char>(view.dtype()));
    bytes.push_back(static_cast<char>(view.shape().size()));
    bytes.append(reinterpret_cast<const char*>(view.shape().data()), view.shape().size() * sizeof(int64_t));
  }
  return bytes;
}

ReplicaSchema ReplicaTensors::Schema() const {
  ReplicaSchema schema;
  for (const NamedTensor& tensor : tensors_) {
    TensorSchema& description = *schema.add_tensors();
    description.set_path(tensor.path);
    description.set_dtype(DTypeNameOf(tensor));
    if (IsText(tensor)) continue;
    for (const int64_t extent : tensor.tensor.view.shape()) description.add_shape(extent);
  }
  return schema;
}

absl::StatusOr<std::string> ReplicaTensors::Block(int64_t tensor, int64_t block) const {
  const auto in_range = [](int64_t index, int64_t size) { return index >= 0 && index < size; };
  // A text without characters has a block, too.
  if (!in_range(tensor, static_cast<int64_t>(digests_.size())) ||
      !in_range(block, std::max<int64_t>(NumBlocks((*this)[tensor].tensor.view), IsText((*this)[tensor])))) {
    return absl::OutOfRangeError(absl::StrCat("no block ", block, " of tensor ", tensor));
  }
  if (!digests_[tensor].has_elements) return absl::FailedPreconditionError(kNoElements);
  if (digests_[tensor].on_device != nullptr) return digests_[tensor].on_device->Block(block);
  const TensorView& view = (*this)[tensor].tensor.view;
  Tensor host{view, nullptr};
  if (view.device().kind != Device::Kind::kHost || !view.is_contiguous()) {
    OTT_ASSIGN_OR_RETURN(host, CloneToHost(view));
  }
  const int64_t begin = block * kDigestBlockBytes;
  const int64_t length = std::min(kDigestBlockBytes, view.num_bytes() - begin);
  return std::string(static_cast<const char*>(host.view.data()) + begin, length);
}

}  // namespace ott::internal
