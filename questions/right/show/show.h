// Shows what a checkpoint or a dump holds.

#ifndef OTT_QUESTIONS_RIGHT_SHOW_SHOW_H_
#define OTT_QUESTIONS_RIGHT_SHOW_SHOW_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/checkpoint/state_kind.h"
#include "ott/core/tensor/tensor_statistics.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott::show {

struct ShownTensor {
  std::string path;
  StateKind kind = StateKind::kOther;
  DType dtype = DType::kFloat32;
  Dims shape;
  int64_t num_bytes = 0;
  TensorStatistics statistics;
  int64_t num_parts = 1;    // places that its elements lie in
  std::string shares_with;  // the path of the first tensor that begins at the same element, if any
};

struct Contents {
  std::string path;
  std::string format;  // Checkpoint::format, or "a dump"
  // The programs whose versions the state holds: "Lightning 2.6.6". Empty if it holds none.
  std::string written_by;
  // Also numbers and bools, as tensors without dimensions, in the order of the file.
  std::vector<ShownTensor> tensors;
};

// Reads all elements once. Errors: as ReadCheckpoint() and ReadDump().
absl::StatusOr<Contents> Show(const std::string& path);

// Returns a table, then the bytes of each kind of state, in which shared elements count once.
std::string ToText(const Contents& contents);
std::string ToJson(const Contents& contents);
std::string ToCsv(const Contents& contents);

}  // namespace ott::show

#endif  // OTT_QUESTIONS_RIGHT_SHOW_SHOW_H_
