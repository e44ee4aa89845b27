#include "ott/core/dump/manifest.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

constexpr int64_t kFormatVersion = 1;

absl::StatusOr<const Value*> Entry(const Value& map, std::string_view name, Value::Kind kind) {
  const Value* entry = map.is_map() ? map.map().Find(name) : nullptr;
  if (entry == nullptr || entry->kind() != kind) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(name), "\" is missing or no ", std::string(Name(kind))));
  }
  return entry;
}

absl::StatusOr<bool> BoolEntry(const Value& map, std::string_view name) {
  OTT_ASSIGN_OR_RETURN(const Value* entry, Entry(map, name, Value::Kind::kBool));
  return entry->bool_value();
}

absl::StatusOr<int64_t> IntEntry(const Value& map, std::string_view name) {
  OTT_ASSIGN_OR_RETURN(const Value* entry, Entry(map, name, Value::Kind::kInt));
  return entry->int_value();
}

absl::StatusOr<std::string> StringEntry(const Value& map, std::string_view name) {
  OTT_ASSIGN_OR_RETURN(const Value* entry, Entry(map, name, Value::Kind::kString));
  return entry->string_value();
}

// Empty if the manifest has none.
absl::StatusOr<std::vector<std::string>> OrderEntry(const Value& map, std::string_view name) {
  std::vector<std::string> paths;
  if (!map.is_map() || map.map().Find(name) == nullptr) return paths;
  OTT_ASSIGN_OR_RETURN(const Value* entry, Entry(map, name, Value::Kind::kList));
  for (const Value& path : entry->list()) {
    if (path.kind() != Value::Kind::kString) {
      return absl::InvalidArgumentError(absl::StrCat("\"", std::string(name), "\" is no list of texts"));
    }
    paths.push_back(path.string_value());
  }
  return paths;
}

Value ToValue(const ManifestTensor& tensor) {
  Value::List shape(tensor.shape.begin(), tensor.shape.end());
  ValueMap map{
      {"group", tensor.group},         {"path", tensor.path},
      {"dtype", Name(tensor.dtype)},   {"shape", std::move(shape)},
      {"format", Name(tensor.format)}, {"file", tensor.file},
      {"bytes", tensor.num_bytes},     {"digest", tensor.digest.ToString()},
  };
  if (tensor.file_digest.has_value()) map.Insert("file_digest", tensor.file_digest->ToString());
  return map;
}

absl::StatusOr<ManifestTensor> TensorFromValue(const Value& value) {
  ManifestTensor tensor;
  OTT_ASSIGN_OR_RETURN(tensor.group, StringEntry(value, "group"));
  if (tensor.group != kTensorsFile && tensor.group != kGradsFile) {
    return absl::InvalidArgumentError(absl::StrCat("\"group\" is '", tensor.group, "', not \"", kTensorsFile,
                                                   "\" or \"", kGradsFile, "\""));
  }
  OTT_ASSIGN_OR_RETURN(tensor.path, StringEntry(value, "path"));
  OTT_ASSIGN_OR_RETURN(const std::string dtype, StringEntry(value, "dtype"));
  OTT_ASSIGN_OR_RETURN(tensor.dtype, ParseDType(dtype));
  const Value* const shape = value.map().Find("shape");
  OTT_ASSIGN_OR_RETURN(tensor.shape, ShapeFromValue(shape == nullptr ? Value() : *shape));
  OTT_ASSIGN_OR_RETURN(const std::string format, StringEntry(value, "format"));
  OTT_ASSIGN_OR_RETURN(tensor.format, ParseDumpFormat(format));
  OTT_ASSIGN_OR_RETURN(tensor.file, StringEntry(value, "file"));
  OTT_ASSIGN_OR_RETURN(tensor.num_bytes, IntEntry(value, "bytes"));
  OTT_ASSIGN_OR_RETURN(const std::string digest, StringEntry(value, "digest"));
  OTT_ASSIGN_OR_RETURN(tensor.digest, ParseDigest(digest));
  if (value.map().Find("file_digest") != nullptr) {
    OTT_ASSIGN_OR_RETURN(const std::string of_file, StringEntry(value, "file_digest"));
    OTT_ASSIGN_OR_RETURN(tensor.file_digest, ParseDigest(of_file));
  }
  OTT_ASSIGN_OR_RETURN(const int64_t num_bytes, CheckedNumBytes(tensor.dtype, tensor.shape));
  if (num_bytes != tensor.num_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"bytes\" is ", tensor.num_bytes, ", but dtype and shape make ", num_bytes));
  }
  return tensor;
}

}  // namespace

