#include "ott/core/tensor/value.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

void AppendTensors(const std::string& path, const Value& value, std::vector<NamedTensor>& tensors) {
  if (value.is_tensor()) {
    tensors.push_back({path, value.tensor()});
  } else if (value.is_list()) {
    for (size_t i = 0; i < value.list().size(); ++i) {
      AppendTensors(JoinPath(path, std::to_string(i)), value.list()[i], tensors);
    }
  } else if (value.is_map()) {
    for (const auto& [name, child] : value.map()) AppendTensors(JoinPath(path, name), child, tensors);
  }
}

}  // namespace

Value::Value(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(const Value& other) = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

struct ValueMap::Index {
  std::unordered_map<std::string, size_t> positions;
};

ValueMap::ValueMap() = default;
ValueMap::ValueMap(ValueMap&& other) noexcept = default;
ValueMap& ValueMap::operator=(ValueMap&& other) noexcept = default;
ValueMap::~ValueMap() = default;

ValueMap::ValueMap(const ValueMap& other)
    : entries_(other.entries_),
      index_(other.index_ == nullptr ? nullptr : std::make_unique<Index>(*other.index_)) {}

ValueMap& ValueMap::operator=(const ValueMap& other) { return *this = ValueMap(other); }

ValueMap::ValueMap(std::initializer_list<Entry> entries) {
  for (const auto& [name, value] : entries) Insert(name, value);
}

const Value* ValueMap::Find(std::string_view name) const {
  if (index_ != nullptr) {
    const auto it = index_->positions.find(std::string(name));
    return it == index_->positions.end() ? nullptr : &entries_[it->second].second;
  }
  const auto it =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.first == name; });
  return it == entries_.end() ? nullptr : &it->second;
}

Value* ValueMap::Find(std::string_view name) { return const_cast<Value*>(std::as_const(*this).Find(name)); }

Value* ValueMap::Insert(std::string name, Value value) {
  constexpr size_t kMaxWithoutIndex = 16;
  if (Find(name) != nullptr) return nullptr;
  if (entries_.size() == kMaxWithoutIndex) {
    index_ = std::make_unique<Index>();
    for (size_t i = 0; i < entries_.size(); ++i) index_->positions.emplace(entries_[i].first, i);
  }
  if (index_ != nullptr) index_->positions.emplace(name, entries_.size());
  return &entries_.emplace_back(std::move(name), std::move(value)).second;
}

std::string_view Name(Value::Kind kind) {
  constexpr std::array<std::string_view, 9> kNames = {"null", "bool", "integer", "number", "string",
                                                      "list", "map",  "tensor",  "object"};
  return kNames[static_cast<size_t>(kind)];
}

std::optional<Tensor> AsTensor(const Value& value) {
  const auto scalar = [](auto number) {
    auto owner = std::make_shared<const decltype(number)>(number);
    return Tensor{TensorView(owner.get(), {}), owner};
  };
  switch (value.kind()) {
    case Value::Kind::kBool:
      return scalar(value.bool_value());
    case Value::Kind::kInt:
      return scalar(value.int_value());
    case Value::Kind::kDouble:
      return scalar(value.double_value());
    case Value::Kind::kTensor:
      return value.tensor();
    default:
      return std::nullopt;
  }
}

std::string JoinPath(std::string_view parent, std::string_view child) {
  std::string path(parent);
  if (!path.empty()) path += '.';
  path += child;
  return path;
}

std::string ConcatenatePaths(std::string_view above, std::string_view below) {
  return below.empty() ? std::string(above) : JoinPath(above, below);
}

std::vector<NamedTensor> ListTensors(const Value& root) {
  std::vector<NamedTensor> tensors;
  AppendTensors("", root, tensors);
  return tensors;
}

absl::StatusOr<Value> TransformChildren(
    const std::string& path, const Value& value,
    const std::function<absl::StatusOr<Value>(const std::string& path, const Value& child)>& f) {
  if (value.is_list()) {
    Value::List list;
    list.reserve(value.list().size());
    for (size_t i = 0; i < value.list().size(); ++i) {
      OTT_ASSIGN_OR_RETURN(Value child, f(JoinPath(path, std::to_string(i)), value.list()[i]));
      list.push_back(std::move(child));
    }
    return Value(std::move(list));
  }
  if (value.is_map()) {
    ValueMap map;
    for (const auto& [name, original] : value.map()) {
      OTT_ASSIGN_OR_RETURN(Value child, f(JoinPath(path, name), original));
      map.Insert(name, std::move(child));
    }
    return Value(std::move(map));
  }
  return value;
}

absl::StatusOr<Value> Snapshot(const Value& root,
                               const std::function<absl::StatusOr<Tensor>(const TensorView&)>& clone) {
  const std::function<absl::StatusOr<Value>(const std::string&, const Value&)> snapshot =
      [&](const std::string& path, const Value& value) -> absl::StatusOr<Value> {
    if (!value.is_tensor()) return TransformChildren(path, value, snapshot);
    absl::StatusOr<Tensor> copy = clone(value.tensor().view);
    if (!copy.ok()) return WithContext(absl::StrCat("'", path, "'"), copy.status());
    return Value(*std::move(copy));
  };
  return snapshot("", root);
}

}  // namespace ott
