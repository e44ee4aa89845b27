// A training run under observation, in one object.

#ifndef OTT_RUN_TRAINING_TRAINING_RUN_H_
#define OTT_RUN_TRAINING_TRAINING_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ott {

class ClockAligner;
class Communicator;
class Config;             // config.proto
class CrossCheckVerdict;  // cross_check.proto
class HangVerdict;        // hang.proto
class RankMetrics;
class RankOpLog;
class RankRecorder;
class RankTrace;
class RunStatistics;
class TensorWatch;
struct RunFrame;

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
// Every method but Metric() and SetInterrupted() is collective over the ranks of the communicator. Not
// thread-safe.
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
  // that asks for files without run_dir; the error of one rank is returned on all. Relative directories of
  // the Config lie in `directory`; empty: in the current one. The program may change to another one later.
  static absl::StatusOr<std::unique_ptr<TrainingRun>> Start(Communicator& ranks, const Config& config,
                                                            const std::string& directory = "");

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
  void SetOnDivergence(OnDivergence on_divergence);

  // Calls the function with the verdict when a rank stands still and the cause is known (watchdog.h), on a
  // thread of its own. Needs config.hang.after_seconds.
  void SetOnHang(std::function<void(const HangVerdict&)> on_hang);

  // Keeps a number of iteration(), such as its loss, in the run directory of this rank, for `ott curves`.
  // Call it on one rank, or on several for what each has of its own. Does nothing without a run directory.
  void Metric(std::string_view name, double value);

  // Ends iteration(). Errors are those of ranks; a divergence is ABORTED if config.cross_check says so, and
  // otherwise only printed and kept. A file that cannot be written ends no training: it is named on stderr
  // once, and counted.
  absl::Status FinishIter();

  // Says that the user ended the program before its training did, by Ctrl-C, so that no rank is said to have
  // left the others. Not collective.
  void SetInterrupted();

  // Writes and prints what was measured. Call once, after the last iteration. Returns the first error of
  // dumps, verdicts, traces and logs that could not be written.
  absl::Status Finish();

  // Returns the iteration, counted from config.start_iteration, which is 0 for a training from its beginning.
  int64_t iteration() const { return iteration_; }

  // Returns the run directory that this run got, which may be an attempt_N of the configured one; empty:
  // none.
  const std::string& run_dir() const;

  // Returns this rank's clock against rank 0's, estimated in Start() and again where statistics are gathered;
  // null with an empty Config.
  const ClockAligner* clock() const { return clock_.get(); }

  // Returns true if a cross-check found a difference, or could not be made, on any rank in any iteration so
  // far. The same on all ranks; only a rank that did not hear from rank 0 may know of one that the others
  // learn of at the next check.
  bool diverged() const;

 private:
  TrainingRun(Communicator& ranks, const Config& config);

  absl::Status Prepare(const std::string& directory);
  absl::Status EnableHelpers();
  absl::Status AlignClock();
  // Has tensors taken and operations logged if this iteration is selected.
  absl::Status BeginIteration();
  absl::Status FinishTensors();

  // A part is null if nothing asks for it. Each outlives those below it.
  const std::unique_ptr<RunFrame> frame_;
  int64_t iteration_;
  std::unique_ptr<ClockAligner> clock_;
  std::unique_ptr<RankRecorder> recorder_;
  std::unique_ptr<RankOpLog> op_log_;
  std::unique_ptr<RankMetrics> metrics_;
  std::unique_ptr<TensorWatch> tensors_;
  std::unique_ptr<RunStatistics> statistics_;
  std::unique_ptr<RankTrace> trace_;
  // Disable the helpers that this run enabled, in that order.
  std::vector<void (*)()> disable_;
};

}  // namespace ott

#endif  // OTT_RUN_TRAINING_TRAINING_RUN_H_
