// Words what a verdict about a hang says of ranks and operations, names as they are.

#ifndef OTT_QUESTIONS_HANG_CAUSE_TEXT_H_
#define OTT_QUESTIONS_HANG_CAUSE_TEXT_H_

#include <string>
#include <vector>

#include "ott/questions/hang/hang.pb.h"
#include "ott/questions/hang/job_state.h"
#include "ott/questions/hang/mismatch.h"

namespace ott {

// Returns "rank 2 (node1)", "ranks 0-3"; without hosts where they are not known.
std::string DescribeRanks(const JobState& job, const std::vector<int>& ranks);

// Returns "allreduce #412 of group dp0 (iteration 103)".
std::string DescribeOperation(const JobState& job, const JobOperation& operation);

// Returns "38 s", "0.25 s".
std::string DescribeSeconds(double seconds);

// Returns `is in "data" since 40 s`: what is known of where the rank is, "" if nothing.
std::string DescribePlace(const JobState& job, int rank);

// Returns how long the rank has been in what it entered at a time; 0 if not known.
double SecondsSince(const RankState& rank, int64_t entered_ns);

// Returns "rank 2 as "broadcast" called #412 of group dp0, which ranks 0, 1, 3 as "allreduce" called".
std::string DescribeMismatch(const JobState& job, const Mismatch& mismatch);

// Says the cause of one rank: of all causes given, which have the same kind and operation.
// REQUIRES: there is one.
std::string DescribeCauses(const JobState& job, const std::vector<const HangCause*>& causes);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_CAUSE_TEXT_H_
