// Tests verdicts on simulated processes: how often they are wrong, and what they are made of.

#include "ott/questions/faster/comparison.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/modes.h"
#include "ott/core/statistics/warm_up.h"
#include "ott/questions/faster/report.h"
#include "ott/questions/faster/samples_for_test.h"

namespace ott::faster {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

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
    EXPECT_LE(SeparationProbability(runs, runs), error);
    EXPECT_TRUE(runs == 2 || SeparationProbability(runs - 1, runs - 1) > error) << error;
    for (const bool in_turn : {false, true}) {
      const size_t fewest = in_turn ? FewestRunsInTurn(error) : runs;
      for (const size_t size : {fewest, fewest - (in_turn ? 2 : 1)}) {
        if (size < 2) continue;
        Chance chance(1);
        Samples samples = MakeSamples(chance, size, 0.5);
        if (in_turn) RunInBlocks(&samples);
        FasterOptions options;
        options.error = error;
        const Comparison comparison = MustCompare(samples, options);
        EXPECT_EQ(comparison.answer.verdict, size == fewest ? AbResult::FASTER : AbResult::CANNOT_TELL);
        EXPECT_TRUE(size == fewest || comparison.answer.runs_needed >= fewest);
      }
    }
  }
  Chance chance(1);
  const Comparison one = MustCompare(MakeSamples(chance, 1, 0.5));
  EXPECT_EQ(one.answer.runs_needed, FewestRuns(0.01));
  EXPECT_FALSE(one.answer.low.has_value());
}

// The primary measurement has all of the error, and each of the others its share of it.
TEST(Compare, EachMeasurementIsJudgedAsByItselfWithItsShareOfTheError) {
  for (const bool in_turn : {false, true}) {
    for (const bool has_primary : {false, true}) {
      Chance chance(7);
      Samples samples = MakeSamples(chance, 8, 1.01, 4);
      if (in_turn) RunInBlocks(&samples);
      if (!has_primary) samples.primary = "none";
      const Comparison all = MustCompare(samples);
      ASSERT_EQ(all.measurements.size(), has_primary ? 3u : 4u);
      EXPECT_EQ(all.answer.name, has_primary ? "m0" : "");
      std::vector<Result> results = all.measurements;
      if (has_primary) results.push_back(all.answer);
      for (const Result& result : results) {
        Samples alone = samples;
        for (auto* side : {&alone.a, &alone.b}) {
          for (Process& process : *side) {
            process.measurements = {{result.name, {process.measurements[result.name[1] - '0'].seconds}}};
          }
        }
        FasterOptions options;
        if (result.name != all.answer.name) options.error /= static_cast<double>(all.measurements.size());
        const Result expected = MustCompare(alone, options).answer;
        EXPECT_EQ(result.verdict, expected.verdict);
        EXPECT_EQ(result.ratio, expected.ratio);
        EXPECT_EQ(result.low, expected.low);
        EXPECT_EQ(result.high, expected.high);
        EXPECT_EQ(result.runs_needed, expected.runs_needed);
        EXPECT_EQ(result.error, 0.01);
      }
    }
  }
}

TEST(Compare, TheVerdictIsWhereTheIntervalLies) {
  std::map<AbResult::Verdict, int> seen;
  for (int trial = 0; trial < 200; ++trial) {
    Chance chance(static_cast<uint64_t>(trial));
    Samples samples = MakeSamples(chance, 6 + 2 * chance.Below(10), 0.95 + 0.1 * chance.Number());
    if (chance.Coin()) RunInBlocks(&samples);
    FasterOptions options;
    options.margin = 0.04 * chance.Number();
    const Comparison comparison = MustCompare(samples, options);
    const Result& answer = comparison.answer;
    AbResult::Verdict expected = AbResult::CANNOT_TELL;
    if (answer.low.has_value()) {
      const double same = 1 + options.margin;
      if (*answer.high < 1) expected = AbResult::FASTER;
      if (*answer.low > 1) expected = AbResult::SLOWER;
      if (*answer.low > 1 / same && *answer.high < same) expected = AbResult::SAME;
      EXPECT_LE(*answer.low, *answer.ratio);
      EXPECT_GE(*answer.high, *answer.ratio);
    }
    EXPECT_EQ(answer.verdict, expected);
    EXPECT_EQ(answer.runs_needed.has_value(), expected == AbResult::CANNOT_TELL);
    EXPECT_EQ(comparison.num_a, samples.a.size());
    EXPECT_EQ(comparison.num_b, samples.b.size());
    EXPECT_EQ(comparison.margin, options.margin);
    EXPECT_NEAR(answer.seconds_b / answer.seconds_a, *answer.ratio, 1e-9);
    ++seen[answer.verdict];
  }
  for (const auto verdict : {AbResult::CANNOT_TELL, AbResult::FASTER, AbResult::SLOWER, AbResult::SAME}) {
    EXPECT_GT(seen[verdict], 5) << Name(verdict);
  }
}

