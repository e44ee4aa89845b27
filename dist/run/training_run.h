// A training run under observation, in one object.

#ifndef OTT_DIST_RUN_TRAINING_RUN_H_
#define OTT_DIST_RUN_TRAINING_RUN_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/dump/selection.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/core/op_log/op_log.h"
#include "ott/dist/check/cross_check.h"
#include "ott/dist/check/verdict_log.h"
#include "ott/dist/comm/clock_align.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/deadline.h"
#include "ott/dist/comm/worker_thread.h"
#include "ott/dist/run/rank_trace.h"
#include "ott/dist/stats/rank_groups.h"
#include "ott/dist/stats/stats_gatherer.h"
#include "ott/questions/hang/watchdog.h"
#include "ott/questions/saved/iteration_sampler.h"

namespace ott {

class NcclCommunicator;

// Enables the helpers that ott.Config names, keeps the run directory (run_directory.h), and at the end of
// each iteration cross-checks, dumps and gathers as configured. What is not configured costs nothing: with an
// empty Config every call returns at once.
//
// The tensors that are checked and dumped are those given to TensorDumper::Get() during the iteration; the
// dumper is enabled in the selected iterations only. Time spent here shows in the stopwatch as the
// measurement "ott".
//
// Given a NcclCommunicator, it compares replicas on the devices, gathers the statistics and agrees by NCCL,
// on a stream of its own. The details of what differs, the clocks of other hosts, and everything after a
// failure of NCCL go by messages.
//
// Every method is collective over the ranks of the communicator. Not thread-safe.
//
//   OTT_ASSIGN_OR_RETURN(auto run, TrainingRun::Start(*ranks, config));
//   for (...) {
//     TrainOneIteration();
//     OTT_RETURN_IF_ERROR(run->FinishIter());
//   }
//   OTT_RETURN_IF_ERROR(run->Finish());
class TrainingRun {
 public:
  // Prepares the run directory and enables the helpers. The communicator must outlive the run. Where run_dir
  // holds a run already, this one is in an attempt_N below it, or with a start_iteration goes on in it
  // (ClaimRunDirectory). FAILED_PRECONDITION if a helper is enabled already; INVALID_ARGUMENT for a Config
  // that asks for files without run_dir; the error of one rank is returned on all.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Start(Communicator& ranks, const Config& config);

  TrainingRun(const TrainingRun&) = delete;
  TrainingRun& operator=(const TrainingRun&) = delete;
  // Waits until the dumps are written, also where Finish() was not called, and switches off what Start()
  // enabled, so that another run may start. REQUIRES: no measurement or range is open, on any thread
  ~TrainingRun();

  // Called on every rank, in the same FinishIter(), for each verdict of a cross-check that does not pass on
  // all ranks. If a rank does not answer in time, the call is made at the next check that all ranks come to;
  // where many verdicts wait for that, only for the latest ones. FinishIter() returns the errors of these
  // calls.
  using OnDivergence = std::function<absl::Status(const CrossCheckVerdict&)>;
  void SetOnDivergence(OnDivergence on_divergence) { on_divergence_ = std::move(on_divergence); }

  // Called with the verdict when a rank stands still and the cause is known (watchdog.h), on a thread of its
  // own. Needs config.hang.after_seconds.
  void SetOnHang(std::function<void(const HangVerdict&)> on_hang);

  // Ends iteration(). Errors are those of files and ranks; a divergence is ABORTED if config.cross_check says
  // so, and otherwise only printed and kept.
  absl::Status FinishIter();

  // Writes and prints what was measured. Call once, after the last iteration.
  absl::Status Finish();

  // Counted from config.start_iteration, which is 0 for a training from its beginning.
  int64_t iteration() const { return iteration_; }

  // The run directory that this run got, which may be an attempt_N of the configured one; empty: none.
  const std::string& run_dir() const { return config_.run_dir(); }

  // This rank's clock against rank 0's, estimated in Start() and again where statistics are gathered; null
  // with an empty Config.
  const ClockAligner* clock() const { return clock_.get(); }

  // Whether a cross-check found a difference, or could not be made, on any rank in any iteration so far. The
  // same on all ranks; only a rank that did not hear from rank 0 may know of one that the others learn of at
  // the next check.
  bool diverged() const { return diverged_; }

 private:
  // Of the time that is spent here.
  static constexpr char kObserverMeasurement[] = "ott";

  TrainingRun(Communicator& ranks, const Config& config);

