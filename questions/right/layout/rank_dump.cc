#include "ott/questions/right/layout/rank_dump.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/tensor/scattered_elements.h"
#include "ott/core/tensor/value.h"

namespace ott::crosscheck {
namespace {

template <typename T>
Tensor ScalarTensor(T value) {
  auto owner = std::make_shared<const T>(value);
  return {TensorView(owner.get(), {}), owner};
}

Tensor TextTensor(const std::string& text) {
  auto owner = std::make_shared<const std::string>(text);
  return {TensorView(owner->data(), DType::kUInt8, {static_cast<int64_t>(owner->size())}), owner};
}

// Returns the name of what stands for a tensor whose elements were not dumped; empty for anything else.
std::string_view StandIn(const ValueMap& map) {
  for (const char* const name : {kStatisticsName, kImageName}) {
    if (map.size() == 1 && map.Find(name) != nullptr) return name;
  }
  return "";
}

}  // namespace

absl::StatusOr<RankDump> RankDump::Read(const std::string& dir) {
  OTT_ASSIGN_OR_RETURN(const Dump dump, ReadDump(dir));
  RankDump result;
  result.dir_ = dir;
  absl::flat_hash_map<std::string, const ManifestTensor*> in_files;
  if (dump.manifest.has_value()) {
    for (const ManifestTensor& tensor : dump.manifest->tensors) {
      const std::string path = tensor.group == kGradsFile ? JoinPath("grads", tensor.path)
                                                          : TensorName(tensor.path, dump.grads.has_value());
      in_files.emplace(path, &tensor);
    }
  }
  result.Add("", dump.tensors);
  if (dump.manifest.has_value()) result.Sort(AddingOrder(dump.manifest->tensor_order));
  for (DumpedTensor& tensor : result.tensors_) {
    tensor.path = TensorName(tensor.path, dump.grads.has_value());
  }
  if (dump.grads.has_value()) result.Add("grads", *dump.grads);
  for (size_t i = 0; i < result.tensors_.size(); ++i) {
    std::optional<ManifestTensor>& listed = result.listed_.emplace_back();
    std::optional<Tensor>& held = result.held_[i];
    const auto found = in_files.find(result.tensors_[i].path);
    if (found == in_files.end() || !held.has_value() || !held->file_backed) continue;
    listed = *found->second;
    held.reset();
  }
  return result;
}

RankDump RankDump::Of(const Value& state) {
  RankDump result;
  result.Add("", state);
  result.listed_.resize(result.tensors_.size());
  return result;
}

void RankDump::Sort(const AddingOrder& order) {
  struct Both {
    std::string path;
    DumpedTensor tensor;
    std::optional<Tensor> held;
  };
  std::vector<Both> all;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    all.push_back({tensors_[i].path, std::move(tensors_[i]), std::move(held_[i])});
  }
  order.Sort(all);
  for (size_t i = 0; i < all.size(); ++i) {
    tensors_[i] = std::move(all[i].tensor);
    held_[i] = std::move(all[i].held);
  }
}

void RankDump::AddTensor(const std::string& path, const Tensor& tensor, bool is_text) {
  DumpedTensor& added = tensors_.emplace_back();
  added.path = path;
  added.dtype = tensor.view.dtype();
  added.shape = tensor.view.shape();
  added.dtype_known = tensor.dtype_known;
  added.is_text = is_text;
  held_.emplace_back(tensor);
}

void RankDump::Add(const std::string& path, const Value& value) {
  switch (value.kind()) {
    case Value::Kind::kBool:
      return AddTensor(path, ScalarTensor(value.bool_value()), false);
    case Value::Kind::kInt:
      return AddTensor(path, ScalarTensor(value.int_value()), false);
    case Value::Kind::kDouble:
      return AddTensor(path, ScalarTensor(value.double_value()), false);
    case Value::Kind::kString:
      return AddTensor(path, TextTensor(value.string_value()), true);
    case Value::Kind::kTensor:
      return AddTensor(path, value.tensor(), false);
    case Value::Kind::kList:
      for (size_t i = 0; i < value.list().size(); ++i) Add(JoinPath(path, absl::StrCat(i)), value.list()[i]);
      return;
    case Value::Kind::kMap:
      if (const std::string_view stand_in = StandIn(value.map()); !stand_in.empty()) {
        DumpedTensor& added = tensors_.emplace_back();
        added.path = path;
        added.problem = absl::StrCat("was dumped as ", stand_in == kImageName ? "an image" : "statistics",
                                     ", without its elements");
        held_.emplace_back();
        return;
      }
      for (const auto& [name, child] : value.map()) Add(JoinPath(path, name), child);
      return;
    case Value::Kind::kNull:
    case Value::Kind::kObject:
      return;
  }
}

absl::StatusOr<Tensor> RankDump::Open(size_t tensor) const {
  if (held_[tensor].has_value()) return Gathered(*held_[tensor]);
  return ReadTensorFile(dir_, *listed_[tensor]);
}

}  // namespace ott::crosscheck
