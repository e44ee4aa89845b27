#include "ott/core/dump/dump_writer.h"

#include <sys/stat.h>

#include <memory>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/compare/digest.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/dump/manifest.h"

namespace ott {
namespace {

absl::Status WriteJsonFile(const std::string& path, const Value& value, bool sync) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  OTT_RETURN_IF_ERROR(WriteJson(value, [&](std::string_view piece) { return file->Append(piece); }));
  return file->Commit(sync);
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
    OTT_RETURN_IF_ERROR(WriteManifest());
    OTT_RETURN_IF_ERROR(WriteGroup(kTensorsFile, contents.tensors));
    OTT_RETURN_IF_ERROR(WriteGroup(kGradsFile, contents.grads));
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

  absl::Status WriteGroup(std::string_view group_file, const DumpGroup& group) {
    if (group.tree == nullptr) return absl::OkStatus();
    OTT_ASSIGN_OR_RETURN(const Value tree, WriteBlobs(group_file, group, "", *group.tree));
    return WriteJsonFile(PathOf(group_file), tree, sync_);
  }

  // Writes the tensors that have files of their own, and returns the tree with references in their place.
  absl::StatusOr<Value> WriteBlobs(std::string_view group_file, const DumpGroup& group,
                                   const std::string& path, const Value& value) {
    switch (value.kind()) {
      case Value::Kind::kList: {
        Value::List list;
        for (size_t i = 0; i < value.list().size(); ++i) {
          OTT_ASSIGN_OR_RETURN(
              Value child, WriteBlobs(group_file, group, JoinPath(path, std::to_string(i)), value.list()[i]));
          list.push_back(std::move(child));
        }
        return Value(std::move(list));
      }
      case Value::Kind::kMap: {
        ValueMap map;
        for (const auto& [name, child] : value.map()) {
          OTT_ASSIGN_OR_RETURN(Value written, WriteBlobs(group_file, group, JoinPath(path, name), child));
          map.Insert(name, std::move(written));
        }
        return Value(std::move(map));
      }
      case Value::Kind::kTensor:
        return WriteTensor(group_file, group.format(path), path, value);
      default:
        return value;
    }
  }

  absl::StatusOr<Value> WriteTensor(std::string_view group_file, DumpFormat format, const std::string& path,
                                    const Value& value) {
    const TensorView& view = value.tensor().view;
    if (view.device().kind != Device::Kind::kHost) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "': the tensor is not in host memory"));
    }
    if (!paths_.insert(absl::StrCat(std::string(group_file), ":", path)).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "two tensors have the path '", path, "'; names with dots in them look like names within names"));
    }
    const std::string reference = path + kBinaryExtension;
    const bool binary = format == DumpFormat::kBinary;
    const std::string file = binary ? BlobFileName(group_file, reference) : std::string(group_file);
    OTT_ASSIGN_OR_RETURN(const TensorDigest digest, ComputeDigest(view));
    manifest_.tensors.push_back({std::string(group_file), path, view.dtype(), view.shape(), format, file,
                                 view.num_bytes(), digest.root});
    if (!binary) return value;
    OTT_RETURN_IF_ERROR(CheckUtf8(path));
    OTT_RETURN_IF_ERROR(WriteBinary(PathOf(file), view));
    return Value(reference);
  }

  absl::Status WriteBinary(const std::string& file, const TensorView& view) const {
    Tensor contiguous{view, nullptr};
    if (!view.is_contiguous()) {
      OTT_ASSIGN_OR_RETURN(contiguous, CloneToHost(view));
    }
    const std::string_view bytes(static_cast<const char*>(contiguous.view.data()), view.num_bytes());
    OTT_RETURN_IF_ERROR(WriteFileAtomically(file, bytes, sync_));
    Value::List shape(view.shape().begin(), view.shape().end());
    const Value meta = ValueMap{
        {"file_data_shape", std::move(shape)},
        {"file_data_dtype", absl::StrCat("torch.", std::string(Name(view.dtype())))},
    };
    return WriteJsonFile(file + kMetaExtension, meta, sync_);
  }

  const std::string dir_;
  const bool sync_;
  Manifest manifest_;
  absl::flat_hash_set<std::string> paths_;
};

}  // namespace

absl::Status WriteDump(const std::string& dir, const DumpContents& contents, bool sync) {
  return DumpWriter(dir, sync).Write(contents);
}

}  // namespace ott
