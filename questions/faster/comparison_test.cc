// Tests verdicts on simulated processes: how often they are wrong, and what they are made of.

#include "ott/questions/faster/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/block_shift.h"
#include "ott/core/statistics/group_sequential.h"
#include "ott/core/statistics/interval.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/modes.h"
#include "ott/core/statistics/warm_up.h"
#include "ott/questions/faster/report.h"
#include "ott/questions/faster/samples_for_test.h"

namespace ott::faster {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pointwise;

std::string ErrorOf(const Samples& samples, const FasterOptions& options = FasterOptions()) {
  return std::string(Compare(samples, options).status().message());
}

bool IsChange(AbResult::Verdict verdict) {
  return verdict == AbResult::FASTER || verdict == AbResult::SLOWER;
}

// Returns the share of trials in which the same program is called another.
double RateOf(int num_trials, const std::function<bool(Chance&)>& is_wrong) {
  int wrong = 0;
  for (int trial = 0; trial < num_trials; ++trial) {
    Chance chance(static_cast<uint64_t>(trial));
    wrong += is_wrong(chance);
  }
  return static_cast<double>(wrong) / num_trials;
}

// Allows an error in one of five, whose rate is known well after 2000 trials: its deviation is 0.009.
FasterOptions OneInFive() {
  FasterOptions options;
  options.error = 0.2;
  options.margin = 0;
  return options;
}

TEST(CompareRate, TheSameProgramIsCalledDifferentAsOftenAsIsStated) {
  const double rate = RateOf(2000, [](Chance& chance) {
    return IsChange(MustCompare(MakeSamples(chance, 5, 1), OneInFive()).answer.verdict);
  });
  EXPECT_GT(rate, 0.16);
  EXPECT_LT(rate, 0.24);
}

TEST(CompareRate, OfAFamilyOfMeasurementsAnyIsAsOftenAsOfOne) {
  const double rate = RateOf(1000, [](Chance& chance) {
    Samples samples = MakeSamples(chance, 6, 1, 10);
    samples.primary.clear();
    const Comparison comparison = MustCompare(samples, OneInFive());
    EXPECT_EQ(comparison.measurements.size(), 10u);
    return std::any_of(comparison.measurements.begin(), comparison.measurements.end(),
                       [](const Result& result) { return IsChange(result.verdict); });
  });
  EXPECT_GT(rate, 0.13);
  EXPECT_LT(rate, 0.24);
}

// The few runs of one side may all have the same mode.
TEST(CompareRate, AProgramOfTwoModesIsNoOtherIfOneSideHasFewRuns) {
  for (auto side : {&Samples::a, &Samples::b}) {
    const double rate = RateOf(500, [&](Chance& chance) {
      Samples samples = MakeSamples(chance, 20, 1);
      for (auto* processes : {&samples.a, &samples.b}) {
        for (Process& process : *processes) {
          if (chance.Coin()) process.measurements[0].seconds[0] *= 1.3;
        }
      }
      (samples.*side).resize(FewestRuns(0.01));
      return IsChange(MustCompare(samples).answer.verdict);
    });
    EXPECT_LT(rate, 0.01);
  }
}

// After each block there is a look, and the first verdict is taken. Since ranks are few, not all of the error
// can be spent.
TEST(CompareRate, LooksAfterEachBlockTogetherAreNotMoreOftenWrong) {
  FasterOptions options = OneInFive();
  options.max_runs = 12;
  const double rate = RateOf(2000, [&](Chance& chance) {
    Samples samples = MakeSamples(chance, 12, 1);
    RunInBlocks(&samples);
    for (size_t runs = 2; runs <= 12; runs += 2) {
      Samples so_far = samples;
      so_far.a.resize(runs);
      so_far.b.resize(runs);
      if (IsChange(MustCompare(so_far, options).answer.verdict)) return true;
    }
    return false;
  });
  EXPECT_GT(rate, 0.1);
  EXPECT_LT(rate, 0.24);
}

TEST(Compare, TheFewestRunsAreThoseOfTheFewestOrders) {
  for (const double error : {0.2, 0.1, 0.05, 0.01, 0.001}) {
    // A block of ABBA has 6 orders, and each end of the interval is one of them.
    size_t blocks = 1;
    while (2 * std::pow(6, -static_cast<double>(blocks)) > error) ++blocks;
    EXPECT_EQ(FewestRunsInTurn(error), 2 * blocks) << error;
    const size_t runs = FewestRuns(error);
    EXPECT_LE(SeparationProbability(runs), error);
    EXPECT_TRUE(runs == 2 || SeparationProbability(runs - 1) > error) << error;
  }
}

// Judges the measurement by the rules of docs/ab.md; `error` is its share.
Result Judge(const Samples& samples, const std::string& name, const FasterOptions& options, double error) {
  std::vector<double> times[2];
  std::vector<Block> blocks;
  double share[2] = {0, 0};
  bool in_turn = true;
  for (const bool is_b : {false, true}) {
    const std::vector<Process>& side = is_b ? samples.b : samples.a;
    for (const Process& process : side) {
      const MeasurementSamples& measurement = process.measurements[name[1] - '0'];
      times[is_b].push_back(std::log(options.location == Location::kMean ? Mean(measurement.seconds)
                                                                         : Median(measurement.seconds)));
      share[is_b] += measurement.share_of_iterations / static_cast<double>(side.size());
      in_turn = in_turn && process.block.has_value();
      if (!process.block.has_value()) continue;
      blocks.resize(std::max(blocks.size(), *process.block + 1));
      (is_b ? blocks[*process.block].b : blocks[*process.block].a).push_back(times[is_b].back());
    }
  }
  const size_t runs = std::min(times[0].size(), times[1].size());
  const size_t fewest = in_turn ? FewestRunsInTurn(error) : FewestRuns(error);
  Result result;
  result.name = name;
  result.error = options.error;
  const auto middle = [&](bool is_b) { return in_turn ? Median(times[is_b]) : Mean(times[is_b]); };
  Estimate spread;
  spread.value = middle(true) - middle(false);
  std::optional<Interval> interval;
  if (runs >= 2 && in_turn) {
    const BlockShift shift(blocks);
    const size_t most = std::max(options.max_runs / 2, blocks.size());
    std::vector<double> information;
    size_t looks = 0;
    for (size_t count = 1; count <= most; ++count) {
      const double part = static_cast<double>(count) / static_cast<double>(most);
      if (SmallestErrorOfBlocks(count, 2) > error * SpentError(part)) continue;
      information.push_back(part);
      looks += count <= blocks.size();
    }
    if (looks > 0) interval = shift.IntervalAt(GroupSequentialLevels(information, error)[looks - 1]);
    const Interval one_deviation = shift.IntervalAt(0.32);
    spread = {shift.value(), (one_deviation.high - one_deviation.low) / 2, 1e6};
  } else if (runs >= 2) {
    spread = CautiousDifference(times[0], times[1]);
    if (runs >= fewest) interval = spread.IntervalAt(error);
  }
  result.ratio = std::exp(spread.value);
  result.seconds_a = std::exp((middle(false) + middle(true) - spread.value) / 2);
  result.seconds_b = std::exp((middle(false) + middle(true) + spread.value) / 2);
  result.seconds_added = share[1] * result.seconds_b - share[0] * result.seconds_a;
  const double same = std::log1p(options.margin);
  if (interval.has_value()) {
    result.low = std::exp(interval->low);
    result.high = std::exp(interval->high);
    if (interval->high < 0) result.verdict = AbResult::FASTER;
    if (interval->low > 0) result.verdict = AbResult::SLOWER;
    if (interval->low > -same && interval->high < same) result.verdict = AbResult::SAME;
  }
  if (result.verdict != AbResult::CANNOT_TELL) return result;
  if (runs < 2) result.runs_needed = FewestRuns(error);
  if (runs < 2 || options.margin == 0) return result;
  if (!std::isfinite(spread.standard_error)) {
    result.runs_needed = fewest;
    return result;
  }
  if (options.margin < 0.001) return result;  // nobody runs so many
  // The interval of each look is wider than that of a normal variable, and goes on being so.
  const auto half = [&](size_t count) {
    Estimate grown = spread;
    grown.standard_error /= std::sqrt(static_cast<double>(count) / static_cast<double>(runs));
    grown.degrees_of_freedom *= static_cast<double>(count) / static_cast<double>(runs);
    return grown.IntervalAt(error).high - grown.value;
  };
  const double wider = interval.has_value() && half(runs) > 0
                           ? std::max(1.0, (interval->high - interval->low) / 2 / half(runs))
                           : 1;
  size_t needed = std::max(runs + 1, fewest);
  while (wider * half(needed) > same) ++needed;
  result.runs_needed = needed + (in_turn ? needed % 2 : 0);
  return result;
}

TEST(Compare, EachMeasurementIsWhatTheRulesSayWithItsShareOfTheError) {
  std::map<AbResult::Verdict, int> seen;
  int num_noted = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Chance chance(seed);
    const size_t num_measurements = 1 + chance.Below(4);
    const double ratio = std::vector<double>{0.9, 0.99, 1, 1.01, 1.1}[chance.Below(5)];
    Samples samples = MakeSamples(chance, 1 + chance.Below(12), ratio, num_measurements);
    const bool in_turn = chance.Coin() && samples.a.size() % 2 == 0;
    if (in_turn) RunInBlocks(&samples);
    // Blocks of one side alone tell nothing.
    if (in_turn && chance.Below(4) == 0)
      (seed % 2 == 0 ? samples.a : samples.b)[chance.Below(samples.b.size())].block.reset();
    auto& fewer = chance.Coin() ? samples.a : samples.b;
    if (!in_turn && chance.Coin()) fewer.resize(1 + chance.Below(fewer.size()));
    // Some iterations of one side may have become slower than the others.
    const auto* const slower = chance.Coin() ? &samples.a : &samples.b;
    const size_t num_iterations = chance.Coin() ? 1 : 9;
    const double factor = 1 + 2 * static_cast<double>(chance.Below(3));
    for (auto* side : {&samples.a, &samples.b}) {
      for (Process& process : *side) {
        for (MeasurementSamples& measurement : process.measurements) {
          measurement.share_of_iterations = chance.Coin() ? 1 : chance.Number();
          for (size_t i = 1; i < num_iterations; ++i) {
            measurement.seconds.push_back(measurement.seconds[0] *
                                          (side == slower && i % 4 == 0 ? factor : 1));
          }
        }
      }
      chance.Shuffle(*side);
    }
    if (chance.Coin()) samples.primary = "none";
    FasterOptions options;
    options.warm_up = 0;
    if (chance.Below(4) == 0) options.location = Location::kMean;
    options.error = std::vector<double>{0.2, 0.05, 0.01}[chance.Below(3)];
    options.margin = std::vector<double>{0, 1e-6, 0.002, 0.01, 0.03}[chance.Below(5)];
    if (chance.Coin()) options.max_runs = 2 * chance.Below(12);
    const Comparison comparison = MustCompare(samples, options);
    EXPECT_EQ(comparison.num_a, samples.a.size());
    EXPECT_EQ(comparison.num_b, samples.b.size());
    EXPECT_EQ(comparison.margin, options.margin);
    const bool has_primary = samples.primary == "m0" || num_measurements == 1;
    std::vector<Result> results = comparison.measurements;
    ASSERT_EQ(results.size(), num_measurements - (has_primary ? 1 : 0));
    if (has_primary) {
      results.insert(results.begin(), comparison.answer);
      FasterOptions of_means = options;
      of_means.location = Location::kMean;
      const Result mean = Judge(samples, "m0", of_means, options.error),
                   expected = Judge(samples, "m0", options, options.error);
      const bool is_noted =
          IsChange(mean.verdict) && (*mean.low > *expected.high || *mean.high < *expected.low);
      num_noted += is_noted;
      EXPECT_THAT(
          comparison.notes,
          Contains(HasSubstr(absl::StrFormat("the mean of the iterations changed by %+.1f %%, another",
                                             (*mean.ratio - 1) * 100)))
              .Times(is_noted ? 1 : 0));
    }
    for (size_t i = 0; i < num_measurements; ++i) {
      SCOPED_TRACE(absl::StrCat("measurement ", i, " of seed ", seed));
      const bool is_primary = has_primary && i == 0;
      const Result expected =
          Judge(samples, absl::StrCat("m", i), options,
                options.error / static_cast<double>(is_primary ? 1 : comparison.measurements.size()));
      const Result& is = results[i];
      EXPECT_EQ(std::tie(is.name, is.verdict, is.error, is.runs_needed),
                std::tie(expected.name, expected.verdict, expected.error, expected.runs_needed));
      EXPECT_EQ(is.low.has_value(), expected.low.has_value());
      const auto numbers = [](const Result& of) {
        return std::vector<double>{*of.ratio,    of.low.value_or(0), of.high.value_or(0),
                                   of.seconds_a, of.seconds_b,       of.seconds_added};
      };
      EXPECT_THAT(numbers(is), Pointwise(DoubleNear(1e-9), numbers(expected)));
      ++seen[expected.verdict];
    }
  }
  for (const auto verdict : {AbResult::CANNOT_TELL, AbResult::FASTER, AbResult::SLOWER, AbResult::SAME})
    EXPECT_GT(seen[verdict], 20) << Name(verdict);
  EXPECT_GT(num_noted, 10);
}

