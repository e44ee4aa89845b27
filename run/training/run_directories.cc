#include "ott/run/training/run_directories.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ott/core/base/cpu_model.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_sink.h"
#include "ott/core/base/version.h"
#include "ott/dist/comm/agree_on_status.h"
#include "ott/dist/comm/slurm.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {
namespace {

std::string AbsoluteIn(const std::string& directory, const std::string& path) {
  if (path.empty()) return path;
  std::error_code error;
  const std::string absolute =
      std::filesystem::absolute(std::filesystem::path(directory) / path, error).string();
  return error ? path : absolute;
}

// Rank 0's part. Returns what comes behind the configured directory in the one that it is.
absl::StatusOr<std::string> ClaimAttempt(const Communicator& ranks, const Config& config,
                                         const std::string& directory) {
  RunInfo info;
  info.set_version(kVersion);
  info.set_world_size(ranks.size());
  for (int rank = 0; rank < ranks.size(); ++rank) info.add_hosts(ranks.host(rank));
  *info.mutable_config() = config;
  info.set_started(absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()));
  info.set_cpu(CpuModel());
  if (const std::optional<SlurmTask> task = SlurmTaskFromEnvironment()) info.set_job(task->Name());
  const std::string configured = AbsoluteIn(directory, config.run_dir());
  OTT_ASSIGN_OR_RETURN(const std::string dir, ClaimRunDirectory(configured, info));
  const std::string attempt = dir.substr(configured.size());
  if (!attempt.empty()) {
    PrintLines(absl::StrCat("ott: ", config.run_dir(), " holds a run already; this one is in ",
                            config.run_dir(), attempt, "\n"));
  }
  return attempt;
}

// Returns true for files of a rank that are of one start: they would be mixed with those of the next one.
bool IsOfOneStart(const std::string& name) {
  for (const absl::string_view prefix :
       {"stopwatch.", "iterations.pb", "trace.", "trace_", "torch.", "torch_", "stacks.txt"}) {
    if (absl::StartsWith(name, prefix)) return true;
  }
  return false;
}

absl::Status SetAside(const std::string& run_dir, int rank) {
  const std::string dir = RankDirectory(run_dir, rank);
  std::vector<std::string> paths;
  if (rank == 0 && PathExists(ClusterStatsPath(run_dir))) paths.push_back(ClusterStatsPath(run_dir));
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(dir));
  for (const std::string& name : names) {
    if (IsOfOneStart(name)) paths.push_back(absl::StrCat(dir, "/", name));
  }
  if (paths.empty()) return absl::OkStatus();
  int start = 1;
  while (PathExists(absl::StrCat(dir, "/start_", start))) ++start;
  const std::filesystem::path aside = absl::StrCat(dir, "/start_", start);
  OTT_RETURN_IF_ERROR(MakeDirectories(aside.string()));
  for (const std::filesystem::path path : paths) {
    std::error_code error;
    std::filesystem::rename(path, aside / path.filename(), error);
    if (error) return absl::UnavailableError(absl::StrCat(path.string(), ": ", error.message()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PrepareDirectories(RunFrame& frame, const std::string& directory) {
  Communicator& ranks = frame.ranks;
  absl::StatusOr<std::string> attempt = "";
  if (ranks.rank() == 0) attempt = ClaimAttempt(ranks, frame.config, directory);
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, attempt.status(), frame.PreparationDeadline()));
  OTT_RETURN_IF_ERROR(ranks.Broadcast(0, &*attempt, frame.NextDeadline()));
  const std::string dir = AbsoluteIn(directory, frame.config.run_dir()) + *attempt;
  frame.config.set_run_dir(dir);
  if (frame.config.has_cross_check()) {
    CrossCheckConfig& check = *frame.config.mutable_cross_check();
    check.set_reference_run(AbsoluteIn(directory, check.reference_run()));
  }
  if (frame.config.has_dump()) {
    DumpConfig& dump = *frame.config.mutable_dump();
    dump.set_reference_run(AbsoluteIn(directory, dump.reference_run()));
  }
  const absl::Status made = MakeDirectories(RankDirectory(dir, ranks.rank()));
  if (made.ok()) frame.NoteUnwritten(SetAside(dir, ranks.rank()));
  return AgreeOnStatus(ranks, made, frame.PreparationDeadline());
}

}  // namespace ott