  Deadline NextDeadline() const;
  Deadline PreparationDeadline() const;
  absl::Status AlignClock();
  // Connects NCCL by a first gather, which waits for all ranks. Null where statistics are gathered by
  // messages.
  absl::StatusOr<NcclCommunicator*> ConnectToGather();
  absl::Status PrepareDirectories();
  absl::Status EnableHelpers();
  absl::Status EnableDumper();
  absl::Status StartFlightRecorder();
  absl::Status StartOpLog();
  // Has operations logged if this iteration is selected.
  absl::Status SelectOps();
  // Tells the flight recorder who waits for whom, as configured.
  void SetCollectiveGroups() const;
  // The flight recorder's.
  const Clock& FlightClock() const;
  Communicator& RecordedRanks() { return recorded_ranks_ != nullptr ? *recorded_ranks_ : ranks_; }
  bool DumpsThisIteration() const {
    return config_.has_dump() && dump_selection_.WantsIteration(iteration_) &&
           dump_selection_.WantsRank(ranks_.rank());
  }
  // Lets the dumper take tensors if this iteration is dumped or checked.
  void SelectTensors();
  // What is done with the tensors of this iteration; the verdicts' outcome is in diverged_.
  absl::Status CheckAndDump();
  absl::Status AddVerdict(const CrossCheckVerdict& verdict);
  // Tells the program and ends the run as configured, on all ranks or on none.
  absl::Status ActOnDivergence();
  // CPU time of the library's threads in the measured iterations.
  double ObserverSeconds() const;
  absl::Status WriteStats() const;
  // WriteStats() on another thread, unless that was done a moment ago. Returns the error of the previous
  // time.
  absl::Status WriteStatsSoon();
  // On rank 0's clock, since the last gather.
  RankArrivals TakeArrivals();
  // Gathers and prints at once.
  absl::Status GatherStats();
  // The same, but what takes long is left to a thread, and goes on in AdvanceGather(), which does not wait
  // unless told to.
  void StartGather();
  absl::Status AdvanceGather(bool to_the_end);
  absl::Status MergeAndPrint();
  absl::Status PrintSummary();

  Communicator& ranks_;
  // Its run_dir is the one that this run got.
  Config config_;
  RankGroups groups_;
  const std::chrono::nanoseconds timeout_;
  int64_t iteration_;
  Selection dump_selection_;
  std::unique_ptr<ClockAligner> clock_;
  // Null where nothing is recorded. The recorder is never destroyed.
  FlightRecorder* flight_recorder_ = nullptr;
  std::unique_ptr<RecorderExchange> recorder_exchange_;
  std::unique_ptr<HangWatchdog> watchdog_;
  // ranks_, but with its calls recorded; null where nothing is recorded.
  std::unique_ptr<Communicator> recorded_ranks_;
  // What ranks wait for each other in here; null where nothing is recorded.
  FlightRecorder::Measurement* recorded_check_ = nullptr;
  FlightRecorder::Measurement* recorded_gather_ = nullptr;
  // Null where no operations are logged.
  std::unique_ptr<OpLog> op_log_;
  IterationSelector op_log_iterations_;
  // Null where nothing is profiled.
  std::unique_ptr<RankTrace> trace_;
  // Null where nothing is measured.
  std::unique_ptr<StatsGatherer> stats_gatherer_;
  // Null where nothing is measured.
  std::unique_ptr<whatif::IterationSampler> iterations_;
  // Null where nothing is checked.
  std::unique_ptr<CrossCheck> cross_check_;
  std::unique_ptr<VerdictLog> verdicts_;
  bool wants_tensors_ = false;
  // What the library's threads had taken as the warm-up ended.
  std::atomic<double> observer_seconds_before_;
  bool report_is_due_ = false;
  bool diverged_ = false;
  enum class GatherStep { kNone, kPrepare, kExchange, kMerge };
  GatherStep gather_step_ = GatherStep::kNone;
  std::future<absl::Status> gather_work_;
  Deadline gather_deadline_ = Deadline::Now();
  std::future<absl::Status> stats_written_;
  std::chrono::steady_clock::time_point next_stats_;
  // Of the helpers that this run enabled, in that order.
  std::vector<void (*)()> disable_;
  OnDivergence on_divergence_;
  // Verdicts that do not pass and were not acted upon yet.
  std::deque<CrossCheckVerdict> failed_;
  std::map<std::pair<CrossCheckMode, Outcome>, int> num_failures_printed_;
  // Prepares and merges; null where nothing is measured. Last, so that it ends before what its tasks use.
  std::unique_ptr<WorkerThread> gather_thread_;
};

}  // namespace ott

#endif  // OTT_DIST_RUN_TRAINING_RUN_H_
