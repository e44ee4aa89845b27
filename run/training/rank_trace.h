// The traces of a rank: which iterations, and how its clock compares with rank 0's.

#ifndef OTT_RUN_TRAINING_RANK_TRACE_H_
#define OTT_RUN_TRAINING_RANK_TRACE_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/core/trace/profiler.h"
#include "ott/dist/comm/clock_align.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

// Returns the name of a window's trace in a rank's directory, counted from 1: trace.json, trace_2.json and so
// on.
std::string TraceFileName(int64_t window, bool gzip);

// Enables the profiler of the process, and writes a file for each of its windows. Before and after a window
// the clocks of all ranks are compared. A window that is cut by the end of the process is written by each
// rank for itself, with the comparison before it.
//
// Every method is collective over the ranks of the communicator. Not thread-safe.
class RankTrace {
 public:
  // The communicator and the aligner must outlive the result.
  static absl::StatusOr<std::unique_ptr<RankTrace>> Start(Communicator& ranks, ClockAligner& clock,
                                                          const Config& config,
                                                          std::chrono::nanoseconds timeout);
  RankTrace(const RankTrace&) = delete;
  RankTrace& operator=(const RankTrace&) = delete;
  // Ends the profiling, also where Finish() was not called.
  ~RankTrace();

  // Ends an iteration. The error of a file that could not be written.
  absl::Status FinishIter() { return Profiler::Get().Step(); }
  absl::Status Finish() { return Profiler::Get().Stop(); }

 private:
  RankTrace(Communicator& ranks, ClockAligner& clock, const Config& config, std::chrono::nanoseconds timeout);

  absl::Status CompareClocks();
  absl::Status Write(const Profiler::Window& window);

  Communicator& ranks_;
  ClockAligner& clock_;
  const std::string dir_;
  const bool gzip_;
  const std::chrono::nanoseconds timeout_;
  // False if the profiler is somebody else's.
  bool is_enabled_ = false;
};

}  // namespace ott

#endif  // OTT_RUN_TRAINING_RANK_TRACE_H_
