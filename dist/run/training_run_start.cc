// How a TrainingRun begins: what the ranks agree upon, and what is enabled on each.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ott/core/base/cpu_model.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/version.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/op_log/op_log_reader.h"
#include "ott/core/op_log/perturbation.h"
#include "ott/core/stopwatch/op_measurements.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/comm/agree_on_status.h"
#include "ott/dist/comm/nccl_communicator.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/run/dump_notice.h"
#include "ott/dist/run/training_run.h"
#include "ott/dist/stats/rank_groups.h"
#include "ott/questions/hang/recorded_communicator.h"
#include "ott/questions/hang/run_state.h"

namespace ott {
namespace {

constexpr auto kLeastTimeToPrepare = std::chrono::seconds(30);
constexpr int kPingsAtStart = 50;

absl::Status CheckConfig(const Config& config) {
  if (config.start_iteration() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("ott.Config: start_iteration ", config.start_iteration(), " is less than 0"));
  }
  if (config.hang().after_seconds() > 0 && config.run_dir().empty()) {
    return absl::InvalidArgumentError(
        "ott.Config has `hang` but no `run_dir`, where ranks leave their recorders");
  }
  for (const auto& [is_there, field] : {std::pair(config.has_dump(), "dump"),
                                        {config.has_profile(), "profile"},
                                        {config.has_op_log(), "op_log"}}) {
    if (!is_there || !config.run_dir().empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("ott.Config has `", field, "` but no `run_dir` to write to"));
  }
  if (config.op_ranges().measure() && !config.has_stopwatch()) {
    return absl::InvalidArgumentError("ott.Config has op_ranges { measure: true } but no `stopwatch`");
  }
  std::error_code error;
  const std::string& reference = config.cross_check().reference_run();
  // Also where neither is there yet.
  if (!reference.empty() && std::filesystem::weakly_canonical(reference, error) ==
                                std::filesystem::weakly_canonical(config.run_dir(), error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("ott.Config: reference_run and run_dir are the same directory, ", config.run_dir()));
  }
  return absl::OkStatus();
}

// Rank 0's part of preparing the run directory. Returns which it is.
absl::StatusOr<std::string> ClaimDirectory(const Communicator& ranks, const Config& config) {
  RunInfo info;
  info.set_version(kVersion);
  info.set_world_size(ranks.size());
  for (int rank = 0; rank < ranks.size(); ++rank) info.add_hosts(ranks.host(rank));
  *info.mutable_config() = config;
  info.set_started(absl::FormatTime(absl::RFC3339_sec, absl::Now(), absl::UTCTimeZone()));
  info.set_cpu(CpuModel());
  OTT_ASSIGN_OR_RETURN(std::string dir, ClaimRunDirectory(config.run_dir(), info));
  if (dir != config.run_dir()) {
    std::printf("ott: %s holds a run already; this one is in %s\n", config.run_dir().c_str(), dir.c_str());
    std::fflush(stdout);
  }
  return dir;
}

TensorDumperOptions MakeDumperOptions(const Communicator& ranks, const Config& config) {
  TensorDumperOptions options = TensorDumper::FromConfig(config.dump());
  // Without a run directory tensors are only checked.
  options.dir = config.run_dir().empty() ? "." : DumpsDirectory(config.run_dir(), ranks.rank());
  options.rank = ranks.rank();
  options.world_size = ranks.size();
  if (!config.dump().reference_run().empty()) {
    options.reference_dir = DumpsDirectory(config.dump().reference_run(), ranks.rank());
  }
  // The cross-check has iterations and tensors of its own.
  options.adds_all = config.has_cross_check();
  return options;
}

std::unique_ptr<whatif::IterationSampler> MakeIterationSampler(const Communicator& ranks,
                                                               const StopwatchConfig& config,
                                                               const RankGroups& groups,
                                                               const std::string& observer_measurement,
                                                               int64_t first_iteration) {
  whatif::IterationSampler::Options options;
  options.first_iteration = first_iteration;
  options.num_warmup_iters = config.num_warmup_iters();
  options.collective_measurements.assign(config.collective_measurements().begin(),
                                         config.collective_measurements().end());
  options.observer_measurement = observer_measurement;
  options.rank = ranks.rank();
  options.world_size = ranks.size();
  options.host = ranks.host(ranks.rank());
  options.like_work = groups.like_work[ranks.rank()];
  options.collective_groups = groups.collective_groups[ranks.rank()];
  return std::make_unique<whatif::IterationSampler>(std::move(options));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingRun>> TrainingRun::Start(Communicator& ranks, const Config& config) {
  std::unique_ptr<TrainingRun> run(new TrainingRun(ranks, config));
  // A rank with another configuration would leave out calls for which the others wait.
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> configs,
                       ranks.AllGather(config.SerializeAsString(), run->NextDeadline()));
  for (int rank = 1; rank < ranks.size(); ++rank) {
    if (configs[rank] != configs[0]) {
      return absl::InvalidArgumentError(absl::StrCat("ott.Config of ", FormatRank(rank, ranks.host(rank)),
                                                     " is not that of rank 0; does ",
                                                     "OTT_CONFIG name the same file on all hosts?"));
    }
  }
  // The disks of the ranks may differ, too.
  absl::Status checked = CheckConfig(config);
  absl::StatusOr<RankMeshes> meshes = RankMeshes::Create(config.mesh(), ranks.size());
  checked.Update(meshes.status());
  if (checked.ok()) {
    absl::StatusOr<RankGroups> groups = GroupsOfRanks(config.stopwatch(), *meshes);
    checked.Update(groups.status());
    if (groups.ok()) run->groups_ = *std::move(groups);
  }
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, checked, run->NextDeadline()));
  if (!config.run_dir().empty()) OTT_RETURN_IF_ERROR(run->PrepareDirectories());
  const absl::Status enabled = run->EnableHelpers();
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, enabled, run->PreparationDeadline()));
  if (run->watchdog_ != nullptr && config.hang().after_seconds() > 0) {
    OTT_ASSIGN_OR_RETURN(
        run->recorder_exchange_,
        RecorderExchange::Start(ranks, HangWatchdog::AnswersOf(run->config_.run_dir(), ranks.rank()),
                                run->NextDeadline()));
    run->watchdog_->SetExchange(run->recorder_exchange_.get());
  }
  if (!configs[0].empty()) OTT_RETURN_IF_ERROR(run->AlignClock());
  if (config.has_stopwatch()) {
    OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> for_stats, ranks.Split(0, 0, run->NextDeadline()));
    StatsGathererOptions options;
    options.like_work = run->groups_.like_work[ranks.rank()];
    options.collective_groups = run->groups_.collective_groups[ranks.rank()];
    OTT_ASSIGN_OR_RETURN(options.nccl, run->ConnectToGather());
    run->stats_gatherer_ = std::make_unique<StatsGatherer>(std::move(for_stats), std::move(options));
    run->gather_thread_ = std::make_unique<WorkerThread>();
    run->iterations_ =
        MakeIterationSampler(ranks, config.stopwatch(), run->groups_, kObserverMeasurement, run->iteration_);
  }
  if (config.has_cross_check()) {
    CrossCheck::Collectives by_nccl;
    if (auto* const nccl = dynamic_cast<NcclCommunicator*>(&ranks)) {
      by_nccl.are_equal = [nccl](absl::Span<const uint64_t> words, Deadline deadline) {
        return nccl->AreEqual(words, deadline);
      };
      by_nccl.all_gather = [nccl](std::string_view bytes, Deadline deadline) {
        return nccl->AllGatherByNccl(bytes, deadline);
      };
    }
    OTT_ASSIGN_OR_RETURN(run->cross_check_, CrossCheck::Create(run->RecordedRanks(), config.cross_check(),
                                                               run->timeout_, by_nccl, *meshes));
  }
  run->SelectTensors();
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, run->SelectOps(), run->NextDeadline()));
  // Last, as a window may begin at once.
  if (config.has_profile()) {
    absl::StatusOr<std::unique_ptr<RankTrace>> trace =
        RankTrace::Start(ranks, *run->clock_, config, run->timeout_);
    OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, trace.status(), run->NextDeadline()));
    run->trace_ = *std::move(trace);
  }
  return run;
}

