// Describes the times that one process takes again and again for the same work, in a few numbers that a stall
// does not move.

#ifndef OTT_CORE_STATISTICS_STEADY_TIME_H_
#define OTT_CORE_STATISTICS_STEADY_TIME_H_

#include <array>
#include <cstdint>
#include <optional>

namespace ott {

// Seconds an iteration. (seconds - truth) / standard_error is taken to have Student's t distribution.
struct SteadyTime {
  static constexpr int kMaxBlocks = 16;

  double seconds = 0;
  double standard_error = 0;
  double degrees_of_freedom = 1;
  // Iterations that were counted, those that are not in a block yet included.
  int64_t count = 0;
  // Seconds of the blocks in order, each of so many iterations in a row: processes that do the same
  // iterations have the same ones in each. num_blocks is 0 if they are not known.
  int64_t block_iterations = 0;
  int num_blocks = 0;
  std::array<float, kMaxBlocks> blocks{};
};

// Adds up the times of iterations in order. Iterations of one process are not independent: what counts as a
// sample is a block of them. A block's value is the mean of the medians of every kBaseLength iterations in a
// row, so that a stall of one or two iterations moves nothing; blocks grow with the run, from kMaxBlocks / 2
// to kMaxBlocks of them.
//
// A value type of some 100 bytes that never allocates.
class SteadyTimeRecorder {
 public:
  static constexpr int kBaseLength = 5;
  static constexpr int kMaxBlocks = SteadyTime::kMaxBlocks;
  // Fewer say nothing about how much they vary.
  static constexpr int kMinBlocks = 8;

  void Add(double seconds);

  // Counts iterations, in blocks and not yet.
  int64_t count() const { return count_; }
  bool has_enough() const { return num_blocks_ >= kMinBlocks; }

  // Returns the mean of the blocks and its standard error: of the blocks as they are and of every two of them
  // taken together, the larger one. Where blocks still depend on each other, it grows with their length
  // (Flyvbjerg and Petersen 1989). nullopt without enough.
  std::optional<SteadyTime> Finish() const;

 private:
  void AddToBlock(float median);

  std::array<float, kBaseLength> base_{};
  std::array<float, kMaxBlocks> blocks_{};
  uint8_t num_in_base_ = 0;
  uint8_t num_blocks_ = 0;
  int64_t count_ = 0;
  // Medians that make a block, and those of the block that is not full.
  int64_t length_ = 1;
  int64_t num_in_block_ = 0;
  double sum_ = 0;
};

}  // namespace ott

#endif  // OTT_CORE_STATISTICS_STEADY_TIME_H_
