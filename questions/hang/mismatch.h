// Operations that the members of a group have under one number, and that are not the same.

#ifndef OTT_QUESTIONS_HANG_MISMATCH_H_
#define OTT_QUESTIONS_HANG_MISMATCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ott/questions/hang/job_state.h"

namespace ott {

struct Mismatch {
  enum class Of : uint8_t { kName, kSize, kIteration };

  Of of = Of::kName;
  // One rank's operation of each kind, the most frequent first.
  std::vector<JobOperation> operations;
  // The ranks that have it, in the same order.
  std::vector<std::vector<int>> ranks;
  // True if they may have differed before what is recorded begins.
  bool or_earlier = false;
  // True if names or sizes differ there or later, and not iterations alone.
  bool is_of_unlike_calls = false;

  // Returns true if more than half of the ranks have the first, whatever those have that did not call it yet.
  bool has_majority(size_t num_absent) const;
};

// Returns the lowest number under which these members of the group have different names, sizes or iterations.
// Names and sizes count only in operations that are not completed everywhere, and not where a rank has always
// differed in them. nullopt if there is none.
std::optional<Mismatch> FindMismatch(const JobState& job, int32_t group, const std::vector<int>& members);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_MISMATCH_H_
