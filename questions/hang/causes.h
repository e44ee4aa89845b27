// Follows the waits of a job to their ends, and names the causes there.

#ifndef OTT_QUESTIONS_HANG_CAUSES_H_
#define OTT_QUESTIONS_HANG_CAUSES_H_

#include <cstdint>
#include <set>
#include <vector>

#include "ott/questions/hang/hang.pb.h"
#include "ott/questions/hang/job_waits.h"

namespace ott {

// The ends of waits that are no causes.
struct WaitEnds {
  // Ranks that are waited for and move, and those of which too little is known.
  std::vector<int> moving;
  std::vector<int> unknown;
  // Indices of operations that all members entered and none completed.
  std::set<int> all_came;
  // Groups that are several, as what ranks completed proves, or whose numbers do not count the same on all
  // ranks.
  std::set<int32_t> divided;
};

// Adds causes and notes to the verdict, and cuts the graph at ranks that are causes.
WaitEnds FindCauses(JobWaits* waits, HangVerdict* verdict);

// Adds a cause. operation: index of the one that ranks wait in; -1: none.
HangCause& AddCause(const JobWaits& waits, HangCause::Kind kind, const std::vector<int>& ranks, int operation,
                    HangVerdict* verdict);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_CAUSES_H_
