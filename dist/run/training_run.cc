#include "ott/dist/run/training_run.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ott/core/base/cpu_model.h"
#include "ott/core/base/file.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/observer_thread.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/version.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/op_log/op_log_reader.h"
#include "ott/core/op_log/perturbation.h"
#include "ott/core/profile/profiler.h"
#include "ott/core/stopwatch/op_measurements.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_files.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/check/tensor_selection.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/agree_on_status.h"
#include "ott/dist/comm/nccl_communicator.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/hang/recorded_communicator.h"
#include "ott/dist/hang/run_state.h"
#include "ott/dist/run/configured_names.h"
#include "ott/dist/run/dump_notice.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/dist/stats/cluster_table.h"
#include "ott/dist/stats/rank_groups.h"
#include "ott/dist/whatif/gathered_answer.h"
#include "ott/dist/whatif/iteration_sample.pb.h"
#include "ott/dist/whatif/what_if_text.h"

namespace ott {
namespace {

constexpr char kObserverMeasurement[] = "ott";
constexpr double kDefaultTimeoutSeconds = 60;
constexpr auto kLeastTimeToPrepare = std::chrono::seconds(30);
constexpr int kPingsAtStart = 50;
constexpr int kPingsAtGather = 8;
// Who is silent for so long costs it once.
constexpr auto kPingTimeout = std::chrono::seconds(1);
// What a run that is killed may lose of its statistics.
constexpr auto kTimeBetweenStats = std::chrono::seconds(1);
// Of those that the ranks have yet to agree to act upon.
constexpr size_t kMaxFailuresKept = 16;
// Of one kind, on stdout; all are in cross_check.jsonl.
constexpr int kMaxFailuresPrinted = 3;

// To be written after an IterationSample: protobuf reads both as one.
std::string CpuOfWorkBytes(const StopwatchStats& stats) {
  const std::optional<CpuShare> cpu = CpuShareOfWork(stats);
  if (!cpu) return "";
  IterationSample sample;
  CpuOfWork& of_work = *sample.mutable_cpu_of_work();
  of_work.set_cpu_seconds(cpu->cpu_seconds);
  of_work.set_taken_share(cpu->taken_share);
  of_work.set_watched_seconds(cpu->watched_seconds);
  return sample.SerializeAsString();
}

absl::Status CheckConfig(const Config& config) {
  if (config.start_iteration() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("ott.Config: start_iteration ", config.start_iteration(), " is less than 0"));
  }
  if (config.hang().after_seconds() > 0 && config.run_dir().empty()) {
    return absl::InvalidArgumentError(
        "ott.Config has `hang` but no `run_dir`, where ranks leave their recorders");
  }
  if (config.has_dump() && config.run_dir().empty()) {
    return absl::InvalidArgumentError("ott.Config has `dump` but no `run_dir` to write to");
  }
  if (config.has_profile() && config.run_dir().empty()) {
    return absl::InvalidArgumentError("ott.Config has `profile` but no `run_dir` to write to");
  }
  if (config.has_op_log() && config.run_dir().empty()) {
    return absl::InvalidArgumentError("ott.Config has `op_log` but no `run_dir` to write to");
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
                                                               int64_t first_iteration) {
  whatif::IterationSampler::Options options;
  options.first_iteration = first_iteration;
  options.num_warmup_iters = config.num_warmup_iters();
  options.collective_measurements.assign(config.collective_measurements().begin(),
                                         config.collective_measurements().end());
  options.observer_measurement = kObserverMeasurement;
  options.rank = ranks.rank();
  options.world_size = ranks.size();
  options.host = ranks.host(ranks.rank());
  options.like_work = LikeWork(config, ranks.rank());
  options.collective_groups = GroupsOfCollectives(config, ranks.rank());
  return std::make_unique<whatif::IterationSampler>(std::move(options));
}

}  // namespace

TrainingRun::TrainingRun(Communicator& ranks, const Config& config)
    : ranks_(ranks),
      config_(config),
      timeout_(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(
          config.timeout_seconds() > 0 ? config.timeout_seconds() : kDefaultTimeoutSeconds))),
      iteration_(config.start_iteration()),
      observer_seconds_before_(ObserverThreadSeconds()) {}

