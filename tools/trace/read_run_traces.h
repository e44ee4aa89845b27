// The traces of a run's ranks, on one clock.

#ifndef OTT_TOOLS_TRACE_READ_RUN_TRACES_H_
#define OTT_TOOLS_TRACE_READ_RUN_TRACES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/trace/trace_info.pb.h"
#include "ott/core/trace/trace_reader.h"
#include "ott/questions/waiting/collectives.h"
#include "tools/trace/capture_events.h"

namespace ott::trace {

struct TraceSelection {
  // Seconds from the beginning of the earliest trace. Events that reach into [begin, end) are taken.
  double begin = 0;
  double end = 1e9;
  // Empty: all.
  std::set<int> ranks;
};

// A run directory's traces, or a single one, with the device activity of captures; or captures alone, of
// which several that have collectives in common are put on one clock by them. So are the traces that the
// run's program wrote by torch.profiler, where the run has none of its own.
class RunTraces {
 public:
  // path: a run directory, a trace's file or a capture. NOT_FOUND if there is no trace of the ranks; errors
  // of CaptureEvents.
  static absl::StatusOr<RunTraces> Find(const std::string& path, const TraceSelection& selection,
                                        const CaptureOptions& captures = {}) {
    return Find(std::vector<std::string>{path}, selection, captures);
  }
  // paths: one as above, or several captures, of a rank each. INVALID_ARGUMENT for several of anything else.
  static absl::StatusOr<RunTraces> Find(const std::vector<std::string>& paths,
                                        const TraceSelection& selection, const CaptureOptions& captures);

  // Calls `visitor` for each trace in the order of ranks and windows; one at a time is in memory. Its events
  // are those selected, on rank 0's clock from the beginning of the earliest trace, and their process is the
  // rank. They are in the order of tracks, then of their starts; those that start together, the longest
  // first.
  void Visit(const std::function<void(const Trace&)>& visitor);

  // Returns what the traces say about themselves, and in its notes, which ranks and ends of files are
  // missing. The latter only after Visit().
  const JoinedTraceInfo& info() const { return info_; }

  // Empty, or which captures are of two runs, so that nothing can be told of who waited for whom.
  const std::string& two_runs() const { return two_runs_; }

  // Returns what captures alone tell, in the order of ranks; empty for others.
  std::vector<waiting::RankProfile> RankTraces() const;

 private:
  void AddDirectory(const std::string& run_dir, const CaptureOptions& captures);
  void AddTorchTrace(const std::string& file, int rank, const CaptureOptions& options);
  void AddFile(const std::string& path, int rank);
  absl::Status AddCapture(const std::string& file, const CaptureOptions& options);
  absl::Status AddCaptures(const std::vector<std::string>& files, const CaptureOptions& options);
  void Add(std::unique_ptr<CaptureEvents> capture);
  void DropClocksOfSeveralMachines();
  void AlignByCollectives();
  void LookForTwoRuns(const std::vector<waiting::TraceSummary>& traces,
                      const std::vector<waiting::Collective>& collectives);
  void AddNote(const std::string& note);
  void FindBeginning();
  // On the common clock: a moment of a trace, from its own beginning.
  int64_t ToCommon(const TraceInfo& info, int64_t time) const;
  void Prepare(const TraceInfo& info, Trace& trace) const;

  TraceSelection selection_;
  // By the index of the trace in info_.
  std::vector<std::string> paths_;
  std::vector<std::unique_ptr<CaptureEvents>> captures_;
  bool captures_alone_ = false;
  std::string two_runs_;
  // The offset of a time of day where clocks were not compared.
  int64_t unix_to_common_ = 0;
  int64_t begin_ = 0;
  JoinedTraceInfo info_;
};

}  // namespace ott::trace

#endif  // OTT_TOOLS_TRACE_READ_RUN_TRACES_H_
