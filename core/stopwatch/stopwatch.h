// Measures where the time of a program goes: named measurements over the iterations of a loop.

#ifndef OTT_CORE_STOPWATCH_STOPWATCH_H_
#define OTT_CORE_STOPWATCH_STOPWATCH_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/clock.h"
#include "ott/core/base/device_sync.h"
#include "ott/core/base/helper.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/place.h"
#include "ott/core/stopwatch/cpu_usage.h"
#include "ott/core/stopwatch/device_events.h"
#include "ott/core/stopwatch/stopwatch_scope.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"
#include "ott/core/stopwatch/thread_times.h"

namespace ott {

class EventRecorder;   // core/events/event_recorder.h
class FlightRecorder;  // core/flight/flight_recorder.h
struct FlightOperation;
class StopwatchConfig;  // config.proto
class StopwatchStats;   // stopwatch_stats.proto

// Measures named parts of a program on the host's clock. Off until Enable(), and free of cost until then:
// every call is one load and a branch. The instance of a process is Stopwatch::Get(), for all its shared
// objects.
//
// Thread-safe. A measurement by Start() and End() runs at most once at a time in the whole process and may
// end on another thread than it was started on. Scopes nest, end on the thread where they began, and scopes
// of one name may overlap on many threads.
//
// Iterations end with FinishIter(). The first num_warmup_iters of them are not counted, and neither is any
// interval that began in them. What was called before Enable() is ignored.
//
//   Stopwatch& stopwatch = Stopwatch::Get();
//   OTT_RETURN_IF_ERROR(stopwatch.Enable({.num_warmup_iters = 5}));        // once, in main
//   { OTT_STOPWATCH_SCOPE("forward"); Forward(batch); }                    // anywhere
//   stopwatch.Start("backward"); Backward(); stopwatch.End("backward");
//   stopwatch.FinishIter();
class Stopwatch {
 public:
  enum class DeviceSync {
    kNone,
    // The host's clock is read after all work given to the current CUDA device is done, at start and at end.
    kDevice,
    // The same for the work given to Options::stream.
    kStream,
    // Lets nothing wait. CUDA events on Options::stream at start and end measure the device's time besides
    // the host's; FinishIter() and Snapshot() read those that have happened.
    kEvents,
  };

  static constexpr size_t kMaxSeriesLimit = size_t{1} << 24;

  struct Options {
    int64_t num_warmup_iters = 0;
    // Also measures how long the thread was ready to run while others had its CPU. Costs a quarter of a
    // microsecond at each end of collective measurements, and of outermost ones that are not short.
    bool watch_cpu = false;
    // Calls `print` after every so many measured iterations; 0: never.
    int64_t print_every_n_iters = 0;
    DeviceSync device_sync = DeviceSync::kNone;
    // A cudaStream_t; null is the default stream.
    void* stream = nullptr;
    // Globs of measurements in which a rank waits for others; marked so in the statistics.
    std::vector<std::string> collective_measurements;
    // The one of them in which the program waits for its observer, which makes no rank late: it has no
    // arrivals, and Arrival::observed says how long it was before others. Empty: none.
    std::string observer_measurement;
    // Globs of measurements that run in every iteration and are measured in some, such as the modules of a
    // model; marked so in the statistics, where their mean is of the iterations in which they were measured.
    std::vector<std::string> sampled_measurements;
    // The number of arrivals at each collective measurement that are kept until TakeArrivals(); if there are
    // more, those of the oldest iteration are dropped. 0: none. Each arrival reads the clock once more.
    size_t arrivals_limit = 0;
    // See SetCpuUsageMeasurement(); empty: none.
    std::string cpu_usage_measurement;
    // Also makes an NVTX range of each interval, whether NvtxRangeWrapper is on or not.
    bool emit_nvtx = false;
    // The number of times of single iterations that are kept of each measurement before they are thinned out;
    // 0: none, else from 2 to kMaxSeriesLimit.
    size_t series_limit = 1000;
    // Refused calls are counted in StopwatchStats.misuses.
    OnMisuse on_misuse = OnMisuse::kLogAndCount;
    // Called on the thread that calls FinishIter(). Empty: prints the table (text_sink.h).
    std::function<void(const Stopwatch&)> print;
    // Called when the process ends by exit() or by returning from main(), for Stopwatch::Get() only, and not
    // in forked children. Must not use what is destroyed by then. Empty: nothing is called. See
    // WritingStopwatchFiles() in stopwatch_files.h.
    std::function<void(const Stopwatch&)> at_exit;
  };