// What the ranks have to do by themselves, on disks and in memory, may take some longer than others.
Deadline TrainingRun::PreparationDeadline() const {
  return Deadline::After(std::max<std::chrono::nanoseconds>(timeout_, kLeastTimeToPrepare));
}

absl::Status TrainingRun::AlignClock() {
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> for_clock, ranks_.Split(0, 0, NextDeadline()));
  clock_ = std::make_unique<ClockAligner>(std::move(for_clock));
  return clock_->Measure(kPingsAtStart, NextDeadline());
}

absl::StatusOr<NcclCommunicator*> TrainingRun::ConnectToGather() {
  auto* const nccl = dynamic_cast<NcclCommunicator*>(&ranks_);
  if (nccl == nullptr) return nullptr;
  const Deadline deadline = NextDeadline();
  absl::Status gathered = nccl->BeginGather("", /*all_wait=*/true, deadline);
  if (gathered.ok()) gathered = nccl->TakeGathered(deadline, deadline).status();
  // NCCL may fail where messages still travel.
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> problems,
                       ranks_.AllGather(std::string(gathered.message()), NextDeadline()));
  for (const std::string& problem : problems) {
    if (problem.empty()) continue;
    if (ranks_.rank() == 0) std::printf("ott: statistics go by messages: %s\n", problem.c_str());
    return nullptr;
  }
  return nccl;
}

