// Selects which iterations, ranks and tensors are dumped.

#ifndef OTT_CORE_DUMP_SELECTION_H_
#define OTT_CORE_DUMP_SELECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/iteration_selection.h"

namespace ott {

struct SelectionOptions {
  IterationOptions iterations;
  // Empty: all.
  std::vector<int> ranks;
  // A tensor is dumped if a glob or regular expression of include matches its whole path, or include has
  // neither, and none of exclude matches it. Globs: ott/core/base/glob.h.
  // Regular expressions: RE2's syntax, which takes time linear in the path; no back-references, no
  // look-ahead.
  std::vector<std::string> include_globs;
  std::vector<std::string> include_regexes;
  std::vector<std::string> exclude_globs;
  std::vector<std::string> exclude_regexes;
};

// Immutable, so thread-safe.
class Selection {
 public:
  // Returns INVALID_ARGUMENT naming a regular expression that is none, or wrong iterations.
  static absl::StatusOr<Selection> Create(SelectionOptions options);
  // All.
  Selection() = default;

  bool WantsIteration(int64_t iteration) const { return iterations_.Contains(iteration); }
  bool WantsRank(int rank) const;
  bool WantsPath(const std::string& path) const;

 private:
  struct Regexes;

  SelectionOptions options_;
  IterationSelector iterations_;
  std::shared_ptr<const Regexes> regexes_;
};

}  // namespace ott

#endif  // OTT_CORE_DUMP_SELECTION_H_