absl::StatusOr<Dims> ShapeFromValue(const Value& value) {
  // In place: of an empty one that is moved, GCC 12 warns in the builds of others.
  if (value.is_list() && value.list().empty()) {
    absl::StatusOr<Dims> scalar;
    scalar.emplace();
    return scalar;
  }
  if (value.is_tensor()) {
    const TensorView& view = value.tensor().view;
    if (view.dtype() == DType::kInt64 && view.shape().size() == 1) {
      const int64_t* const first = static_cast<const int64_t*>(view.data());
      return Dims(first, first + view.num_elements());
    }
  }
  return absl::InvalidArgumentError("the shape is missing or no list of integers");
}

Value ManifestToValue(const Manifest& manifest) {
  Value::List tensors;
  for (const ManifestTensor& tensor : manifest.tensors) tensors.push_back(ToValue(tensor));
  ValueMap map{
      {"format_version", kFormatVersion},
      {"complete", manifest.complete},
      {"iteration", manifest.iteration},
      {"rank", manifest.rank},
      {"world_size", manifest.world_size},
      {"has_grads", manifest.has_grads},
      {"num_tensors", static_cast<int64_t>(manifest.tensors.size())},
      {"tensors", std::move(tensors)},
  };
  const auto add_order = [&](const char* name, const std::vector<std::string>& order) {
    if (!order.empty()) map.Insert(name, Value::List(order.begin(), order.end()));
  };
  add_order("tensor_order", manifest.tensor_order);
  add_order("grad_order", manifest.grad_order);
  return map;
}

absl::StatusOr<Manifest> ManifestFromValue(const Value& value) {
  OTT_ASSIGN_OR_RETURN(const int64_t version, IntEntry(value, "format_version"));
  if (version != kFormatVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("format version ", version, ", while this program knows version ", kFormatVersion));
  }
  Manifest manifest;
  OTT_ASSIGN_OR_RETURN(manifest.complete, BoolEntry(value, "complete"));
  OTT_ASSIGN_OR_RETURN(manifest.iteration, IntEntry(value, "iteration"));
  OTT_ASSIGN_OR_RETURN(manifest.rank, IntEntry(value, "rank"));
  OTT_ASSIGN_OR_RETURN(manifest.world_size, IntEntry(value, "world_size"));
  OTT_ASSIGN_OR_RETURN(manifest.has_grads, BoolEntry(value, "has_grads"));
  OTT_ASSIGN_OR_RETURN(const Value* tensors, Entry(value, "tensors", Value::Kind::kList));
  for (size_t i = 0; i < tensors->list().size(); ++i) {
    absl::StatusOr<ManifestTensor> tensor = TensorFromValue(tensors->list()[i]);
    if (!tensor.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", i, ": ", tensor.status().message()));
    }
    manifest.tensors.push_back(*std::move(tensor));
  }
  OTT_ASSIGN_OR_RETURN(manifest.tensor_order, OrderEntry(value, "tensor_order"));
  OTT_ASSIGN_OR_RETURN(manifest.grad_order, OrderEntry(value, "grad_order"));
  OTT_ASSIGN_OR_RETURN(const int64_t num_tensors, IntEntry(value, "num_tensors"));
  if (num_tensors != static_cast<int64_t>(manifest.tensors.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"num_tensors\" is ", num_tensors, ", but ", manifest.tensors.size(), " are listed"));
  }
  return manifest;
}

}  // namespace ott
