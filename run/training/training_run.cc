#include "ott/run/training/training_run.h"

#include <chrono>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_sink.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/op_log/perturbation.h"
#include "ott/core/stopwatch/op_measurements.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/comm/agree_on_status.h"
#include "ott/dist/comm/clock_align.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/stats/rank_groups.h"
#include "ott/run/training/rank_metrics.h"
#include "ott/run/training/rank_op_log.h"
#include "ott/run/training/rank_recorder.h"
#include "ott/run/training/rank_trace.h"
#include "ott/run/training/run_directories.h"
#include "ott/run/training/run_frame.h"
#include "ott/run/training/run_statistics.h"
#include "ott/run/training/tensor_watch.h"

namespace ott {
namespace {

constexpr double kDefaultTimeoutSeconds = 60;
// Nanoseconds of thirty years still fit into 64 bits.
constexpr double kMostSeconds = 1e9;
constexpr int kPingsAtStart = 50;

std::chrono::nanoseconds TimeoutOf(const Config& config) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(
      // The config is checked later.
      config.timeout_seconds() > 0 && config.timeout_seconds() <= kMostSeconds ? config.timeout_seconds()
                                                                               : kDefaultTimeoutSeconds));
}

absl::Status CheckConfig(const Config& config) {
  if (config.start_iteration() < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("ott.Config: start_iteration ", config.start_iteration(), " is less than 0"));
  }
  for (const auto& [field, seconds] : {std::pair("timeout_seconds", config.timeout_seconds()),
                                       {"hang { after_seconds }", config.hang().after_seconds()}}) {
    if (seconds >= 0 && seconds <= kMostSeconds) continue;
    return absl::InvalidArgumentError(absl::StrCat("ott.Config: ", field, ": ", seconds,
                                                   " is no number of seconds from 0 to ", kMostSeconds));
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

absl::Status ReadMeshes(RunFrame& frame) {
  OTT_ASSIGN_OR_RETURN(frame.meshes, RankMeshes::Create(frame.config.mesh(), frame.ranks.size()));
  OTT_ASSIGN_OR_RETURN(frame.groups, GroupsOfRanks(frame.config.stopwatch(), frame.meshes));
  return absl::OkStatus();
}

}  // namespace

TrainingRun::TrainingRun(Communicator& ranks, const Config& config)
    : frame_(new RunFrame{ranks, config, TimeoutOf(config), RankMeshes(ranks.size()), {}}),
      iteration_(config.start_iteration()) {}

absl::StatusOr<std::unique_ptr<TrainingRun>> TrainingRun::Start(Communicator& ranks, const Config& config,
                                                                const std::string& directory) {
  std::unique_ptr<TrainingRun> run(new TrainingRun(ranks, config));
  OTT_RETURN_IF_ERROR(run->Prepare(directory));
  return run;
}

TrainingRun::~TrainingRun() {
  if (recorder_ != nullptr) recorder_->SetLeft();
  // Parts that still work end first; they use the helpers.
  trace_.reset();
  statistics_.reset();
  op_log_.reset();
  for (auto disable = disable_.rbegin(); disable != disable_.rend(); ++disable) (*disable)();
}

absl::Status TrainingRun::Prepare(const std::string& directory) {
  Communicator& ranks = frame_->ranks;
  const Config& config = frame_->config;
  // A rank with another configuration would leave out calls for which the others wait.
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> configs,
                       ranks.AllGather(config.SerializeAsString(), frame_->NextDeadline()));
  for (int rank = 1; rank < ranks.size(); ++rank) {
    if (configs[rank] != configs[0]) {
      return absl::InvalidArgumentError(absl::StrCat("ott.Config of ", FormatRank(rank, ranks.host(rank)),
                                                     " is not that of rank 0; does ",
                                                     "OTT_CONFIG name the same file on all hosts?"));
    }
  }
  // The disks of the ranks may differ, too.
  absl::Status checked = CheckConfig(config);
  checked.Update(ReadMeshes(*frame_));
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, checked, frame_->NextDeadline()));
  if (!config.run_dir().empty()) OTT_RETURN_IF_ERROR(PrepareDirectories(*frame_, directory));
  const absl::Status enabled = EnableHelpers();
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, enabled, frame_->PreparationDeadline()));
  if (recorder_ != nullptr && config.hang().after_seconds() > 0) OTT_RETURN_IF_ERROR(recorder_->Exchange());
  if (!configs[0].empty()) OTT_RETURN_IF_ERROR(AlignClock());
  if (statistics_ != nullptr) OTT_RETURN_IF_ERROR(statistics_->Connect(*clock_, recorder_.get()));
  if (config.has_cross_check()) OTT_RETURN_IF_ERROR(tensors_->StartChecks(recorder_.get()));
  OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, BeginIteration(), frame_->NextDeadline()));
  // Last, as a window may begin at once.
  if (config.has_profile()) {
    absl::StatusOr<std::unique_ptr<RankTrace>> trace =
        RankTrace::Start(ranks, *clock_, config, frame_->timeout);
    OTT_RETURN_IF_ERROR(AgreeOnStatus(ranks, trace.status(), frame_->NextDeadline()));
    trace_ = *std::move(trace);
  }
  return absl::OkStatus();
}

