// Compares two checkpoints, and says which part of a training's state differs.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_CHECKPOINTS_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_CHECKPOINTS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/checkpoint/state_kind.h"
#include "ott/core/compare/compare.h"
#include "ott/questions/right/layout/layout.pb.h"

namespace ott::compare {

struct CheckpointComparison {
  // By StateKindOfResult(), of one kind in the reference's order. A tensor that differs says in its detail
  // where it is, bit for bit, another tensor of the reference, or its own transposed.
  TreeComparison results;
  // Say what was done so that names agree, and that one side is a copy in fewer bits.
  std::vector<std::string> notes;
  // Names that `names` says nothing of, on either side.
  std::vector<std::string> problems;
};

// Compares names that frameworks give the same thing if the names at the top, or all names of weights, differ
// ("state_dict" for "model", "module." in front of each weight left out); a note says so. A floating-point
// tensor of fewer bits has to be the other side's, rounded; not if the tolerance is bitwise. names: pairs the
// tensors of the reference (a) and of the current (b), as ToWholes() takes it. Null: by the names that they
// have. Errors: as ReadCheckpoint() and ToWholes().
absl::StatusOr<CheckpointComparison> CompareCheckpoints(const std::string& reference,
                                                        const std::string& current, CompareOptions options,
                                                        const Layout* names = nullptr);

StateKind StateKindOfResult(const NamedComparison& result);

}  // namespace ott::compare

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_COMPARE_CHECKPOINTS_H_
