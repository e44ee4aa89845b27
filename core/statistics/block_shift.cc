#include "ott/core/statistics/block_shift.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ott/core/base/check.h"

namespace ott {
namespace {

std::vector<double> Convolve(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> sum(a.size() + b.size() - 1);
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b.size(); ++j) sum[i + j] += a[i] * b[j];
  }
  return sum;
}

// Returns the probability of each count of pairs with a above b, if all orders of the samples are equally
// probable (Mann and Whitney 1947). The largest sample is one of b, above no a, or one of a, above all b.
std::vector<double> PairCounts(size_t size_a, size_t size_b) {
  // counts[b]: of the a so far and b.
  std::vector<std::vector<double>> counts(size_b + 1, {1});
  for (size_t a = 1; a <= size_a; ++a) {
    for (size_t b = 1; b <= size_b; ++b) {
      std::vector<double> next(a * b + 1);
      const double largest_is_a = static_cast<double>(a) / static_cast<double>(a + b);
      for (size_t i = 0; i < counts[b].size(); ++i) next[i + b] += largest_is_a * counts[b][i];
      for (size_t i = 0; i < counts[b - 1].size(); ++i) next[i] += (1 - largest_is_a) * counts[b - 1][i];
      counts[b] = std::move(next);
    }
  }
  return counts[size_b];
}

}  // namespace

BlockShift::BlockShift(const std::vector<Block>& blocks) : probabilities_({1}) {
  OTT_CHECK(!blocks.empty()) << "no blocks";
  for (const Block& block : blocks) {
    OTT_CHECK(!block.a.empty() && !block.b.empty())
        << "a block of " << block.a.size() << " and " << block.b.size();
    for (const double a : block.a) {
      for (const double b : block.b) differences_.push_back(b - a);
    }
    probabilities_ = Convolve(probabilities_, PairCounts(block.a.size(), block.b.size()));
  }
  std::sort(differences_.begin(), differences_.end());
}

double BlockShift::value() const {
  const size_t count = differences_.size();
  return (differences_[(count - 1) / 2] + differences_[count / 2]) / 2;
}

Interval BlockShift::IntervalAt(double error) const {
  OTT_CHECK(error > 0 && error < 1) << "error " << error;
  // The largest number of differences that may be left out at either end.
  double below = 0;
  size_t left_out = 0;
  while (2 * (below + probabilities_[left_out]) <= error) below += probabilities_[left_out++];
  if (left_out == 0) {
    return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  }
  return {differences_[left_out - 1], differences_[differences_.size() - left_out]};
}

double SmallestErrorOfBlocks(size_t num_blocks, size_t size) {
  return 2 * std::pow(PairCounts(size, size)[0], static_cast<double>(num_blocks));
}

}  // namespace ott
