#include "tools/profile/job_rank.h"

#include <climits>
#include <cstdlib>
#include <initializer_list>

namespace ott::profile {

int RankFromEnvironment() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    const char* const value = std::getenv(variable);
    if (value == nullptr || *value == '\0') continue;
    char* end = nullptr;
    const long rank = std::strtol(value, &end, 10);
    if (*end == '\0' && rank >= 0 && rank <= INT_MAX) return static_cast<int>(rank);
  }
  return -1;
}

}  // namespace ott::profile
