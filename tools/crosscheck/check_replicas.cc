#include "tools/crosscheck/check_replicas.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/dist/replica_check.h"
#include "ott/dist/run_directory.h"
#include "ott/dist/simulated_communicator.h"

namespace ott {
namespace {

// The disks may be slow; nobody is waited for that will not answer.
constexpr auto kTimeout = std::chrono::hours(24);

bool Matches(const std::vector<std::string>& globs, const std::string& path) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
           return fnmatch(glob.c_str(), path.c_str(), 0) == 0;
         });
}

std::vector<NamedTensor> Select(const Dump& dump, const std::vector<std::string>& globs) {
  std::vector<NamedTensor> tensors = ListTensors(dump.tensors);
  if (dump.grads) {
    for (NamedTensor& grad : ListTensors(*dump.grads)) {
      tensors.push_back({JoinPath("grads", grad.path), std::move(grad.tensor)});
    }
  }
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                               [&](const NamedTensor& tensor) { return !Matches(globs, tensor.path); }),
                tensors.end());
  return tensors;
}

CrossCheckVerdict CheckRank(ReplicaCheck& check, const std::string& run_dir, int rank, int64_t iteration,
                            const std::vector<std::string>& globs) {
  const absl::StatusOr<Dump> dump = ReadDump(absl::StrCat(DumpsDirectory(run_dir, rank), "/", iteration));
  if (!dump.ok()) return check.RunWithoutTensors(iteration, dump.status());
  return check.Run(iteration, Select(*dump, globs));
}

}  // namespace

absl::StatusOr<std::vector<CrossCheckVerdict>> CheckReplicasOfRun(const std::string& run_dir,
                                                                  const std::vector<std::string>& globs) {
  OTT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ListRanks(run_dir));
  std::set<int64_t> iterations;
  for (const int rank : ranks) {
    const absl::StatusOr<std::vector<int64_t>> dumps = ListDumps(DumpsDirectory(run_dir, rank));
    if (dumps.ok()) iterations.insert(dumps->begin(), dumps->end());
  }
  if (iterations.empty()) return absl::NotFoundError(absl::StrCat(run_dir, ": no rank has dumps"));
  const absl::StatusOr<RunInfo> info = ReadRunInfo(run_dir);
  const int world_size = std::max(info.ok() ? info->world_size() : 0, ranks.back() + 1);
  std::vector<std::string> hosts(world_size, "host unknown");
  for (int rank = 0; info.ok() && rank < std::min(world_size, info->hosts_size()); ++rank) {
    hosts[rank] = info->hosts(rank);
  }

  std::vector<std::unique_ptr<Communicator>> communicators = CreateSimulatedCommunicators(hosts);
  std::vector<CrossCheckVerdict> verdicts;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      ReplicaCheck check(std::move(communicators[rank]), kTimeout);
      for (const int64_t iteration : iterations) {
        CrossCheckVerdict verdict = CheckRank(check, run_dir, rank, iteration, globs);
        if (rank == 0) verdicts.push_back(std::move(verdict));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return verdicts;
}

}  // namespace ott
