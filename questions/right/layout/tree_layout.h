// A checkpoint's state by the names of whole tensors, as a layout gives them.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_TREE_LAYOUT_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_TREE_LAYOUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/tensor/value.h"
#include "ott/questions/right/layout/layout.pb.h"

namespace ott::crosscheck {

// A map of whole tensors by name, which share the elements of the tree's. Of the rules, path, whole, fused,
// transpose and padding count; the tree is that of one rank. Numbers and texts keep their values. Appends to
// *problems what matches no rule, and rules that match nothing. INVALID_ARGUMENT, naming rule or tensor,
// where a rule makes no sense, does not fit a shape, or gives two tensors one name.
absl::StatusOr<Value> ToWholes(const Value& tree, const RunLayout& layout,
                               std::vector<std::string>* problems);

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_TREE_LAYOUT_H_
