#include "ott/questions/right/crosscheck/check_replicas.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/thread_group.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/dist/check/cross_check.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/comm/simulated_communicator.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::crosscheck {
namespace {

// The disks may be slow; nobody is waited for that will not answer.
constexpr auto kTimeout = std::chrono::hours(24);
// Each has a thread and reads its dump.
constexpr int kMaxRanks = 4096;

// The dumps that the ranks have of one iteration.
struct RanksDumps {
  RanksDumps(const std::string& run_dir, const std::vector<int>& ranks, int64_t iteration) {
    std::map<std::filesystem::path, int> ranks_of;
    for (const int rank : ranks) {
      const std::string dir = DumpPath(run_dir, rank, iteration);
      has_manifest = has_manifest || PathExists(absl::StrCat(dir, "/", std::string(kManifestFile)));
      std::error_code error;
      const std::filesystem::path tree =
          std::filesystem::canonical(absl::StrCat(dir, "/", std::string(kTensorsFile)), error);
      if (error) continue;
      const auto [first, is_new] = ranks_of.emplace(tree, rank);
      if (!is_new) linked.emplace(rank, first->second);
    }
  }

  // True if any dump is ours; then one without a manifest is not whole, and its scalars have no dtype.
  bool has_manifest = false;
  // The ranks whose dump is that of another rank, by a link, and that rank.
  std::map<int, int> linked;
};

absl::StatusOr<Dump> ReadDumpOf(const std::string& dir, int rank, const RanksDumps& dumps) {
  if (const auto linked = dumps.linked.find(rank); linked != dumps.linked.end()) {
    return absl::FailedPreconditionError(absl::StrCat(dir, ": links to the dump of rank ", linked->second,
                                                      ", which always agrees with itself"));
  }
  OTT_ASSIGN_OR_RETURN(Dump dump, ReadDump(dir));
  if (dumps.has_manifest && !dump.manifest.has_value()) {
    return absl::DataLossError(absl::StrCat(dir, "/", std::string(kManifestFile),
                                            ": is not there, and other ranks' dumps have one"));
  }
  return dump;
}

// The verdicts that this rank is the first to have, for all that share them.
std::vector<CrossCheckVerdict> CheckRank(CrossCheck& check, const std::string& run_dir, int rank,
                                         int64_t iteration, const RanksDumps& dumps) {
  const absl::StatusOr<Dump> dump = ReadDumpOf(DumpPath(run_dir, rank, iteration), rank, dumps);
  std::vector<NamedTensor> tensors;
  if (dump.ok()) tensors = ListTensorsAndGrads(*dump);
  std::vector<CrossCheckVerdict> verdicts;
  std::optional<CrossCheckVerdict> replicas = check.CheckReplicas(iteration, tensors, dump.status());
  if (rank == 0 && replicas) verdicts.push_back(*std::move(replicas));
  std::optional<CrossCheckVerdict> distinct = check.CheckDistinct(iteration, tensors, dump.status());
  if (rank == 0 && distinct) verdicts.push_back(*std::move(distinct));
  std::vector<CrossCheckVerdict> shards = check.CheckShards(iteration, tensors, dump.status());
  for (size_t sharding = 0; sharding < shards.size(); ++sharding) {
    const auto part = [&](int of_rank) {
      return check.selection().PartOf(static_cast<int>(sharding), of_rank);
    };
    int first = 0;
    while (part(first) != part(rank)) ++first;
    if (first == rank) verdicts.push_back(std::move(shards[sharding]));
  }
  return verdicts;
}

}  // namespace

absl::StatusOr<std::vector<CrossCheckVerdict>> CheckReplicasOfRun(const std::string& run,
                                                                  const CrossCheckConfig& config) {
  const std::string run_dir = LatestAttempt(run);
  OTT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ListRanks(run_dir));
  for (const int rank : ranks) {
    if (const std::string host = FarHostOf(RankDirectory(run_dir, rank)); !host.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat(run_dir, ": the dumps of rank ", rank, " are on ", host,
                       ", and replicas are compared where all dumps are; put them in one place first"));
    }
  }
  std::set<int64_t> iterations;
  for (const int rank : ranks) AddDumpedIterations(run_dir, rank, &iterations);
  if (iterations.empty()) return absl::NotFoundError(absl::StrCat(run_dir, ": no rank has dumps"));
  const absl::StatusOr<RunInfo> info = ReadRunInfo(run_dir);
  // Ranks that left nothing would not be missed. Dumps that no TrainingRun wrote have no run.json.
  if (!info.ok() && !absl::IsNotFound(info.status())) return info.status();
  const int world_size = std::max(info.ok() ? info->world_size() : 0, ranks.back() + 1);
  if (world_size > kMaxRanks) {
    return absl::InvalidArgumentError(absl::StrCat(
        run_dir, ": ", world_size, " ranks; this compares the replicas of ", kMaxRanks, " at most"));
  }
  std::vector<std::string> hosts(world_size, "host unknown");
  for (int rank = 0; info.ok() && rank < std::min(world_size, info->hosts_size()); ++rank) {
    hosts[rank] = info->hosts(rank);
  }
  std::map<int64_t, RanksDumps> dumps;
  for (const int64_t iteration : iterations) dumps.try_emplace(iteration, run_dir, ranks, iteration);
  CrossCheckConfig without_reference = config;
  without_reference.clear_reference_run();
  without_reference.clear_reference_ranks();
  without_reference.clear_reference_tolerances();

  std::optional<RankMeshes> meshes;
  if (info.ok()) {
    OTT_ASSIGN_OR_RETURN(meshes, RankMeshes::Create(info->config().mesh(), world_size));
  }
  std::vector<std::unique_ptr<Communicator>> communicators = CreateSimulatedCommunicators(hosts);
  std::mutex mutex;
  absl::Status status;                      // guarded by mutex
  std::vector<CrossCheckVerdict> verdicts;  // guarded by mutex
  // Each waits for messages of the others, so none begins before all have a thread.
  std::promise<bool> all_started;
  const std::shared_future<bool> all_started_future = all_started.get_future().share();
  ThreadGroup threads;
  bool has_threads = true;
  for (int rank = 0; has_threads && rank < world_size; ++rank) {
    has_threads = threads.Start([&, rank, goes_on = all_started_future] {
      if (!goes_on.get()) return;
      const auto check = CrossCheck::Create(*communicators[rank], without_reference, kTimeout, {}, meshes);
      if (!check.ok()) {
        const std::lock_guard<std::mutex> lock(mutex);
        return status.Update(check.status());
      }
      for (const auto& [iteration, of_iteration] : dumps) {
        std::vector<CrossCheckVerdict> found = CheckRank(**check, run_dir, rank, iteration, of_iteration);
        const std::lock_guard<std::mutex> lock(mutex);
        std::move(found.begin(), found.end(), std::back_inserter(verdicts));
      }
    });
  }
  all_started.set_value(has_threads);
  threads.Join();
  if (!has_threads) {
    return absl::ResourceExhaustedError(absl::StrCat(run_dir, ": replicas of ", world_size,
                                                     " ranks take as many threads, which are not free"));
  }
  OTT_RETURN_IF_ERROR(status);
  std::stable_sort(verdicts.begin(), verdicts.end(), [](const auto& a, const auto& b) {
    return std::tuple(a.iteration(), a.mode(), a.rank()) < std::tuple(b.iteration(), b.mode(), b.rank());
  });
  return verdicts;
}

}  // namespace ott::crosscheck
