// Which iterations, ranks and tensors are dumped.

#ifndef OTT_CORE_DUMP_SELECTION_H_
#define OTT_CORE_DUMP_SELECTION_H_

#include <cstdint>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ott {

struct SelectionOptions {
  // Iterations; they add up. None given: all.
  bool first = false;  // iteration 0
  int64_t every = 0;   // 0, N, 2N...
  std::vector<int64_t> iterations;
  int64_t begin = 0;  // [begin, end)
  int64_t end = 0;
  // None given: all.
  std::vector<int> ranks;
  // Paths; a tensor is dumped where a glob or regular expression of include matches its whole path (or there
  // is none), and none of exclude does. Globs know * (also across dots) and ?.
  std::vector<std::string> include_globs;
  std::vector<std::string> include_regexes;
  std::vector<std::string> exclude_globs;
  std::vector<std::string> exclude_regexes;
};

bool MatchesGlob(std::string_view text, std::string_view glob);

// Immutable, so thread-safe.
class Selection {
 public:
  // INVALID_ARGUMENT naming a regular expression that is none (ECMAScript's syntax), or a negative number.
  static absl::StatusOr<Selection> Create(SelectionOptions options);
  // All.
  Selection() = default;

  bool WantsIteration(int64_t iteration) const;
  bool WantsRank(int rank) const;
  bool WantsPath(const std::string& path) const;

 private:
  SelectionOptions options_;
  std::vector<std::regex> include_;
  std::vector<std::regex> exclude_;
};

}  // namespace ott

#endif  // OTT_CORE_DUMP_SELECTION_H_
