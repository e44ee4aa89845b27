#include "ott/core/statistics/persistent_excess.h"

#include <algorithm>
#include <cmath>

#include "ott/core/base/check.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/location.h"

namespace ott {
namespace {

// Variance of a median of normal samples over that of their mean, and what a median absolute deviation is
// worth in degrees of freedom, of those of a standard deviation.
constexpr double kMedianVariance = 1.5707963267948966;
constexpr double kMadEfficiency = 0.37;
// Of the normal distribution: what four of five are below.
constexpr double kPowerQuantile = 0.84;

// A variance that was estimated, and by how much.
struct Variance {
  double value = 0;
  double degrees_of_freedom = 1;
};

// Satterthwaite (1946).
Estimate EstimateOf(double value, const std::vector<Variance>& parts) {
  double sum = 0;
  double weights = 0;
  for (const Variance& part : parts) {
    sum += part.value;
    weights += part.value * part.value / part.degrees_of_freedom;
  }
  Estimate estimate;
  estimate.value = value;
  estimate.standard_error = std::sqrt(sum);
  estimate.degrees_of_freedom = weights > 0 ? sum * sum / weights : 1e6;
  return estimate;
}

}  // namespace

CpuShare LeastCertain(const CpuShare& a, const CpuShare& b) {
  return {std::max(a.cpu_seconds, b.cpu_seconds), std::max(a.taken_share, b.taken_share),
          std::min(a.watched_seconds, b.watched_seconds), std::max(a.taken_seconds, b.taken_seconds)};
}

double ExpectedSpread(const CpuShare& cpu) {
  const double lasts = std::sqrt(kDisturbanceSeconds / std::max(kDisturbanceSeconds, cpu.watched_seconds));
  const double disturbance = std::hypot(kDisturbance, kDisturbanceOfTaken * cpu.taken_share) * lasts;
  const double share = std::hypot(kExpectedSpread, disturbance);
  return std::hypot(share * cpu.cpu_seconds, kExpectedSpreadSeconds);
}

double SecondsOfOneSlowdown(const CpuShare& cpu) {
  return kSlowdown * cpu.cpu_seconds * kDisturbanceSeconds /
         std::max(kDisturbanceSeconds, cpu.watched_seconds);
}

double SpreadOfTaken(const CpuShare& cpu) { return kLatenessOfTaken * cpu.taken_seconds; }

Estimate WithExpectedSpread(const Estimate& within_run, double spread) {
  return EstimateOf(within_run.value,
                    {{within_run.standard_error * within_run.standard_error, within_run.degrees_of_freedom},
                     {spread * spread, kSpreadDegreesOfFreedom}});
}

Excess ExcessOver(const std::vector<ProcessTime>& others, const ProcessTime& process) {
  OTT_CHECK(!others.empty()) << "nothing to exceed";
  const auto count = static_cast<double>(others.size());
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;
  std::vector<double> taken_shares;
  Variance within;  // of one of the others, as a mean
  within.degrees_of_freedom = 0;
  for (const ProcessTime& other : others) {
    seconds.push_back(other.time.seconds);
    cpu_seconds.push_back(other.cpu.cpu_seconds);
    taken_shares.push_back(other.cpu.taken_share);
    within.value += other.time.standard_error * other.time.standard_error / count;
    within.degrees_of_freedom += other.time.degrees_of_freedom;
  }
  Excess excess;
  excess.of_others = Median(seconds);
  excess.seconds = process.time.seconds - excess.of_others;

  // Of two the median is the mean.
  const double of_median = (others.size() > 2 ? kMedianVariance : 1) / count;
  // A process that is like the others varies as they do; one that happened to stay in one state looks
  // steadier.
  const Variance own = {std::max(process.time.standard_error * process.time.standard_error, within.value),
                        process.time.degrees_of_freedom};
  const Variance reference = {of_median * within.value, within.degrees_of_freedom};
  excess.within_run = EstimateOf(excess.seconds, {own, reference});

  CpuShare cpu = process.cpu;
  cpu.cpu_seconds = std::min(Median(cpu_seconds), process.time.seconds);
  excess.slowdown_seconds = SecondsOfOneSlowdown(cpu);
  cpu.cpu_seconds = std::max(cpu.cpu_seconds, std::min(process.cpu.cpu_seconds, process.time.seconds));
  cpu.taken_share = std::max(Median(taken_shares), cpu.taken_share);
  const double expected = ExpectedSpread(cpu);
  const double deviation = MedianAbsoluteDeviation(seconds);
  const double seen = std::max(0.0, deviation * deviation - within.value);
  const double seen_weight = kMadEfficiency * (count - 1);
  const double weight = kSpreadDegreesOfFreedom + seen_weight;
  // Processes that are seen to differ by more than that do so, few as they are.
  const double spread =
      std::max(seen, (kSpreadDegreesOfFreedom * expected * expected + seen_weight * seen) / weight);
  excess.among_processes = EstimateOf(excess.seconds - excess.slowdown_seconds,
                                      {own, reference, {(1 + of_median) * spread, weight}});
  return excess;
}

double Excess::PValue() const {
  const double t = among_processes.value / among_processes.standard_error;
  const double two_sided = StudentTTwoSidedPValue(t, among_processes.degrees_of_freedom);
  return t > 0 ? two_sided / 2 : 1 - two_sided / 2;
}

double Excess::Detectable(double level) const {
  return slowdown_seconds +
         (StudentTQuantile(1 - level, among_processes.degrees_of_freedom) + kPowerQuantile) *
             among_processes.standard_error;
}

}  // namespace ott
