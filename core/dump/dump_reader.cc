#include "ott/core/dump/dump_reader.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/image.h"
#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/npy.h"
#include "ott/core/dump/safetensors.h"
#include "ott/core/tensor/element.h"

namespace ott {
namespace {

absl::StatusOr<Value> ReadJsonFile(const std::string& path) {
  OTT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  absl::StatusOr<Value> value = ParseJson(std::string_view(file->data(), file->size()));
  if (!value.ok()) return WithContext(path, value.status());
  return value;
}

// A tensor's file. What is smaller than a page is copied: a process may have but so many mappings (65530 by
// default on Linux), and a dump may have more tensors.
struct Blob {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
  bool mapped;
};

absl::StatusOr<Blob> OpenBlob(const std::string& path) {
  constexpr int64_t kPageBytes = 4096;
  OTT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  const auto size = static_cast<size_t>(file->size());
  if (file->size() >= kPageBytes) return Blob{{file->data(), size}, file, true};
  OTT_ASSIGN_OR_RETURN(const std::shared_ptr<void> copy, AllocateHost(file->size()));
  std::copy_n(file->data(), size, static_cast<char*>(copy.get()));
  return Blob{{static_cast<const char*>(copy.get()), size}, copy, false};
}

// Converts the numbers of a tree, in row-major order, to elements of a dtype and shape.
template <typename T>
class ElementCollector {
 public:
  ElementCollector(const Dims& shape, T* elements) : shape_(shape), next_(elements) {}

  absl::Status Collect(const Value& value, size_t dimension = 0) {
    if (value.is_tensor()) return CollectTensor(value.tensor().view, dimension);
    if (dimension == shape_.size()) return CollectScalar(value);
    if (!value.is_list() || static_cast<int64_t>(value.list().size()) != shape_[dimension])
      return WrongShape();
    for (const Value& item : value.list()) OTT_RETURN_IF_ERROR(Collect(item, dimension + 1));
    return absl::OkStatus();
  }

 private:
  absl::Status WrongShape() const {
    return absl::InvalidArgumentError(absl::StrCat("its numbers are not of shape ", ShapeToString(shape_)));
  }

  absl::Status CollectTensor(const TensorView& view, size_t dimension) {
    if (view.shape() != Dims(shape_.begin() + dimension, shape_.end())) return WrongShape();
    return VisitDType(view.dtype(), [&](auto element) -> absl::Status {
      using From = decltype(element);
      if constexpr (std::is_arithmetic_v<From>) {
        const From* const from = static_cast<const From*>(view.data());
        for (int64_t i = 0; i < view.num_elements(); ++i) OTT_RETURN_IF_ERROR(Add(from[i]));
      }
      return absl::OkStatus();
    });
  }

  absl::Status CollectScalar(const Value& value) {
    switch (value.kind()) {
      case Value::Kind::kBool:
        return Add(value.bool_value());
      case Value::Kind::kInt:
        return Add(value.int_value());
      case Value::Kind::kDouble:
        return Add(value.double_value());
      default:
        return WrongShape();
    }
  }

  template <typename From>
  absl::Status Add(From value) {
    bool exact = false;
    if constexpr (std::is_same_v<From, bool> && std::is_same_v<T, bool>) {
      *next_ = value;
      exact = true;
    } else if constexpr (std::is_same_v<From, bool> || std::is_same_v<T, bool>) {
      exact = false;
    } else if constexpr (std::is_integral_v<From> && std::is_integral_v<T>) {
      *next_ = static_cast<T>(value);
      exact = static_cast<From>(*next_) == value && (*next_ < T{}) == (value < From{});
    } else if constexpr (std::is_floating_point_v<From> && !std::is_integral_v<T>) {
      *next_ = FromDouble<T>(value);
      exact = static_cast<double>(*next_) == value || std::isnan(value);
    }
    if (!exact) {
      return absl::InvalidArgumentError(
          absl::StrCat("the number ", value, " is no ", std::string(Name(DTypeOf<T>()))));
    }
    ++next_;
    return absl::OkStatus();
  }

  const Dims shape_;
  T* next_;
};

// The tensor that was dumped as these numbers.
absl::StatusOr<Tensor> TensorFromNumbers(const Value& numbers, DType dtype, const Dims& shape) {
  OTT_ASSIGN_OR_RETURN(const int64_t num_bytes, CheckedNumBytes(dtype, shape));
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, AllocateHost(num_bytes));
  OTT_RETURN_IF_ERROR(VisitDType(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (kIsComplex<T>) {
      Dims shape_of_parts = shape;
      shape_of_parts.push_back(2);
      return ElementCollector(shape_of_parts, static_cast<typename T::value_type*>(memory.get()))
          .Collect(numbers);
    } else {
      return ElementCollector(shape, static_cast<T*>(memory.get())).Collect(numbers);
    }
  }));
  return Tensor{TensorView(memory.get(), dtype, shape), std::move(memory)};
}

