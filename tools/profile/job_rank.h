// Finds which rank of a job this process is.

#ifndef OTT_TOOLS_PROFILE_JOB_RANK_H_
#define OTT_TOOLS_PROFILE_JOB_RANK_H_

namespace ott::profile {

// From the environment that Open MPI, torchrun, PMIx or Slurm give it, in this order; -1 if there is none.
int RankFromEnvironment();

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_JOB_RANK_H_
