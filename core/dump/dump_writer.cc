#include "ott/core/dump/dump_writer.h"

#include <sys/stat.h>

#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/core/digest/digest.h"
#include "ott/core/dump/adding_order.h"
#include "ott/core/dump/image.h"
#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/dump/npy.h"
#include "ott/core/dump/safetensors.h"
#include "ott/core/tensor/tensor_statistics.h"

namespace ott {
namespace {

absl::Status WriteJsonFile(const std::string& path, const Value& value, bool sync, int num_threads = 1) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  OTT_RETURN_IF_ERROR(WriteJson(
      value, [&](std::string_view piece) { return file->Append(piece); }, num_threads));
  return file->Commit(sync);
}

absl::Status AtPath(const std::string& path, const absl::Status& status) {
  return WithContext(absl::StrCat("'", path, "'"), status);
}

absl::Status CheckName(const std::string& path, const std::string& name) {
  OTT_RETURN_IF_ERROR(CheckUtf8(name));
  if (name.empty()) return AtPath(JoinPath(path, name), absl::InvalidArgumentError("a name is empty"));
  for (const char* const reserved : {kStatisticsName, kImageName}) {
    if (name != reserved) continue;
    return AtPath(JoinPath(path, name),
                  absl::InvalidArgumentError("the name is reserved for what stands for a tensor"));
  }
  return absl::OkStatus();
}

// Counts the lists that a tensor without elements is written as: [[], [], []] of [3, 0].
int64_t NumEmptyLists(const Dims& shape) {
  int64_t count = 1;
  for (const int64_t dimension : shape) {
    if (dimension == 0) return count;
    // A tensor of no elements may be of any size.
    count = dimension > kMaxJsonValues / count ? kMaxJsonValues + 1 : count * dimension;
  }
  return 1;
}

absl::Status CheckNumValues(const std::string& path, const Value& value, int64_t* count) {
  *count += value.is_tensor() ? NumEmptyLists(value.tensor().view.shape()) : 1;
  if (*count > kMaxJsonValues) {
    return AtPath(path, absl::InvalidArgumentError(
                            absl::StrCat("more than the ", kMaxJsonValues,
                                         " values that a dump may have beside the elements of tensors")));
  }
  if (value.is_map()) {
    for (const auto& [name, child] : value.map()) OTT_RETURN_IF_ERROR(CheckNumValues(path, child, count));
  } else if (value.is_list()) {
    for (const Value& child : value.list()) OTT_RETURN_IF_ERROR(CheckNumValues(path, child, count));
  }
  return absl::OkStatus();
}

// depth: of the lists and maps around the value.
absl::Status CheckDumpable(const std::string& path, const Value& value, int depth) {
  if (value.is_tensor() && !value.tensor().view.status().ok()) {
    return AtPath(path, value.tensor().view.status());
  }
  // A complex number is a list of two.
  const int levels = value.is_tensor() ? static_cast<int>(value.tensor().view.shape().size()) + 1
                     : value.is_map() || value.is_list() ? 1
                                                         : 0;
  if (depth + levels > kMaxJsonDepth) {
    return AtPath(path, absl::InvalidArgumentError(
                            absl::StrCat("nested deeper than ", kMaxJsonDepth, " levels, tensors included")));
  }
  if (value.kind() == Value::Kind::kString) {
    const absl::Status status = CheckUtf8(value.string_value());
    return status.ok() ? status : AtPath(path, status);
  }
  if (value.is_map()) {
    for (const auto& [name, child] : value.map()) {
      OTT_RETURN_IF_ERROR(CheckName(path, name));
      OTT_RETURN_IF_ERROR(CheckDumpable(JoinPath(path, name), child, depth + 1));
    }
  } else if (value.is_list()) {
    for (size_t i = 0; i < value.list().size(); ++i) {
      OTT_RETURN_IF_ERROR(CheckDumpable(JoinPath(path, std::to_string(i)), value.list()[i], depth + 1));
    }
  }
  return absl::OkStatus();
}

// OK, or why the format cannot hold the tensor.
absl::Status CheckFormat(DumpFormat format, std::string_view path, const TensorView& view) {
  if (IsImage(format)) return CheckImages(view, format);
  if (format == DumpFormat::kNpy) return NpyHeader(view.dtype(), view.shape()).status();
  if (format == DumpFormat::kSafetensors) return SafetensorsHeader(path, view.dtype(), view.shape()).status();
  return absl::OkStatus();
}

// The format, or one that can hold the tensor: a dump of all as one format is not lost by one tensor. The
// first tensor of a dtype says so on stderr.
DumpFormat FormatThatHolds(DumpFormat format, std::string_view path, const TensorView& view) {
  const absl::Status status = CheckFormat(format, path, view);
  if (status.ok()) return format;
  static std::mutex mutex;
  static auto* const said = new std::set<std::pair<DumpFormat, DType>>;
  const std::lock_guard lock(mutex);
  if (said->emplace(format, view.dtype()).second) {
    std::fprintf(stderr, "ott: '%s': %s; it and others like it are dumped as BINARY\n",
                 EscapeControlCharacters(path).c_str(), std::string(status.message()).c_str());
  }
  return DumpFormat::kBinary;
}

class DumpWriter {
 public:
  DumpWriter(const std::string& dir, bool sync) : dir_(dir), sync_(sync) {}