// The items of the first dimension.
Value::List Unstack(const Tensor& tensor) {
  Value::List items;
  for (int64_t i = 0; i < tensor.view.shape()[0]; ++i) {
    Tensor item = ItemOf(tensor, i);
    const DType dtype = item.view.dtype();
    const void* const data = item.view.data();
    if (!item.view.shape().empty() || dtype == DType::kUInt64) {
      items.push_back(std::move(item));
    } else if (dtype == DType::kBool) {
      items.push_back(*static_cast<const char*>(data) != 0);
    } else if (dtype == DType::kInt64) {
      items.push_back(*static_cast<const int64_t*>(data));
    } else {
      items.push_back(*static_cast<const double*>(data));
    }
  }
  return items;
}

// JSON says nothing about dtypes.
Tensor WithoutDType(Tensor numbers) {
  numbers.dtype_known = false;
  return numbers;
}

// Reads one group: its tree, and its tensors' files.
class GroupReader {
 public:
  // manifest: null for a dump of Python's.
  GroupReader(const std::string& dir, const std::string& group_file, const Manifest* manifest)
      : dir_(dir), group_file_(group_file), has_manifest_(manifest != nullptr) {
    if (manifest == nullptr) return;
    for (const ManifestTensor& tensor : manifest->tensors) {
      if (tensor.group == group_file) listed_.emplace(tensor.path, &tensor);
    }
  }

  absl::StatusOr<Value> Read() {
    const std::string file = PathOf(group_file_);
    OTT_ASSIGN_OR_RETURN(const Value json, ReadJsonFile(file));
    OTT_ASSIGN_OR_RETURN(Value tree, Resolve("", json));
    if (!listed_.empty()) {
      return absl::DataLossError(
          absl::StrCat(file, ": the manifest lists the tensor '", listed_.begin()->first,
                       "', which is not in the tree; the files are of different dumps"));
    }
    return tree;
  }

  // REQUIRES: the tensor is in a file of its own
  absl::StatusOr<Value> ReadTensorFile(const ManifestTensor& tensor) const {
    return ResolveListed(tensor, Value());
  }

 private:
  std::string PathOf(const std::string& file) const { return absl::StrCat(dir_, "/", file); }

  // Puts the tensors where the JSON has numbers or references to files.
  absl::StatusOr<Value> Resolve(const std::string& path, const Value& json) {
    if (const auto listed = listed_.find(path); listed != listed_.end()) {
      const ManifestTensor& tensor = *listed->second;
      listed_.erase(listed);
      return ResolveListed(tensor, json);
    }
    switch (json.kind()) {
      case Value::Kind::kTensor:
        if (!has_manifest_) return WithoutDType(json.tensor());
        if (json.tensor().view.shape().empty()) return json;
        // A list of numbers that is not listed was a list, or is a list of listed tensors.
        return Resolve(path, Unstack(json.tensor()));
      case Value::Kind::kString:
        return has_manifest_ ? json : ResolveString(path, json.string_value());
      default:
        return TransformChildren(path, json, [this](const std::string& child_path, const Value& child) {
          return Resolve(child_path, child);
        });
    }
  }

  // A reference to a tensor's file is its path and an extension.
  absl::StatusOr<Value> ResolveString(const std::string& path, const std::string& string) const {
    for (const DumpFormat format : {DumpFormat::kBinary, DumpFormat::kNpy, DumpFormat::kSafetensors,
                                    // Stands for all images, whose files say which kind they are of.
                                    DumpFormat::kImageI}) {
      if (string != absl::StrCat(path, std::string(Extension(format)))) continue;
      if (format == DumpFormat::kBinary) return ReadDescribed(string);
      if (format == DumpFormat::kImageI) return ReadImage(string, nullptr);
      return ReadSelfDescribing(format, path);
    }
    return Value(string);
  }

