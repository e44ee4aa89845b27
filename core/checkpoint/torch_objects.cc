#include "ott/core/checkpoint/torch_objects.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/scattered_elements.h"

namespace ott {
namespace {

using Index = PlainData::Index;
using Type = PlainData::Type;

constexpr int kMaxDepth = 200;
// Strides of 0 may repeat so many bytes of a tensor, and so many of all tensors together.
constexpr int64_t kMaxRepeatedBytes = int64_t{1} << 32;

bool StartsWith(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

std::string_view AfterLastDot(std::string_view name) { return name.substr(name.rfind('.') + 1); }

// Returns a view of a storage. strides: in elements, not negative. INVALID_ARGUMENT if it reaches out of it,
// or repeats a storage so often that reading it would never end.
absl::StatusOr<Tensor> TensorInStorage(const HeldBytes& storage, DType dtype, int64_t offset,
                                       absl::Span<const int64_t> shape, absl::Span<const int64_t> strides) {
  OTT_ASSIGN_OR_RETURN(const int64_t num_bytes, CheckedNumBytes(dtype, shape));
  const auto num_stored = static_cast<int64_t>(storage.bytes.size());
  if (num_bytes > 0) {
    // The last element, counted from the storage's first.
    int64_t last = offset;
    bool fits = offset >= 0;
    for (size_t dim = 0; fits && dim < shape.size(); ++dim) {
      int64_t reach = 0;
      fits = !__builtin_mul_overflow(shape[dim] - 1, strides[dim], &reach) &&
             !__builtin_add_overflow(last, reach, &last);
    }
    if (!fits || last >= num_stored / SizeOf(dtype)) {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor of ", ShapeToString(shape), " ", std::string(Name(dtype)), " at element ",
                       offset, " reaches out of its storage of ", num_stored, " bytes"));
    }
    if (num_bytes > num_stored && num_bytes > kMaxRepeatedBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("a tensor of ", num_bytes, " bytes repeats a storage of ", num_stored, " bytes"));
    }
  }
  const char* const data = storage.bytes.data() + (num_bytes > 0 ? offset * SizeOf(dtype) : 0);
  Tensor tensor{TensorView(data, dtype, shape, strides), storage.owner, storage.file_backed};
  return ScatteredElements::Join(dtype, shape, shape, {TensorPart{tensor, Dims(shape.size())}});
}

class Converter {
 public:
  Converter(const PlainData& data, const OpenStorage& open_storage)
      : data_(data), open_storage_(open_storage), max_values_(100'000 + 4 * data.size()) {
    for (size_t i = 0; i < data.size(); ++i) max_text_bytes_ += 4 * data[static_cast<Index>(i)].text.size();
  }

  // The whole of it.
  absl::StatusOr<Value> ConvertRoot(Index root) {
    OTT_ASSIGN_OR_RETURN(Value value, Convert("", root));
    if (attributes_.empty()) return value;
    if (!value.is_map()) value = ValueMap{{"value", std::move(value)}};
    TakeAttributes("", value.map());
    return value;
  }

 private:
  absl::StatusOr<Value> Convert(const std::string& path, Index index) {
    if (++num_values_ > max_values_) {
      return Error(path, "the values in it are repeated so often that the tree would not end");
    }
    if (depth_ >= kMaxDepth) return Error(path, "a value contains itself, or is nested too deep");
    ++depth_;
    absl::StatusOr<Value> value = ConvertValue(path, data_[index]);
    --depth_;
    return value;
  }

  // Texts, keys and bytes are copied wherever they are.
  absl::Status CountText(const std::string& path, size_t size) {
    num_text_bytes_ += size;
    if (num_text_bytes_ <= max_text_bytes_) return absl::OkStatus();
    return Error(path, "the texts in it are repeated so often that the tree would not end");
  }

