// The whole tensors that the ranks of a run hold parts of, in one iteration.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_WHOLE_TENSORS_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_WHOLE_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/questions/right/layout/rank_dump.h"
#include "ott/questions/right/layout/run_rules.h"

namespace ott::crosscheck {

// A range of indices in each dimension of a whole tensor, and where a rank's tensor, its dimensions in the
// order of the whole one's, holds them.
struct Box {
  Dims offset;
  Dims shape;
  Dims begin;
};

// A tensor of a rank's dump.
struct Part {
  int rank = 0;
  size_t tensor = 0;
};

// The part that one rank holds of a whole tensor, or several whose sum it is.
struct Cell {
  std::vector<Part> parts;
  std::vector<Box> boxes;
};

struct WholeTensor {
  std::string name;
  DType dtype = DType::kFloat32;
  Dims shape;
  bool dtype_known = true;
  bool is_text = false;
  bool is_sum = false;
  int64_t divisor = 1;
  std::vector<int> transpose;  // empty: none
  // The cells of a replica do not overlap and make up the whole tensor.
  std::vector<std::vector<Cell>> replicas;
  // Says how its extents come about, such as "dim 0 = 24 + 24"; empty if one rank holds it all.
  std::string extents;
  // Why it cannot be put together; then there are no replicas.
  std::string problem;
};

struct BoundRun {
  std::vector<std::optional<RankDump>> dumps;  // by rank
  std::vector<WholeTensor> tensors;            // in the order of the dumps, the lowest rank's first
  std::vector<std::string> problems;           // ranks without a dump, tensors and rules that match nothing
  std::vector<std::string> understood;         // a line for each rule
};

// Binds the rules to the dumps of all ranks. What cannot be read or matched is a problem of the result.
BoundRun BindDumps(std::vector<absl::StatusOr<RankDump>> dumps, const RunRules& rules);

// The dumps of a run in an iteration.
BoundRun BindRun(const std::string& run_dir, int64_t iteration, const RunRules& rules);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_WHOLE_TENSORS_H_
