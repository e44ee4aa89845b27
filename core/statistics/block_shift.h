// By how much samples of b lie above those of a, where both were taken in turn: exact, whatever the noise
// looks like.
//
//   BlockShift shift({{{a1, a2}, {b1, b2}}, ...});   // run as a1 b1 b2 a2 or b1 a1 a2 b2, by chance
//   const Interval interval = shift.IntervalAt(0.01);

#ifndef OTT_CORE_STATISTICS_BLOCK_SHIFT_H_
#define OTT_CORE_STATISTICS_BLOCK_SHIFT_H_

#include <cstddef>
#include <vector>

#include "ott/core/statistics/interval.h"

namespace ott {

// Samples that were taken close to each other in time.
struct Block {
  std::vector<double> a;
  std::vector<double> b;
};

// The shift of Hodges and Lehmann (1963) from the differences b - a inside of blocks, with the exact interval
// of Wilcoxon's test in blocks (van Elteren 1960). The true shift is outside of it at most with the error
// that was asked for, if without the shift the samples of a block might as well have come in any other order.
// So neither what changes from block to block, as load and clock rates do, nor outliers, nor noise of several
// modes makes the interval wrong; and an outlier in one block moves it little. Where b varies much more than
// a, it misses up to twice as often.
class BlockShift {
 public:
  // REQUIRES: at least one block; each has samples of both.
  explicit BlockShift(const std::vector<Block>& blocks);

  // Returns the median of the differences.
  double value() const;

  // Misses the truth with probability `error` at most. From -infinity to infinity where there are so few
  // blocks that no interval does. REQUIRES: 0 < error < 1.
  Interval IntervalAt(double error) const;

 private:
  std::vector<double> differences_;  // ascending
  // The probability that so many differences are below the true shift; symmetric.
  std::vector<double> probabilities_;
};

// Returns the smallest error at which the interval of so many blocks, of `size` samples of a and of b, has an
// end.
double SmallestErrorOfBlocks(size_t num_blocks, size_t size);

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_BLOCK_SHIFT_H_
