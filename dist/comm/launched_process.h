// Tells whether a launcher started this process as one of several.

#ifndef OTT_DIST_COMM_LAUNCHED_PROCESS_H_
#define OTT_DIST_COMM_LAUNCHED_PROCESS_H_

#include <optional>
#include <string>

namespace ott {

struct LaunchedProcess {
  int rank = 0;
  int size = 1;
  // True: by MPI's launcher; false: by Slurm's.
  bool by_mpi = false;
};

// Returns the name of the program that started this process; "" if it is not known.
std::string ParentProgram();

// Nullopt if `parent` is no launcher: variables that a launcher set are also those of whatever its processes
// start.
std::optional<LaunchedProcess> LaunchedProcessFromEnvironment(const std::string& parent = ParentProgram());

}  // namespace ott

#endif  // OTT_DIST_COMM_LAUNCHED_PROCESS_H_
