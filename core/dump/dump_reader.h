// Reads a dump back: ours, or the Python TensorDumper's.

#ifndef OTT_CORE_DUMP_DUMP_READER_H_
#define OTT_CORE_DUMP_DUMP_READER_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "ott/core/dump/manifest.h"
#include "ott/core/tensor/value.h"

namespace ott {

struct Dump {
  // Tensors in files of their own are mapped, so they cost memory as they are touched. Those dumped as JSON
  // have the dtype and shape of the manifest; without one they are float64, int64, uint64 or bool, and lists
  // of numbers that were no tensors are tensors too. What was dumped as statistics is a map (dump_writer.h).
  Value tensors;
  std::optional<Value> grads;
  // Ours have one, Python's have none.
  std::optional<Manifest> manifest;
};

// Reads a dump. NOT_FOUND if there is no dump; DATA_LOSS, naming the file, for a dump that was not finished
// or a file that is cut or missing; INVALID_ARGUMENT, naming the file, for contents that are no dump's.
absl::StatusOr<Dump> ReadDump(const std::string& dir);

// Reads the manifest alone; nullopt if there is none, since the dump is Python's or there is no dump. Errors
// as above.
absl::StatusOr<std::optional<Manifest>> ReadManifest(const std::string& dir);

// Reads one tensor that lies in a file of its own, of a dump with a manifest: for programs that cannot keep
// all tensors of many ranks mapped. Errors as above; INVALID_ARGUMENT for other tensors.
absl::StatusOr<Tensor> ReadTensorFile(const std::string& dir, const ManifestTensor& tensor);

}  // namespace ott

#endif  // OTT_CORE_DUMP_DUMP_READER_H_