  // The outside world; what tests replace.
  struct Environment {
    Clock clock;
    absl::Status (*synchronize_device)() = &SynchronizeDevice;
    absl::Status (*synchronize_stream)(void* stream) = &SynchronizeStream;
    absl::StatusOr<std::unique_ptr<DeviceEvents>> (*create_device_events)(void* stream) = &CreateDeviceEvents;
    absl::StatusOr<CpuTimes> (*read_cpu_times)() = &ReadCpuTimes;
    std::optional<ThreadTimes> (*read_thread_times)() = &ReadThreadTimes;
    uint64_t (*read_process_cpu_time)() = &ReadProcessCpuTime;
    // The clock of arrivals, which the ranks of a host share.
    Clock steady_clock = Clock::Steady();
  };

  using Measurement = StopwatchName;
  using Scope = StopwatchScope;

  static Stopwatch& Get();

  // Returns the options that an ott.Config asks for. Unless it says otherwise, the CPU is watched and
  // arrivals are kept. Like Stats() and Json(), for programs that link protobuf: //:stopwatch_files has it.
  static Options FromConfig(const StopwatchConfig& config);

  // Makes a stopwatch of the caller's own.
  explicit Stopwatch(const Environment& environment);
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  // REQUIRES: no other thread uses it any more.
  ~Stopwatch();

  // Switches it on. FAILED_PRECONDITION if it is on already, naming where that was done, if another
  // version of this library is in use in the process, or if a profiler's window is open; INVALID_ARGUMENT for
  // numbers out of range; the error of the device if it cannot be synchronised.
  absl::Status Enable(const Options& options, Place place = Place::Current());
  bool enabled() const;
  // Switches it off and forgets what was measured; it may be enabled again. No effect while it is off.
  // REQUIRES: nothing runs, on any thread, and no profiler's window is open.
  void Disable();

  // Sends intervals also to `recorder` until the next call, even while the stopwatch is off; the profiler
  // calls this. Meanwhile the stopwatch cannot be enabled. Null ends it. The recorder must use the same
  // clock.
  void RecordInto(EventRecorder* recorder);

  // Sends intervals and iterations also to `recorder` from now on, so that it is known where the process
  // stood when it stopped; null ends it. FAILED_PRECONDITION while off. The recorder must use clock().
  absl::Status RecordFlight(FlightRecorder* recorder);
  // Returns the clock that is measured with. REQUIRES: enabled().
  const Clock& clock() const;

  // Says what ranks wait for in a measurement, for the flight recorder: its group, kind and size, or its
  // peer. May be called again where these change. Without it, collective measurements are of all ranks. No
  // effect while off.
  //
  //   stopwatch.SetOperation("allreduce", FlightOperation::Collective("dp3", {3, 7}));
  void SetOperation(std::string_view name, const FlightOperation& operation);

  // REQUIRES: `name` is not running.
  void Start(std::string_view name, Place place = Place::Current());
  void Start(Measurement& measurement, Place place = Place::Current());
  // REQUIRES: `name` is running.
  void End(std::string_view name, Place place = Place::Current());
  void End(Measurement& measurement, Place place = Place::Current());

  // For what happens once in a process, such as loading the data. Counts in warm-up, too.
  // REQUIRES: StartOneTime(name) was not called before.
  void StartOneTime(std::string_view name, Place place = Place::Current());
  // REQUIRES: StartOneTime(name) was called and not yet ended.
  void EndOneTime(std::string_view name, Place place = Place::Current());

  // Watches from now on how busy the CPUs are while `name` runs. Reading that takes microseconds at each
  // start and end. FAILED_PRECONDITION if another name was set before, or while off; the same name may be set
  // again.
  absl::Status SetCpuUsageMeasurement(std::string_view name);