TEST(Compare, MeasurementsOfAllRunsAreComparedAndTheOthersNamed) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Chance chance(seed);
    Samples samples;
    std::map<std::string, size_t> count;
    for (auto* side : {&samples.a, &samples.b}) {
      for (size_t run = 0; run < 3; ++run) {
        std::map<std::string, std::vector<double>> measurements;
        for (const char* name : {"d", "c", "b\n", "a"}) {
          if (chance.Below(7) == 0) continue;
          measurements[name] = {chance.Number()};
          ++count[name];
        }
        side->push_back(ProcessOf("x", measurements));
        chance.Shuffle(side->back().measurements);
      }
    }
    samples.primary = "c";
    std::vector<std::string> common, others;
    for (const MeasurementSamples& measurement : samples.a[0].measurements) {
      if (count[measurement.name] == 6) common.push_back(measurement.name);
    }
    for (const auto& [name, of] : count) {
      if (of < 6)
        others.push_back(
            absl::StrCat("\"", EscapeControlCharacters(name), "\" is not in all runs, and left out"));
    }
    if (common.empty()) {
      EXPECT_THAT(ErrorOf(samples), HasSubstr("x and x have none in common"));
      continue;
    }
    const Comparison comparison = MustCompare(samples);
    const auto found = std::find(common.begin(), common.end(), "c");
    const std::string primary = common.size() == 1 ? common[0] : found != common.end() ? "c" : "";
    EXPECT_EQ(comparison.answer.name, primary);
    EXPECT_EQ(comparison.plotted, primary.empty() ? common[0] : primary);
    std::vector<std::string> judged;
    for (const Result& result : comparison.measurements) judged.push_back(result.name);
    common.erase(std::remove(common.begin(), common.end(), primary), common.end());
    EXPECT_EQ(judged, common);
    for (const std::string& note : others) EXPECT_THAT(comparison.notes, Contains(note));
    EXPECT_EQ(std::count_if(comparison.notes.begin(), comparison.notes.end(),
                            [](const std::string& note) { return note.find("left out") != note.npos; }),
              static_cast<std::ptrdiff_t>(others.size()));
  }
}

