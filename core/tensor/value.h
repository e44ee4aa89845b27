// Trees of data: what a training program dumps, and what a dump reads back as.

#ifndef OTT_CORE_TENSOR_VALUE_H_
#define OTT_CORE_TENSOR_VALUE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor.h"
#include "ott/core/tensor/type_id.h"

namespace ott {

class Value;

// Names to values, in the order of insertion.
class ValueMap {
 public:
  using Entry = std::pair<std::string, Value>;

  ValueMap();
  ValueMap(std::initializer_list<Entry> entries);
  ValueMap(const ValueMap& other);
  ValueMap(ValueMap&& other) noexcept;
  ValueMap& operator=(const ValueMap& other);
  ValueMap& operator=(ValueMap&& other) noexcept;
  ~ValueMap();

  bool empty() const { return entries_.empty(); }
  size_t size() const { return entries_.size(); }
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }

  // Returns null if there is no such name.
  const Value* Find(std::string_view name) const;
  Value* Find(std::string_view name);

  // Appends, and returns the value. Null, and no change, if the name is taken.
  Value* Insert(std::string name, Value value);

 private:
  struct Index;

  std::vector<Entry> entries_;
  // Empty while there are so few names that they are compared one by one.
  std::unique_ptr<Index> index_;
};

// Null, a bool, an integer, a double, a string, a list, a map, or a tensor.
//
//   Value value = ValueMap{{"loss", 0.25}, {"weights", TensorView(weights.data(), {64, 32})}};
//
// A value made from a TensorView refers to the view's memory; Snapshot() makes copies. Copies of a value
// share tensors.
class Value {
 public:
  using List = std::vector<Value>;
  using Map = ValueMap;

  // In the order of the variant's alternatives.
  enum class Kind : uint8_t { kNull, kBool, kInt, kDouble, kString, kList, kMap, kTensor, kObject };

  // An object of any other type, which is to be converted (ott/core/dumper/converters.h) before it is dumped.
  struct ObjectPointer {
    TypeId type;
    std::shared_ptr<const void> data;
  };

  Value() = default;
  // Out of line: they are called everywhere, and large.
  Value(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(const Value& other);
  Value& operator=(Value&& other) noexcept;
  ~Value();

  template <typename T, std::enable_if_t<std::is_same_v<T, bool>, int> = 0>
  Value(T value) : data_(value) {}  // a template, so that pointers are not taken for it
  template <typename T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Value(T value) : data_(static_cast<int64_t>(value)) {
    static_assert(std::is_signed_v<T> || sizeof(T) < 8,
                  "a uint64_t does not fit: cast it, or pass a 0-d tensor");
  }
  Value(double value) : data_(value) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(std::string_view value) : data_(std::string(value)) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(List value) : data_(std::move(value)) {}
  Value(Map value) : data_(std::move(value)) {}
  Value(Tensor value) : data_(std::make_shared<const Tensor>(std::move(value))) {}
  Value(const TensorView& value) : Value(Tensor{value, nullptr}) {}

  // Returns a copy of an object.
  template <typename T>
  static Value Object(T object) {
    return Value(ObjectPointer{TypeId::Of<T>(), std::make_shared<const T>(std::move(object))});
  }
  // The type that a Value is made from as that, vectors as lists, all else as objects.
  template <typename T>
  static Value From(const T& data);

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_null() const { return kind() == Kind::kNull; }
  bool is_list() const { return kind() == Kind::kList; }
  bool is_map() const { return kind() == Kind::kMap; }
  bool is_tensor() const { return kind() == Kind::kTensor; }

  // REQUIRES: the value is of that kind.
  bool bool_value() const { return std::get<bool>(data_); }
  int64_t int_value() const { return std::get<int64_t>(data_); }
  double double_value() const { return std::get<double>(data_); }
  const std::string& string_value() const { return std::get<std::string>(data_); }
  const List& list() const { return std::get<List>(data_); }
  List& list() { return std::get<List>(data_); }
  const Map& map() const { return std::get<Map>(data_); }
  Map& map() { return std::get<Map>(data_); }
  const Tensor& tensor() const { return *std::get<std::shared_ptr<const Tensor>>(data_); }
  const ObjectPointer& object() const { return std::get<ObjectPointer>(data_); }

 private:
  explicit Value(ObjectPointer value) : data_(std::move(value)) {}

  std::variant<std::monostate, bool, int64_t, double, std::string, List, Map, std::shared_ptr<const Tensor>,
               ObjectPointer>
      data_;
};

// Returns "null", "bool", "integer", "number", "string", "list", "map", "tensor" or "object".
std::string_view Name(Value::Kind kind);

struct NamedTensor {
  enum class Content : uint8_t {
    kElements,
    // A text, as its bytes.
    kText,
    // No elements: of a tensor of `tensor`'s dtype and shape only `digest` is known.
    kDigest,
    // An image or statistics stand for the tensor, and there is no digest: other tensors have the same.
    kStandIn,
  };

  std::string path;
  Tensor tensor;
  Content content = Content::kElements;
  // kDigest: of the tensor, in hexadecimal.
  std::string digest = {};
};

// Returns a number or a bool as a 0-d tensor, a tensor as itself; nullopt for anything else.
std::optional<Tensor> AsTensor(const Value& value);

// Lists all tensors of the tree in order of insertion. Paths join names and list indices by dots:
// "weights.w1", "layers.0".
std::vector<NamedTensor> ListTensors(const Value& root);

// Returns the path of a child. The root's path is empty, and is left out.
std::string JoinPath(std::string_view parent, std::string_view child);

// Returns a path below another; either may be empty.
std::string ConcatenatePaths(std::string_view above, std::string_view below);

// Returns a list or map with f(path, child) in place of each child; any other value itself. Returns the first
// error.
absl::StatusOr<Value> TransformChildren(
    const std::string& path, const Value& value,
    const std::function<absl::StatusOr<Value>(const std::string& path, const Value& child)>& f);

// Returns the same tree with clone(tensor) in place of each tensor: row-major copies in host memory of their
// own. Errors: as clone's, with the path.
absl::StatusOr<Value> Snapshot(
    const Value& root, const std::function<absl::StatusOr<Tensor>(const TensorView&)>& clone =
                           [](const TensorView& tensor) { return CloneToHost(tensor); });

// Implementation.

namespace internal {

template <typename T>
struct IsVector : std::false_type {};
template <typename T>
struct IsVector<std::vector<T>> : std::true_type {};

}  // namespace internal

template <typename T>
Value Value::From(const T& data) {
  if constexpr (std::is_convertible_v<const T&, Value>) {
    return data;
  } else if constexpr (internal::IsVector<T>::value) {
    List list;
    for (const auto& item : data) list.push_back(From<typename T::value_type>(item));
    return list;
  } else {
    return Object(data);
  }
}

}  // namespace ott

#endif  // OTT_CORE_TENSOR_VALUE_H_
