// Figures as the stopwatch tells them, of times that hardly vary.

#ifndef OTT_CORE_STOPWATCH_STATS_FOR_TEST_H_
#define OTT_CORE_STOPWATCH_STATS_FOR_TEST_H_

#include <cstdint>

#include "ott/core/stopwatch/stopwatch_stats.pb.h"

namespace ott {

// Intervals that all take so long; the fields that hold their sums exactly are not set.
inline Statistics AlikeForTest(int64_t count, double seconds) {
  Statistics statistics;
  statistics.set_count(count);
  statistics.set_total(static_cast<double>(count) * seconds);
  statistics.set_mean(seconds);
  statistics.set_min(seconds);
  statistics.set_max(seconds);
  return statistics;
}

inline SteadyTimeStats SteadyForTest(double seconds, double standard_error) {
  SteadyTimeStats time;
  time.set_seconds(seconds);
  time.set_standard_error(standard_error);
  time.set_degrees_of_freedom(5);
  return time;
}

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_STATS_FOR_TEST_H_
