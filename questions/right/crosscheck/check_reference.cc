#include "ott/questions/right/crosscheck/check_reference.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/check/reference_check.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/crosscheck/error_trend.h"

namespace ott::crosscheck {
absl::StatusOr<std::vector<CrossCheckVerdict>> CheckRunAgainstReference(const std::string& run,
                                                                        const CrossCheckConfig& given) {
  const std::string run_dir = LatestAttempt(run);
  CrossCheckConfig config = given;
  config.set_reference_run(LatestAttempt(given.reference_run()));
  OTT_ASSIGN_OR_RETURN(const RunInfo info, ReadRunInfo(run_dir));
  OTT_ASSIGN_OR_RETURN(const RunInfo reference, ReadRunInfo(config.reference_run()));
  OTT_ASSIGN_OR_RETURN(const RankMeshes meshes, RankMeshes::Create(info.config().mesh(), info.world_size()));
  OTT_ASSIGN_OR_RETURN(const ReferenceCheck check, ReferenceCheck::Create(config, meshes));
  if (config.reference_ranks().empty() && IsSameRun(run_dir, config.reference_run())) {
    return absl::InvalidArgumentError(
        absl::StrCat(run_dir, ": would be compared with itself, which always agrees"));
  }
  std::set<int64_t> iterations;
  for (int rank = 0; rank < info.world_size(); ++rank) AddDumpedIterations(run_dir, rank, &iterations);
  for (int rank = 0; rank < reference.world_size(); ++rank) {
    AddDumpedIterations(config.reference_run(), rank, &iterations);
  }
  if (iterations.empty()) {
    return absl::NotFoundError(absl::StrCat(run_dir, ", ", config.reference_run(), ": no rank has dumps"));
  }
  std::vector<CrossCheckVerdict> verdicts;
  for (const int64_t iteration : iterations) {
    std::vector<CrossCheckVerdict> of_iteration;
    for (int rank = 0; rank < info.world_size(); ++rank) {
      CrossCheckVerdict& verdict =
          of_iteration.emplace_back(check.CheckDump(iteration, rank, DumpPath(run_dir, rank, iteration)));
      verdict.set_host(rank < info.hosts_size() ? info.hosts(rank) : "host unknown");
      for (FirstDifference& difference : *verdict.mutable_differences()) {
        difference.set_hosts(0, verdict.host());
      }
    }
    FindFirst(of_iteration);
    for (CrossCheckVerdict& verdict : of_iteration) {
      // Each rank's verdict counts for itself.
      verdict.clear_worst_outcome();
      verdicts.push_back(std::move(verdict));
    }
  }
  return verdicts;
}

std::string FormatErrorTrend(const std::vector<CrossCheckVerdict>& verdicts) {
  std::string text;
  const auto first = std::find_if(verdicts.begin(), verdicts.end(), [](const CrossCheckVerdict& verdict) {
    return verdict.outcome() == DIFFERENT && verdict.rank() == verdict.worst_rank();
  });
  if (first != verdicts.end()) text = absl::StrCat("first divergence: ", FormatVerdict(*first));
  ErrorTrend trend;
  for (const CrossCheckVerdict& verdict : verdicts) trend.Add(verdict);
  return text + trend.ToString();
}

}  // namespace ott::crosscheck