TEST(Compare, OtherSidesTurnTheAnswerAndAnotherOrderOfRunsChangesNothing) {
  for (int trial = 0; trial < 40; ++trial) {
    Chance chance(static_cast<uint64_t>(trial));
    Samples samples = MakeSamples(chance, 8, std::vector<double>{0.9, 0.99, 1, 1.1}[trial % 8 / 2]);
    if (trial % 2 == 0) RunInBlocks(&samples);
    const Result answer = MustCompare(samples).answer;
    if (trial % 2 == 1) {
      // Blocks of one side alone tell nothing.
      Samples in_part = samples;
      RunInBlocks(&in_part);
      (trial % 4 == 1 ? in_part.a : in_part.b) = trial % 4 == 1 ? samples.a : samples.b;
      EXPECT_EQ(MustCompare(in_part).answer.low, answer.low) << trial;
    }
    Samples others = samples;
    std::swap(others.a, others.b);
    std::reverse(others.a.begin(), others.a.end());
    std::rotate(others.b.begin(), others.b.begin() + 3, others.b.end());
    const Result turned = MustCompare(others).answer;
    EXPECT_EQ(turned.verdict, answer.verdict == AbResult::FASTER   ? AbResult::SLOWER
                              : answer.verdict == AbResult::SLOWER ? AbResult::FASTER
                                                                   : answer.verdict);
    EXPECT_NEAR(*turned.ratio * *answer.ratio, 1, 1e-9) << trial;
    EXPECT_NEAR(*turned.low * *answer.high, 1, 1e-9) << trial;
    EXPECT_NEAR(*turned.high * *answer.low, 1, 1e-9) << trial;
    EXPECT_NEAR(turned.seconds_a, answer.seconds_b, 1e-9) << trial;
    EXPECT_NEAR(turned.seconds_added, -answer.seconds_added, 1e-9) << trial;
    EXPECT_EQ(turned.runs_needed, answer.runs_needed) << trial;
  }
}

TEST(Compare, InTurnWhatTheMachineDoesFromBlockToBlockChangesNothing) {
  int num_open = 0;
  for (int trial = 0; trial < 50; ++trial) {
    Chance chance(static_cast<uint64_t>(trial));
    Samples samples = MakeSamples(chance, 6 + 2 * chance.Below(4), 1);
    RunInBlocks(&samples);
    const Result steady = MustCompare(samples).answer;
    for (auto* side : {&samples.a, &samples.b}) {
      for (Process& process : *side)
        process.measurements[0].seconds[0] *= 1 + 0.1 * static_cast<double>(*process.block);
    }
    const Result answer = MustCompare(samples).answer;
    EXPECT_EQ(answer.verdict, steady.verdict);
    EXPECT_NEAR(*answer.ratio, *steady.ratio, 1e-9);
    EXPECT_NEAR(*answer.low, *steady.low, 1e-9);
    EXPECT_NEAR(*answer.high, *steady.high, 1e-9);
    EXPECT_EQ(answer.runs_needed, steady.runs_needed);
    if (answer.verdict != AbResult::CANNOT_TELL) continue;
    ++num_open;
    EXPECT_GT(answer.runs_needed, samples.a.size()) << trial;
    EXPECT_EQ(*answer.runs_needed % 2, 0u) << trial;
  }
  EXPECT_GT(num_open, 0);
}

