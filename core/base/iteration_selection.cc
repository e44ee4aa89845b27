#include "ott/core/base/iteration_selection.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace ott {

absl::StatusOr<IterationSelector> IterationSelector::Create(IterationOptions options) {
  if (options.every < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("iterations: every: ", options.every, "; every N iterations with N > 0"));
  }
  if (options.first) options.list.push_back(0);
  std::sort(options.list.begin(), options.list.end());
  if (!options.list.empty() && options.list.front() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("iterations: list: ", options.list.front(), "; iterations are counted from 0"));
  }
  for (const auto& [begin, end] : options.ranges) {
    if (begin < 0 || end <= begin) {
      return absl::InvalidArgumentError(absl::StrCat("iterations: ranges: from ", begin, " to ", end,
                                                     "; begin is 0 or more, and less than end"));
    }
  }
  IterationSelector selector;
  selector.options_ = std::move(options);
  return selector;
}

bool IterationSelector::Contains(int64_t iteration) const {
  const auto& [first, every, list, ranges] = options_;
  if (every == 0 && list.empty() && ranges.empty()) return true;
  return iteration >= 0 &&
         ((every > 0 && iteration % every == 0) || std::binary_search(list.begin(), list.end(), iteration) ||
          std::any_of(ranges.begin(), ranges.end(), [iteration](const auto& range) {
            return range.first <= iteration && iteration < range.second;
          }));
}

}  // namespace ott