absl::Status TrainingRun::EnableHelpers() {
  const Config& config = frame_->config;
  if (config.has_stopwatch()) {
    OTT_ASSIGN_OR_RETURN(statistics_, RunStatistics::Enable(*frame_));
    disable_.push_back([] { Stopwatch::Get().Disable(); });
  }
  if (!config.run_dir().empty()) {
    metrics_ = std::make_unique<RankMetrics>(MetricsPath(config.run_dir(), frame_->ranks.rank()));
  }
  if (!config.run_dir().empty() && (!config.hang().has_record() || config.hang().record())) {
    OTT_ASSIGN_OR_RETURN(recorder_, RankRecorder::Start(*frame_));
  }
  if (config.has_nvtx()) {
    OTT_RETURN_IF_ERROR(NvtxRangeWrapper::Get().Enable(NvtxRangeWrapper::FromConfig(config.nvtx())));
    disable_.push_back([] { NvtxRangeWrapper::Get().Disable(); });
  }
  if (config.has_op_ranges()) {
    OpRanges::Options options = OpRanges::FromConfig(config.op_ranges());
    if (config.op_ranges().measure()) MeasureOps(options);
    OTT_RETURN_IF_ERROR(OpRanges::Get().Enable(options));
    disable_.push_back([] { OpRanges::Get().Disable(); });
  }
  if (config.has_op_log()) {
    OTT_ASSIGN_OR_RETURN(op_log_, RankOpLog::Start(*frame_));
  }
  if (config.has_perturb()) {
    OTT_RETURN_IF_ERROR(Perturbation::Get().Enable(Perturbation::FromConfig(config.perturb())));
    disable_.push_back([] { Perturbation::Get().Disable(); });
  }
  if (config.has_dump() || config.has_cross_check()) {
    OTT_ASSIGN_OR_RETURN(tensors_, TensorWatch::Enable(*frame_));
    disable_.push_back([] { TensorDumper::Get().Disable().IgnoreError(); });
  }
  return absl::OkStatus();
}

absl::Status TrainingRun::AlignClock() {
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> for_clock,
                       frame_->ranks.Split(0, 0, frame_->NextDeadline()));
  clock_ = std::make_unique<ClockAligner>(std::move(for_clock));
  return clock_->Measure(kPingsAtStart, frame_->NextDeadline());
}

void TrainingRun::SetOnDivergence(OnDivergence on_divergence) {
  if (tensors_ != nullptr) tensors_->SetOnDivergence(std::move(on_divergence));
}

void TrainingRun::SetOnHang(std::function<void(const HangVerdict&)> on_hang) {
  if (recorder_ != nullptr) recorder_->SetOnHang(std::move(on_hang));
}

void TrainingRun::Metric(std::string_view name, double value) {
  if (metrics_ != nullptr) metrics_->Set(name, value);
}

void TrainingRun::SetInterrupted() {
  if (recorder_ != nullptr) recorder_->SetInterrupted();
}

const std::string& TrainingRun::run_dir() const { return frame_->config.run_dir(); }

bool TrainingRun::diverged() const { return tensors_ != nullptr && tensors_->diverged(); }

absl::Status TrainingRun::BeginIteration() {
  if (tensors_ != nullptr) tensors_->BeginIteration(iteration_);
  return op_log_ != nullptr ? op_log_->BeginIteration(iteration_) : absl::OkStatus();
}

absl::Status TrainingRun::FinishTensors() {
  if (tensors_ == nullptr || !tensors_->is_wanted()) return absl::OkStatus();
  OTT_STOPWATCH_SCOPE(kObserverMeasurement);
  absl::Status status = tensors_->FinishIter();
  if (tensors_->is_dumped() && statistics_ != nullptr) statistics_->WriteSoon();
  return status;
}

absl::Status TrainingRun::FinishIter() {
  absl::Status status = FinishTensors();
  if (statistics_ != nullptr) status.Update(statistics_->GoOn());
  NvtxRangeWrapper::Get().FinishIter();
  Stopwatch::Get().FinishIter();
  if (recorder_ != nullptr) recorder_->FinishIter();
  if (statistics_ != nullptr) status.Update(statistics_->FinishIter(iteration_));
  if (metrics_ != nullptr) frame_->NoteLost(metrics_->FinishIter(iteration_));
  ++iteration_;
  frame_->NoteLost(BeginIteration());
  if (trace_ != nullptr) {
    // A window that ends is written here.
    OTT_STOPWATCH_SCOPE(kObserverMeasurement);
    frame_->NoteLost(trace_->FinishIter());
  }
  return status;
}

absl::Status TrainingRun::Finish() {
  absl::Status status;
  if (recorder_ != nullptr) recorder_->SetFinished();
  if (trace_ != nullptr) status.Update(trace_->Finish());
  if (op_log_ != nullptr) status.Update(op_log_->Finish());
  if (frame_->config.has_perturb() && frame_->ranks.rank() == 0 && Perturbation::Get().moved().empty()) {
    PrintLines("perturb: the program offered no tensor of these paths (Perturbation::Offer)\n");
  }
  if (tensors_ != nullptr) status.Update(tensors_->Flush());
  if (statistics_ != nullptr) status.Update(statistics_->Finish());
  if (tensors_ != nullptr) status.Update(tensors_->Finish());
  status.Update(frame_->unwritten.Finish(frame_->ranks.rank()));
  return status;
}

}  // namespace ott
