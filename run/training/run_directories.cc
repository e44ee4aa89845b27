#include "ott/run/training/run_directories.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
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

// Rank 0's part. Returns which directory it is.
absl::StatusOr<std::string> ClaimDirectory(const Communicator& ranks, const Config& config) {
  RunInfo info;
  info.set_version(kVersion);
  info.set_world_size(ranks.size());
  for (int rank = 0; rank < ranks.size(); ++rank) info.add_hosts(ranks.host(rank));
  *info.mutable_config() = config;
  info.set_started(absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()));
  info.set_cpu(CpuModel());
  if (const std::optional<SlurmTask> task = SlurmTaskFromEnvironment()) info.set_job(task->Name());
  OTT_ASSIGN_OR_RETURN(std::string dir, ClaimRunDirectory(config.run_dir(), info));
  if (dir != config.run_dir()) {
    PrintLines(absl::StrCat("ott: ", config.run_dir(), " holds a run already; this one is in ", dir, "\n"));
  }
  return dir;
}

}  // namespace

absl::Status PrepareDirectories(RunFrame& frame) {
  Communicator& ranks = frame.ranks;
  absl::StatusOr<std::string> dir = frame.config.run_dir();
  if (ranks.rank() == 0) dir = ClaimDirectory(ranks, frame.config);
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, dir.status(), frame.PreparationDeadline()));
  OTT_RETURN_IF_ERROR(ranks.Broadcast(0, &*dir, frame.NextDeadline()));
  frame.config.set_run_dir(*dir);
  const absl::Status made = MakeDirectories(RankDirectory(frame.config.run_dir(), ranks.rank()));
  return AgreeOnStatus(ranks, made, frame.PreparationDeadline());
}

}  // namespace ott