  // Ends an iteration. REQUIRES: nothing runs, one-time measurements excepted.
  void FinishIter(Place place = Place::Current());

  // Returns what was measured so far: intervals count as they end, iterations as FinishIter() is called.
  // Everything is 0 while off. May be called at any time; other threads go on measuring meanwhile.
  StopwatchSnapshot Snapshot() const;

  // Return what Snapshot() has of these: how many iterations were measured, and the mean time of a
  // measurement in an interval, and in an iteration in which it ran; absent if it was not measured.
  int64_t num_measured_iters() const;
  std::optional<double> MeanSecondsPerInterval(std::string_view name) const;
  std::optional<double> MeanSecondsPerIteration(std::string_view name) const;

  // Returns when collective measurements began since the last call; not in warm-up, and not those that
  // SetOperation() said to be no collectives.
  std::vector<StopwatchArrivals> TakeArrivals();

  // Ends the window of iterations that OwnTime::window is of.
  void CloseWindow();

  // Fills in Snapshot() as ott.StopwatchStats; host, rank and world_size are left as they are.
  void Stats(StopwatchStats* stats) const;

  // Returns Snapshot() as report.h prints it.
  std::string Table() const;
  std::string Csv() const;
  // Returns Stats() in protobuf's JSON.
  std::string Json() const;

 private:
  friend class StopwatchScope;
  friend struct StopwatchOfThisProcess;

  constexpr explicit Stopwatch(const char* process_wide_name);
  explicit Stopwatch(internal::StopwatchCore* own_core);

  internal::HelperCore<internal::StopwatchCore> core_;
};

// Implementation of the inline calls.

namespace internal {

// These take scalars, since compilers would build structs before the branch.
[[gnu::cold]] void StartByName(StopwatchCore& core, const char* name, size_t size, const char* file,
                               int line);
[[gnu::cold]] void EndByName(StopwatchCore& core, const char* name, size_t size, const char* file, int line);
void StartOneTime(StopwatchCore& core, std::string_view name, Place place);
void EndOneTime(StopwatchCore& core, std::string_view name, Place place);
void FinishIter(StopwatchCore& core, const Stopwatch& stopwatch, Place place);

}  // namespace internal

// Never destroyed, so that static destructors can use it.
struct StopwatchOfThisProcess {
  union Immortal {
    constexpr Immortal();
    ~Immortal() {}
    Stopwatch stopwatch;
  };
  static Immortal instance;
  static const ProcessWide<internal::StopwatchCore>::JoinAtLoad join_at_load;
};

inline Stopwatch& Stopwatch::Get() { return StopwatchOfThisProcess::instance.stopwatch; }

inline void Stopwatch::Start(std::string_view name, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0))
    internal::StartByName(*core, name.data(), name.size(), place.file, place.line);
}

inline void Stopwatch::Start(Measurement& measurement, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::StartByHandle(*core, measurement, place.file, place.line);
  }
}

inline void Stopwatch::End(std::string_view name, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0))
    internal::EndByName(*core, name.data(), name.size(), place.file, place.line);
}

inline void Stopwatch::End(Measurement& measurement, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::EndByHandle(*core, measurement, place.file, place.line);
  }
}

inline void Stopwatch::StartOneTime(std::string_view name, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0))
    internal::StartOneTime(*core, name, place);
}

inline void Stopwatch::EndOneTime(std::string_view name, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0))
    internal::EndOneTime(*core, name, place);
}

inline void Stopwatch::FinishIter(Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0))
    internal::FinishIter(*core, *this, place);
}

inline StopwatchScope::StopwatchScope(Stopwatch& stopwatch, StopwatchName& name, Place place)
    : frame_(internal::BeginScopeIfOn(stopwatch.core_.IfEnabled(), name, place)) {}

inline StopwatchScope::StopwatchScope(Stopwatch& stopwatch, std::string_view name, Place place)
    : frame_(internal::BeginScopeIfOn(stopwatch.core_.IfEnabled(), name, place)) {}

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_STOPWATCH_H_