  absl::Status Write(const DumpContents& contents) {
    OTT_RETURN_IF_ERROR(MakeDirectory());
    manifest_.iteration = contents.iteration;
    manifest_.rank = contents.rank;
    manifest_.world_size = contents.world_size;
    manifest_.has_grads = contents.grads.tree != nullptr;
    bytes_left_ = contents.max_bytes;
    if (contents.reference != nullptr) {
      for (const ManifestTensor& tensor : contents.reference->tensors) {
        reference_.emplace(KeyOf(tensor.group, tensor.path), tensor.digest);
      }
    }
    OTT_RETURN_IF_ERROR(WriteManifest());
    OTT_RETURN_IF_ERROR(
        WriteGroup(kTensorsFile, contents.tensors, contents.num_json_threads, manifest_.tensor_order));
    OTT_RETURN_IF_ERROR(
        WriteGroup(kGradsFile, contents.grads, contents.num_json_threads, manifest_.grad_order));
    manifest_.complete = true;
    return WriteManifest();
  }

 private:
  absl::Status MakeDirectory() const {
    struct stat info;
    if (lstat(dir_.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) {
      return absl::FailedPreconditionError(absl::StrCat(
          dir_, ": is a symbolic link; nothing is dumped through it, since it may lead anywhere"));
    }
    return MakeDirectories(dir_);
  }

  std::string PathOf(std::string_view file) const { return absl::StrCat(dir_, "/", std::string(file)); }

  absl::Status WriteManifest() const {
    return WriteJsonFile(PathOf(kManifestFile), ManifestToValue(manifest_), sync_);
  }

  absl::Status WriteGroup(std::string_view group_file, const DumpGroup& group, int num_json_threads,
                          std::vector<std::string>& order) {
    if (group.tree == nullptr) return absl::OkStatus();
    OTT_RETURN_IF_ERROR(CheckDumpable("", *group.tree));
    std::vector<ManifestTensor> before = std::exchange(manifest_.tensors, {});
    OTT_ASSIGN_OR_RETURN(const Value tree, WriteBlobs(group_file, group, "", *group.tree));
    if (group.order != nullptr) order = OrderUnlikeTrees(*group.tree, *group.order);
    AddingOrder(order).Sort(manifest_.tensors);
    before.insert(before.end(), manifest_.tensors.begin(), manifest_.tensors.end());
    manifest_.tensors = std::move(before);
    return WriteJsonFile(PathOf(group_file), tree, sync_, num_json_threads);
  }

  // Writes the tensors that have files of their own, and returns the tree with references in their place.
  absl::StatusOr<Value> WriteBlobs(std::string_view group_file, const DumpGroup& group,
                                   const std::string& path, const Value& value) {
    if (value.is_tensor()) return WriteTensor(group_file, group.format(path), path, value);
    return TransformChildren(path, value, [&](const std::string& child_path, const Value& child) {
      return WriteBlobs(group_file, group, child_path, child);
    });
  }

  absl::StatusOr<Value> WriteTensor(std::string_view group_file, DumpFormat format, const std::string& path,
                                    const Value& value) {
    const TensorView& view = value.tensor().view;
    if (view.device().kind != Device::Kind::kHost) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "': the tensor is not in host memory"));
    }
    // A PNG image has at least one pixel.
    if (IsImage(format) && view.num_elements() == 0) format = DumpFormat::kJson;
    format = FormatThatHolds(format, path, view);
    if (IsImage(format) && static_cast<int>(view.shape().size()) > NumImageDims(format)) {
      Value::List images;
      for (int64_t i = 0; i < view.shape()[0]; ++i) {
        OTT_ASSIGN_OR_RETURN(Value image, WriteTensor(group_file, format, JoinPath(path, std::to_string(i)),
                                                      ItemOf(value.tensor(), i)));
        images.push_back(std::move(image));
      }
      return Value(std::move(images));
    }
    const std::string key = KeyOf(group_file, path);
    if (!paths_.insert(key).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "two tensors have the path '", path, "'; names with dots in them look like names within names"));
    }
    OTT_ASSIGN_OR_RETURN(const TensorDigest digest, ComputeDigest(view));
    const auto known = reference_.find(key);
    if ((known != reference_.end() && known->second == digest.root) || view.num_bytes() > bytes_left_) {
      format = DumpFormat::kStatistics;
    }
    if (format != DumpFormat::kStatistics) bytes_left_ -= view.num_bytes();

    const std::string reference = absl::StrCat(path, std::string(Extension(format)));
    const bool has_file = reference != path;
    const std::string file = has_file ? BlobFileName(group_file, reference) : std::string(group_file);
    manifest_.tensors.push_back({std::string(group_file), path, view.dtype(), view.shape(), format, file,
                                 view.num_bytes(), digest.root});
    switch (format) {
      case DumpFormat::kJson:
        return value;
      case DumpFormat::kStatistics:
        return StatisticsValue(view, digest.root);
      case DumpFormat::kBinary: {
        OTT_RETURN_IF_ERROR(WriteBlob(file, "", view));
        OTT_RETURN_IF_ERROR(
            WriteMeta(file, ValueMap{
                                {"file_data_shape", Value::List(view.shape().begin(), view.shape().end())},
                                {"file_data_dtype", absl::StrCat("torch.", std::string(Name(view.dtype())))},
                            }));
        return Value(reference);
      }
      case DumpFormat::kImageRgb:
      case DumpFormat::kImageBgr:
      case DumpFormat::kImageI: {
        const absl::StatusOr<Digest> written = WriteImage(file, view, format);
        if (!written.ok()) return AtPath(path, written.status());
        manifest_.tensors.back().file_digest = *written;
        return Value(reference);
      }
      case DumpFormat::kNpy: {
        OTT_ASSIGN_OR_RETURN(const std::string header, NpyHeader(view.dtype(), view.shape()));
        OTT_RETURN_IF_ERROR(WriteBlob(file, header, view));
        return Value(reference);
      }
      case DumpFormat::kSafetensors: {
        OTT_ASSIGN_OR_RETURN(const std::string header, SafetensorsHeader(path, view.dtype(), view.shape()));
        OTT_RETURN_IF_ERROR(WriteBlob(file, header, view));
        return Value(reference);
      }
    }
    __builtin_unreachable();
  }

  static std::string KeyOf(std::string_view group_file, std::string_view path) {
    return absl::StrCat(std::string(group_file), ":", std::string(path));
  }

  absl::Status WriteBlob(const std::string& name, std::string_view header, const TensorView& view) const {
    Tensor contiguous{view, nullptr};
    if (!view.is_contiguous()) {
      OTT_ASSIGN_OR_RETURN(contiguous, CloneToHost(view));
    }
    OTT_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(PathOf(name)));
    OTT_RETURN_IF_ERROR(file->Append(header));
    OTT_RETURN_IF_ERROR(file->Append(
        {static_cast<const char*>(contiguous.view.data()), static_cast<size_t>(view.num_bytes())}));
    return file->Commit(sync_);
  }

  // Returns the digest of the image's file.
  absl::StatusOr<Digest> WriteImage(const std::string& name, const TensorView& view,
                                    DumpFormat format) const {
    OTT_ASSIGN_OR_RETURN(const Image image, MakeImage(view, format));
    OTT_ASSIGN_OR_RETURN(const std::string png, EncodePng(image.pixels.view, format));
    OTT_RETURN_IF_ERROR(WriteFileAtomically(PathOf(name), png, sync_));
    OTT_RETURN_IF_ERROR(WriteMeta(
        name, ValueMap{{"original_range", image.original_range}, {"image_format", ImageFormatName(format)}}));
    return DigestOfBytes(png);
  }

  absl::Status WriteMeta(const std::string& name, const Value& meta) const {
    return WriteJsonFile(PathOf(name) + kMetaExtension, meta, sync_);
  }

  static absl::StatusOr<Value> StatisticsValue(const TensorView& view, const Digest& digest) {
    OTT_ASSIGN_OR_RETURN(const TensorStatistics statistics, ComputeStatistics(view));
    const auto or_null = [](std::optional<double> value) {
      return value.has_value() ? Value(*value) : Value();
    };
    return Value(ValueMap{{kStatisticsName, ValueMap{
                                                {"dtype", Name(view.dtype())},
                                                // Text, so that it is not taken for a tensor.
                                                {"shape", ShapeToString(view.shape())},
                                                {"num_elements", view.num_elements()},
                                                {"min", or_null(statistics.min)},
                                                {"max", or_null(statistics.max)},
                                                {"mean", or_null(statistics.mean)},
                                                {"l2_norm", statistics.l2_norm},
                                                {"num_nan", statistics.num_nan},
                                                {"num_inf", statistics.num_inf},
                                                {"digest", digest.ToString()},
                                            }}});
  }

  const std::string dir_;
  const bool sync_;
  Manifest manifest_;
  absl::flat_hash_set<std::string> paths_;
  // The reference's digests.
  absl::flat_hash_map<std::string, Digest> reference_;
  int64_t bytes_left_ = 0;
};

}  // namespace

absl::Status CheckDumpable(const std::string& path, const Value& value) {
  int64_t num_values = 0;
  OTT_RETURN_IF_ERROR(CheckNumValues(path, value, &num_values));
  if (path.empty()) return CheckDumpable(path, value, 0);
  int depth = 0;
  std::string above;
  for (const absl::string_view part : absl::StrSplit(path, '.')) {
    const std::string name(part);
    OTT_RETURN_IF_ERROR(CheckName(above, name));
    above = JoinPath(above, name);
    ++depth;
  }
  return CheckDumpable(path, value, depth);
}

absl::Status WriteDump(const std::string& dir, const DumpContents& contents, bool sync) {
  return DumpWriter(dir, sync).Write(contents);
}

}  // namespace ott
