#include "ott/dist/run/training_run.h"

#include <chrono>
#include <cstdio>
#include <utility>

#include "ott/core/base/misuse.h"
#include "ott/core/base/observer_thread.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/op_log/perturbation.h"
#include "ott/core/profile/profiler.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/questions/hang/recorded_communicator.h"

namespace ott {
namespace {

constexpr double kDefaultTimeoutSeconds = 60;

}  // namespace

TrainingRun::TrainingRun(Communicator& ranks, const Config& config)
    : ranks_(ranks),
      config_(config),
      timeout_(std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(
          config.timeout_seconds() > 0 ? config.timeout_seconds() : kDefaultTimeoutSeconds))),
      iteration_(config.start_iteration()),
      observer_seconds_before_(ObserverThreadSeconds()) {}

TrainingRun::~TrainingRun() {
  if (flight_recorder_ != nullptr) flight_recorder_->SetLeft();
  // What still works is let end first; it uses the helpers.
  trace_.reset();
  gather_thread_.reset();
  if (stats_written_.valid()) stats_written_.wait();
  iterations_.reset();
  if (op_log_ != nullptr) OpRanges::Get().TellObserver(nullptr);
  for (auto disable = disable_.rbegin(); disable != disable_.rend(); ++disable) (*disable)();
}

void TrainingRun::SetOnHang(std::function<void(const HangVerdict&)> on_hang) {
  if (watchdog_ != nullptr) watchdog_->SetOnHang(std::move(on_hang));
}

const Clock& TrainingRun::FlightClock() const {
  return config_.has_stopwatch() ? Stopwatch::Get().clock() : Clock::Fastest();
}

Deadline TrainingRun::NextDeadline() const { return Deadline::After(timeout_); }

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

absl::Status TrainingRun::FinishIter() {
  absl::Status status;
  if (wants_tensors_) {
    OTT_STOPWATCH_SCOPE(kObserverMeasurement);
    status = CheckAndDump();
  }
  // Before the iteration ends: what is being prepared must not include it.
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
    flight_recorder_->FinishIter(FlightClock().Ticks(), internal::ThisThreadId());
  }
  if (iterations_ != nullptr) {
    iterations_->FinishIter(iteration_, *clock_, Profiler::Get().IfRecording() != nullptr);
  }
  if (report_is_due_) {
    report_is_due_ = false;
    const RecordedOperation recorded(recorded_gather_, FlightClock());
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
    const RecordedOperation recorded(recorded_gather_, FlightClock());
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
