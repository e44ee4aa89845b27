// Simulates how often a rank is named that is like the others, and how often one that takes longer.
//
//   bazel run //core/statistics:persistent_excess_benchmark [-- RUNS [PART_OF_A_NOISE'S_NAME]]
//
// A run is 200 iterations on each rank, of 50 ms each where the row does not say how long. Its four
// measurements are tested as one family, with an error of 1 % over all of them and all ranks. Where the noise
// is of a CPU, each rank's level differs for good by 2 % (standard deviation), as processes of one program
// do. Prints FAILED and ends with 1 where a rank that is like the others is named in more than 1 % of the
// runs, beyond what so many runs show by chance.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "ott/core/base/check.h"
#include "ott/core/statistics/persistent_excess.h"

namespace ott {
namespace {

constexpr int kIterations = 200;
constexpr int kMeasurements = 4;
constexpr double kLevelSpread = 0.02;
constexpr double kFamilyError = 0.01;
constexpr double kMinRelativeExcess = 0.05;
// Returns the most that 1 % may show in so many runs: the 99.9 % quantile of its distribution, which is
// nearly a normal one.
int MostFalse(int num_runs) {
  return static_cast<int>(std::ceil(0.01 * num_runs + 3.09 * std::sqrt(0.0099 * num_runs)));
}

using Random = std::mt19937_64;
double Normal(Random& random) { return std::normal_distribution<double>()(random); }
double Uniform(Random& random) { return std::uniform_real_distribution<double>()(random); }

// The noise of one measurement on one rank: a factor for each iteration.
struct Noise {
  const char* name;
  // True if time is spent on a CPU, where processes differ for good.
  bool on_cpu;
  std::function<std::vector<double>(Random&)> factors;
  double run_seconds = 10;
  // True if all ranks have, on top of it, phases of 1, 2 and 0.5 times.
  bool has_phases = false;
  // The share of the run in which the rank that takes longer does not yet.
  double late = 0;
};

// In one run of ten, puts a part, somewhere, on a CPU at half its speed.
std::vector<double> Slowdown(double part, Random& random) {
  const double start = Uniform(random) < 0.1 ? Uniform(random) * (1 - part) * kIterations : kIterations;
  std::vector<double> factors;
  for (int i = 0; i < kIterations; ++i) {
    const bool is_slow = i >= start && i < start + part * kIterations;
    factors.push_back((is_slow ? 2 : 1) + 0.02 * Normal(random));
  }
  return factors;
}

std::vector<double> Each(const std::function<double(int)>& factor) {
  std::vector<double> factors;
  for (int i = 0; i < kIterations; ++i) factors.push_back(factor(i));
  return factors;
}

// Returns noise as was measured: 5 % that last for some 0.3 s, and in one run of ten 0.3 s at half the speed.
std::vector<double> OfACpu(double run_seconds, Random& random) {
  const double lasts = 0.3 * kIterations / run_seconds;
  const double keeps = std::exp(-1 / lasts);
  const double amplitude = 0.05 * std::min(1.0, std::sqrt(lasts));
  std::vector<double> factors = Slowdown(std::min(1.0, lasts / kIterations), random);
  double state = Normal(random);
  for (double& factor : factors) {
    state = keeps * state + std::sqrt(1 - keeps * keeps) * Normal(random);
    factor += amplitude * state;
  }
  return factors;
}

std::vector<Noise> AllNoise() {
  return {
      {"independent, 5 %", true,
       [](Random& random) { return Each([&](int) { return 1 + 0.05 * Normal(random); }); }},
      {"autocorrelated, 5 %, over 10 iterations", true,
       [](Random& random) {
         double state = Normal(random);
         return Each([&](int) {
           state = 0.9 * state + std::sqrt(1 - 0.81) * Normal(random);
           return 1 + 0.05 * state;
         });
       }},
      {"heavy tails: 5 % times Pareto, index 1", true,
       [](Random& random) { return Each([&](int) { return 1 + 0.05 / (1 - Uniform(random)); }); }},
      {"bimodal: 1 or 1.3, for 10 iterations each", true,
       [](Random& random) {
         double mode = 1;
         return Each([&](int) {
           if (Uniform(random) < 0.1) mode = Uniform(random) < 0.5 ? 1.3 : 1;
           return mode + 0.02 * Normal(random);
         });
       }},
      {"shared CPU: bursts of 10 iterations, to 3 times", true,
       [](Random& random) {
         bool burst = false;
         return Each([&](int) {
           if (Uniform(random) < 0.1) burst = Uniform(random) < 0.2;
           return 1 + 0.02 * Normal(random) + (burst ? 2 * Uniform(random) : 0);
         });
       }},
      {"drift of 20 %, and one stall of 300 iterations' time", true,
       [](Random& random) {
         const int stall = static_cast<int>(Uniform(random) * kIterations);
         return Each([&](int i) {
           return 1 + 0.2 * i / kIterations + 0.02 * Normal(random) + (i == stall ? 300 : 0);
         });
       }},
      {"half the speed for 0.3 s, run of 0.15 s", true, [](Random& random) { return Slowdown(1, random); },
       0.15},
      {"half the speed for 0.3 s, run of 1 s", true, [](Random& random) { return Slowdown(0.3, random); }, 1},
      {"a CPU's, run of 10 s", true, [](Random& random) { return OfACpu(10, random); }, 10},
      {"a CPU's, run of 100 s", true, [](Random& random) { return OfACpu(100, random); }, 100},
      {"a CPU's, run of 1000 s", true, [](Random& random) { return OfACpu(1000, random); }, 1000},
      {"independent, 2 %, in phases of 1, 2 and 0.5", true,
       [](Random& random) { return Each([&](int) { return 1 + 0.02 * Normal(random); }); }, 10, true},
      {"independent, 2 %, longer after a third of the run", true,
       [](Random& random) { return Each([&](int) { return 1 + 0.02 * Normal(random); }); }, 10, false,
       1.0 / 3},
      {"sleeping, 1 %", false,
       [](Random& random) { return Each([&](int) { return 1 + 0.01 * std::abs(Normal(random)); }); }},
  };
}

struct Rates {
  int found = 0;
  int falsely_named = 0;  // runs in which another rank was
};

// One rank takes longer by `excess` in the first measurement.
Rates Simulate(const Noise& noise, int num_ranks, double excess, int num_runs, Random& random) {
  const double level = kFamilyError / (num_ranks * kMeasurements);
  const double seconds = noise.run_seconds / (kIterations * kMeasurements);
  Rates rates;
  for (int run = 0; run < num_runs; ++run) {
    const int slow = static_cast<int>(Uniform(random) * num_ranks);
    bool found = false;
    bool falsely_named = false;
    for (int measurement = 0; measurement < kMeasurements; ++measurement) {
      std::vector<ProcessTime> ranks;
      const std::vector<double> phases = Each([&](int) {
        return noise.has_phases ? std::vector<double>{1, 2, 0.5}[static_cast<size_t>(3 * Uniform(random))]
                                : 1;
      });
      for (int rank = 0; rank < num_ranks; ++rank) {
        SteadyTimeRecorder recorder;
        const double own = noise.on_cpu ? std::exp(kLevelSpread * Normal(random)) : 1;
        const std::vector<double> factors = noise.factors(random);
        for (size_t i = 0; i < kIterations; ++i) {
          const bool is_slow =
              rank == slow && measurement == 0 && static_cast<double>(i) >= noise.late * kIterations;
          recorder.Add(seconds * own * factors[i] * phases[i] * (is_slow ? 1 + excess : 1));
        }
        const std::optional<SteadyTime> time = recorder.Finish();
        OTT_CHECK(time.has_value()) << "too few iterations";
        ranks.push_back({*time, {noise.on_cpu ? time->seconds : 0, 0, noise.run_seconds}});
      }
      for (int rank = 0; rank < num_ranks; ++rank) {
        std::vector<ProcessTime> others = ranks;
        others.erase(others.begin() + rank);
        const Excess of_rank = ExcessOver(others, ranks[static_cast<size_t>(rank)]);
        if (of_rank.PValue() > level || of_rank.seconds < kMinRelativeExcess * of_rank.of_others) continue;
        (excess > 0 && rank == slow && measurement == 0 ? found : falsely_named) = true;
      }
    }
    rates.found += found ? 1 : 0;
    rates.falsely_named += falsely_named ? 1 : 0;
  }
  return rates;
}

// Simulates the kinds of noise whose names hold `only`.
int Main(int num_runs, const std::string& only) {
  bool holds = true;
  Random random(20240501);
  std::printf("runs of %d in which a rank is named: that takes longer by / another one\n", num_runs);
  std::printf("%-52s %5s  %9s  %11s  %11s  %11s\n", "noise", "ranks", "none", "10 %", "20 %", "50 %");
  for (const Noise& noise : AllNoise()) {
    if (std::string(noise.name).find(only) == std::string::npos) continue;
    for (const int num_ranks : {2, 4, 16}) {
      std::printf("%-52s %5d", noise.name, num_ranks);
      bool row_holds = true;
      for (const double excess : {0.0, 0.1, 0.2, 0.5}) {
        const Rates rates = Simulate(noise, num_ranks, excess, num_runs, random);
        row_holds = row_holds && rates.falsely_named <= MostFalse(num_runs);
        if (excess > 0) {
          std::printf("  %5d /%4d", rates.found, rates.falsely_named);
        } else {
          std::printf("  %9d", rates.falsely_named);
        }
        std::fflush(stdout);
      }
      std::printf("%s\n", row_holds ? "" : "   FAILED");
      holds = holds && row_holds;
    }
  }
  return holds ? 0 : 1;
}

}  // namespace
}  // namespace ott

int main(int argc, char** argv) {
  return ott::Main(argc > 1 ? std::atoi(argv[1]) : 1000, argc > 2 ? argv[2] : "");
}
