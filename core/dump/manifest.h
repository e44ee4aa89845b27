// manifest.json: what a dump holds, so that a reader can tell a whole dump from one that was cut off.

#ifndef OTT_CORE_DUMP_MANIFEST_H_
#define OTT_CORE_DUMP_MANIFEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/digest/digest.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/tensor/value.h"

namespace ott {

struct ManifestTensor {
  std::string group;  // the file of its tree: "tensors.json" or "grads.json"
  std::string path;
  DType dtype;
  Dims shape;
  DumpFormat format;
  std::string file;   // in which its elements are
  int64_t num_bytes;  // of its elements, whatever the format
  Digest digest;      // TensorDigest::root
  // Images: of the file's bytes. Manifests of earlier versions have none.
  std::optional<Digest> file_digest = {};
};

struct Manifest {
  // False from before the first file of a dump is written until after the last.
  bool complete = false;
  int64_t iteration = 0;
  int rank = 0;
  int world_size = 1;
  // If false, a grads.json in the directory is left over from an earlier dump.
  bool has_grads = false;
  // In order of adding, those of tensors.json first.
  std::vector<ManifestTensor> tensors;
  // Paths of all that is in the two trees in the order in which the program added it; empty: the tree's.
  std::vector<std::string> tensor_order;
  std::vector<std::string> grad_order;
};

Value ManifestToValue(const Manifest& manifest);

// Returns INVALID_ARGUMENT naming the entry that is missing or not what it must be.
absl::StatusOr<Manifest> ManifestFromValue(const Value& value);

// Returns a shape as ParseJson returns it: an empty list or a 1-d tensor of integers. INVALID_ARGUMENT for
// anything else.
absl::StatusOr<Dims> ShapeFromValue(const Value& value);

}  // namespace ott

#endif  // OTT_CORE_DUMP_MANIFEST_H_