TEST(Compare, RunsNeededAreTheFewestWhoseIntervalIsAsNarrowAsTheMargin) {
  FasterOptions options;
  int num_open = 0;
  for (int trial = 0; trial < 40; ++trial) {
    options.margin = 0.002 * (1 + trial % 4);
    Chance chance(static_cast<uint64_t>(trial));
    const Samples samples = MakeSamples(chance, 4 + chance.Below(5), 1);
    const Result answer = MustCompare(samples, options).answer;
    if (answer.verdict != AbResult::CANNOT_TELL) continue;
    ++num_open;
    std::vector<double> a, b;
    for (const Process& process : samples.a) a.push_back(std::log(process.measurements[0].seconds[0]));
    for (const Process& process : samples.b) b.push_back(std::log(process.measurements[0].seconds[0]));
    const Estimate now = WelchDifference(a, b);
    size_t runs = a.size();
    Estimate then = now;
    do {
      const double growth = static_cast<double>(++runs) / static_cast<double>(a.size());
      then.standard_error = now.standard_error / std::sqrt(growth);
      then.degrees_of_freedom = now.degrees_of_freedom * growth;
    } while (then.IntervalAt(options.error).high - then.value > std::log1p(options.margin));
    EXPECT_EQ(answer.runs_needed, runs) << trial;
  }
  EXPECT_GT(num_open, 20);
  // So many nobody runs.
  options.margin = 1e-6;
  Chance chance(1);
  EXPECT_FALSE(MustCompare(MakeSamples(chance, 5, 1), options).answer.runs_needed.has_value());
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

TEST(Compare, WhatRunsInSomeIterationsCountsByEachSidesShareOfThem) {
  for (const size_t runs : {1, 8}) {
    Chance chance(9);
    Samples samples = MakeSamples(chance, runs, 2);
    for (Process& process : samples.a) process.measurements[0].share_of_iterations = 0.5;
    for (Process& process : samples.b) process.measurements[0].share_of_iterations = 0.125;
    const Result save = MustCompare(samples).answer;
    EXPECT_NEAR(save.seconds_added, 0.125 * save.seconds_b - 0.5 * save.seconds_a, 1e-12);
    EXPECT_NEAR(save.seconds_added, 0.125 * 2 - 0.5 * 1, 0.05);
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

TEST(Compare, IterationsThatBecameSlowerInPartAreNotedByTheirMean) {
  FasterOptions options;
  options.warm_up = 0;
  int num_noted = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Chance chance(seed);
    Samples samples;
    const double factor = 1 + 2 * static_cast<double>(chance.Below(3));
    const double ratio = chance.Coin() ? 1 : 0.7;
    for (auto* side : {&samples.a, &samples.b}) {
      for (int run = 0; run < 8; ++run) {
        std::vector<double> seconds;
        for (int i = 0; i < 9; ++i) {
          const bool is_rare = side == &samples.b && i % 4 == 0;
          seconds.push_back((side == &samples.b ? ratio : 1) * (is_rare ? factor : 1) *
                            std::exp(0.01 * chance.Normal()));
        }
        side->push_back(ProcessOf("x", {{"m", seconds}}));
      }
    }
    options.location = Location::kMean;
    const Comparison of_means = MustCompare(samples, options);
    options.location = Location::kMedian;
    const Comparison comparison = MustCompare(samples, options);
    const Result &mean = of_means.answer, &median = comparison.answer;
    const bool apart = *mean.low > *median.high || *mean.high < *median.low;
    EXPECT_THAT(of_means.notes, Not(Contains(HasSubstr("the mean of the iterations"))));
    if (apart && IsChange(mean.verdict)) {
      ++num_noted;
      EXPECT_THAT(comparison.notes,
                  Contains(HasSubstr(absl::StrFormat(
                      "the mean of the iterations changed by %+.1f %%, another", (*mean.ratio - 1) * 100))));
    } else {
      EXPECT_THAT(comparison.notes, Not(Contains(HasSubstr("the mean of the iterations"))));
    }
  }
  EXPECT_GT(num_noted, 10);
  EXPECT_LT(num_noted, 35);
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
      (is_b ? cut.b : cut.a)[run].measurements[0].seconds = {1, 1};
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
