// Measures how often `ott curves` is wrong, and how often it finds what was planted, in curves of real
// trainings:
//
//   bazel run //tests/rates:curves_rates -- FOLDER [SPLITS] [TRIALS]
//
// FOLDER/BENCHMARK/.../CONFIGURATION holds files of runs that differ by their seeds alone. False answers:
// each configuration's runs split in two, by chance. Power: runs of all configurations of a benchmark that
// have the same points, each moved to the common mean of its configuration, drawn into ten against ten, of
// which B has a change planted. Beside it Welch's t-test at the point at which that change stands out most,
// known in hindsight, and at the last one, at the same error; and how much more often than the former a
// change is found in the same draws.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "ott/core/base/check.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/questions/learning/comparison.h"
#include "ott/questions/learning/metric_names.h"
#include "ott/questions/learning/read_curves.h"

namespace ott::learning {
namespace {

namespace fs = std::filesystem;
using Kind = LearningVerdict::Kind;

constexpr double kError = 0.01;
constexpr size_t kRunsASide = 10;

struct Benchmark {
  std::string name;
  std::string metric;
  std::vector<std::vector<RunCurves>> configurations;
};

// A folder with several files is a configuration; the first level below `root` is its benchmark.
std::vector<Benchmark> ReadBenchmarks(const std::string& root) {
  std::map<std::string, std::vector<fs::path>> folders;
  for (const auto& entry :
       fs::recursive_directory_iterator(root, fs::directory_options::follow_directory_symlink)) {
    if (!entry.is_directory()) continue;
    const auto files = std::count_if(fs::directory_iterator(entry.path()), fs::directory_iterator(),
                                     [](const auto& inside) { return inside.is_regular_file(); });
    const std::string benchmark = entry.path().lexically_relative(root).begin()->string();
    if (files > 3 && entry.path().lexically_relative(root) != benchmark)
      folders[benchmark].push_back(entry.path());
  }
  std::vector<Benchmark> benchmarks;
  for (auto& [name, paths] : folders) {
    Benchmark benchmark{name, "", {}};
    std::sort(paths.begin(), paths.end());
    for (const fs::path& path : paths) {
      absl::StatusOr<ReadRuns> read = ReadSide({path.string()}, {});
      if (!read.ok()) {
        std::printf("left out: %s\n", std::string(read.status().message()).c_str());
        continue;
      }
      if (benchmark.metric.empty()) benchmark.metric = DefaultMetric(read->runs, read->runs);
      benchmark.configurations.push_back(std::move(read->runs));
    }
    benchmarks.push_back(std::move(benchmark));
  }
  return benchmarks;
}

Kind Ask(const std::vector<RunCurves>& a, const std::vector<RunCurves>& b, const std::string& metric) {
  LearningOptions options;
  options.error = kError;
  options.metric = metric;
  const absl::StatusOr<LearningVerdict> verdict = Compare(a, b, "step", options);
  OTT_CHECK(verdict.ok()) << verdict.status();
  return verdict->metrics(0).kind();
}

void MeasureFalse(const Benchmark& benchmark, size_t splits, std::mt19937_64& random) {
  std::map<Kind, int> halves, one_run;
  for (size_t split = 0; split < splits; ++split) {
    std::vector<RunCurves> runs = benchmark.configurations[split % benchmark.configurations.size()];
    // Other metrics are another family.
    for (RunCurves& run : runs) run.curves = {{benchmark.metric, run.curves.at(benchmark.metric)}};
    std::shuffle(runs.begin(), runs.end(), random);
    const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
    ++halves[Ask({runs.begin(), middle}, {middle, runs.end()}, benchmark.metric)];
    ++one_run[Ask({runs.begin(), runs.end() - 1}, {runs.back()}, benchmark.metric)];
  }
  const auto percent = [&](std::map<Kind, int>& counts, Kind kind) {
    return 100.0 * counts[kind] / static_cast<double>(splits);
  };
  for (auto& [what, counts] :
       {std::pair<const char*, std::map<Kind, int>&>{"halves", halves}, {"one run", one_run}}) {
    std::printf("| %s | %s | %zu | %.2f | %.2f | %.2f |\n", benchmark.name.c_str(), what, splits,
                percent(counts, LearningVerdict::WORSE), percent(counts, LearningVerdict::BETTER),
                percent(counts, LearningVerdict::AS_GOOD));
  }
}

// Curves of all configurations that are evaluated at the same points as most are, with the same mean.
std::vector<std::vector<double>> Pool(const Benchmark& benchmark, std::vector<double>* x) {
  const auto points_of = [&](const RunCurves& run) {
    std::vector<long> points;
    for (const Point& point : run.curves.at(benchmark.metric)) points.push_back(std::lround(point.x * 1000));
    return points;
  };
  std::map<long, size_t> firsts;
  for (const auto& runs : benchmark.configurations) ++firsts[points_of(runs[0])[0]];
  const long first = std::max_element(firsts.begin(), firsts.end(), [](auto& a, auto& b) {
                       return a.second < b.second;
                     })->first;
  std::vector<std::vector<std::vector<double>>> pool;
  std::vector<std::vector<double>> known;
  size_t fewest = SIZE_MAX;
  std::vector<size_t> lengths;
  for (const auto& runs : benchmark.configurations) {
    if (points_of(runs[0])[0] != first) continue;
    for (const RunCurves& run : runs) lengths.push_back(run.curves.at(benchmark.metric).size());
  }
  // Configurations of another batch size need other numbers of evaluations.
  std::sort(lengths.begin(), lengths.end());
  const size_t usual = lengths[lengths.size() / 2];
  for (const auto& runs : benchmark.configurations) {
    if (points_of(runs[0])[0] != first) continue;
    size_t shortest = SIZE_MAX, longest = 0;
    for (const RunCurves& run : runs) {
      shortest = std::min(shortest, run.curves.at(benchmark.metric).size());
      longest = std::max(longest, run.curves.at(benchmark.metric).size());
    }
    if (shortest > usual || longest < usual) continue;
    pool.emplace_back();
    for (const RunCurves& run : runs) {
      std::vector<double> values;
      for (const Point& point : run.curves.at(benchmark.metric)) values.push_back(point.y);
      // Some configurations were submitted twice.
      if (std::find(known.begin(), known.end(), values) != known.end()) continue;
      known.push_back(values);
      pool.back().push_back(values);
      fewest = std::min(fewest, values.size());
      if (values.size() == fewest) {
        x->clear();
        for (const Point& point : run.curves.at(benchmark.metric)) x->push_back(point.x);
      }
    }
  }
  std::vector<double> all(fewest);
  size_t count = 0;
  for (const auto& runs : pool) {
    for (const auto& run : runs) {
      for (size_t i = 0; i < fewest; ++i) all[i] += run[i];
      ++count;
    }
  }
  std::vector<std::vector<double>> centered;
  for (const auto& runs : pool) {
    const double n = static_cast<double>(runs.size());
    if (runs.size() < 5) continue;
    for (const auto& run : runs) {
      centered.emplace_back();
      for (size_t i = 0; i < fewest; ++i) {
        double mean = 0;
        for (const auto& other : runs) mean += other[i] / n;
        // The mean of so few runs takes some of their spread with it.
        centered.back().push_back((run[i] - mean) * std::sqrt(n / (n - 1)) +
                                  all[i] / static_cast<double>(count));
      }
    }
  }
  return centered;
}

struct Plant {
  std::string name;
  std::vector<double> change;  // by point
};

std::vector<Plant> Plants(const std::vector<double>& x, const std::vector<double>& mean,
                          const std::vector<double>& spread) {
  const size_t size = x.size();
  const double worse = mean.back() < mean.front() ? 1 : -1;
  const auto lost = [&](double share) {
    std::vector<double> change;
    for (size_t i = 0; i < size; ++i) {
      const double at = x[i] * (1 - share);
      size_t right = 1;
      while (right + 1 < size && x[right] < at) ++right;
      change.push_back(mean[right - 1] +
                       (at - x[right - 1]) * (mean[right] - mean[right - 1]) / (x[right] - x[right - 1]) -
                       mean[i]);
    }
    return change;
  };
  std::vector<Plant> plants = {{"nothing", std::vector<double>(size, 0)}};
  for (const double share : {0.01, 0.02, 0.05, 0.1}) {
    plants.push_back({absl::StrFormat("%g %% of the steps lost", share * 100), lost(share)});
  }
  const auto of_spread = [&](const char* name, const std::function<double(double)>& amount) {
    Plant plant{name, {}};
    for (size_t i = 0; i < size; ++i) {
      plant.change.push_back(worse * spread[i] *
                             amount(static_cast<double>(i) / static_cast<double>(size - 1)));
    }
    plants.push_back(plant);
  };
  of_spread("a bump of 1 sd in the middle third",
            [](double t) { return std::abs(t - 0.5) < 0.17 ? 1.0 : 0.0; });
  of_spread("a plateau worse by up to 1 sd", [](double t) { return t; });
  of_spread("half an sd everywhere", [](double) { return 0.5; });
  Plant slow{"a slower start, of 10 %", lost(0.1)};
  for (size_t i = 0; i < size; ++i)
    slow.change[i] *= 1 - static_cast<double>(i) / static_cast<double>(size - 1);
  plants.push_back(slow);
  return plants;
}

void MeasurePower(const Benchmark& benchmark, size_t trials, std::mt19937_64& random) {
  std::vector<double> x;
  std::vector<std::vector<double>> pool = Pool(benchmark, &x);
  if (pool.size() < 2 * kRunsASide || x.size() < 2) {
    std::printf("| %s | only %zu runs of one kind | | | | | | | |\n", benchmark.name.c_str(), pool.size());
    return;
  }
  std::vector<double> mean(x.size()), spread(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (const auto& run : pool) mean[i] += run[i] / static_cast<double>(pool.size());
    for (const auto& run : pool) {
      spread[i] += (run[i] - mean[i]) * (run[i] - mean[i]) / static_cast<double>(pool.size() - 1);
    }
    spread[i] = std::sqrt(spread[i]);
  }
  for (const Plant& plant : Plants(x, mean, spread)) {
    size_t best = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::abs(plant.change[i]) / spread[i] > std::abs(plant.change[best]) / spread[best]) best = i;
    }
    int worse = 0, better = 0, mixed = 0, as_good = 0, by_best = 0, by_last = 0, here_alone = 0,
        there_alone = 0;
    for (size_t trial = 0; trial < trials; ++trial) {
      for (size_t i = 0; i < 2 * kRunsASide; ++i) {
        std::swap(pool[i], pool[i + random() % (pool.size() - i)]);
      }
      std::vector<RunCurves> sides[2];
      std::vector<double> at_best[2], at_last[2];
      for (size_t i = 0; i < 2 * kRunsASide; ++i) {
        const size_t side = i / kRunsASide;
        RunCurves run{absl::StrFormat("run %d", i), "", {}};
        for (size_t point = 0; point < x.size(); ++point) {
          run.curves[benchmark.metric].push_back(
              {x[point], pool[i][point] + (side == 1 ? plant.change[point] : 0)});
        }
        at_best[side].push_back(run.curves[benchmark.metric][best].y);
        at_last[side].push_back(run.curves[benchmark.metric].back().y);
        sides[side].push_back(std::move(run));
      }
      const Kind kind = Ask(sides[0], sides[1], benchmark.metric);
      worse += kind == LearningVerdict::WORSE;
      better += kind == LearningVerdict::BETTER;
      mixed += kind == LearningVerdict::MIXED;
      as_good += kind == LearningVerdict::AS_GOOD;
      const bool is_found_there = WelchDifference(at_best[0], at_best[1]).PValue() <= kError;
      by_best += is_found_there;
      here_alone += kind == LearningVerdict::WORSE && !is_found_there;
      there_alone += kind != LearningVerdict::WORSE && is_found_there;
      by_last += WelchDifference(at_last[0], at_last[1]).PValue() <= kError;
    }
    const auto percent = [&](int count) { return 100.0 * count / static_cast<double>(trials); };
    // The draws in which one of the two finds it are what is known of their difference (McNemar 1947).
    const double more = percent(here_alone - there_alone);
    const double error =
        196 * std::sqrt(here_alone + there_alone - more * more * static_cast<double>(trials) / 1e4) /
        static_cast<double>(trials);
    std::printf("| %s | %s | %.2f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %+.1f (%+.1f to %+.1f) |\n",
                benchmark.name.c_str(), plant.name.c_str(), std::abs(plant.change[best]) / spread[best],
                percent(worse), percent(better), percent(mixed), percent(as_good), percent(by_best),
                percent(by_last), more, more - error, more + error);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace ott::learning

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "rates FOLDER [SPLITS] [TRIALS]\n");
    return 2;
  }
  const size_t splits = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 10000;
  const size_t trials = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1000;
  const std::vector<ott::learning::Benchmark> benchmarks = ott::learning::ReadBenchmarks(argv[1]);
  std::mt19937_64 random(38);
  std::puts(
      "| benchmark | sides | splits | worse % | better % | as good % |\n| --- | --- | --- | --- | --- | --- "
      "|");
  for (const auto& benchmark : benchmarks) {
    ott::learning::MeasureFalse(benchmark, splits / benchmarks.size() + 1, random);
  }
  std::puts(
      "\n| benchmark | planted | sd at its best point | worse % | better % | mixed % | as good % | t-test "
      "there % | t-test at the end % | worse less t-test there (95 %) |\n| --- | --- | --- | --- | --- | --- "
      "| --- | --- | --- | --- |");
  for (const auto& benchmark : benchmarks) ott::learning::MeasurePower(benchmark, trials, random);
  return 0;
}