absl::StatusOr<std::unique_ptr<TrainingRun>> TrainingRun::Start(Communicator& ranks, const Config& config) {
  std::unique_ptr<TrainingRun> run(new TrainingRun(ranks, config));
  // What one rank would skip, the others must not wait for.
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
  checked.Update(CheckGroups(config.stopwatch(), ranks.size()));
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
    options.like_work = LikeWork(config.stopwatch(), ranks.rank());
    options.collective_groups = GroupsOfCollectives(config.stopwatch(), ranks.rank());
    OTT_ASSIGN_OR_RETURN(options.nccl, run->ConnectToGather());
    run->stats_gatherer_ = std::make_unique<StatsGatherer>(std::move(for_stats), std::move(options));
    run->gather_thread_ = std::make_unique<WorkerThread>();
    run->iterations_ = MakeIterationSampler(ranks, config.stopwatch(), run->iteration_);
  }
  if (config.has_cross_check()) {
    ReplicaCheckOptions::AreEqual on_device;
    if (auto* const nccl = dynamic_cast<NcclCommunicator*>(&ranks)) {
      on_device = [nccl](absl::Span<const uint64_t> words, Deadline deadline) {
        return nccl->AreEqual(words, deadline);
      };
    }
    OTT_ASSIGN_OR_RETURN(run->cross_check_, CrossCheck::Create(run->RecordedRanks(), config.cross_check(),
                                                               run->timeout_, std::move(on_device)));
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

TrainingRun::~TrainingRun() {
  // What still works is let end first; it uses the helpers.
  trace_.reset();
  gather_thread_.reset();
  if (stats_written_.valid()) stats_written_.wait();
  iterations_.reset();
  if (op_log_ != nullptr) OpRanges::Get().TellObserver(nullptr);
  for (auto disable = disable_.rbegin(); disable != disable_.rend(); ++disable) (*disable)();
}

Deadline TrainingRun::NextDeadline() const { return Deadline::After(timeout_); }

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
  if (config_.has_dump() || config_.has_cross_check()) {
    TensorDumperOptions options = MakeDumperOptions(ranks_, config_);
    OTT_ASSIGN_OR_RETURN(dump_selection_, Selection::Create(options.selection));
    const std::string rank_dir =
        config_.run_dir().empty() ? "" : RankDirectory(config_.run_dir(), ranks_.rank());
    OTT_ASSIGN_OR_RETURN(verdicts_,
                         VerdictLog::Open(rank_dir.empty() ? "" : rank_dir + "/cross_check.jsonl"));
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
  }
  return absl::OkStatus();
}

void TrainingRun::SetCollectiveGroups() const {
  std::vector<std::map<std::string, std::string>> groups_of_ranks;
  for (int rank = 0; rank < ranks_.size() && config_.stopwatch().collective_groups_size() > 0; ++rank) {
    groups_of_ranks.push_back(GroupsOfCollectives(config_.stopwatch(), rank));
  }
  for (const CollectiveGroups& groups : config_.stopwatch().collective_groups()) {
    for (const std::string& measurement : groups.measurements()) {
      const std::string& own = groups_of_ranks[ranks_.rank()][measurement];
      std::vector<int> members;
      for (int rank = 0; rank < ranks_.size(); ++rank) {
        if (groups_of_ranks[rank][measurement] == own) members.push_back(rank);
      }
      // Measurements of one entry share their groups.
      Stopwatch::Get().SetOperation(
          measurement,
          FlightOperation::Collective(absl::StrCat(groups.measurements(0), " ", own), std::move(members)));
    }
  }
}

