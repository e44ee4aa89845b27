// When a rank came to one collective measurement, until somebody takes it.

#ifndef OTT_CORE_STOPWATCH_ARRIVAL_QUEUE_H_
#define OTT_CORE_STOPWATCH_ARRIVAL_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "ott/core/stopwatch/stopwatch_snapshot.h"

namespace ott::internal {

// Thread-safe.
class ArrivalQueue {
 public:
  // Returns the number of this arrival, for SetInside(). limit: how many are kept, at least 1; where there
  // are more, those of the oldest iteration are dropped.
  uint64_t Add(const StopwatchArrivals::Arrival& arrival, size_t limit);

  // Has no effect on an arrival that was taken or dropped.
  void SetInside(uint64_t number, int64_t nanoseconds);

  // Returns all that are kept, oldest first, and forgets them.
  std::vector<StopwatchArrivals::Arrival> Take();

 private:
  std::mutex mutex_;
  // Made by the first Add(): an empty deque takes memory, and few measurements are collective.
  std::optional<std::deque<StopwatchArrivals::Arrival>> arrivals_;
  // Counts all that were added, of which arrivals_ are the last.
  uint64_t num_added_ = 0;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_ARRIVAL_QUEUE_H_
