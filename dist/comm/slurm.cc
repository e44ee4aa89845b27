#include "ott/dist/comm/slurm.h"

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace ott {
namespace {

// -1 if the variable is no number.
int64_t Variable(const char* name) {
  const char* const text = std::getenv(name);
  int64_t value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) && value >= 0 ? value : -1;
}

}  // namespace

std::string SlurmTask::Name() const {
  return absl::StrCat("Slurm job ", job, ".", step,
                      restarts > 0 ? absl::StrCat(", start ", restarts + 1) : "");
}

int SlurmTask::Port() const { return 20000 + static_cast<int>((job * 31 + step) % 12000); }

std::optional<SlurmTask> SlurmTaskFromEnvironment() {
  SlurmTask task;
  task.job = Variable("SLURM_JOB_ID");
  task.step = Variable("SLURM_STEP_ID");
  const int64_t rank = Variable("SLURM_PROCID");
  const int64_t num_tasks = Variable("SLURM_STEP_NUM_TASKS");
  constexpr int64_t kMostTasks = int64_t{1} << 24;
  if (task.job < 0 || task.step < 0 || rank < 0 || rank >= num_tasks || num_tasks > kMostTasks)
    return std::nullopt;
  task.rank = static_cast<int>(rank);
  task.num_tasks = static_cast<int>(num_tasks);
  const char* const nodes = std::getenv("SLURM_STEP_NODELIST");
  task.first_node = FirstOfSlurmNodes(nodes == nullptr ? "" : nodes);
  const int64_t restarts = Variable("SLURM_RESTART_COUNT");
  task.restarts = restarts > 0 && restarts < kMostTasks ? static_cast<int>(restarts) : 0;
  const int64_t ends = Variable("SLURM_JOB_END_TIME");
  task.ends_s = ends > 0 ? ends : 0;
  return task;
}

std::string FirstOfSlurmNodes(std::string_view nodes) {
  const size_t end = nodes.find_first_of(",[");
  std::string first(nodes.substr(0, end));
  if (end == std::string_view::npos || nodes[end] == ',') return first;
  nodes.remove_prefix(end + 1);
  first += nodes.substr(0, nodes.find_first_of(",-]"));
  const size_t close = nodes.find(']');
  if (close == std::string_view::npos) return first;
  // Names may have two ranges, such as rack[0-3]_blade[0-7].
  return first + FirstOfSlurmNodes(nodes.substr(close + 1));
}

}  // namespace ott