absl::Status TrainingRun::StartFlightRecorder() {
  const Clock& clock = config_.has_stopwatch() ? Stopwatch::Get().clock() : Clock::Fastest();
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
  HangWatchdog::Options watchdog = HangWatchdog::FromConfig(config_.hang());
  watchdog.run_dir = config_.run_dir();
  watchdog_ = std::make_unique<HangWatchdog>(flight_recorder_, clock, std::move(watchdog));
  return absl::OkStatus();
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

absl::Status TrainingRun::SelectOps() {
  if (op_log_ == nullptr) return absl::OkStatus();
  if (!op_log_iterations_.Contains(iteration_)) {
    OpRanges::Get().TellObserver(nullptr);
    return absl::OkStatus();
  }
  const absl::Status status = op_log_->BeginIteration(iteration_);
  OpRanges::Get().TellObserver(op_log_.get());
  return status;
}

void TrainingRun::SetOnHang(std::function<void(const HangVerdict&)> on_hang) {
  if (watchdog_ != nullptr) watchdog_->SetOnHang(std::move(on_hang));
}

void TrainingRun::SelectTensors() {
  if (verdicts_ == nullptr) return;
  TensorDumper& dumper = TensorDumper::Get();
  dumper.SetDumpCount(iteration_);
  wants_tensors_ = DumpsThisIteration() || (cross_check_ != nullptr && cross_check_->Selects(iteration_));
  // Digests are enough to compare ranks bit for bit; files, references and tolerances take the elements.
  dumper.SetKeepOnDevice(!DumpsThisIteration() && cross_check_ != nullptr && !cross_check_->has_reference() &&
                         !config_.cross_check().has_replica_tolerance());
  if (wants_tensors_) {
    dumper.Resume();
  } else {
    dumper.Pause();
  }
}

absl::Status TrainingRun::FinishIter() {
  absl::Status status;
  if (wants_tensors_) {
    OTT_STOPWATCH_SCOPE(kObserverMeasurement);
    status = CheckAndDump();
  }
  // Before the iteration ends, which what is being prepared is not to see.
  if (gather_step_ != GatherStep::kNone) {
    OTT_STOPWATCH_SCOPE(kObserverMeasurement);
    status.Update(AdvanceGather(false));
  }
  NvtxRangeWrapper::Get().FinishIter();
  Stopwatch::Get().FinishIter();
  if (iteration_ - config_.start_iteration() + 1 == config_.stopwatch().num_warmup_iters()) {
    observer_seconds_before_ = ObserverThreadSeconds();
  }
  if (flight_recorder_ != nullptr && !config_.has_stopwatch()) {
    flight_recorder_->FinishIter(Clock::Fastest().Ticks(), internal::ThisThreadId());
  }
  if (iterations_ != nullptr) {
    iterations_->FinishIter(iteration_, *clock_, Profiler::Get().IfRecording() != nullptr);
  }
  if (report_is_due_) {
    report_is_due_ = false;
    OTT_STOPWATCH_SCOPE(kObserverMeasurement);
    status.Update(AdvanceGather(true));
    StartGather();
    status.Update(WriteStatsSoon());
  }
  ++iteration_;
  SelectTensors();
  status.Update(SelectOps());
  if (trace_ != nullptr) {
    // Where a window ends, it is written.
    OTT_STOPWATCH_SCOPE(kObserverMeasurement);
    status.Update(trace_->FinishIter());
  }
  return status;
}

absl::Status TrainingRun::CheckAndDump() {
  TensorDumper& dumper = TensorDumper::Get();
  absl::Status status;
  if (cross_check_ != nullptr && cross_check_->Selects(iteration_)) {
    const absl::StatusOr<Value> added = dumper.tensors();
    const absl::StatusOr<Value> added_grads = dumper.grads();
    // The other ranks wait for this one, which has no tensors where a copy from a device failed.
    const absl::Status& problem = added.ok() ? added_grads.status() : added.status();
    const Value tensors = problem.ok() ? *added : ValueMap();
    const Value grads = problem.ok() ? *added_grads : ValueMap();
    const Value* const gradients = grads.map().empty() ? nullptr : &grads;
    const std::vector<NamedTensor> listed = ListTensorsAndGrads(tensors, gradients);
    if (const auto verdict = cross_check_->CheckReplicas(iteration_, listed, problem)) {
      status.Update(AddVerdict(*verdict));
    }
    if (const auto verdict = cross_check_->CheckDistinct(iteration_, listed, problem)) {
      status.Update(AddVerdict(*verdict));
    }
    for (const CrossCheckVerdict& verdict : cross_check_->CheckShards(iteration_, listed, problem)) {
      status.Update(AddVerdict(verdict));
    }
    if (cross_check_->has_reference()) {
      status.Update(AddVerdict(cross_check_->CheckReference(iteration_, tensors, gradients, problem)));
    }
    status.Update(ActOnDivergence());
  }
  if (DumpsThisIteration()) {
    status.Update(dumper.Dump());
    if (config_.has_stopwatch()) status.Update(WriteStatsSoon());
  } else {
    dumper.Discard();
  }
  return status;
}

absl::Status TrainingRun::AddVerdict(const CrossCheckVerdict& verdict) {
  const Outcome outcome = OutcomeOfAllRanks(verdict);
  const bool passed = SeverityOf(outcome) <= SeverityOf(WITHIN_TOLERANCE);
  const absl::Status written = verdicts_->Add(verdict);
  if (passed) return written;
  diverged_ = true;
  failed_.push_back(verdict);
  if (failed_.size() > kMaxFailuresKept) failed_.pop_front();
  // Replicas have one verdict, which rank 0 prints; of the ranks' verdicts on a reference, the worst is
  // printed.
  const bool is_mine = verdict.mode() == REPLICAS || verdict.mode() == DISTINCT
                           ? ranks_.rank() == 0
                           : ranks_.rank() == verdict.worst_rank();
  // Of its own count, so that a reference that is missing hides no replicas that differ.
  int& num_printed = num_failures_printed_[{verdict.mode(), outcome}];
  if (is_mine && num_printed++ < kMaxFailuresPrinted) {
    std::fputs(FormatVerdict(verdict).c_str(), stdout);
    if (num_printed == kMaxFailuresPrinted) {
      std::printf("    further ones of this kind are only counted%s\n",
                  config_.run_dir().empty()
                      ? ""
                      : absl::StrCat(", and in ", config_.run_dir(), "/rank_*/cross_check.jsonl").c_str());
    }
    std::fflush(stdout);
  }
  return written;
}

absl::Status TrainingRun::ActOnDivergence() {
  const CrossCheck::Decision decision = cross_check_->AgreeOnDivergence({failed_.begin(), failed_.end()});
  diverged_ = diverged_ || decision.diverged;
  if (!decision.verdict) return absl::OkStatus();
  if (failed_.empty()) failed_.push_back(*decision.verdict);
  absl::Status status;
  for (const CrossCheckVerdict& verdict : std::exchange(failed_, {})) {
    if (on_divergence_) status.Update(on_divergence_(verdict));
  }
  if (config_.cross_check().abort_on_divergence()) {
    status.Update(absl::AbortedError(FormatVerdict(*decision.verdict)));
  }
  return status;
}

double TrainingRun::ObserverSeconds() const {
  return std::max(0.0, ObserverThreadSeconds() - observer_seconds_before_);
}

absl::Status TrainingRun::WriteStats() const {
  if (config_.run_dir().empty()) return absl::OkStatus();
  StopwatchFilesOptions options;
  options.dir = RankDirectory(config_.run_dir(), ranks_.rank());
  options.host = ranks_.host(ranks_.rank());
  options.rank = ranks_.rank();
  options.world_size = ranks_.size();
  options.observer_thread_seconds = ObserverSeconds();
  absl::Status status = WriteStopwatchFiles(Stopwatch::Get(), options);
  StopwatchStats stats;
  Stopwatch::Get().Stats(&stats);
  status.Update(WriteFileAtomically(IterationsPath(config_.run_dir(), ranks_.rank()),
                                    iterations_->Sample().SerializeAsString() + CpuOfWorkBytes(stats)));
  return status;
}

absl::Status TrainingRun::WriteStatsSoon() {
  const auto now = std::chrono::steady_clock::now();
  const bool is_busy =
      stats_written_.valid() && stats_written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  if (config_.run_dir().empty() || is_busy || now < next_stats_) return absl::OkStatus();
  next_stats_ = now + kTimeBetweenStats;
  const absl::Status before = stats_written_.valid() ? stats_written_.get() : absl::OkStatus();
  stats_written_ = std::async(std::launch::async, [this] {
    const ObserverThread marked;
    return WriteStats();
  });
  return before;
}

RankArrivals TrainingRun::TakeArrivals() {
  // A rank that does not answer only makes the bound of the error grow.
  clock_->Measure(kPingsAtGather, Deadline::After(std::min<std::chrono::nanoseconds>(timeout_, kPingTimeout)))
      .IgnoreError();
  RankArrivals taken;
  for (StopwatchArrivals& measurement : Stopwatch::Get().TakeArrivals()) {
    if (measurement.name == kObserverMeasurement) continue;
    for (StopwatchArrivals::Arrival& arrival : measurement.arrivals) {
      const absl::StatusOr<AlignedTime> time = clock_->ToRankZero(arrival.nanoseconds);
      if (!time.ok()) return {};
      arrival.nanoseconds = time->nanoseconds;
      taken.error_bound_nanoseconds = std::max(taken.error_bound_nanoseconds, time->error_bound_nanoseconds);
    }
    taken.measurements.push_back(std::move(measurement));
  }
  taken.iterations = iterations_->Sample(whatif::SampleBytesPerRank(ranks_.size())).SerializeAsString();
  return taken;
}

absl::Status TrainingRun::GatherStats() {
  StartGather();
  return AdvanceGather(true);
}

void TrainingRun::StartGather() {
  gather_step_ = GatherStep::kPrepare;
  gather_deadline_ = NextDeadline();
  Stopwatch::Get().CloseWindow();
  gather_work_ = gather_thread_->Run([this, arrivals = TakeArrivals()]() mutable {
    StopwatchStats stats;
    Stopwatch::Get().Stats(&stats);
    if (!arrivals.iterations.empty()) arrivals.iterations += CpuOfWorkBytes(stats);
    stats.set_observer_thread_seconds(ObserverSeconds());
    return stats_gatherer_->Prepare(stats, arrivals);
  });
}

absl::Status TrainingRun::AdvanceGather(bool to_the_end) {
  const Deadline deadline = to_the_end ? gather_deadline_ : Deadline::Now();
  if (gather_step_ == GatherStep::kPrepare) {
    gather_step_ = GatherStep::kNone;
    OTT_RETURN_IF_ERROR(gather_work_.get());
    gather_step_ = GatherStep::kExchange;
  }
  if (gather_step_ == GatherStep::kExchange) {
    OTT_ASSIGN_OR_RETURN(const bool all_came, stats_gatherer_->Exchange(deadline, gather_deadline_));
    if (!all_came) return absl::OkStatus();
    gather_step_ = GatherStep::kNone;
    if (stats_gatherer_->is_leaf()) return absl::OkStatus();
    gather_step_ = GatherStep::kMerge;
    gather_work_ = gather_thread_->Run([this] { return MergeAndPrint(); });
  }
  if (gather_step_ == GatherStep::kMerge) {
    if (!to_the_end && gather_work_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      return absl::OkStatus();
    }
    gather_step_ = GatherStep::kNone;
    OTT_RETURN_IF_ERROR(gather_work_.get());
    OTT_RETURN_IF_ERROR(stats_gatherer_->Post());
  }
  return absl::OkStatus();
}

absl::Status TrainingRun::MergeAndPrint() {
  OTT_ASSIGN_OR_RETURN(ClusterStats cluster, stats_gatherer_->Merge());
  if (ranks_.rank() == 0) {
    for (std::string& note : FindNamesThatNeverRan(config_.stopwatch(), cluster)) {
      cluster.add_notes(std::move(note));
    }
    std::fputs(FormatClusterTable(cluster).c_str(), stdout);
    if (const auto answer = whatif::AnswerGathered(stats_gatherer_->iterations()); answer.ok()) {
      std::printf("%s\n", whatif::FormatWhatIfLine(*answer).c_str());
    }
    std::fflush(stdout);
    if (!config_.run_dir().empty()) {
      return WriteFileAtomically(ClusterStatsPath(config_.run_dir()), ClusterStatsToJson(cluster));
    }
  }
  return absl::OkStatus();
}

absl::Status TrainingRun::PrintSummary() {
  // Who is gone leaves the others' errors to be shown.
  VerdictSummary reference = verdicts_->reference();
  absl::Status status;
  if (cross_check_->has_reference()) {
    double& largest = reference.max_abs_error;
    const std::string_view mine(reinterpret_cast<const char*>(&largest), sizeof(largest));
    OTT_ASSIGN_OR_RETURN(const auto errors, RecordedRanks().GatherAvailable(0, mine, NextDeadline()));
    for (const absl::StatusOr<std::string>& bytes : errors) {
      status.Update(bytes.status());
      double error = 0;
      if (bytes.ok() && bytes->size() == sizeof(error)) std::memcpy(&error, bytes->data(), sizeof(error));
      largest = std::max(largest, error);
    }
  }
  if (ranks_.rank() != 0) return status;
  std::printf("cross-check of %s\n", FormatSummary("replicas", verdicts_->replicas()).c_str());
  if (verdicts_->distinct().num_checks > 0) {
    std::printf("cross-check of %s\n", FormatSummary("distinct tensors", verdicts_->distinct()).c_str());
  }
  if (cross_check_->has_reference()) {
    const std::string subject = absl::StrCat("reference ", config_.cross_check().reference_run());
    std::printf("cross-check against %s\n", FormatSummary(subject, reference).c_str());
  }
  std::fflush(stdout);
  return status;
}

absl::Status TrainingRun::Finish() {
  absl::Status status;
  if (flight_recorder_ != nullptr) flight_recorder_->SetFinished();
  if (trace_ != nullptr) status.Update(trace_->Finish());
  if (op_log_ != nullptr) {
    OpRanges::Get().TellObserver(nullptr);
    status.Update(op_log_->Finish());
  }
  if (config_.has_perturb() && ranks_.rank() == 0 && Perturbation::Get().moved().empty()) {
    std::printf("perturb: the program offered no tensor of these paths (Perturbation::Offer)\n");
  }
  if (verdicts_ != nullptr) status.Update(TensorDumper::Get().Flush());
  if (config_.has_stopwatch()) {
    status.Update(AdvanceGather(true));
    if (stats_written_.valid()) stats_written_.wait();
    // A full disk here is no reason to keep the other ranks waiting.
    status.Update(WriteStats());
    status.Update(GatherStats());
  }
  if (cross_check_ != nullptr) {
    status.Update(verdicts_->Flush());
    status.Update(PrintSummary());
  }
  return status;
}

}  // namespace ott
