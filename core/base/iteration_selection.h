// Which iterations something happens in.

#ifndef OTT_CORE_BASE_ITERATION_SELECTION_H_
#define OTT_CORE_BASE_ITERATION_SELECTION_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace ott {

class IterationSelection;  // config.proto

// Iterations, counted from 0. The parts add up; nothing set: all iterations.
struct IterationOptions {
  bool first = false;  // iteration 0
  int64_t every = 0;   // 0, N, 2N...
  std::vector<int64_t> list;
  std::vector<std::pair<int64_t, int64_t>> ranges;  // [begin, end)
};

IterationOptions OptionsOf(const IterationSelection& selection);

// IterationOptions that were checked, in a form that answers quickly. A value type.
//
//   OTT_ASSIGN_OR_RETURN(const IterationSelector selector, IterationSelector::Create(options));
//   if (selector.Contains(iteration)) Dump();
class IterationSelector {
 public:
  // All iterations.
  IterationSelector() = default;

  // INVALID_ARGUMENT, naming the field, for negative numbers and for ranges that hold nothing.
  static absl::StatusOr<IterationSelector> Create(IterationOptions options);
  static absl::StatusOr<IterationSelector> Create(const IterationSelection& selection);

  bool Contains(int64_t iteration) const;

 private:
  // The list is ascending and holds the first iteration, too.
  IterationOptions options_;
};

}  // namespace ott

#endif  // OTT_CORE_BASE_ITERATION_SELECTION_H_
