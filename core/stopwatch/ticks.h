// Picoseconds between two readings of a clock.

#ifndef OTT_CORE_STOPWATCH_TICKS_H_
#define OTT_CORE_STOPWATCH_TICKS_H_

#include <cstdint>

#include "ott/core/base/clock.h"

namespace ott::internal {

// Returns 0 if `end` is before `start`: counters of two CPUs may differ by a few ticks.
inline uint64_t PicosecondsBetween(const Clock& clock, uint64_t start, uint64_t end) {
  return end > start ? clock.ToPicoseconds(end - start) : 0;
}

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_TICKS_H_
