// write_traces_for_test RUN: a run of two ranks with everything that a trace may hold.

#include <limits>
#include <string>

#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/core/trace/profiler.h"
#include "ott/core/trace/write_trace.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/run/training/rank_trace.h"

namespace ott::trace {
namespace {

void Record(EventRecorder& recorder) {
  recorder.BeginRange(EventCategory::kOp, "linear, seq = 12", recorder.Now(), R"({"op":"linear"})",
                      {EventFlow::End::kStart, 12});
  recorder.BeginRange(EventCategory::kUser, std::string(10'000, '"') + "\xFF\x01\n\\", recorder.Now());
  recorder.Mark(EventCategory::kUser, "mark");
  recorder.Counter("loss", 0.5);
  recorder.Counter("loss", std::numeric_limits<double>::quiet_NaN());
  recorder.EndRange(EventCategory::kUser, recorder.Now());
  recorder.EndRange(EventCategory::kOp, recorder.Now());
  recorder.BeginRange(EventCategory::kMeasurement, "a", recorder.Now(), 1);
  recorder.BeginRange(EventCategory::kMeasurement, "b, which overlaps a", recorder.Now(), 2);
  recorder.EndRange(EventCategory::kMeasurement, recorder.Now(), 1);
  recorder.EndRange(EventCategory::kMeasurement, recorder.Now(), 2);
  recorder.BeginRange(EventCategory::kOp, "LinearBackward0, seq = 12", recorder.Now(), {},
                      {EventFlow::End::kFinish, 12});
  EventRecorder::Slice kernel;
  kernel.track = recorder.AddTrack("GPU 0, stream 7");
  kernel.name = "gemm";
  kernel.start_unix_nanoseconds = recorder.opened().unix_nanoseconds + 1000;
  kernel.end_unix_nanoseconds = kernel.start_unix_nanoseconds + 5000;
  recorder.AddSlice(kernel);
}

int Main(const std::string& run_dir) {
  for (int rank = 0; rank < 2; ++rank) {
    Profiler profiler(Profiler::Environment{Clock::Fastest()});
    Profiler::Options options;
    options.on_window = [&](const Profiler::Window& window) -> absl::Status {
      TraceInfo info;
      info.set_rank(rank);
      info.set_host("host \"quoted\"");
      return WriteTrace(window, RankDirectory(run_dir, rank) + "/" + TraceFileName(window.number, rank == 1),
                        info);
    };
    OTT_CHECK(MakeDirectories(RankDirectory(run_dir, rank)).ok());
    OTT_CHECK(profiler.Enable(options).ok());
    Record(*profiler.IfRecording());
    const absl::Status written = profiler.Step();
    OTT_CHECK(written.ok()) << written.message();
  }
  return 0;
}

}  // namespace
}  // namespace ott::trace

int main(int, char** argv) { return ott::trace::Main(argv[1]); }