  absl::StatusOr<Value> ResolveListed(const ManifestTensor& tensor, const Value& json) const {
    switch (tensor.format) {
      case DumpFormat::kStatistics:
        return json;
      case DumpFormat::kBinary:
        return MapBlob(tensor.path + std::string(Extension(tensor.format)), tensor.dtype, tensor.shape);
      case DumpFormat::kNpy:
      case DumpFormat::kSafetensors: {
        OTT_ASSIGN_OR_RETURN(Value value, ReadSelfDescribing(tensor.format, tensor.path));
        const TensorView& view = value.tensor().view;
        if (view.dtype() != tensor.dtype || view.shape() != tensor.shape) {
          return absl::DataLossError(absl::StrCat(
              PathOf(tensor.file), ": is not the ", ShapeToString(tensor.shape), " ",
              std::string(Name(tensor.dtype)), " of the manifest; the files are of different dumps"));
        }
        return value;
      }
      case DumpFormat::kImageRgb:
      case DumpFormat::kImageBgr:
      case DumpFormat::kImageI:
        return ReadImage(tensor.path + std::string(Extension(tensor.format)), &tensor);
      case DumpFormat::kJson:
        break;
    }
    absl::StatusOr<Tensor> numbers = TensorFromNumbers(json, tensor.dtype, tensor.shape);
    if (!numbers.ok()) {
      return WithContext(absl::StrCat(PathOf(group_file_), ": '", tensor.path, "'"), numbers.status());
    }
    return Value(*std::move(numbers));
  }

  // Two entries of the file beside a tensor's file, the second of which is a text.
  absl::StatusOr<std::pair<Value, std::string>> ReadMeta(const std::string& meta_file, const char* first,
                                                         const char* second) const {
    OTT_ASSIGN_OR_RETURN(const Value meta, ReadJsonFile(meta_file));
    const Value* const value = meta.is_map() ? meta.map().Find(first) : nullptr;
    const Value* const text = meta.is_map() ? meta.map().Find(second) : nullptr;
    if (value == nullptr || text == nullptr || text->kind() != Value::Kind::kString) {
      return WithContext(meta_file, absl::InvalidArgumentError(absl::StrCat("needs \"", first, "\" and \"",
                                                                            second, "\", which is a text")));
    }
    return std::pair(*value, text->string_value());
  }

  // listed: null for a dump of Python's.
  absl::StatusOr<Value> ReadImage(const std::string& reference, const ManifestTensor* listed) const {
    const std::string file = PathOf(BlobFileName(group_file_, reference));
    const std::string meta_file = file + kMetaExtension;
    OTT_ASSIGN_OR_RETURN(const auto meta, ReadMeta(meta_file, "original_range", "image_format"));
    const auto& [range, name] = meta;
    const absl::StatusOr<DumpFormat> format = ParseImageFormat(name);
    if (!format.ok()) return WithContext(meta_file, format.status());
    if (!range.is_tensor() || range.tensor().view.shape() != Dims({2})) {
      return WithContext(meta_file, absl::InvalidArgumentError("\"original_range\" is not two numbers"));
    }
    OTT_ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> mapped, MappedFile::Open(file));
    const std::string_view bytes(mapped->data(), mapped->size());
    if (listed != nullptr && listed->file_digest.has_value()) {
      OTT_ASSIGN_OR_RETURN(const Digest digest, DigestOfBytes(bytes));
      if (digest != *listed->file_digest) {
        return absl::DataLossError(
            absl::StrCat(file, ": is not the image that was dumped; it was changed since"));
      }
    }
    absl::StatusOr<Tensor> pixels = DecodePng(bytes, *format);
    if (!pixels.ok()) return WithContext(file, pixels.status());
    Value value = ImageValue({*std::move(pixels), WithoutDType(range.tensor())}, *format);
    if (listed != nullptr) {
      ValueMap& image = value.map().Find(kImageName)->map();
      image.Insert("dtype", Name(listed->dtype));
      image.Insert("shape", ShapeToString(listed->shape));
      image.Insert("digest", listed->digest.ToString());
    }
    return value;
  }

  // A tensor whose dtype and shape are in the file beside it.
  absl::StatusOr<Value> ReadDescribed(const std::string& reference) const {
    const std::string meta_file = PathOf(BlobFileName(group_file_, reference) + kMetaExtension);
    OTT_ASSIGN_OR_RETURN(const auto meta, ReadMeta(meta_file, "file_data_shape", "file_data_dtype"));
    const auto& [shape, dtype] = meta;
    constexpr std::string_view kPrefix = "torch.";
    if (dtype.compare(0, kPrefix.size(), kPrefix) != 0) {
      return WithContext(meta_file,
                         absl::InvalidArgumentError(absl::StrCat(
                             "the dtype '", dtype, "' is none of PyTorch's, such as torch.float32")));
    }
    const absl::StatusOr<Dims> dims = ShapeFromValue(shape);
    if (!dims.ok()) return WithContext(meta_file, dims.status());
    const absl::StatusOr<DType> parsed = ParseDType(std::string_view(dtype).substr(kPrefix.size()));
    if (!parsed.ok()) return WithContext(meta_file, parsed.status());
    return MapBlob(reference, *parsed, *dims);
  }

  absl::StatusOr<Value> ReadSelfDescribing(DumpFormat format, const std::string& path) const {
    const std::string file =
        PathOf(BlobFileName(group_file_, absl::StrCat(path, std::string(Extension(format)))));
    OTT_ASSIGN_OR_RETURN(const Blob blob, OpenBlob(file));
    const absl::StatusOr<TensorView> view =
        format == DumpFormat::kNpy ? ParseNpy(blob.bytes) : ParseSafetensors(blob.bytes, path);
    if (!view.ok()) return WithContext(file, view.status());
    // Other programs' files need not be aligned.
    if (reinterpret_cast<uintptr_t>(view->data()) % SizeOf(view->dtype()) == 0)
      return Value(Tensor{*view, blob.owner, blob.mapped});
    OTT_ASSIGN_OR_RETURN(Tensor clone, CloneToHost(*view));
    return Value(std::move(clone));
  }

  absl::StatusOr<Value> MapBlob(const std::string& reference, DType dtype, const Dims& shape) const {
    const std::string path = PathOf(BlobFileName(group_file_, reference));
    const absl::StatusOr<int64_t> expected = CheckedNumBytes(dtype, shape);
    if (!expected.ok()) return WithContext(path, expected.status());
    OTT_ASSIGN_OR_RETURN(const Blob blob, OpenBlob(path));
    if (static_cast<int64_t>(blob.bytes.size()) != *expected) {
      return absl::DataLossError(absl::StrCat(
          path, ": ", blob.bytes.size(), " bytes, but ", ShapeToString(shape), " ", std::string(Name(dtype)),
          " has ", *expected, "; the program was probably killed, or the disk full, while dumping"));
    }
    return Value(Tensor{TensorView(blob.bytes.data(), dtype, shape), blob.owner, blob.mapped});
  }

  const std::string dir_;
  const std::string group_file_;
  const bool has_manifest_;
  // Tensors of the manifest that are not found yet.
  absl::flat_hash_map<std::string, const ManifestTensor*> listed_;
};

}  // namespace

