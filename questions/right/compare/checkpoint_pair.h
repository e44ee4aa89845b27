// Two checkpoints made ready to be compared, and their tensors compared by one process or several.

#ifndef OTT_QUESTIONS_RIGHT_COMPARE_CHECKPOINT_PAIR_H_
#define OTT_QUESTIONS_RIGHT_COMPARE_CHECKPOINT_PAIR_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/checkpoint/checkpoint.h"
#include "ott/core/compare/compare.h"
#include "ott/dist/share/processes.h"
#include "ott/questions/right/layout/layout.pb.h"

namespace ott::compare {

// Two checkpoints whose names agree, by rules or by AlignNames(). Their states are without requires_grad.
struct CheckpointPair {
  Checkpoint reference;
  Checkpoint current;
  std::vector<std::string> notes;
  std::vector<std::string> problems;
  // By the path of its tensor.
  std::map<std::string, bool> reference_requires_grad;
  std::map<std::string, bool> current_requires_grad;
};

struct CheckpointPaths {
  std::string reference;
  std::string current;
  // Holds the rules for names; nullopt: names are made to agree without.
  std::optional<Layout> names;
};

// Returns errors of ReadCheckpoint() and ToWholes().
absl::StatusOr<CheckpointPair> ReadCheckpointPair(const CheckpointPaths& paths);

// Compares the two states as CompareTrees() does. The processes of this command share the tensors. Those of a
// process that cannot read them are kCouldNotCompare. A process that has other files of the same names gets
// none. REQUIRES: the pair is that of the paths
TreeComparison CompareShared(const CheckpointPaths& paths, const CheckpointPair& pair,
                             const CompareOptions& options);

// The task of the others.
extern const ShareTask kCompareTensors;

}  // namespace ott::compare

#endif  // OTT_QUESTIONS_RIGHT_COMPARE_CHECKPOINT_PAIR_H_
