#include "ott/core/statistics/steady_time.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ott {
namespace {

// REQUIRES: at least two values.
SteadyTime MeanOf(const float* values, size_t count) {
  const auto num_values = static_cast<double>(count);
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += static_cast<double>(values[i]);
  const double mean = sum / num_values;
  double squares = 0;
  for (size_t i = 0; i < count; ++i) {
    const double deviation = static_cast<double>(values[i]) - mean;
    squares += deviation * deviation;
  }
  SteadyTime time;
  time.seconds = mean;
  time.standard_error = std::sqrt(squares / (num_values * (num_values - 1)));
  time.degrees_of_freedom = num_values - 1;
  return time;
}

}  // namespace

void SteadyTimeRecorder::Add(double seconds) {
  ++count_;
  base_[num_in_base_++] = static_cast<float>(seconds);
  if (num_in_base_ < kBaseLength) return;
  num_in_base_ = 0;
  std::array<float, kBaseLength> sorted = base_;
  std::sort(sorted.begin(), sorted.end());
  AddToBlock(sorted[kBaseLength / 2]);
}

void SteadyTimeRecorder::AddToBlock(float median) {
  sum_ += static_cast<double>(median);
  if (++num_in_block_ < length_) return;
  blocks_[num_blocks_++] = static_cast<float>(sum_ / static_cast<double>(length_));
  sum_ = 0;
  num_in_block_ = 0;
  if (num_blocks_ < kMaxBlocks) return;
  num_blocks_ = kMaxBlocks / 2;
  length_ *= 2;
  for (size_t i = 0; i < kMaxBlocks / 2; ++i) blocks_[i] = (blocks_[2 * i] + blocks_[2 * i + 1]) / 2;
}

std::optional<SteadyTime> SteadyTimeRecorder::Finish() const {
  if (!has_enough()) return std::nullopt;
  SteadyTime time = MeanOf(blocks_.data(), num_blocks_);
  std::array<float, kMaxBlocks / 2> pairs{};
  const size_t num_pairs = num_blocks_ / 2;
  for (size_t i = 0; i < num_pairs; ++i) pairs[i] = (blocks_[2 * i] + blocks_[2 * i + 1]) / 2;
  const SteadyTime of_pairs = MeanOf(pairs.data(), num_pairs);
  if (of_pairs.standard_error > time.standard_error) {
    time.standard_error = of_pairs.standard_error;
    time.degrees_of_freedom = of_pairs.degrees_of_freedom;
  }
  time.count = count_;
  time.block_iterations = length_ * kBaseLength;
  time.num_blocks = num_blocks_;
  std::copy_n(blocks_.begin(), num_blocks_, time.blocks.begin());
  return time;
}

}  // namespace ott