TEST(Compare, WithoutAPrimaryMeasurementTheWorstIsTheAnswerAndNamed) {
  const std::vector<double> ratios = {0.5, 1, 2, 1.04};
  for (int code = 0; code < 4 * 4 * 4 * 4; ++code) {
    Chance chance(static_cast<uint64_t>(code));
    Samples samples;
    std::vector<std::string> of[4];
    for (int run = 0; run < 6; ++run) {
      std::map<std::string, std::vector<double>> a, b;
      for (int i = 0, rest = code; i < 4; ++i, rest /= 4) {
        const std::string name = absl::StrCat("m", i);
        if (run == 0) of[rest % 4].push_back(name);
        // The last kind varies too much for an answer.
        const double spread = rest % 4 == 3 ? 0.2 : 0.01;
        a[name] = {std::exp(spread * chance.Normal())};
        b[name] = {ratios[rest % 4] * std::exp(spread * chance.Normal())};
      }
      samples.a.push_back(ProcessOf("a", a));
      samples.b.push_back(ProcessOf("b", b));
    }
    FasterOptions options;
    options.margin = 0.2;
    const auto list = [](std::vector<std::string> names) {
      if (names.size() > 3) names[3] = "1 more";
      return absl::StrJoin(names, ", ");
    };
    const Comparison comparison = MustCompare(samples, options);
    size_t needed = 0;
    for (const Result& result : comparison.measurements)
      needed = std::max(needed, result.runs_needed.value_or(0));
    const std::string expected =
        !of[2].empty()   ? "B is slower in " + list(of[2])
        : !of[3].empty() ? absl::StrCat("cannot tell of all measurements after 6 runs a side; some ", needed,
                                        " a side would tell 20 %")
        : !of[0].empty() ? "B is faster in " + list(of[0]) + ", and slower in none"
                         : "B is the same within 20 % in all 4 measurements";
    EXPECT_EQ(DescribeAnswer(comparison), expected);
    EXPECT_FALSE(comparison.answer.ratio.has_value());
    EXPECT_EQ(comparison.answer.runs_needed.value_or(0), of[2].empty() && !of[3].empty() ? needed : 0);
    EXPECT_EQ(comparison.answer.error, 0.01);
  }
}

