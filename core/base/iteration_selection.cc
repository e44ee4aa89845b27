#include "ott/core/base/iteration_selection.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ott {

absl::StatusOr<IterationSelector> IterationSelector::Create(const IterationSelection& selection) {
  if (selection.every() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("iterations: every: ", selection.every(),
                                                   "; every N iterations with N > 0, or 0 for none"));
  }
  IterationSelector selector;
  selector.every_ = selection.every();
  selector.list_.assign(selection.list().begin(), selection.list().end());
  if (selection.first()) selector.list_.push_back(0);
  std::sort(selector.list_.begin(), selector.list_.end());
  if (!selector.list_.empty() && selector.list_.front() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("iterations: list: ", selector.list_.front(), "; iterations are counted from 0"));
  }
  for (const IterationRange& range : selection.ranges()) {
    if (range.begin() < 0 || range.end() <= range.begin()) {
      return absl::InvalidArgumentError(absl::StrCat("iterations: ranges: from ", range.begin(), " to ",
                                                     range.end(), "; begin is 0 or more, and less than end"));
    }
    selector.ranges_.emplace_back(range.begin(), range.end());
  }
  return selector;
}

bool IterationSelector::Contains(int64_t iteration) const {
  if (iteration < 0) return false;
  if (every_ > 0 && iteration % every_ == 0) return true;
  if (std::binary_search(list_.begin(), list_.end(), iteration)) return true;
  return std::any_of(ranges_.begin(), ranges_.end(), [iteration](const auto& range) {
    return range.first <= iteration && iteration < range.second;
  });
}

}  // namespace ott
