// Turns what a capture (questions/kernels/profile_reader.h), or a trace of torch.profiler, tells into events
// of a trace.

#ifndef OTT_TOOLS_TRACE_CAPTURE_EVENTS_H_
#define OTT_TOOLS_TRACE_CAPTURE_EVENTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/kernel_profile/profile.h"
#include "ott/core/trace/trace_info.pb.h"
#include "ott/core/trace/trace_reader.h"

namespace ott::trace {

struct CaptureOptions {
  // FILE or RANK=FILE.
  std::vector<std::string> files;
  // Time 0 of the captures since 1970, instead of what they say.
  std::optional<int64_t> begin_unix_nanoseconds;
};

class CaptureEvents {
 public:
  static bool IsCapture(const std::string& path);

  // number: tells this capture's arrows from those of others. INVALID_ARGUMENT if the file does not say when
  // it began and the options neither; errors of ReadProfile().
  static absl::StatusOr<std::unique_ptr<CaptureEvents>> Read(const std::string& file,
                                                             const CaptureOptions& options, int number);

  const std::string& path() const { return profile_.path; }
  const kernels::Profile& profile() const { return profile_; }
  // The rank that was given, or that the file or its name tells; -1: none.
  int rank() const { return given_rank_; }
  void SetRank(int rank) { given_rank_ = rank; }
  // Returns true if both were taken on one machine: their machines booted within a millisecond.
  bool IsOfMachineOf(const CaptureEvents& other) const;

  // Returns a trace for each process, for a capture that belongs to no run, with its clock if the capture
  // tells the machine's. Those whose rank is not known get one in the order of their ids.
  std::vector<TraceInfo> MakeTraces();
  // Finds the ranks of processes: as given, as the file's name says, or by a trace's process id.
  // INVALID_ARGUMENT if no process has one.
  absl::Status FindRanks(const std::vector<TraceInfo>& traces);
  // REQUIRES: one of the above was called.
  bool HasRank(int rank) const;
  // Empty, or why none of the traces gets device activity from here.
  std::string Explain(const std::vector<TraceInfo>& traces) const;

  // Adds the device activities of the trace's rank that begin while the trace lasts, on a track for each
  // device and stream. Their launches are on a track for each thread, with arrows to them. with_ranges: the
  // threads' NVTX ranges, too. Texts live as long as this and the trace.
  void AddTo(bool with_ranges, Trace& trace) const;

 private:
  struct Activity;

  CaptureEvents(kernels::Profile profile, int given_rank, int64_t begin_unix, int number);
  std::vector<Activity> ActivitiesWithin(const TraceInfo& info) const;
  void AddRanges(Trace& trace) const;

  const kernels::Profile profile_;
  int given_rank_;
  const int64_t begin_unix_;
  const int number_;
  // The rank of each process; -1: none.
  std::vector<int> ranks_;
};

}  // namespace ott::trace

#endif  // OTT_TOOLS_TRACE_CAPTURE_EVENTS_H_
