#include "ott/dist/comm/launched_process.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ott/dist/comm/slurm.h"

namespace ott {
namespace {

// Launchers of Open MPI, PRRTE, MPICH and what is made of MPICH. The kernel cuts their names to 15
// characters.
constexpr std::string_view kMpiLaunchers[] = {"mpirun",        "mpiexec",        "orterun", "orted",
                                              "prterun",       "prte",           "prted",   "hydra_pmi_proxy",
                                              "mpiexec.hydra", "hydra_bstrap_pr"};
// Rank and size, by Open MPI and by what follows MPICH.
constexpr const char* kVariables[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                                         {"PMI_RANK", "PMI_SIZE"}};

}  // namespace

std::string ParentProgram() {
  std::string name;
  std::ifstream file(absl::StrCat("/proc/", getppid(), "/comm"));
  std::getline(file, name);
  return name;
}

std::optional<LaunchedProcess> LaunchedProcessFromEnvironment(const std::string& parent) {
  LaunchedProcess process;
  if (parent == "slurmstepd") {
    const std::optional<SlurmTask> task = SlurmTaskFromEnvironment();
    if (!task) return std::nullopt;
    process.rank = task->rank;
    process.size = task->num_tasks;
    return process;
  }
  if (std::find(std::begin(kMpiLaunchers), std::end(kMpiLaunchers), parent) == std::end(kMpiLaunchers))
    return std::nullopt;
  process.by_mpi = true;
  for (const auto& [rank, size] : kVariables) {
    const char* const rank_text = std::getenv(rank);
    const char* const size_text = std::getenv(size);
    if (rank_text != nullptr && size_text != nullptr && absl::SimpleAtoi(rank_text, &process.rank) &&
        absl::SimpleAtoi(size_text, &process.size)) {
      return process;
    }
  }
  return std::nullopt;
}

}  // namespace ott