absl::Status TrainingRun::PrepareDirectories() {
  absl::StatusOr<std::string> dir = config_.run_dir();
  if (ranks_.rank() == 0) dir = ClaimDirectory(ranks_, config_);
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks_, dir.status(), PreparationDeadline()));
  OTT_RETURN_IF_ERROR(ranks_.Broadcast(0, &*dir, NextDeadline()));
  config_.set_run_dir(*dir);
  const absl::Status made = MakeDirectories(RankDirectory(config_.run_dir(), ranks_.rank()));
  return AgreeOnStatus(ranks_, made, PreparationDeadline());
}

absl::Status TrainingRun::EnableHelpers() {
  if (config_.has_stopwatch()) {
    Stopwatch::Options options = Stopwatch::FromConfig(config_.stopwatch());
    options.print = [this](const Stopwatch&) { report_is_due_ = true; };
    options.collective_measurements.push_back(kObserverMeasurement);
    OTT_RETURN_IF_ERROR(Stopwatch::Get().Enable(options));
    disable_.push_back([] { Stopwatch::Get().Disable(); });
  }
  if (!config_.run_dir().empty() && (!config_.hang().has_record() || config_.hang().record())) {
    OTT_RETURN_IF_ERROR(StartFlightRecorder());
  }
  if (config_.has_nvtx()) {
    OTT_RETURN_IF_ERROR(NvtxRangeWrapper::Get().Enable(NvtxRangeWrapper::FromConfig(config_.nvtx())));
    disable_.push_back([] { NvtxRangeWrapper::Get().Disable(); });
  }
  if (config_.has_op_ranges()) {
    OpRanges::Options options = OpRanges::FromConfig(config_.op_ranges());
    if (config_.op_ranges().measure()) MeasureOps(options);
    OTT_RETURN_IF_ERROR(OpRanges::Get().Enable(options));
    disable_.push_back([] { OpRanges::Get().Disable(); });
  }
  if (config_.has_op_log()) OTT_RETURN_IF_ERROR(StartOpLog());
  if (config_.has_perturb()) {
    OTT_RETURN_IF_ERROR(Perturbation::Get().Enable(Perturbation::FromConfig(config_.perturb())));
    disable_.push_back([] { Perturbation::Get().Disable(); });
  }
  if (config_.has_dump() || config_.has_cross_check()) return EnableDumper();
  return absl::OkStatus();
}