  static absl::Status Error(const std::string& path, std::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "': ", std::string(what)));
  }

  absl::StatusOr<Value> ConvertValue(const std::string& path, const PlainData::Value& value) {
    switch (value.type) {
      case Type::kNone:
        return Value();
      case Type::kBool:
        return Value(value.integer != 0);
      case Type::kInteger:
        return Value(value.integer);
      case Type::kReal:
        return Value(value.real);
      case Type::kText:
      case Type::kGlobal:
        OTT_RETURN_IF_ERROR(CountText(path, value.text.size()));
        return Value(std::string(value.text));
      case Type::kBytes:
        return BytesTensor(path, value.text);
      case Type::kList:
        return ConvertList(path, value);
      case Type::kMap: {
        Value::Map map;
        OTT_RETURN_IF_ERROR(ConvertEntries(path, value, map));
        return Value(std::move(map));
      }
      case Type::kObject:
        return ConvertObject(path, value.text, value);
      case Type::kPersistent:
        return ConvertStorage(path, value);
    }
    return Value();
  }

  // The bytes of a pickle are copied, so that the tree outlives it.
  absl::StatusOr<Value> BytesTensor(const std::string& path, std::string_view bytes) {
    OTT_RETURN_IF_ERROR(CountText(path, bytes.size()));
    OTT_ASSIGN_OR_RETURN(const std::shared_ptr<void> memory,
                         AllocateHost(static_cast<int64_t>(bytes.size())));
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(memory.get()));
    return Value(
        Tensor{TensorView(memory.get(), DType::kUInt8, {static_cast<int64_t>(bytes.size())}), memory});
  }

  absl::StatusOr<Value> ConvertList(const std::string& path, const PlainData::Value& list) {
    Value::List items;
    for (const Index item : list.items) {
      OTT_ASSIGN_OR_RETURN(Value value, Convert(JoinPath(path, absl::StrCat(items.size())), item));
      items.push_back(std::move(value));
    }
    return Value(std::move(items));
  }

  absl::Status ConvertEntries(const std::string& path, const PlainData::Value& entries, Value::Map& map) {
    for (size_t i = 0; i + 1 < entries.items.size(); i += 2) {
      std::string key;
      if (!AppendKey(data_[entries.items[i]], 0, &key)) return Error(path, "a key of more than 64 KiB");
      OTT_RETURN_IF_ERROR(CountText(path, key.size()));
      OTT_ASSIGN_OR_RETURN(Value value, Convert(JoinPath(path, key), entries.items[i + 1]));
      // Two keys may have one text, such as 1 and "1".
      if (map.Find(key) != nullptr) absl::StrAppend(&key, "#", i / 2);
      map.Insert(std::move(key), std::move(value));
    }
    TakeAttributes(JoinPath(path, ""), map);
    return absl::OkStatus();
  }

  // Inserts the attributes of tensors below a map, whose path and dot `start` is.
  void TakeAttributes(const std::string& start, Value::Map& map) {
    auto at = attributes_.lower_bound(start);
    while (at != attributes_.end() && StartsWith(at->first, start)) {
      map.Insert(absl::StrCat(at->first.substr(start.size()), std::string(kAttributesEnd)),
                 std::move(at->second));
      at = attributes_.erase(at);
    }
  }

  // Sets have no order, so that equal ones may be written in several: the values are sorted.
  absl::StatusOr<Value> ConvertSet(const std::string& path, const PlainData::Value& list) {
    std::vector<std::pair<std::string, Index>> sorted;
    for (const Index item : list.items) {
      sorted.emplace_back(KeyText(data_[item]), item);
      OTT_RETURN_IF_ERROR(CountText(path, sorted.back().first.size()));
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    PlainData::Value ordered;
    for (const auto& [text, item] : sorted) ordered.items.push_back(item);
    return ConvertList(path, ordered);
  }

  std::string KeyText(const PlainData::Value& key) const {
    std::string text;
    AppendKey(key, 0, &text);
    return text;
  }

  // Appends the text of a key. Those of tuples and objects need only differ; false where they become too long
  // for that.
  bool AppendKey(const PlainData::Value& key, int depth, std::string* text) const {
    constexpr size_t kMaxKeyBytes = 1 << 16;
    if (depth > kMaxDepth || text->size() + key.text.size() > kMaxKeyBytes) return false;
    switch (key.type) {
      case Type::kText:
      case Type::kGlobal:
        text->append(key.text);
        return true;
      case Type::kBytes:
        absl::StrAppend(text, "b'", absl::CHexEscape(std::string(key.text)), "'");
        return true;
      case Type::kInteger:
        absl::StrAppend(text, key.integer);
        return true;
      case Type::kBool:
        text->append(key.integer != 0 ? "True" : "False");
        return true;
      case Type::kReal:
        absl::StrAppend(text, key.real);
        return true;
      case Type::kNone:
        text->append("None");
        return true;
      default:
        break;
    }
    absl::StrAppend(text, std::string(key.text), "(");
    const size_t begin = text->size();
    for (const Index item : key.items) {
      if (item == PlainData::kNoValue) continue;
      if (text->size() > begin) text->append(", ");
      if (!AppendKey(data_[item], depth + 1, text)) return false;
    }
    text->append(")");
    return true;
  }

  const PlainData::Value* ItemOfObject(const PlainData::Value& object, PlainData::ObjectItem item) const {
    const Index index = object.items[item];
    return index == PlainData::kNoValue ? nullptr : &data_[index];
  }

  // Null if there are too few, or they are no list.
  const PlainData::Value* Argument(const PlainData::Value& arguments, size_t i) const {
    const bool has_it = arguments.type == Type::kList && i < arguments.items.size();
    return has_it ? &data_[arguments.items[i]] : nullptr;
  }

  absl::StatusOr<Value> ConvertObject(const std::string& path, std::string_view name,
                                      const PlainData::Value& object) {
    const PlainData::Value& arguments = *ItemOfObject(object, PlainData::kArguments);
    absl::StatusOr<std::optional<Value>> known = ConvertCall(path, name, arguments, &object);
    if (!known.ok()) return known.status();
    if (known->has_value()) return **std::move(known);
    const bool is_dictionary = name == "collections.OrderedDict" || name == "collections.defaultdict" ||
                               name == "collections.Counter" || name == "builtins.dict";
    Value::Map map;
    // The factory of a defaultdict says nothing of what is in it; a Counter is made of a map.
    const PlainData::Value* const made_of = is_dictionary ? Argument(arguments, 0) : nullptr;
    const bool is_made_of_map = made_of != nullptr && made_of->type == Type::kMap;
    if (!is_dictionary) map.Insert(kClassEntry, std::string(name));
    if (is_made_of_map) {
      OTT_RETURN_IF_ERROR(ConvertEntries(path, *made_of, map));
    } else if (!arguments.items.empty() && name != "collections.defaultdict") {
      OTT_ASSIGN_OR_RETURN(Value value, Convert(JoinPath(path, "args"), object.items[PlainData::kArguments]));
      map.Insert("args", std::move(value));
    }
    if (!is_dictionary) OTT_RETURN_IF_ERROR(ConvertState(path, object.items[PlainData::kState], map));
    if (const PlainData::Value* const entries = ItemOfObject(object, PlainData::kEntries)) {
      OTT_RETURN_IF_ERROR(ConvertEntries(path, *entries, map));
    }
    if (object.items[PlainData::kElements] != PlainData::kNoValue) {
      OTT_ASSIGN_OR_RETURN(Value value, Convert(JoinPath(path, "items"), object.items[PlainData::kElements]));
      map.Insert("items", std::move(value));
    }
    if (is_dictionary && object.items[PlainData::kState] != PlainData::kNoValue)
      OTT_RETURN_IF_ERROR(ConvertAttributes(path, object.items[PlainData::kState]));
    return Value(std::move(map));
  }

  // Attributes are a map, a pair of two (of which slots are the second), or anything else.
  absl::Status ConvertState(const std::string& path, Index state, Value::Map& map) {
    if (state == PlainData::kNoValue) return absl::OkStatus();
    const PlainData::Value& value = data_[state];
    if (value.type == Type::kMap) return ConvertEntries(path, value, map);
    if (value.items.size() == 2 && std::all_of(value.items.begin(), value.items.end(), [this](Index item) {
          return data_[item].type == Type::kMap || data_[item].type == Type::kNone;
        })) {
      for (const Index part : value.items) OTT_RETURN_IF_ERROR(ConvertEntries(path, data_[part], map));
      return absl::OkStatus();
    }
    OTT_ASSIGN_OR_RETURN(Value converted, Convert(JoinPath(path, "state"), state));
    map.Insert("state", std::move(converted));
    return absl::OkStatus();
  }

  // nullopt for what is not known. object: null if the arguments are not its own.
  absl::StatusOr<std::optional<Value>> ConvertCall(const std::string& path, std::string_view name,
                                                   const PlainData::Value& arguments,
                                                   const PlainData::Value* object) {
    const std::string_view function = AfterLastDot(name);
    if (StartsWith(name, "torch.")) {
      if (function == "_rebuild_tensor" || function == "_rebuild_tensor_v2" ||
          function == "_rebuild_tensor_v3") {
        return ConvertTensor(path, function == "_rebuild_tensor_v3", arguments);
      }
      if ((StartsWith(function, "_rebuild_parameter") || name == "torch.nn.parameter.Parameter" ||
           name == "torch.nn.parameter.Buffer") &&
          !arguments.items.empty()) {
        OTT_ASSIGN_OR_RETURN(Value data, Convert(path, arguments.items[0]));
        const PlainData::Value* const is_trained = Argument(arguments, 1);
        if (data.is_tensor() && is_trained != nullptr && is_trained->integer == 0)
          attributes_[path].Insert("requires_grad", false);
        if (function == "_rebuild_parameter_with_state" && arguments.items.size() > 3)
          OTT_RETURN_IF_ERROR(ConvertAttributes(path, arguments.items[3]));
        return std::optional<Value>(std::move(data));
      }
      if (function == "_rebuild_from_type_v2" && arguments.items.size() >= 3) {
        const PlainData::Value& inner = data_[arguments.items[2]];
        const PlainData::Value& callee = data_[arguments.items[0]];
        if (inner.type == Type::kList && callee.type == Type::kGlobal) {
          OTT_ASSIGN_OR_RETURN(std::optional<Value> value, ConvertCall(path, callee.text, inner, nullptr));
          const std::string_view type = data_[arguments.items[1]].text;
          if (value.has_value() && value->is_tensor()) {
            if (!type.empty() && !StartsWith(type, "torch.")) attributes_[path].Insert(kClassEntry, type);
            if (arguments.items.size() > 3) OTT_RETURN_IF_ERROR(ConvertAttributes(path, arguments.items[3]));
          }
          return value;
        }
      }
      if (name == "torch.Size" && arguments.items.size() == 1) return Wrap(Convert(path, arguments.items[0]));
      if (name == "torch.device" && !arguments.items.empty()) {
        return std::optional<Value>(
            KeyText(data_[arguments.items[0]]) +
            (arguments.items.size() > 1 ? ":" + KeyText(data_[arguments.items[1]]) : ""));
      }
    }
    if (name == "_codecs.encode") {
      if (const std::optional<std::string> bytes = Latin1(arguments)) return Wrap(BytesTensor(path, *bytes));
    }
    // No bytes, as protocol 2 has them.
    if ((name == "builtins.bytes" || name == "__builtin__.bytes") && arguments.items.empty())
      return Wrap(BytesTensor(path, ""));
    if (StartsWith(name, "numpy.") && object != nullptr) {
      if (function == "_reconstruct") return ConvertArray(path, *object);
      if (function == "scalar") return ConvertNumPyScalar(path, arguments);
    }
    if (name == "builtins.set" || name == "__builtin__.set" || name == "builtins.frozenset" ||
        name == "__builtin__.frozenset") {
      const PlainData::Value* items = Argument(arguments, 0);
      if (items == nullptr && object != nullptr) items = ItemOfObject(*object, PlainData::kElements);
      return Wrap(ConvertSet(path, items != nullptr ? *items : arguments));
    }
    return std::optional<Value>();
  }

  static absl::StatusOr<std::optional<Value>> Wrap(absl::StatusOr<Value> value) {
    if (!value.ok()) return value.status();
    return std::optional<Value>(*std::move(value));
  }

  // Bytes as protocol 2 has them: as a text whose characters are they.
  std::optional<std::string> Latin1(const PlainData::Value& arguments) const {
    if (arguments.items.size() != 2 || data_[arguments.items[0]].type != Type::kText) return std::nullopt;
    const std::string_view text = data_[arguments.items[0]].text;
    std::string bytes;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      if (byte < 0x80) {
        bytes += static_cast<char>(byte);
      } else if ((byte & 0xfc) == 0xc0) {  // of two bytes, as texts are valid UTF-8
        bytes += static_cast<char>((byte & 3) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3f));
      } else {
        return std::nullopt;
      }
    }
    return bytes;
  }

  // Bytes, in either form.
  std::optional<std::string> BytesOf(const PlainData::Value* value) const {
    if (value == nullptr) return std::nullopt;
    if (value->type == Type::kBytes) return std::string(value->text);
    if (value->type == Type::kObject && value->text == "_codecs.encode") {
      return Latin1(*ItemOfObject(*value, PlainData::kArguments));
    }
    return std::nullopt;
  }

  struct Storage {
    HeldBytes bytes;
    std::optional<DType> dtype;
    std::string type;
  };

  // ("storage", type, key, location, number of elements)
  absl::StatusOr<Storage> OpenPersistent(const std::string& path, const PlainData::Value& value) {
    const PlainData::Value& id = data_[value.items[0]];
    const PlainData::Value* const kind = Argument(id, 0);
    const PlainData::Value* const type = Argument(id, 1);
    const PlainData::Value* const key = Argument(id, 2);
    const PlainData::Value* const size = Argument(id, 4);
    const PlainData::Value* const view = Argument(id, 5);
    if (size == nullptr || TextOf(kind) != "storage" || key->type != Type::kText ||
        size->type != Type::kInteger || size->integer < 0 || (view != nullptr && view->type != Type::kNone)) {
      return Error(path, "refers to something else than a storage");
    }
    Storage storage;
    storage.type = std::string(type->text);
    storage.dtype = TorchDType(storage.type);
    std::optional<int64_t> num_bytes;
    if (const std::optional<int64_t> element_bytes = StorageElementBytes(storage.type)) {
      OTT_ASSIGN_OR_RETURN(num_bytes, CheckedNumBytes(DType::kUInt8, {size->integer, *element_bytes}));
    }
    absl::StatusOr<HeldBytes> bytes = open_storage_(key->text, num_bytes);
    if (!bytes.ok()) return WithContext(absl::StrCat("'", path, "'"), bytes.status());
    storage.bytes = *std::move(bytes);
    return storage;
  }

  // A storage that no tensor is laid over; of quantized tensors, whose elements we do not know, the bytes.
  absl::StatusOr<Value> ConvertStorage(const std::string& path, const PlainData::Value& value) {
    OTT_ASSIGN_OR_RETURN(const Storage storage, OpenPersistent(path, value));
    const DType dtype = storage.dtype.value_or(DType::kUInt8);
    const auto num_elements = static_cast<int64_t>(storage.bytes.bytes.size()) / SizeOf(dtype);
    OTT_ASSIGN_OR_RETURN(Tensor tensor, TensorInStorage(storage.bytes, dtype, 0, {num_elements}, {1}));
    if (storage.dtype.has_value()) return Value(std::move(tensor));
    return Value(ValueMap{{kClassEntry, storage.type}, {"bytes", std::move(tensor)}});
  }

  // Not negative.
  static bool ReadDims(const PlainData& data, const PlainData::Value* list, Dims* dims) {
    if (list != nullptr && list->type == Type::kObject && list->text == "torch.Size") {
      list = &data[list->items[PlainData::kArguments]];
      if (list->items.size() == 1) list = &data[list->items[0]];
    }
    if (list == nullptr || list->type != Type::kList) return false;
    for (const Index item : list->items) {
      if (data[item].type != Type::kInteger || data[item].integer < 0) return false;
      dims->push_back(data[item].integer);
    }
    return true;
  }

  // Attributes of a tensor, which the map around it takes up.
  absl::Status ConvertAttributes(const std::string& path, Index state) {
    Value::Map map;
    if (data_[state].type != Type::kNone) OTT_RETURN_IF_ERROR(ConvertState(path, state, map));
    for (const auto& [name, value] : map) {
      // PyTorch's version numbers of modules.
      if (name != "_metadata") attributes_[path].Insert(name, value);
    }
    return absl::OkStatus();
  }

  // (storage, offset, size, stride, requires_grad, hooks, what changes the elements): v3 has the dtype before
  // the last.
  absl::StatusOr<std::optional<Value>> ConvertTensor(const std::string& path, bool is_v3,
                                                     const PlainData::Value& arguments) {
    const PlainData::Value* const storage_value = Argument(arguments, 0);
    const PlainData::Value* const offset = Argument(arguments, 1);
    Dims shape, strides;
    if (storage_value == nullptr || storage_value->type != Type::kPersistent || offset == nullptr ||
        offset->type != Type::kInteger || !ReadDims(data_, Argument(arguments, 2), &shape) ||
        !ReadDims(data_, Argument(arguments, 3), &strides) || shape.size() != strides.size()) {
      return std::optional<Value>();
    }
    OTT_ASSIGN_OR_RETURN(const Storage storage, OpenPersistent(path, *storage_value));
    std::optional<DType> dtype = storage.dtype;
    if (is_v3) {
      const PlainData::Value* const name = Argument(arguments, 6);
      dtype = name == nullptr ? std::nullopt : TorchDType(name->text);
    }
    if (!dtype.has_value() || !storage.dtype.has_value()) return std::optional<Value>();
    absl::StatusOr<Tensor> tensor = TensorInStorage(storage.bytes, *dtype, offset->integer, shape, strides);
    if (!tensor.ok()) return WithContext(absl::StrCat("'", path, "'"), tensor.status());
    num_repeated_bytes_ +=
        std::max<int64_t>(0, tensor->view.num_bytes() - static_cast<int64_t>(storage.bytes.bytes.size()));
    if (num_repeated_bytes_ > kMaxRepeatedBytes)
      return Error(path, "tensors repeat their storages so often that reading them would not end");
    const PlainData::Value* const is_trained = Argument(arguments, 4);
    if (is_trained != nullptr && is_trained->integer != 0) attributes_[path].Insert("requires_grad", true);
    // Such as that the elements are to be conjugated.
    const size_t changes = is_v3 ? 7 : 6;
    if (arguments.items.size() > changes)
      OTT_RETURN_IF_ERROR(ConvertAttributes(path, arguments.items[changes]));
    return std::optional<Value>(*std::move(tensor));
  }

  // numpy.dtype("f4", False, True), whose state has the order of bytes: a text such as "<f4".
  std::optional<DType> NumPyDType(const PlainData::Value* value) const {
    if (value == nullptr || value->type != Type::kObject || AfterLastDot(value->text) != "dtype") {
      return std::nullopt;
    }
    const PlainData::Value* const name = Argument(*ItemOfObject(*value, PlainData::kArguments), 0);
    const PlainData::Value* const state = ItemOfObject(*value, PlainData::kState);
    const std::string_view order = state == nullptr ? "" : TextOf(Argument(*state, 1));
    for (const DTypeInfo& known : kDTypes) {
      if (known.numpy.empty() || TextOf(name) != known.numpy.substr(1)) continue;
      return order == "<" || known.size == 1 ? std::optional<DType>(known.dtype) : std::nullopt;
    }
    return std::nullopt;
  }

  // State: (version, shape, dtype, is in Fortran's order, bytes).
  absl::StatusOr<std::optional<Value>> ConvertArray(const std::string& path, const PlainData::Value& object) {
    const PlainData::Value* const state = ItemOfObject(object, PlainData::kState);
    if (state == nullptr || state->type != Type::kList || state->items.size() != 5)
      return std::optional<Value>();
    Dims shape;
    const std::optional<DType> dtype = NumPyDType(Argument(*state, 2));
    const std::optional<std::string> bytes = BytesOf(Argument(*state, 4));
    if (!dtype.has_value() || !bytes.has_value() || !ReadDims(data_, Argument(*state, 1), &shape)) {
      return std::optional<Value>();
    }
    Dims strides(shape.size());
    const bool fortran = Argument(*state, 3)->integer != 0;
    int64_t stride = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      const size_t dim = fortran ? i : shape.size() - 1 - i;
      strides[dim] = stride;
      if (__builtin_mul_overflow(stride, std::max<int64_t>(shape[dim], 1), &stride)) {
        return Error(path, "an array of too many elements");
      }
    }
    OTT_ASSIGN_OR_RETURN(const Value held, BytesTensor(path, *bytes));
    const HeldBytes storage{{static_cast<const char*>(held.tensor().view.data()), bytes->size()},
                            held.tensor().owner};
    absl::StatusOr<Tensor> tensor = TensorInStorage(storage, *dtype, 0, shape, strides);
    if (!tensor.ok()) return WithContext(absl::StrCat("'", path, "'"), tensor.status());
    return std::optional<Value>(*std::move(tensor));
  }

  // (dtype, bytes)
  absl::StatusOr<std::optional<Value>> ConvertNumPyScalar(const std::string& path,
                                                          const PlainData::Value& arguments) {
    const std::optional<DType> dtype = NumPyDType(Argument(arguments, 0));
    const std::optional<std::string> bytes = BytesOf(Argument(arguments, 1));
    if (!dtype.has_value() || !bytes.has_value()) return std::optional<Value>();
    OTT_ASSIGN_OR_RETURN(const Value held, BytesTensor(path, *bytes));
    absl::StatusOr<Tensor> tensor = TensorInStorage(
        {{static_cast<const char*>(held.tensor().view.data()), bytes->size()}, held.tensor().owner}, *dtype,
        0, {}, {});
    if (!tensor.ok()) return WithContext(absl::StrCat("'", path, "'"), tensor.status());
    return std::optional<Value>(*std::move(tensor));
  }

  const PlainData& data_;
  const OpenStorage& open_storage_;
  const size_t max_values_;
  size_t num_values_ = 0;
  size_t max_text_bytes_ = size_t{64} << 20;
  size_t num_text_bytes_ = 0;
  int64_t num_repeated_bytes_ = 0;
  // By path, of the tensors that no map has taken up yet.
  std::map<std::string, Value::Map> attributes_;
  int depth_ = 0;
};

}  // namespace

