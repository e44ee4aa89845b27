// `mpirun -np N ott COMMAND`: N processes that answer together.

#ifndef OTT_TOOLS_LAUNCHED_H_
#define OTT_TOOLS_LAUNCHED_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/share/processes.h"

namespace ott {

// Commands that several processes answer together: they read the files of ranks, and need no more of them
// than summaries.
inline constexpr const char* kSharedCommands[] = {"check", "compare", "crosscheck", "curves", "hang",
                                                  "prof",  "report",  "stats",      "trace",  "whatif"};

// Runs `command` on the first of the processes that a launcher started, with what the others read and work
// for it, and returns its exit code; 2 as well where one of them was lost. On the others, works for the
// first. Nullopt, and nothing is done, if this process is alone, or the command is not for several: `ott
// profile` records each of a launcher's programs.
std::optional<int> RunLaunched(int argc, char** argv, std::vector<ShareTask> tasks,
                               const std::function<int()>& command);

using Connect = absl::StatusOr<std::unique_ptr<Communicator>> (*)();

// Returns what connects the processes that MPI's launcher started. A program without MPI replaces itself by
// ott-mpi, which lies beside it; UNIMPLEMENTED if it does not. argv: of main().
absl::StatusOr<Connect> ConnectorOfMpi(char** argv);

}  // namespace ott

#endif  // OTT_TOOLS_LAUNCHED_H_
