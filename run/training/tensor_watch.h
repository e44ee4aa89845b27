// Watches the tensors of an iteration in a run: it checks them between ranks and dumps them.

#ifndef OTT_RUN_TRAINING_TENSOR_WATCH_H_
#define OTT_RUN_TRAINING_TENSOR_WATCH_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/dump/selection.h"
#include "ott/dist/check/cross_check.h"
#include "ott/dist/check/verdict_log.h"
#include "ott/dist/comm/communicator.h"
#include "ott/run/training/rank_recorder.h"
#include "ott/run/training/run_frame.h"

namespace ott {

// Takes the tensors that are given to TensorDumper::Get() in the selected iterations. Not thread-safe.
class TensorWatch {
 public:
  // Enables the dumper; the caller disables it.
  static absl::StatusOr<std::unique_ptr<TensorWatch>> Enable(const RunFrame& frame);
  TensorWatch(const TensorWatch&) = delete;
  TensorWatch& operator=(const TensorWatch&) = delete;

  // recorder: outlives this; null if nothing is recorded. Called where config.cross_check is set.
  absl::Status StartChecks(RankRecorder* recorder);

  // Lets the dumper take tensors if this iteration is dumped or checked.
  void BeginIteration(int64_t iteration);
  bool is_wanted() const { return is_wanted_; }
  bool is_dumped() const { return is_dumped_; }
  // Checks and dumps as selected; what the checks found is in diverged(). REQUIRES: is_wanted()
  absl::Status FinishIter();

  // Waits for the files of the dumps.
  absl::Status Flush();
  // Prints on rank 0 what all checks found.
  absl::Status Finish();

  // Returns true if a check found a difference, or could not be made, on any rank so far.
  bool diverged() const { return diverged_; }
  void SetOnDivergence(std::function<absl::Status(const CrossCheckVerdict&)> on_divergence) {
    on_divergence_ = std::move(on_divergence);
  }

 private:
  TensorWatch(const RunFrame& frame, Selection dump_selection, std::unique_ptr<VerdictLog> verdicts)
      : frame_(frame), dump_selection_(std::move(dump_selection)), verdicts_(std::move(verdicts)) {}

  // Returns the communicator of the checks.
  Communicator& ranks() const { return recorder_ != nullptr ? recorder_->ranks() : frame_.ranks; }
  absl::Status Check();
  void AddVerdict(const CrossCheckVerdict& verdict);
  // Tells the program and ends the run as configured, on all ranks or on none.
  absl::Status ActOnDivergence();
  absl::Status PrintSummary();

  const RunFrame& frame_;
  const Selection dump_selection_;
  const std::unique_ptr<VerdictLog> verdicts_;
  RankRecorder* recorder_ = nullptr;
  // Null if nothing is checked.
  std::unique_ptr<CrossCheck> cross_check_;
  int64_t iteration_ = 0;
  bool is_wanted_ = false;
  bool is_dumped_ = false;
  bool diverged_ = false;
  std::function<absl::Status(const CrossCheckVerdict&)> on_divergence_;
  // Verdicts that do not pass and were not acted upon yet.
  std::deque<CrossCheckVerdict> failed_;
  std::map<std::pair<CrossCheckMode, Outcome>, int> num_failures_printed_;
};

}  // namespace ott

#endif  // OTT_RUN_TRAINING_TENSOR_WATCH_H_
