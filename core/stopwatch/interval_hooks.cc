#include "core/stopwatch/interval_hooks.h"

#include <utility>

#include "core/stopwatch/ticks.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/nvtx/nvtx.h"

namespace ott::internal {
namespace {

enum Hooks : uint32_t {
  kSynchronize = 1,
  kDeviceEvents = 2,
  kNvtx = 4,
  kCpuUsage = 8,
  kArrival = 16,
  kCollective = 32,
  kWatch = 64,
  // Also inside of others, where watching all would cost too much.
  kWatchInside = 128,
  // It did not start yet.
  kFirstStart = 256,
  // Collective, and the observer's own.
  kObserver = 512,
};

}  // namespace

void MeasurementHooks::Clear() {
  enabled.store(0, std::memory_order_release);
  work.waiting = 0;
  work.taken = 0;
  work.is_inside = false;
  work.own = WorkTimeRecorder();
  on_device.reset();
  arrivals.Take();
}

IntervalHooks::IntervalHooks(const Stopwatch::Environment& environment)
    : environment_(environment), work_(environment), cpu_usage_(environment.read_cpu_times) {}

absl::Status IntervalHooks::Check(const Stopwatch::Options& options) {
  if (options.emit_nvtx) OTT_RETURN_IF_ERROR(NvtxStatus());
  if (!options.cpu_usage_measurement.empty()) OTT_RETURN_IF_ERROR(environment_.read_cpu_times().status());
  switch (options.device_sync) {
    case Stopwatch::DeviceSync::kNone:
      return absl::OkStatus();
    case Stopwatch::DeviceSync::kDevice:
      return environment_.synchronize_device();
    case Stopwatch::DeviceSync::kStream:
      return environment_.synchronize_stream(options.stream);
    case Stopwatch::DeviceSync::kEvents: {
      OTT_ASSIGN_OR_RETURN(std::unique_ptr<DeviceEvents> events,
                           environment_.create_device_events(options.stream));
      device_ = std::make_unique<DeviceIntervals>(std::move(events));
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError("device_sync is none of its values");
}

void IntervalHooks::Enable(const Stopwatch::Options& options, const Clock& clock) {
  device_sync_ = options.device_sync;
  stream_ = options.stream;
  if (device_ != nullptr) {
    hooks_of_all_ |= kDeviceEvents;
  } else if (device_sync_ != Stopwatch::DeviceSync::kNone) {
    hooks_of_all_ |= kSynchronize;
  }
  if (options.emit_nvtx) hooks_of_all_ |= kNvtx;
  arrivals_limit_ = options.arrivals_limit;
  clock_ = &clock;
  work_.Enable(clock, options.watch_cpu);
}

void IntervalHooks::SetUp(MeasurementHooks& measurement, Kind kind, bool is_sampled) const {
  uint32_t hooks = hooks_of_all_ | kFirstStart;
  if (kind != Kind::kOther) hooks |= kCollective;
  if (kind == Kind::kObserver) hooks |= kObserver;
  if (kind == Kind::kCollective && arrivals_limit_ > 0) hooks |= kArrival;
  if (is_sampled) hooks |= kWatch | kWatchInside;
  if (device_ != nullptr) measurement.on_device = std::make_unique<IntervalAccumulator>();
  measurement.enabled.fetch_or(hooks, std::memory_order_release);
}

bool IntervalHooks::HasStarted(const MeasurementHooks& measurement) {
  return (measurement.enabled.load(std::memory_order_relaxed) & kFirstStart) == 0;
}

bool IntervalHooks::IsFirstStart(MeasurementHooks& measurement) {
  if (HasStarted(measurement)) return false;
  return (measurement.enabled.fetch_and(~uint32_t{kFirstStart}, std::memory_order_acq_rel) & kFirstStart) !=
         0;
}

void IntervalHooks::WatchCpuUsage(MeasurementHooks& measurement) {
  measurement.enabled.fetch_or(kCpuUsage, std::memory_order_release);
}

void IntervalHooks::Clear() {
  hooks_of_all_ = 0;
  device_.reset();
  work_.Clear();
  cpu_usage_.Clear();
}

void IntervalHooks::BeforeStart(const HookedInterval& interval, bool counted, int64_t iteration) {
  IntervalHookState& state = interval.state;
  state.hooks = interval.measurement.enabled.load(std::memory_order_acquire);
  if (!counted) state.hooks &= kNvtx | kSynchronize;
  if ((state.hooks & kNvtx) != 0) {
    if (interval.nests) {
      NvtxPush(interval.name.c_str());
    } else {
      state.nvtx_range = NvtxStartRange(interval.name.c_str());
    }
  }
  if ((state.hooks & kCpuUsage) != 0) cpu_usage_.Begin();
  if ((state.hooks & kSynchronize) != 0) Synchronize();
  StopwatchArrivals::Arrival arrival;
  // Before the times without a CPU are read: who has none between the two would be late without a reason.
  if ((state.hooks & kArrival) != 0) {
    arrival.nanoseconds = static_cast<int64_t>(environment_.steady_clock.Ticks());
  }
  if ((state.hooks & kCollective) != 0) work_.BeginCollective(interval.thread, state.work, interval.nests);
  if ((state.hooks & kWatch) != 0) {
    work_.BeginWatching(interval.thread, state.work, interval.measurement.work,
                        interval.is_inside && (state.hooks & kWatchInside) == 0);
  }
  if ((state.hooks & kArrival) != 0) {
    WorkTracker::SetTaken(interval.thread, state.work, &arrival);
    arrival.iteration = iteration;
    state.arrival_number = interval.measurement.arrivals.Add(arrival, arrivals_limit_);
  }
  if ((state.hooks & kDeviceEvents) != 0) state.device_start = device_->Begin();
}

void IntervalHooks::BeforeEnd(const HookedInterval& interval) {
  if ((interval.state.hooks & kSynchronize) != 0) Synchronize();
  if ((interval.state.hooks & kDeviceEvents) == 0) return;
  device_->End(interval.state.device_start, interval.measurement.on_device.get());
}

uint64_t IntervalHooks::AfterEnd(const HookedInterval& interval) {
  IntervalHookState& state = interval.state;
  const uint32_t hooks = std::exchange(state.hooks, 0);
  uint64_t waited = 0;
  if ((hooks & kCollective) != 0) {
    const uint64_t now = clock_->Ticks();
    if ((hooks & kArrival) != 0) {
      const uint64_t inside = PicosecondsBetween(*clock_, state.work.start, now);
      interval.measurement.arrivals.SetInside(state.arrival_number, static_cast<int64_t>(inside / 1000));
    }
    waited = work_.EndCollective(interval.thread, state.work, interval.nests, (hooks & kObserver) != 0, now);
  }
  if ((hooks & kWatch) != 0) work_.EndWatching(interval.thread, state.work, interval.measurement.work);
  if ((hooks & kCpuUsage) != 0) cpu_usage_.End();
  if ((hooks & kNvtx) != 0) {
    if (interval.nests) {
      NvtxPop();
    } else {
      NvtxEndRange(state.nvtx_range);
    }
  }
  return waited;
}

void IntervalHooks::SynchronizeIfAsked() const {
  if ((hooks_of_all_ & kSynchronize) != 0) Synchronize();
}

void IntervalHooks::Synchronize() const {
  // An error that comes up later than Enable() is of the program's own work; its next CUDA call reports it.
  if (device_sync_ == Stopwatch::DeviceSync::kStream) {
    environment_.synchronize_stream(stream_).IgnoreError();
  } else {
    environment_.synchronize_device().IgnoreError();
  }
}

void IntervalHooks::FinishMeasurement(MeasurementHooks& measurement, uint64_t count,
                                      uint64_t duration) const {
  const bool is_watched = (measurement.enabled.load(std::memory_order_relaxed) & kWatch) != 0;
  if (work_.FinishMeasurement(measurement.work, count, duration, is_watched) == is_watched) return;
  if (is_watched) {
    measurement.enabled.fetch_and(~uint32_t{kWatch}, std::memory_order_release);
  } else {
    measurement.enabled.fetch_or(kWatch, std::memory_order_release);
  }
}

}  // namespace ott::internal
