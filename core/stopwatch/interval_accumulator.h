// Sums of durations that one thread adds to while others read.

#ifndef OTT_CORE_STOPWATCH_INTERVAL_ACCUMULATOR_H_
#define OTT_CORE_STOPWATCH_INTERVAL_ACCUMULATOR_H_

#include <atomic>
#include <cstdint>
#include <limits>
#include <utility>

#include "ott/core/stopwatch/quantile_recorder.h"
#include "ott/core/stopwatch/statistics.h"

namespace ott::internal {

// A 128-bit sum with one writer; its reader must detect torn reads.
class SingleWriterSum {
 public:
  void Add(Uint128 value) {
    const uint64_t before = low_.load(std::memory_order_relaxed);
    const uint64_t after = before + static_cast<uint64_t>(value);
    const uint64_t carry = static_cast<uint64_t>(value >> 64) + (after < before ? 1 : 0);
    low_.store(after, std::memory_order_release);
    if (carry != 0) high_.store(high_.load(std::memory_order_relaxed) + carry, std::memory_order_release);
  }

  Uint128 Load() const {
    return Uint128{high_.load(std::memory_order_acquire)} << 64 | low_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<uint64_t> low_{0};
  std::atomic<uint64_t> high_{0};
};

// Add() may be called by one thread at a time, and is wait-free except where QuantileRecorder allocates. Any
// thread may read at any time. A reader sees the sums of each Add() as a whole; its quantiles may already
// include durations that are added while it reads.
//
// A sequence lock (Boehm, "Can seqlocks get along with programming language memory models?", 2012), with
// release stores and acquire loads in the place of fences: the same instructions on x86-64, and understood by
// the thread sanitizer.
class IntervalAccumulator {
 public:
  struct Totals {
    uint64_t count = 0;
    Uint128 total = 0;
    // The part of total that was spent in intervals nested inside of these.
    Uint128 inner = 0;
  };

  // Adds picoseconds.
  void Add(uint64_t duration, uint64_t inner) {
    quantiles_.Add(duration);
    const uint64_t sequence = sequence_.load(std::memory_order_relaxed);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
    count_.store(count_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    total_.Add(duration);
    squares_.Add(Uint128{duration} * duration);
    if (inner != 0) inner_.Add(inner);
    if (duration < min_.load(std::memory_order_relaxed)) min_.store(duration, std::memory_order_release);
    if (duration > max_.load(std::memory_order_relaxed)) max_.store(duration, std::memory_order_release);
    sequence_.store(sequence + 2, std::memory_order_release);
  }

  Totals ReadTotals() const { return ReadSums().totals; }

  DurationStatistics Read() const {
    const Sums sums = ReadSums();
    // Second, so that it holds at least the durations that are in the sums.
    QuantileSketch sketch;
    quantiles_.AddTo(sketch);
    return DurationStatistics::FromSums(sums.totals.count, sums.totals.total, sums.squares,
                                        sums.totals.count == 0 ? 0 : sums.min, sums.max, std::move(sketch));
  }

 private:
  struct Sums {
    Totals totals;
    Uint128 squares;
    uint64_t min;
    uint64_t max;
  };

  Sums ReadSums() const {
    while (true) {
      const uint64_t before = sequence_.load(std::memory_order_acquire);
      const Sums sums = {{count_.load(std::memory_order_acquire), total_.Load(), inner_.Load()},
                         squares_.Load(),
                         min_.load(std::memory_order_acquire),
                         max_.load(std::memory_order_acquire)};
      if (before % 2 == 0 && before == sequence_.load(std::memory_order_relaxed)) return sums;
    }
  }

  std::atomic<uint64_t> sequence_{0};
  std::atomic<uint64_t> count_{0};
  std::atomic<uint64_t> min_{std::numeric_limits<uint64_t>::max()};
  std::atomic<uint64_t> max_{0};
  SingleWriterSum total_;
  SingleWriterSum squares_;
  SingleWriterSum inner_;
  QuantileRecorder quantiles_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_INTERVAL_ACCUMULATOR_H_