absl::Status TrainingRun::EnableDumper() {
  TensorDumperOptions options = MakeDumperOptions(ranks_, config_);
  OTT_ASSIGN_OR_RETURN(dump_selection_, Selection::Create(options.selection));
  const std::string rank_dir =
      config_.run_dir().empty() ? "" : RankDirectory(config_.run_dir(), ranks_.rank());
  OTT_ASSIGN_OR_RETURN(verdicts_, VerdictLog::Open(rank_dir.empty() ? "" : rank_dir + "/cross_check.jsonl"));
  options.around_add = [](const std::function<void()>& add) {
    OTT_STOPWATCH_SCOPE(kObserverMeasurement);
    add();
  };
  int first_rank = 0;
  while (first_rank + 1 < ranks_.size() && !dump_selection_.WantsRank(first_rank)) ++first_rank;
  if (ranks_.rank() == first_rank) {
    options.on_first_dump = [selection = dump_selection_, first = iteration_,
                             world_size = ranks_.size()](const DumpSize& size) {
      std::fputs(FormatDumpNotice(size, selection, first, world_size).c_str(), stdout);
      std::fflush(stdout);
    };
  }
  OTT_RETURN_IF_ERROR(TensorDumper::Get().Enable(std::move(options)));
  disable_.push_back([] { TensorDumper::Get().Disable().IgnoreError(); });
  return absl::OkStatus();
}

absl::Status TrainingRun::StartFlightRecorder() {
  const Clock& clock = FlightClock();
  FlightRecorder::Options options = FlightRecorder::FromConfig(config_.hang());
  options.path = FlightPath(config_.run_dir(), ranks_.rank());
  options.rank = ranks_.rank();
  options.world_size = ranks_.size();
  options.host = ranks_.host(ranks_.rank());
  // Of the start before, where a run goes on.
  std::error_code error;
  std::filesystem::remove(options.path, error);
  OTT_ASSIGN_OR_RETURN(flight_recorder_, FlightRecorder::Create(options, clock));
  if (config_.has_stopwatch()) {
    OTT_RETURN_IF_ERROR(Stopwatch::Get().RecordFlight(flight_recorder_));
    // Ranks do not come to it equally often.
    Stopwatch::Get().SetOperation(kObserverMeasurement, FlightOperation());
    SetCollectiveGroups();
  }
  recorded_ranks_ = MakeRecordedCommunicator(ranks_, flight_recorder_, clock, kObserverMeasurement);
  recorded_check_ =
      AddObserverOperation(flight_recorder_, "cross-check", ranks_.size(), kObserverMeasurement);
  recorded_gather_ =
      AddObserverOperation(flight_recorder_, "gather of statistics", ranks_.size(), kObserverMeasurement);
  HangWatchdog::Options watchdog = HangWatchdog::FromConfig(config_.hang());
  watchdog.run_dir = config_.run_dir();
  watchdog_ = std::make_unique<HangWatchdog>(flight_recorder_, clock, std::move(watchdog));
  return absl::OkStatus();
}

void TrainingRun::SetCollectiveGroups() const {
  const std::vector<std::map<std::string, std::string>>& groups_of_ranks = groups_.collective_groups;
  for (const CollectiveGroups& groups : config_.stopwatch().collective_groups()) {
    for (const std::string& measurement : groups.measurements()) {
      const std::string& own = groups_of_ranks[ranks_.rank()].at(measurement);
      std::vector<int> members;
      for (int rank = 0; rank < ranks_.size(); ++rank) {
        if (groups_of_ranks[rank].at(measurement) == own) members.push_back(rank);
      }
      // Measurements of one entry share their groups.
      Stopwatch::Get().SetOperation(
          measurement,
          FlightOperation::Collective(absl::StrCat(own, " of ", groups.measurements(0)), std::move(members)));
    }
  }
}

absl::Status TrainingRun::StartOpLog() {
  OTT_ASSIGN_OR_RETURN(op_log_iterations_, IterationSelector::Create(config_.op_log().iterations()));
  OpLog::Options options;
  // A run that goes on in its directory keeps what was logged before.
  const std::string path = OpLogPath(config_.run_dir(), ranks_.rank());
  std::error_code error;
  int part = 1;
  while (std::filesystem::exists(OpLogPart(path, part), error)) ++part;
  options.path = OpLogPart(path, part);
  options.rank = ranks_.rank();
  options.world_size = ranks_.size();
  options.keep.assign(config_.op_log().keep().begin(), config_.op_log().keep().end());
  options.kept_dir = OpTensorsDirectory(config_.run_dir(), ranks_.rank());
  OTT_ASSIGN_OR_RETURN(op_log_, OpLog::Create(options));
  return absl::OkStatus();
}

}  // namespace ott