// Each process stands for the median or mean of what is left of it after its warm-up.
TEST(Compare, TheTimeOfAProcessIsThatOfItsSettledIterations) {
  int num_unsettled = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Chance chance(seed);
    FasterOptions options;
    if (chance.Coin()) options.location = Location::kMean;
    if (chance.Coin()) options.warm_up = chance.Below(4);
    Samples samples;
    size_t unsettled = 0, all = 0;
    std::vector<std::pair<double, size_t>> expected;
    for (auto* side : {&samples.a, &samples.b}) {
      for (size_t run = 0, runs = 1 + chance.Below(4); run < runs; ++run) {
        std::vector<double> seconds(1 + chance.Below(12) + options.warm_up.value_or(0));
        const size_t slow = chance.Below(seconds.size());
        for (size_t i = 0; i < seconds.size(); ++i) seconds[i] = (i < slow ? 9 : 1) + 0.1 * chance.Number();
        side->push_back(ProcessOf("x", {{"m", seconds}}));
        const size_t warm_up = options.warm_up.value_or(WarmUpLength(seconds));
        unsettled += seconds.size() >= 4 && 10 * warm_up >= 4 * seconds.size();
        ++all;
        seconds.erase(seconds.begin(), seconds.begin() + static_cast<std::ptrdiff_t>(warm_up));
        expected.emplace_back(options.location == Location::kMean ? Mean(seconds) : Median(seconds), warm_up);
      }
    }
    const Comparison comparison = MustCompare(samples, options);
    std::vector<std::pair<double, size_t>> located;
    for (const auto* side : {&comparison.locations_a, &comparison.locations_b}) {
      for (const ProcessLocation& location : *side)
        located.emplace_back(location.seconds, location.num_warm_up);
    }
    EXPECT_EQ(located, expected);
    const std::string note =
        absl::StrCat("\"m\" had not settled half-way in ", unsettled, " of ", all, " runs");
    if (!options.warm_up.has_value() && 2 * unsettled > all) {
      ++num_unsettled;
      EXPECT_THAT(comparison.notes, Contains(HasSubstr(note)));
    } else {
      EXPECT_THAT(comparison.notes, Not(Contains(HasSubstr("had not settled"))));
    }
  }
  EXPECT_GT(num_unsettled, 5);
}

