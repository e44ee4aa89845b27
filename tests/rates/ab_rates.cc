// Measures how often `ott ab` is wrong, and how often it finds a change: B is A with a planted change, under
// noise of many kinds.
//
//   ab_rates [--trials N] [--recorded TABLE]
//
// --recorded: instead of simulated noise, stretches of what a machine did: a table as `ott ab` reads it, with
// a time for each process, in the order in which they ran.
//
// One line for each noise and number of processes a side. "false": verdicts other than the same or cannot
// tell although nothing was planted, in percent; nominally 1 at most. "+5": how often a planted 5 % is called
// slower, in percent. "miss": how often an interval does not hold the planted 2 %; nominally 1 at most. In
// turn: at most so many runs a side, with a look after each block; files: that many. Beside them, on the same
// noise, what others do: Mann-Whitney's test of all iterations of one process a side, at 5 %.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ott/core/base/check.h"
#include "ott/core/statistics/distributions.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/read_samples.h"

namespace ott::faster {
namespace {

using Random = std::mt19937_64;

double Normal(Random& random) { return std::normal_distribution<double>()(random); }
double Uniform(Random& random) { return std::uniform_real_distribution<double>()(random); }

// Logarithms of the times of `count` processes, one after the other.
using Noise = std::function<std::vector<double>(size_t count, Random& random)>;

// Each process by itself.
Noise Independent(std::function<double(Random&)> sample) {
  return [sample = std::move(sample)](size_t count, Random& random) {
    std::vector<double> times(count);
    for (double& time : times) time = sample(random);
    return times;
  };
}

std::vector<double> Autocorrelated(size_t count, Random& random) {
  std::vector<double> times(count);
  double machine = 0.02 * Normal(random);
  for (double& time : times) {
    time = machine + 0.005 * Normal(random);
    machine = 0.7 * machine + 0.02 * std::sqrt(1 - 0.7 * 0.7) * Normal(random);
  }
  return times;
}

// 10 % over the session.
std::vector<double> Drifting(size_t count, Random& random) {
  std::vector<double> times(count);
  for (size_t i = 0; i < count; ++i) {
    times[i] = 0.1 * static_cast<double>(i) / static_cast<double>(count) + 0.01 * Normal(random);
  }
  return times;
}

// Others use the machine for a while, now and then.
std::vector<double> Bursts(size_t count, Random& random) {
  std::vector<double> times(count);
  bool busy = false;
  for (double& time : times) {
    if (Uniform(random) < 0.2) busy = Uniform(random) < 0.2;
    time = 0.007 * Normal(random) + (busy ? 0.1 + 0.3 * std::abs(Normal(random)) : 0);
  }
  return times;
}

// Stretches of what a machine did.
Noise Recorded(const std::string& path) {
  const absl::StatusOr<SideSamples> side = ReadSide({path}, ClockKind::kWall);
  OTT_CHECK(side.ok()) << side.status().ToString();
  std::vector<double> times;
  for (const Process& process : side->processes)
    times.push_back(std::log(process.measurements[0].seconds[0]));
  return [times](size_t count, Random& random) {
    std::vector<double> stretch(count);
    const size_t begin = random() % times.size();
    for (size_t i = 0; i < count; ++i) stretch[i] = times[(begin + i) % times.size()];
    return stretch;
  };
}

std::vector<std::pair<std::string, Noise>> Noises() {
  return {
      {"independent, 1 %", Independent([](Random& random) { return 0.01 * Normal(random); })},
      {"autocorrelated, 2 %", Autocorrelated},
      {"drifting, 10 %", Drifting},
      {"two modes, 4 % apart", Independent([](Random& random) {
         return (Uniform(random) < 0.3 ? 0.04 : 0) + 0.005 * Normal(random);
       })},
      {"two equal modes", Independent([](Random& random) {
         return (Uniform(random) < 0.5 ? 0.04 : 0) + 0.003 * Normal(random);
       })},
      {"spikes, 15 % of runs", Independent([](Random& random) {
         return 0.005 * Normal(random) + (Uniform(random) < 0.15 ? -0.05 * std::log(1 - Uniform(random)) : 0);
       })},
      {"Cauchy, 1 %", Independent([](Random& random) {
         return std::clamp(0.01 * Normal(random) / Normal(random), -5.0, 5.0);
       })},
      {"bursts of load", Bursts},
  };
}

Process MakeProcess(double logarithm) {
  Process process;
  process.measurements.push_back({"time", {std::exp(logarithm)}});
  return process;
}

// The answer where B takes exp(planted) times as long; the last one of all looks.
Result AnswerInTurn(const Noise& noise, size_t max_runs, double planted, Random& random) {
  const std::vector<double> times = noise(2 * max_runs, random);
  FasterOptions options;
  options.max_runs = max_runs;
  Samples samples;
  Result answer;
  for (size_t block = 0; block < max_runs / 2; ++block) {
    const bool b_first = (random() & 1) != 0;
    const bool order[] = {b_first, !b_first, !b_first, b_first};
    for (size_t i = 0; i < 4; ++i) {
      Process process = MakeProcess(times[4 * block + i] + (order[i] ? planted : 0));
      process.block = block;
      (order[i] ? samples.b : samples.a).push_back(std::move(process));
    }
    answer = Compare(samples, options)->answer;
    if (answer.verdict != AbResult::CANNOT_TELL) break;
  }
  return answer;
}

// In any order, since nobody knows which.
Result AnswerOfFiles(const Noise& noise, size_t runs, double planted, Random& random) {
  std::vector<double> times = noise(2 * runs, random);
  std::shuffle(times.begin(), times.end(), random);
  Samples samples;
  for (size_t i = 0; i < runs; ++i) {
    samples.a.push_back(MakeProcess(times[i]));
    samples.b.push_back(MakeProcess(times[runs + i] + planted));
  }
  return Compare(samples, FasterOptions())->answer;
}

using Answer = std::function<Result(double planted, Random& random)>;

void PrintLine(const std::string& how, const std::string& noise, size_t runs, int trials,
               const Answer& answer) {
  Random random(runs);
  const auto percent = [&](double planted, const std::function<bool(const Result&)>& counts) {
    int count = 0;
    for (int trial = 0; trial < trials; ++trial) count += counts(answer(std::log1p(planted), random));
    return 100.0 * count / trials;
  };
  const auto differs = [](const Result& r) {
    return r.verdict == AbResult::FASTER || r.verdict == AbResult::SLOWER;
  };
  const auto slower = [](const Result& r) { return r.verdict == AbResult::SLOWER; };
  const auto misses = [](const Result& r) { return r.low.has_value() && (*r.low > 1.02 || *r.high < 1.02); };
  std::printf("| %s | %s | %zu | %.1f | %.1f |", how.c_str(), noise.c_str(), runs, percent(0, differs),
              percent(0.02, misses));
  for (const double planted : {0.01, 0.02, 0.05, 0.10}) std::printf(" %.0f |", percent(planted, slower));
  std::printf("\n");
  std::fflush(stdout);
}

// Returns how often Mann and Whitney's test at 5 % tells one process from another of the same program, by 30
// iterations each.
double IterationsOfOneProcess(int trials) {
  Random random(30);
  int differ = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> a(30), b(30);
    for (auto* process : {&a, &b}) {
      const double of_process = 0.01 * Normal(random);
      for (double& iteration : *process) iteration = of_process + 0.01 * Normal(random);
    }
    double above = 0;
    for (const double x : a) {
      for (const double y : b) above += y > x;
    }
    const double deviation = std::sqrt(30 * 30 * 61 / 12.0);
    differ += std::abs(above - 450) / deviation > NormalQuantile(0.975);
  }
  return 100.0 * differ / trials;
}

int Main(int argc, char** argv) {
  int trials = 500;
  std::vector<std::pair<std::string, Noise>> noises = Noises();
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--trials") trials = std::max(1, std::atoi(argv[i + 1]));
    if (std::string(argv[i]) == "--recorded") noises = {{"recorded", Recorded(argv[i + 1])}};
  }
  std::printf(
      "Verdicts at 99 %%, in percent of %d comparisons each; the interval's misses are of a planted 2 %%.\n",
      trials);
  std::printf("| runs | noise | a side | false | misses | +1 %% | +2 %% | +5 %% | +10 %% |\n");
  std::printf("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const auto& [name, noise] : noises) {
    for (const size_t runs : {6, 10, 20}) {
      PrintLine("in turn", name, runs, trials, [&, &noise = noise](double planted, Random& random) {
        return AnswerInTurn(noise, runs, planted, random);
      });
    }
  }
  for (const auto& [name, noise] : noises) {
    for (const size_t runs : {3, 5, 10, 20}) {
      PrintLine("files", name, runs, trials, [&, &noise = noise](double planted, Random& random) {
        return AnswerOfFiles(noise, runs, planted, random);
      });
    }
  }
  std::printf("Iterations of one process a side, Mann-Whitney at 5 %%: %.1f %% false (limit 5 %%)\n",
              IterationsOfOneProcess(trials));
  return 0;
}

}  // namespace
}  // namespace ott::faster

int main(int argc, char** argv) { return ott::faster::Main(argc, argv); }
