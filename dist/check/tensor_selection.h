// Selects which tensors a cross-check compares, and how.

#ifndef OTT_DIST_CHECK_TENSOR_SELECTION_H_
#define OTT_DIST_CHECK_TENSOR_SELECTION_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/mesh/rank_mesh.h"

namespace ott {

// Returns the kind of a tensor by a configuration, or else by its path.
TensorKind KindOfTensor(const CrossCheckConfig& config, const std::string& path);

// The rules of a CrossCheckConfig by path, gradients being below "grads.".
//
// Thread-safe. The configuration is copied.
class TensorSelection {
 public:
  // Returns INVALID_ARGUMENT for shards along axes that `meshes` does not have.
  static absl::StatusOr<TensorSelection> Create(const CrossCheckConfig& config, const RankMeshes& meshes);

  TensorKind KindOf(const std::string& path) const { return KindOfTensor(config_, path); }
  // Returns true if tensors of its kind are checked.
  bool IsSelected(const std::string& path) const;
  // Returns true if all ranks should hold the same.
  bool IsReplicated(const std::string& path) const;
  // Returns true if each rank should have its own.
  bool IsDistinct(const std::string& path) const;
  // Returns the entry of config.sharded that says that a tensor is a shard, as an index; -1 for other
  // tensors.
  int ShardingOf(const std::string& path) const;

  // Returns the kinds and globs of the configuration that match no tensor, each by name; empty if all match
  // one. A check with such a kind or glob is no pass. Nor is one with images in place of tensors, which are
  // named, too.
  std::string FindUnmatched(const std::vector<NamedTensor>& tensors) const;
  // Does the same without the globs of replicas; and of one sharding's globs.
  std::string FindUnmatchedKinds(const std::vector<NamedTensor>& tensors) const;
  std::string FindUnmatchedShards(int sharding, const std::vector<NamedTensor>& tensors) const;
  // Does the same for those that are distinct.
  std::string FindUnmatchedDistinct(const std::vector<NamedTensor>& tensors) const;

  // Returns the part of them that `rank` holds.
  int PartOf(int sharding, int rank) const { return parts_[sharding].positions[rank]; }
  // Returns the number of parts.
  int NumParts(int sharding) const { return parts_[sharding].num_positions; }
  // Returns that part of a whole tensor, which has no elements if there are too few. INVALID_ARGUMENT if it
  // has no such dimension.
  absl::StatusOr<TensorView> Slice(int sharding, int rank, const TensorView& whole) const;

  const CrossCheckConfig& config() const { return config_; }

 private:
  TensorSelection(const CrossCheckConfig& config, std::vector<RanksAlong> parts)
      : config_(config), parts_(std::move(parts)) {}

  CrossCheckConfig config_;
  std::vector<RanksAlong> parts_;  // of each of config.sharded
};

// Lists what is compared of them (ListComparable() in core/dump/stand_in.h), by TensorName()s
// (core/dump/dump_files.h); grads may be null. In these orders of adding (core/dump/adding_order.h),
// gradients behind all others.
std::vector<NamedTensor> ListTensorsAndGrads(const Value& tensors, const Value* grads,
                                             const std::vector<std::string>& tensor_order = {},
                                             const std::vector<std::string>& grad_order = {});
// Lists those of a dump.
std::vector<NamedTensor> ListTensorsAndGrads(const Dump& dump);

}  // namespace ott

#endif  // OTT_DIST_CHECK_TENSOR_SELECTION_H_