TEST(Compare, SamplesThatCannotBeComparedAreErrorsThatNameTheProcess) {
  Chance chance(11);
  const Samples whole = MakeSamples(chance, 3, 1);
  for (const bool is_b : {false, true}) {
    Samples none = whole;
    (is_b ? none.b : none.a).clear();
    EXPECT_THAT(ErrorOf(none), HasSubstr(absl::StrCat("no runs of ", is_b ? "B" : "A")));
    for (size_t run = is_b ? 0 : 1; run < 3; ++run) {
      Samples cut = whole;
      MeasurementSamples& longer = (is_b ? cut.b : cut.a)[run].measurements[0];
      // Only a part of its iterations may be kept.
      if (run == 1) longer.num_iterations = 2;
      if (run != 1) longer.seconds = {1, 1};
      EXPECT_TRUE(Compare(cut, FasterOptions()).ok());
      cut.iterations_must_match = true;
      EXPECT_EQ(ErrorOf(cut), absl::StrCat("a0 has 1 iterations of \"m0\" and ", is_b ? "b" : "a", run,
                                           " has 2: was one cut short? --accept iterations compares them "
                                           "nevertheless"));
      FasterOptions accepted;
      accepted.accepted = {"iterations"};
      EXPECT_TRUE(Compare(cut, accepted).ok());
      Samples huge = whole;
      (is_b ? huge.b : huge.a)[run].measurements[0].seconds = {1e308, 1e308, 1e308};
      FasterOptions mean;
      mean.location = Location::kMean;
      EXPECT_EQ(ErrorOf(huge, mean),
                absl::StrCat(is_b ? "b" : "a", run, ": the mean of \"m0\" is too large"));
    }
  }
  FasterOptions options;
  options.warm_up = 1;
  EXPECT_EQ(ErrorOf(whole, options), "a0: only 1 iterations of \"m0\", and --warmup leaves 1 out");
}

}  // namespace
}  // namespace ott::faster
