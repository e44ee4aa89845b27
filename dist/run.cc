#include "ott/dist/run.h"

#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/tensor_dumper.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/run_directory.h"
#include "ott/dist/stats_gather.h"

namespace ott {
namespace {

constexpr char kVersion[] = "0.1.0";
constexpr double kDefaultTimeoutSeconds = 60;

// The first rank's error, on all ranks.
absl::Status AgreeOnStatus(Communicator& ranks, const absl::Status& mine, Deadline deadline) {
  const std::string code_and_message =
      mine.ok() ? "" : absl::StrCat(std::string(1, static_cast<char>(mine.code())), mine.message());
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> all, ranks.AllGather(code_and_message, deadline));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].empty()) continue;
    return absl::Status(static_cast<absl::StatusCode>(all[rank][0]),
                        absl::StrCat("rank ", rank, ": ", all[rank].substr(1)));
  }
  return absl::OkStatus();
}

absl::Status CheckConfig(const Config& config) {
  if (config.has_dump() && config.run_dir().empty()) {
    return absl::InvalidArgumentError("ott.Config has `dump` but no `run_dir` to write to");
  }
  std::error_code error;
  if (!config.cross_check().reference_run().empty() &&
      std::filesystem::equivalent(config.cross_check().reference_run(), config.run_dir(), error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ott.Config: reference_run and run_dir are the same directory, ", config.run_dir()));
  }
  return absl::OkStatus();
}

// Rank 0's part of preparing the run directory.
absl::Status CreateRunDirectory(const Communicator& ranks, const Config& config) {
  if (IsRunDirectory(config.run_dir())) {
    return absl::AlreadyExistsError(
        absl::StrCat(config.run_dir(), ": holds a run already; remove it, or set another run_dir"));
  }
  OTT_RETURN_IF_ERROR(MakeDirectories(config.run_dir()));
  RunInfo info;
  info.set_version(kVersion);
  info.set_world_size(ranks.size());
  for (int rank = 0; rank < ranks.size(); ++rank) info.add_hosts(ranks.host(rank));
  *info.mutable_config() = config;
  info.set_started(absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()));
  return WriteRunInfo(config.run_dir(), info);
}

}  // namespace

Run::Run(Communicator& ranks, const Config& config)
    : ranks_(ranks),
      config_(config),
      timeout_(absl::ToChronoNanoseconds(
          absl::Seconds(config.timeout_seconds() > 0 ? config.timeout_seconds() : kDefaultTimeoutSeconds))),
      dump_iterations_(config.dump().iterations()),
      check_iterations_(config.cross_check().iterations()) {}

absl::StatusOr<std::unique_ptr<Run>> Run::Start(Communicator& ranks, const Config& config) {
  std::unique_ptr<Run> run(new Run(ranks, config));
  // What one rank would skip, the others must not wait for.
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> configs,
                       ranks.AllGather(config.SerializeAsString(), run->NextDeadline()));
  for (int rank = 1; rank < ranks.size(); ++rank) {
    if (configs[rank] != configs[0]) {
      return absl::InvalidArgumentError(absl::StrCat("ott.Config of rank ", rank,
                                                     " is not that of rank 0; does ",
                                                     "OTT_CONFIG name the same file on all hosts?"));
    }
  }
  OTT_RETURN_IF_ERROR(CheckConfig(config));
  if (!config.run_dir().empty()) OTT_RETURN_IF_ERROR(run->PrepareDirectories());
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, run->EnableHelpers(), run->NextDeadline()));
  return run;
}

Deadline Run::NextDeadline() const { return Deadline::After(timeout_); }

absl::Status Run::PrepareDirectories() {
  const absl::Status created = ranks_.rank() == 0 ? CreateRunDirectory(ranks_, config_) : absl::OkStatus();
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks_, created, NextDeadline()));
  return AgreeOnStatus(ranks_, MakeDirectories(RankDirectory(config_.run_dir(), ranks_.rank())),
                       NextDeadline());
}

absl::Status Run::EnableHelpers() {
  if (config_.has_stopwatch()) {
    Stopwatch::Options options = Stopwatch::FromConfig(config_.stopwatch());
    options.print = [this](const Stopwatch&) { report_is_due_ = true; };
    options.collective_measurements.push_back(kObserverMeasurement);
    OTT_RETURN_IF_ERROR(Stopwatch::Get().Enable(options));
  }
  if (config_.has_nvtx()) {
    OTT_RETURN_IF_ERROR(NvtxRangeWrapper::Get().Enable(NvtxRangeWrapper::FromConfig(config_.nvtx())));
  }
  if (config_.has_dump() || config_.has_cross_check()) {
    TensorDumperOptions options;
    options.dir = config_.run_dir().empty() ? "." : DumpsDirectory(config_.run_dir(), ranks_.rank());
    options.rank = ranks_.rank();
    options.world_size = ranks_.size();
    OTT_RETURN_IF_ERROR(TensorDumper::Get().Enable(options));
    SelectTensors();
  }
  return absl::OkStatus();
}

}  // namespace ott