absl::StatusOr<std::optional<Manifest>> ReadManifest(const std::string& dir) {
  const std::string path = absl::StrCat(dir, "/", kManifestFile);
  const absl::StatusOr<Value> json = ReadJsonFile(path);
  if (absl::IsNotFound(json.status())) return std::nullopt;
  if (!json.ok()) return json.status();
  absl::StatusOr<Manifest> manifest = ManifestFromValue(*json);
  if (!manifest.ok()) return WithContext(path, manifest.status());
  if (!manifest->complete) {
    return absl::DataLossError(absl::StrCat(
        dir,
        ": the dump was not finished; the program was probably killed, or the disk full, while dumping"));
  }
  return std::optional<Manifest>(*std::move(manifest));
}

absl::StatusOr<Tensor> ReadTensorFile(const std::string& dir, const ManifestTensor& tensor) {
  switch (tensor.format) {
    case DumpFormat::kBinary:
    case DumpFormat::kNpy:
    case DumpFormat::kSafetensors: {
      OTT_ASSIGN_OR_RETURN(const Value value, GroupReader(dir, tensor.group, nullptr).ReadTensorFile(tensor));
      return value.tensor();
    }
    default:
      return absl::InvalidArgumentError(absl::StrCat(dir, ": '", tensor.path, "' was dumped as ",
                                                     std::string(Name(tensor.format)),
                                                     ", so it is in no file of its own"));
  }
}

absl::StatusOr<Dump> ReadDump(const std::string& dir) {
  Dump dump;
  OTT_ASSIGN_OR_RETURN(dump.manifest, ReadManifest(dir));
  const Manifest* const manifest = dump.manifest.has_value() ? &*dump.manifest : nullptr;

  absl::StatusOr<Value> tensors = GroupReader(dir, kTensorsFile, manifest).Read();
  if (absl::IsNotFound(tensors.status()) && manifest == nullptr) {
    return absl::NotFoundError(absl::StrCat(tensors.status().message(), "; is ", dir, " a dump?"));
  }
  if (!tensors.ok()) return tensors.status();
  dump.tensors = *std::move(tensors);

  if (manifest != nullptr && !manifest->has_grads) return dump;
  absl::StatusOr<Value> grads = GroupReader(dir, kGradsFile, manifest).Read();
  if (absl::IsNotFound(grads.status()) && manifest == nullptr) return dump;
  if (!grads.ok()) return grads.status();
  dump.grads = *std::move(grads);
  return dump;
}

}  // namespace ott