absl::StatusOr<Value> ToValue(const Pickle& pickle, const OpenStorage& open_storage) {
  return Converter(pickle.data, open_storage).ConvertRoot(pickle.root);
}

std::optional<int64_t> StorageElementBytes(std::string_view name) {
  if (const std::optional<DType> dtype = TorchDType(name)) return SizeOf(*dtype);
  const std::string_view last = AfterLastDot(name);
  if (last == "QInt32Storage") return 4;
  // Elements of fewer bits are packed in bytes.
  for (const std::string_view bytes :
       {"QInt8Storage", "QUInt8Storage", "QUInt4x2Storage", "QUInt2x4Storage"}) {
    if (last == bytes) return 1;
  }
  return std::nullopt;
}

std::optional<DType> TorchDType(std::string_view name) {
  constexpr std::string_view kStorage = "Storage";
  std::string_view last = AfterLastDot(name);
  if (last.size() >= kStorage.size() && last.substr(last.size() - kStorage.size()) == kStorage) {
    last.remove_suffix(kStorage.size());
    if (last == "Untyped" || last.empty()) return DType::kUInt8;
    for (const DTypeInfo& known : kDTypes) {
      if (known.scalar_type == last) return known.dtype;
    }
    return std::nullopt;
  }
  if (!StartsWith(name, "torch.")) return std::nullopt;
  for (const DTypeInfo& known : kDTypes) {
    if (known.name == last) return known.dtype;
  }
  return std::nullopt;
}

}  // namespace ott
