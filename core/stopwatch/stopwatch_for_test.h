// Helpers that the tests of Stopwatch share: a clock that stands still, and a stopwatch of it.

#ifndef OTT_CORE_STOPWATCH_STOPWATCH_FOR_TEST_H_
#define OTT_CORE_STOPWATCH_STOPWATCH_FOR_TEST_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"

namespace ott {

// Moves only when a test says so.
inline std::atomic<uint64_t> now_ns{1};
// Times are in milliseconds.
inline int64_t Now() { return static_cast<int64_t>(now_ns / 1'000'000); }
inline void Pass(uint64_t milliseconds) { now_ns += milliseconds * 1'000'000; }

inline int num_device_calls = 0;
inline absl::Status NoDevice() {
  ++num_device_calls;
  return absl::UnimplementedError("no device in this test");
}

inline Stopwatch::Environment EnvironmentWith(absl::Status (*synchronize_device)()) {
  Stopwatch::Environment environment{Clock([] { return now_ns.load(); })};
  environment.synchronize_device = synchronize_device;
  environment.steady_clock = environment.clock;
  return environment;
}

class StopwatchTest : public ::testing::Test {
 protected:
  explicit StopwatchTest(const Stopwatch::Environment& environment = EnvironmentWith(&NoDevice))
      : stopwatch_(environment) {}

  void Enable(const Stopwatch::Options& options = {}) {
    ASSERT_EQ(stopwatch_.Enable(options), absl::OkStatus());
  }

  void Measure(std::string_view name, uint64_t milliseconds) {
    stopwatch_.Start(name);
    Pass(milliseconds);
    stopwatch_.End(name);
  }

  StopwatchStats Stats() const {
    StopwatchStats stats;
    stopwatch_.Stats(&stats);
    return stats;
  }

  Measurement Stats(const std::string& name) const {
    const StopwatchStats stats = Stats();
    for (const Measurement& measurement : stats.measurements()) {
      if (measurement.name() == name) return measurement;
    }
    return {};
  }

  // Returns the kinds that were counted.
  std::vector<std::string> Misuses() const {
    const StopwatchStats stats = Stats();
    std::vector<std::string> kinds;
    for (const Misuse& misuse : stats.misuses()) kinds.push_back(misuse.kind());
    return kinds;
  }

  // Returns what `work` prints.
  template <typename Work>
  static std::string Printed(const Work& work) {
    ::testing::internal::CaptureStderr();
    work();
    return ::testing::internal::GetCapturedStderr();
  }

  Stopwatch stopwatch_;
};

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_STOPWATCH_FOR_TEST_H_
