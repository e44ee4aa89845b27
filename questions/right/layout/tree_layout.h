// A checkpoint's state by the names of whole tensors, as a layout gives them.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_TREE_LAYOUT_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_TREE_LAYOUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/value.h"
#include "ott/questions/right/layout/layout.pb.h"
#include "ott/questions/right/layout/run_rules.h"
#include "ott/questions/right/layout/whole_tensors.h"

namespace ott::crosscheck {

// The parts of a checkpoint that each rank wrote: Megatron's mp_rank_TT_PPP_EEE by these three numbers, the
// last one outermost; any other checkpoint is of one rank.
struct StateOfRanks {
  std::vector<Value> ranks;
  DeviceMesh mesh;  // "ep", "pp", "tp"
  // Says what lies beside the ranks' folders.
  std::vector<std::string> problems;

  // Takes apart what the layout says is stacked. INVALID_ARGUMENT where a rank of the grid is missing, or a
  // stack has no such dimension.
  static absl::StatusOr<StateOfRanks> Of(const Value& state, const RunLayout& layout);
};

// The rules, in which numbers without count and positions are counted on the ranks. Errors as
// RunRules::Create().
absl::StatusOr<RunRules> RulesFor(const StateOfRanks& state, RunLayout layout);

// Binds rules to the ranks' states, as BindRun() does to dumps. None is the text "None".
BoundRun BindState(const StateOfRanks& state, const RunRules& rules);

// A map of whole tensors by name, which share the elements of the tree's. Numbers and texts are tensors and
// texts. Appends to *problems what matches no rule, rules that match nothing, what cannot be put together,
// and replicas that differ. INVALID_ARGUMENT, naming the rule, where one makes no sense.
absl::StatusOr<Value> ToWholes(const Value& tree, const RunLayout& layout,
                               std::vector<std::string>* problems);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_TREE_LAYOUT_H_
