// Keeps what the stopwatch measures in a run: files of the rank, and the table of all ranks.

#ifndef OTT_RUN_TRAINING_RUN_STATISTICS_H_
#define OTT_RUN_TRAINING_RUN_STATISTICS_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/dist/comm/clock_align.h"
#include "ott/dist/comm/deadline.h"
#include "ott/dist/comm/worker_thread.h"
#include "ott/dist/stats/arrival_summary.h"
#include "ott/questions/saved/iteration_sampler.h"
#include "ott/run/gather/stats_gatherer.h"
#include "ott/run/training/rank_recorder.h"
#include "ott/run/training/run_frame.h"

namespace ott {

// Gathers in steps: what takes long is done on a thread, and goes on as iterations end. Not thread-safe.
class RunStatistics {
 public:
  // Enables the stopwatch; the caller disables it.
  static absl::StatusOr<std::unique_ptr<RunStatistics>> Enable(const RunFrame& frame);
  RunStatistics(const RunStatistics&) = delete;
  RunStatistics& operator=(const RunStatistics&) = delete;
  // Waits for the thread and for files that are being written.
  ~RunStatistics();

  // Makes it possible to gather. Both outlive this; recorder is null if nothing is recorded. Collective.
  absl::Status Connect(ClockAligner& clock, const RankRecorder* recorder);

  // Before the iteration ends, as what is being prepared must not include it.
  absl::Status GoOn();
  // After the stopwatch was told that it ended.
  absl::Status FinishIter(int64_t iteration);
  // Writes the rank's files and gathers.
  absl::Status Finish();

  // Writes the rank's files on another thread, unless that was done a moment ago.
  void WriteSoon();

 private:
  enum class Step { kNone, kPrepare, kExchange, kMerge };

  explicit RunStatistics(const RunFrame& frame);

  // Returns the CPU time of the library's threads in the measured iterations.
  double ObserverSeconds() const;
  void Write() const;
  // Returns them on rank 0's clock, since the last gather.
  RankArrivals TakeArrivals();
  void StartGather();
  // Does not wait unless told to.
  absl::Status AdvanceGather(bool to_the_end);
  absl::Status MergeAndPrint();

  const RunFrame& frame_;
  ClockAligner* clock_ = nullptr;
  const RankRecorder* recorder_ = nullptr;
  std::unique_ptr<StatsGatherer> gatherer_;
  std::unique_ptr<saved::IterationSampler> iterations_;
  // The seconds that the library's threads had taken as the warm-up ended.
  std::atomic<double> observer_seconds_before_;
  bool report_is_due_ = false;
  int64_t next_written_iters_;
  Step step_ = Step::kNone;
  std::future<absl::Status> work_;
  Deadline deadline_ = Deadline::Now();
  std::future<void> written_;
  std::chrono::steady_clock::time_point next_write_;
  // Prepares and merges. Last, so that it ends before what its tasks use.
  std::unique_ptr<WorkerThread> thread_;
};

}  // namespace ott

#endif  // OTT_RUN_TRAINING_RUN_STATISTICS_H_
