#include "ott/core/statistics/modes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <random>

#include "ott/core/base/check.h"

namespace ott {
namespace {

struct Split {
  size_t num_low = 0;
  double share_inside = 1;  // of the variance
};

// REQUIRES: samples are sorted.
Split BestSplit(const std::vector<double>& samples) {
  const auto count = static_cast<double>(samples.size());
  // About the least of them, so that equal ones differ by nothing, which a rounded mean does not ensure.
  const double least = samples.front();
  double all = 0, squares = 0;
  for (const double sample : samples) {
    all += sample - least;
    squares += (sample - least) * (sample - least);
  }
  const double of_mean = all * all / count;
  Split best;
  const size_t fewest = std::max<size_t>(2, samples.size() / 5);
  double sum = 0;
  for (size_t i = 0; i + fewest < samples.size(); ++i) {
    sum += samples[i] - least;
    const auto low = static_cast<double>(i + 1);
    if (i + 1 < fewest) continue;
    // The squares of the means of both groups about the mean of all.
    const double between = sum * sum / low + (all - sum) * (all - sum) / (count - low) - of_mean;
    const double inside = 1 - between / (squares - of_mean);
    if (inside < best.share_inside) best = {i + 1, inside};
  }
  return best;
}

// Below which one of 1000 sets of so many normal samples is.
double SimulateShareInside(size_t count) {
  constexpr int kSets = 5000;
  std::mt19937_64 random(count);
  std::normal_distribution<double> normal;
  std::vector<double> shares(kSets), samples(count);
  for (double& share : shares) {
    for (double& sample : samples) sample = normal(random);
    std::sort(samples.begin(), samples.end());
    share = BestSplit(samples).share_inside;
  }
  std::nth_element(shares.begin(), shares.begin() + kSets / 1000, shares.end());
  return shares[kSets / 1000];
}

// The same, simulated once in a process.
double ShareInsideOfNormalSamples(size_t count) {
  static std::mutex mutex;
  static std::map<size_t, double>& known = *new std::map<size_t, double>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [found, is_new] = known.try_emplace(count);
  if (is_new) found->second = SimulateShareInside(count);
  return found->second;
}

}  // namespace

std::optional<TwoModes> FindTwoModes(std::vector<double> samples) {
  constexpr size_t kFewest = 6, kMost = 1000;
  if (samples.size() < kFewest || samples.size() > kMost) return std::nullopt;
  std::sort(samples.begin(), samples.end());
  const Split split = BestSplit(samples);
  if (split.share_inside >= ShareInsideOfNormalSamples(samples.size())) return std::nullopt;
  TwoModes modes;
  modes.num_low = split.num_low;
  modes.num_high = samples.size() - split.num_low;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(split.num_low);
  modes.low = std::accumulate(samples.begin(), middle, 0.0) / static_cast<double>(modes.num_low);
  modes.high = std::accumulate(middle, samples.end(), 0.0) / static_cast<double>(modes.num_high);
  return modes;
}

double SeparationProbability(size_t size) {
  OTT_CHECK(size > 0) << "no samples";
  return 2 * std::pow(0.25, static_cast<double>(size));
}

}  // namespace ott
