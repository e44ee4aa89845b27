// The parts of IterationSelector that need protobuf, apart from the rest: a program that configures nothing
// by a file links none of it.

#include "ott/core/base/config.pb.h"
#include "ott/core/base/iteration_selection.h"

namespace ott {

IterationOptions OptionsOf(const IterationSelection& selection) {
  IterationOptions options;
  options.first = selection.first();
  options.every = selection.every();
  options.list.assign(selection.list().begin(), selection.list().end());
  for (const IterationRange& range : selection.ranges()) {
    options.ranges.emplace_back(range.begin(), range.end());
  }
  return options;
}

absl::StatusOr<IterationSelector> IterationSelector::Create(const IterationSelection& selection) {
  return Create(OptionsOf(selection));
}

}  // namespace ott
