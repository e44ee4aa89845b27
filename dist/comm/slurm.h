// Reads from the environment which task of a job step this process is, if Slurm's `srun` started it.

#ifndef OTT_DIST_COMM_SLURM_H_
#define OTT_DIST_COMM_SLURM_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ott {

struct SlurmTask {
  int64_t job = 0;
  int64_t step = 0;
  int rank = 0;
  int num_tasks = 1;
  // The node of the step that is named first; Slurm puts rank 0 there.
  std::string first_node;
  // The number of times that the job was started again, by `scontrol requeue` or since a node failed.
  int restarts = 0;
  // When the job's time is over, in seconds since 1970; 0: SLURM_JOB_END_TIME is not set.
  int64_t ends_s = 0;

  // "Slurm job 4711.0", and ", start 2" where it was started again.
  std::string Name() const;
  // A port that is the same in all tasks of the step, and another one for most others.
  int Port() const;
};

// Nullopt outside of a job step, such as in the script of sbatch.
std::optional<SlurmTask> SlurmTaskFromEnvironment();

// "node7" of "node[7-9,12]" or "node7,node8"; "" where the list is none.
std::string FirstOfSlurmNodes(std::string_view nodes);

}  // namespace ott

#endif  // OTT_DIST_COMM_SLURM_H_
