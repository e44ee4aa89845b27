#include "ott/core/statistics/group_sequential.h"

#include <cmath>
#include <cstddef>

#include "ott/core/base/check.h"
#include "ott/core/statistics/distributions.h"

namespace ott {
namespace {

// Points at which densities are kept; Simpson's rule needs an odd number.
constexpr int kPoints = 301;

double NormalDensity(double value, double standard_deviation) {
  constexpr double kInverseRootOfTwoPi = 0.3989422804014327;
  const double z = value / standard_deviation;
  return kInverseRootOfTwoPi / standard_deviation * std::exp(-z * z / 2);
}

// The distribution of the sum of all samples while no look has stopped: a density on [-bound, bound], ready
// to be integrated.
struct Undecided {
  double bound = 0;
  std::vector<double> mass;  // of each point: density times weight

  double PointAt(int i) const { return bound * (2.0 * i / (kPoints - 1) - 1); }
};

// density: of a value, before the look whose bound this is.
template <typename Density>
Undecided CutAt(double bound, Density density) {
  Undecided undecided{bound, std::vector<double>(kPoints)};
  const double step = 2 * bound / (kPoints - 1);
  for (int i = 0; i < kPoints; ++i) {
    const double weight = (i == 0 || i == kPoints - 1) ? 1 : (i % 2 == 1 ? 4 : 2);
    undecided.mass[i] = weight * step / 3 * density(undecided.PointAt(i));
  }
  return undecided;
}

// Returns the probability that the next look finds the sum beyond +-bound.
double ExitProbability(const Undecided& undecided, double bound, double standard_deviation) {
  double probability = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double from = undecided.PointAt(i);
    probability += undecided.mass[i] * (NormalProbability((from - bound) / standard_deviation) +
                                        NormalProbability((-bound - from) / standard_deviation));
  }
  return probability;
}

}  // namespace

double SpentError(double information) {
  OTT_CHECK(information >= 0 && information <= 1) << "information " << information;
  return information * information;
}

std::vector<double> GroupSequentialLevels(const std::vector<double>& information, double error) {
  OTT_CHECK(error > 0 && error < 1) << "error " << error;
  std::vector<double> levels;
  Undecided undecided;
  double time = 0;
  for (const double next : information) {
    OTT_CHECK(next > time) << "information " << next << " after " << time;
    const double spent = error * (SpentError(next) - SpentError(time));
    const double standard_deviation = std::sqrt(next - time);
    if (levels.empty()) {
      levels.push_back(spent);
      const double bound = -NormalQuantile(spent / 2) * standard_deviation;
      undecided = CutAt(bound, [&](double value) { return NormalDensity(value, standard_deviation); });
    } else {
      double low = 0, high = 40 * std::sqrt(next);
      while (high - low > 1e-10 * high) {
        const double middle = (low + high) / 2;
        (ExitProbability(undecided, middle, standard_deviation) > spent ? low : high) = middle;
      }
      levels.push_back(2 * NormalProbability(-high / std::sqrt(next)));
      undecided = CutAt(high, [&](double value) {
        double density = 0;
        for (int i = 0; i < kPoints; ++i) {
          density += undecided.mass[i] * NormalDensity(value - undecided.PointAt(i), standard_deviation);
        }
        return density;
      });
    }
    time = next;
  }
  return levels;
}

}  // namespace ott
