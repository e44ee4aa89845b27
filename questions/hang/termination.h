// Says who ended a job from outside, by SIGTERM or Ctrl-C: a scheduler at its time limit, mpirun after an
// error, a user.

#ifndef OTT_QUESTIONS_HANG_TERMINATION_H_
#define OTT_QUESTIONS_HANG_TERMINATION_H_

#include <string>

#include "ott/questions/hang/job_state.h"

namespace ott {

// "slurmstepd ended the job by SIGTERM at 2026-11-23T18:50:03Z, when the time of Slurm job 4711 was over";
// empty if a rank lives, or if none noted such an end.
std::string DescribeTermination(const JobState& job);

// ", ended by SIGTERM from bash"; empty if the rank noted none.
std::string DescribeTerminationOfRank(const RankState& rank);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_TERMINATION_H_
