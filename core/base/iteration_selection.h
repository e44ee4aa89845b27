// Which iterations something happens in.

#ifndef OTT_CORE_BASE_ITERATION_SELECTION_H_
#define OTT_CORE_BASE_ITERATION_SELECTION_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"

namespace ott {

// An IterationSelection, checked and quick to ask. Iterations are counted from 0. A value type.
//
//   OTT_ASSIGN_OR_RETURN(const IterationSelector selector, IterationSelector::Create(config.iterations()));
//   if (selector.Contains(iteration)) Dump();
class IterationSelector {
 public:
  // No iteration.
  IterationSelector() = default;

  // INVALID_ARGUMENT, naming the field, for negative numbers and for ranges that hold nothing.
  static absl::StatusOr<IterationSelector> Create(const IterationSelection& selection);

  bool Contains(int64_t iteration) const;
  // Whether it contains no iteration at all.
  bool empty() const { return every_ == 0 && list_.empty() && ranges_.empty(); }

 private:
  int64_t every_ = 0;
  std::vector<int64_t> list_;                        // ascending
  std::vector<std::pair<int64_t, int64_t>> ranges_;  // [begin, end)
};

}  // namespace ott

#endif  // OTT_CORE_BASE_ITERATION_SELECTION_H_
