#include "ott/dist/check/tensor_selection.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/glob.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/adding_order.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/stand_in.h"

namespace ott {
namespace {

// Says which of the globs no tensor matches that counts.
template <typename Globs, typename Counts>
void AddUnmatched(const char* field, const Globs& globs, const std::vector<NamedTensor>& tensors,
                  Counts counts, std::vector<std::string>& unmatched) {
  for (const std::string& glob : globs) {
    if (std::none_of(tensors.begin(), tensors.end(), [&](const NamedTensor& tensor) {
          return MatchesTensorGlob(tensor.path, glob) && counts(tensor.path);
        })) {
      unmatched.push_back(absl::StrCat(field, ": \"", glob, "\" matches no tensor"));
    }
  }
}

// Says which tensor, of those that count, there are only images or statistics of.
template <typename Counts>
void AddStandIns(const std::vector<NamedTensor>& tensors, Counts counts,
                 std::vector<std::string>& unmatched) {
  const auto stand_in = std::find_if(tensors.begin(), tensors.end(), [&](const NamedTensor& tensor) {
    return tensor.content == NamedTensor::Content::kStandIn && counts(tensor.path);
  });
  if (stand_in == tensors.end()) return;
  unmatched.push_back(absl::StrCat(stand_in->path,
                                   ": is of an image, or of statistics, without a digest of its tensor, "
                                   "and other tensors have the same"));
}

}  // namespace

absl::StatusOr<TensorSelection> TensorSelection::Create(const CrossCheckConfig& config,
                                                        const RankMeshes& meshes) {
  std::vector<RanksAlong> parts;
  for (const ShardedTensors& sharded : config.sharded()) {
    if (sharded.paths().empty() || sharded.dimension() < 0 || sharded.along().empty()) {
      return absl::InvalidArgumentError(absl::StrCat("ott.Config: cross_check: sharded { ",
                                                     sharded.ShortDebugString(),
                                                     " }: needs paths, a dimension, and axes in `along`"));
    }
    OTT_ASSIGN_OR_RETURN(parts.emplace_back(), meshes.Along(sharded.along(), "cross_check: sharded"));
  }
  return TensorSelection(config, std::move(parts));
}

TensorKind KindOfTensor(const CrossCheckConfig& config, const std::string& path) {
  for (const TensorsOfKind& of_kind : config.tensor_kinds()) {
    if (MatchesAnyTensorGlob(path, of_kind.paths())) return of_kind.kind();
  }
  for (const auto& [prefix, kind] :
       {std::pair("parameters.", TENSOR_KIND_PARAMETER), std::pair("weights.", TENSOR_KIND_PARAMETER),
        std::pair("grads.", TENSOR_KIND_GRADIENT), std::pair("gradients.", TENSOR_KIND_GRADIENT),
        std::pair("optimizer.", TENSOR_KIND_OPTIMIZER_STATE)}) {
    if (path.rfind(prefix, 0) == 0) return kind;
  }
  return TENSOR_KIND_OTHER;
}

bool TensorSelection::IsSelected(const std::string& path) const {
  return config_.kinds().empty() ||
         std::find(config_.kinds().begin(), config_.kinds().end(), KindOf(path)) != config_.kinds().end();
}

bool TensorSelection::IsReplicated(const std::string& path) const {
  return IsSelected(path) &&
         (config_.replicated().empty() || MatchesAnyTensorGlob(path, config_.replicated())) &&
         ShardingOf(path) < 0 && !IsDistinct(path);
}

bool TensorSelection::IsDistinct(const std::string& path) const {
  return MatchesAnyTensorGlob(path, config_.distinct());
}

int TensorSelection::ShardingOf(const std::string& path) const {
  if (!IsSelected(path)) return -1;
  const auto found =
      std::find_if(config_.sharded().begin(), config_.sharded().end(),
                   [&](const auto& sharded) { return MatchesAnyTensorGlob(path, sharded.paths()); });
  return found == config_.sharded().end() ? -1 : static_cast<int>(found - config_.sharded().begin());
}

std::string TensorSelection::FindUnmatched(const std::vector<NamedTensor>& tensors) const {
  std::vector<std::string> unmatched;
  AddStandIns(
      tensors, [this](const std::string& path) { return IsReplicated(path); }, unmatched);
  AddUnmatched(
      "replicated", config_.replicated(), tensors,
      [this](const std::string& path) { return IsSelected(path); }, unmatched);
  if (std::string kinds = FindUnmatchedKinds(tensors); !kinds.empty()) unmatched.push_back(std::move(kinds));
  return absl::StrJoin(unmatched, "; ");
}

std::string TensorSelection::FindUnmatchedKinds(const std::vector<NamedTensor>& tensors) const {
  std::vector<std::string> unmatched;
  for (const TensorsOfKind& of_kind : config_.tensor_kinds()) {
    if (config_.kinds().empty()) break;
    AddUnmatched(
        "tensor_kinds", of_kind.paths(), tensors, [](const std::string&) { return true; }, unmatched);
  }
  for (const int kind : config_.kinds()) {
    const bool is_there = std::any_of(tensors.begin(), tensors.end(),
                                      [&](const NamedTensor& tensor) { return KindOf(tensor.path) == kind; });
    if (!is_there) {
      unmatched.push_back(absl::StrCat("no tensor is ", TensorKind_Name(static_cast<TensorKind>(kind))));
    }
  }
  return absl::StrJoin(unmatched, "; ");
}

std::string TensorSelection::FindUnmatchedShards(int sharding,
                                                 const std::vector<NamedTensor>& tensors) const {
  std::vector<std::string> unmatched;
  AddStandIns(
      tensors, [&](const std::string& path) { return ShardingOf(path) == sharding; }, unmatched);
  AddUnmatched(
      "sharded", config_.sharded(sharding).paths(), tensors,
      [this](const std::string& path) { return IsSelected(path); }, unmatched);
  return absl::StrJoin(unmatched, "; ");
}

std::string TensorSelection::FindUnmatchedDistinct(const std::vector<NamedTensor>& tensors) const {
  std::vector<std::string> unmatched;
  AddStandIns(
      tensors, [this](const std::string& path) { return IsDistinct(path); }, unmatched);
  AddUnmatched(
      "distinct", config_.distinct(), tensors, [](const std::string&) { return true; }, unmatched);
  return absl::StrJoin(unmatched, "; ");
}

absl::StatusOr<TensorView> TensorSelection::Slice(int sharding, int rank, const TensorView& whole) const {
  const int dimension = config_.sharded(sharding).dimension();
  const int part = PartOf(sharding, rank);
  const int num_parts = NumParts(sharding);
  Dims shape = whole.shape();
  if (dimension >= static_cast<int64_t>(shape.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("a tensor of shape ", ShapeToString(shape), " has no dimension ", dimension));
  }
  const int64_t extent = shape[dimension];
  const int64_t length = (extent + num_parts - 1) / num_parts;
  // The last parts of few elements have none, as those of torch.chunk() and FSDP2.
  const int64_t begin = std::min(part * length, extent);
  shape[dimension] = std::min(length, extent - begin);
  const char* const data =
      static_cast<const char*>(whole.data()) + begin * whole.strides()[dimension] * SizeOf(whole.dtype());
  return TensorView(data, whole.dtype(), shape, whole.strides(), whole.device());
}

std::vector<NamedTensor> ListTensorsAndGrads(const Value& tensors, const Value* grads,
                                             const std::vector<std::string>& tensor_order,
                                             const std::vector<std::string>& grad_order) {
  std::vector<NamedTensor> all = ListComparable(tensors);
  AddingOrder(tensor_order).Sort(all);
  if (grads == nullptr) return all;
  for (NamedTensor& tensor : all) tensor.path = TensorName(tensor.path, true);
  std::vector<NamedTensor> gradients = ListComparable(*grads);
  AddingOrder(grad_order).Sort(gradients);
  for (NamedTensor& gradient : gradients) {
    gradient.path = JoinPath("grads", gradient.path);
    all.push_back(std::move(gradient));
  }
  return all;
}

std::vector<NamedTensor> ListTensorsAndGrads(const Dump& dump) {
  const Value* const grads = dump.grads.has_value() ? &*dump.grads : nullptr;
  if (!dump.manifest.has_value()) return ListTensorsAndGrads(dump.tensors, grads);
  return ListTensorsAndGrads(dump.tensors, grads, dump.manifest->tensor_order, dump.manifest->grad_order);
}

}  // namespace ott
