#include "ott/run/training/rank_trace.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/trace/write_trace.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {
namespace {

// The quickest of them counts.
constexpr int kPings = 50;

}  // namespace

std::string TraceFileName(int64_t window, bool gzip) {
  return absl::StrCat("trace", window == 1 ? "" : absl::StrCat("_", window), gzip ? ".json.gz" : ".json");
}

absl::StatusOr<std::unique_ptr<RankTrace>> RankTrace::Start(Communicator& ranks, ClockAligner& clock,
                                                            const Config& config,
                                                            std::chrono::nanoseconds timeout) {
  std::unique_ptr<RankTrace> trace(new RankTrace(ranks, clock, config, timeout));
  Profiler::Options options = Profiler::FromConfig(config.profile());
  options.before_window = [trace = trace.get()] { return trace->CompareClocks(); };
  options.on_window = [trace = trace.get()](const Profiler::Window& window) { return trace->Write(window); };
  OTT_RETURN_IF_ERROR(Profiler::Get().Enable(options));
  trace->is_enabled_ = true;
  return trace;
}

RankTrace::RankTrace(Communicator& ranks, ClockAligner& clock, const Config& config,
                     std::chrono::nanoseconds timeout)
    : ranks_(ranks),
      clock_(clock),
      dir_(RankDirectory(config.run_dir(), ranks.rank())),
      gzip_(config.profile().gzip()),
      timeout_(timeout) {}

RankTrace::~RankTrace() {
  if (!is_enabled_) return;
  if (const absl::Status stopped = Profiler::Get().Stop(); !stopped.ok()) {
    std::fprintf(stderr, "ott: trace: %s\n", std::string(stopped.message()).c_str());
  }
}

// A trace on clocks of their own is better than none, and no reason to end a training.
absl::Status RankTrace::CompareClocks() {
  const Deadline deadline = Deadline::After(timeout_);
  absl::Status measured = clock_.Measure(kPings, deadline);
  // Rank 0 compares itself with one rank after the other; the window is to begin on all at once.
  measured.Update(ranks_.Barrier(deadline));
  if (!measured.ok()) {
    std::fprintf(stderr, "ott: trace: clocks were not compared: %s\n",
                 std::string(measured.message()).c_str());
  }
  return absl::OkStatus();
}

absl::Status RankTrace::Write(const Profiler::Window& window) {
  // If the window was cut, the other ranks may be elsewhere.
  if (!window.cut) OTT_RETURN_IF_ERROR(CompareClocks());
  TraceInfo info;
  info.set_rank(ranks_.rank());
  info.set_world_size(ranks_.size());
  info.set_host(ranks_.host(ranks_.rank()));
  const absl::StatusOr<AlignedTime> begin = clock_.ToRankZero(window.recorder.opened().steady_nanoseconds);
  const absl::StatusOr<AlignedTime> end = clock_.ToRankZero(window.recorder.closed().steady_nanoseconds);
  if (begin.ok() && end.ok()) {
    info.mutable_clock()->set_begin_nanoseconds(begin->nanoseconds);
    info.mutable_clock()->set_end_nanoseconds(end->nanoseconds);
    info.mutable_clock()->set_error_bound_nanoseconds(
        std::max(begin->error_bound_nanoseconds, end->error_bound_nanoseconds));
  }
  return WriteTrace(window, absl::StrCat(dir_, "/", TraceFileName(window.number, gzip_)), std::move(info));
}

}  // namespace ott
