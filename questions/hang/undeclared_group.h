// Groups that nobody declared are taken for all ranks that use the name. What ranks completed tells whether
// they are.

#ifndef OTT_QUESTIONS_HANG_UNDECLARED_GROUP_H_
#define OTT_QUESTIONS_HANG_UNDECLARED_GROUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ott/questions/hang/job_state.h"

namespace ott {

// Returns the number of the last operation of this name that the rank completed and that no member can
// complete alone; 0: none.
int64_t CompletedTogether(const RankState& rank, int32_t group, int32_t name);

// The rank completed an operation of an undeclared group that the other never came to: they are in different
// groups.
struct Contradiction {
  JobOperation completed;
  int rank = 0;
  int without = 0;
};

// Returns null for groups that are declared, and for those in which all agree.
std::optional<Contradiction> FindContradiction(const JobState& job, int32_t group);

// Members that may be in one group with the rank, itself included. REQUIRES: the rank is a member.
std::vector<int> MayMeet(const JobState& job, int32_t group, int rank);

// Returns "the name allreduce is used for unlike collectives: ranks 0, 1 call it 2 times, rank 2 once an
// iteration"; "" if all ranks call it equally often.
std::string DescribeUnlikeUse(const JobState& job, int32_t group, int32_t name);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_UNDECLARED_GROUP_H_
