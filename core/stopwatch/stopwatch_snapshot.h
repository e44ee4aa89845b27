// Holds what a stopwatch has measured so far, as plain values.

#ifndef OTT_CORE_STOPWATCH_STOPWATCH_SNAPSHOT_H_
#define OTT_CORE_STOPWATCH_STOPWATCH_SNAPSHOT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ott/core/base/misuse.h"
#include "ott/core/stopwatch/cpu_usage.h"
#include "ott/core/stopwatch/iteration_series.h"
#include "ott/core/stopwatch/own_time.h"
#include "ott/core/stopwatch/statistics.h"

namespace ott {

class StopwatchStats;  // stopwatch_stats.proto

// One stopwatch at one moment; ott.StopwatchStats without the identity of the rank.
struct StopwatchSnapshot {
  struct Measurement {
    std::string name;
    bool collective = false;
    bool sampled = false;
    // One sample for each start/end.
    DurationStatistics per_interval;
    // One sample for each measured iteration in which it ran: the sum of its intervals there.
    DurationStatistics per_iteration;
    // Between CUDA events at start and end, of the intervals whose end the device has reached.
    DurationStatistics device_per_interval;
    // The time in each measured iteration, 0 if it did not run.
    IterationSeries series;
    // Own time of the iterations in which it ran; not of collective measurements.
    OwnTime own;
  };

  // Scopes inside of more than these count as part of the one around them: protobuf reads no deeper messages,
  // and a recursive function may have any depth.
  static constexpr int kMaxScopeDepth = 50;

  // A measurement inside of others. Start() and End() are outermost, and so is the first scope of each
  // thread.
  struct Scope {
    std::string name;
    int64_t count = 0;
    // Seconds, with and without what ran inside.
    double inclusive = 0;
    double exclusive = 0;
    std::vector<Scope> inner;
  };

  struct OneTime {
    std::string name;
    // So far, if it is running.
    double seconds = 0;
    bool running = false;
  };

  // The part of the iterations that is this process's own work.
  struct OwnWork {
    // Seconds in which a collective measurement ran, on any thread, over all iterations.
    double waiting_seconds = 0;
    // Iterations for which it is known what the thread that ends them did (Options::watch_cpu). Then, over
    // these and outside of collective measurements: seconds in which that thread, or one that may have done
    // its work, had a CPU, and seconds in which it waited for one.
    int64_t num_watched_iters = 0;
    double cpu_seconds = 0;
    double taken_seconds = 0;
    OwnTime time;
  };

  int64_t num_warmup_iters = 0;
  int64_t num_warmup_iters_done = 0;
  int64_t num_measured_iters = 0;
  // Time from one FinishIter() to the next; the first begins with the first measurement.
  DurationStatistics iteration;
  IterationSeries iteration_series;
  OwnWork own_work;
  // In the order in which they were first started.
  std::vector<Measurement> measurements;
  std::vector<Scope> scopes;
  std::vector<OneTime> one_time;
  // Empty: not measured.
  std::string cpu_usage_measurement;
  CpuUsage cpu_usage;
  // Host time that one interval takes from the program, calibrated in a tight loop, in seconds.
  double observer_seconds_per_interval = 0;
  // Intervals whose CUDA events have not happened yet.
  int64_t num_pending_device_intervals = 0;
  // Calls that were refused, by kind: what they were to measure is missing above.
  std::vector<MisuseCount> misuses;
};

// When one collective measurement began, on this process's clock.
struct StopwatchArrivals {
  struct Arrival {
    // Counted from 0, warm-up included.
    int64_t iteration = 0;
    // Nanoseconds of std::chrono::steady_clock.
    int64_t nanoseconds = 0;
    // The nanoseconds for which the thread waited for a CPU since it came to the collective measurement
    // before this one (Options::watch_cpu), less taken_in_vain.
    std::optional<int64_t> taken = std::nullopt;
    // Nanoseconds without a CPU inside of the collective measurement before, beyond what may have made the
    // thread leave it late: it waited there anyway.
    int64_t taken_in_vain = 0;
    // The nanoseconds for which the thread then was inside; nullopt while it is.
    std::optional<int64_t> inside = std::nullopt;
    // The nanoseconds for which the thread was inside of Options::observer_measurement since it came to the
    // collective measurement before this one: without a CPU, too, which is not in taken or taken_in_vain
    // then.
    int64_t observed = 0;
  };

  std::string name;
  // Oldest first.
  std::vector<Arrival> arrivals;
};

// Fills all but host, rank and world_size, which are left as they are. What is not UTF-8 in a name is written
// as \xNN, since protobuf would not read it back. (Defined in stopwatch_snapshot_proto.cc, so that a program
// that only measures needs no protobuf.)
void ToProto(const StopwatchSnapshot& snapshot, StopwatchStats* stats);

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_STOPWATCH_SNAPSHOT_H_
