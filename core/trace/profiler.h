// Records some steps of a training: what the helpers measure, on all threads, for a timeline.

#ifndef OTT_CORE_TRACE_PROFILER_H_
#define OTT_CORE_TRACE_PROFILER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "ott/core/base/device_sync.h"
#include "ott/core/base/helper.h"
#include "ott/core/base/place.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/trace/schedule.h"

namespace ott {

namespace internal {
class ProfilerCore;
}

// Opens and closes windows by a schedule of steps. In a window it records the intervals of the stopwatch,
// NVTX ranges and marks, and op ranges, whether or not these helpers are enabled, the steps as ranges
// "ProfilerStep#N", and what is added here; NVTX sees a mark "start" and a mark "stop" in the domain
// "ott.profiler". Outside of windows every helper costs what it costs without a profiler. The instance of a
// process is Profiler::Get(), for all its shared objects.
//
// Thread-safe; Step() is for the thread that runs the training's loop.
//
//   Profiler::Options options;
//   options.schedule = {.wait = 10, .warmup = 1, .active = 3, .repeat = 1};
//   options.on_window = [](const Profiler::Window& window) { return WriteTrace(window, "trace.json.gz"); };
//   OTT_RETURN_IF_ERROR(Profiler::Get().Enable(options));        // once, in main
//   for (...) { TrainOneStep(); OTT_RETURN_IF_ERROR(Profiler::Get().Step()); }
class Profiler {
 public:
  // A window that has closed.
  struct Window {
    // The events it recorded, to be read by RecordedWindow; valid until the function that was handed it
    // returns.
    const EventRecorder& recorder;
    // Counted from 1.
    int64_t number;
    // Counted from 0.
    int64_t first_step;
    int64_t last_step;
    // True if Stop() or the end of the process came before the last step ended.
    bool cut;
  };

  struct Options {
    Schedule::Options schedule;
    // Waits for the CUDA device before each step of a window begins or ends, so that what the host and the
    // device did for a step lies between the same lines.
    bool synchronize_device = false;
    size_t thread_buffer_bytes = EventRecorder::kDefaultThreadBufferBytes;
    // Both are called on the thread that called Step(), Stop(), Enable() or exit(), and must not call these
    // themselves. Their errors are returned by the call that they were called from.
    std::function<absl::Status()> before_window;
    std::function<absl::Status(const Window&)> on_window;
  };

  // The outside world; what tests replace.
  struct Environment {
    Clock clock;
    absl::Status (*synchronize_device)() = &SynchronizeDevice;
  };

  static Profiler& Get();

  // Returns the options that an ott.Config asks for.
  static Options FromConfig(const ProfileConfig& config);

  // Makes a profiler of the caller's own, which records only what is added to it.
  explicit Profiler(const Environment& environment);
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;
  // REQUIRES: no other thread uses it any more.
  ~Profiler();

  // Begins step 0. FAILED_PRECONDITION if it is on already, naming where that was done, or if another version
  // of this library is in use in the process; INVALID_ARGUMENT for an invalid schedule; the error of the
  // device if it is to be synchronised and cannot; that of before_window.
  absl::Status Enable(const Options& options, Place place = Place::Current());
  // Ends the step and begins the next. Nothing while off.
  absl::Status Step();
  // Ends the profiling, and a window that has at least one whole step. It may be enabled again. The end of
  // the process does the same, and keeps what there is of the first step, too.
  absl::Status Stop();

  // Hands the window that closed last to `visit`, for an export after the fact, also after Stop(); its error.
  // FAILED_PRECONDITION if there is none, or where the next one, or its warm-up, has begun and took its
  // memory. REQUIRES: `visit` calls none of Enable(), Step() and Stop()
  absl::Status VisitLastWindow(const std::function<absl::Status(const Window&)>& visit);

  // Marks a moment, such as a checkpoint. args: a JSON object, or nothing.
  void Mark(std::string_view name, std::string_view args = {});
  // Records that from now on a number shows `value`: memory, loss, throughput.
  void Counter(std::string_view name, double value);
  // Returns the recorder of the open window, for tracks besides those of threads; null while no window is
  // open.
  EventRecorder* IfRecording();

 private:
  friend struct ProfilerOfThisProcess;

  constexpr explicit Profiler(const char* process_wide_name);
  explicit Profiler(internal::ProfilerCore* own_core);

  // On while a window is open.
  internal::HelperCore<internal::ProfilerCore> core_;
};

// Implementation of the inline calls.

namespace internal {
[[gnu::cold]] EventRecorder* RecorderOf(ProfilerCore& core);
}

// Never destroyed, so that static destructors can use it.
struct ProfilerOfThisProcess {
  union Immortal {
    constexpr Immortal();
    ~Immortal() {}
    Profiler profiler;
  };
  static Immortal instance;
  static const ProcessWide<internal::ProfilerCore>::JoinAtLoad join_at_load;
};

inline Profiler& Profiler::Get() { return ProfilerOfThisProcess::instance.profiler; }

inline EventRecorder* Profiler::IfRecording() {
  auto* core = core_.IfEnabled();
  return __builtin_expect(core != nullptr, 0) ? internal::RecorderOf(*core) : nullptr;
}

inline void Profiler::Mark(std::string_view name, std::string_view args) {
  if (EventRecorder* recorder = IfRecording(); recorder != nullptr) {
    recorder->Mark(EventCategory::kUser, name, args);
  }
}

inline void Profiler::Counter(std::string_view name, double value) {
  if (EventRecorder* recorder = IfRecording(); recorder != nullptr) recorder->Counter(name, value);
}

}  // namespace ott

#endif  // OTT_CORE_TRACE_PROFILER_H_
