// Comparisons of simulated processes, and of files as others write them.

#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/faster/comparison.h"
#include "ott/questions/faster/read_samples.h"
#include "ott/questions/faster/report.h"

namespace ott::faster {
namespace {

using ::testing::Contains;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// Processes of 30 iterations of about `seconds`; processes differ by 1 %.
class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed) {}

  Process MakeProcess(double seconds, const std::string& name = "iteration") {
    Process process;
    process.name = absl::StrCat("process ", ++number_);
    AddMeasurement(name, seconds, &process);
    return process;
  }

  void AddMeasurement(const std::string& name, double seconds, Process* process) {
    MeasurementSamples measurement;
    measurement.name = name;
    const double of_process = seconds * std::exp(0.01 * normal_(random_));
    for (int i = 0; i < 30; ++i)
      measurement.seconds.push_back(of_process * std::exp(0.05 * normal_(random_)));
    process->measurements.push_back(measurement);
  }

  Samples MakeSamples(size_t runs, double ratio) {
    Samples samples;
    for (size_t i = 0; i < runs; ++i) {
      samples.a.push_back(MakeProcess(0.1));
      samples.b.push_back(MakeProcess(0.1 * ratio));
    }
    samples.primary = "iteration";
    return samples;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  int number_ = 0;
};

Comparison MustCompare(const Samples& samples, const FasterOptions& options = FasterOptions()) {
  const absl::StatusOr<Comparison> comparison = Compare(samples, options);
  EXPECT_TRUE(comparison.ok()) << comparison.status();
  return comparison.ok() ? *comparison : Comparison();
}

TEST(Compare, TenPercentLessTimeIsFaster) {
  const Comparison comparison = MustCompare(Simulation(1).MakeSamples(8, 0.9));
  EXPECT_EQ(comparison.answer.verdict, AbResult::FASTER);
  EXPECT_NEAR(*comparison.answer.ratio, 0.9, 0.02);
  EXPECT_LT(*comparison.answer.low, 0.9);
  EXPECT_GT(*comparison.answer.high, 0.9);
  EXPECT_THAT(DescribeAnswer(comparison), HasSubstr("B is faster by "));
  EXPECT_THAT(DescribeAnswer(comparison), HasSubstr(" % (99 %: "));
}

TEST(Compare, TenPercentMoreTimeIsSlower) {
  const Comparison comparison = MustCompare(Simulation(2).MakeSamples(8, 1.1));
  EXPECT_EQ(comparison.answer.verdict, AbResult::SLOWER);
  EXPECT_THAT(DescribeAnswer(comparison), HasSubstr("B is slower by "));
}

TEST(Compare, WhatIsInsideOfTheMarginIsTheSame) {
  FasterOptions options;
  options.margin = 0.05;
  const Comparison comparison = MustCompare(Simulation(3).MakeSamples(20, 1), options);
  EXPECT_EQ(comparison.answer.verdict, AbResult::SAME);
  EXPECT_THAT(DescribeAnswer(comparison), HasSubstr("B is the same within 5 %"));
}

TEST(Compare, WideIntervalsCannotTellAndSayHowManyRunsWould) {
  FasterOptions options;
  options.margin = 0.001;
  const Comparison comparison = MustCompare(Simulation(4).MakeSamples(5, 1), options);
  EXPECT_EQ(comparison.answer.verdict, AbResult::CANNOT_TELL);
  // (2.576 * sqrt(2) * 0.014 / 0.001)^2 is 2,600, with a spread of 1.4 % that five runs know within a factor.
  ASSERT_TRUE(comparison.answer.runs_needed.has_value());
  EXPECT_GT(*comparison.answer.runs_needed, 200);
  EXPECT_LT(*comparison.answer.runs_needed, 10000);
  EXPECT_THAT(DescribeAnswer(comparison), HasSubstr("a side would tell 0.1 %"));
}

TEST(Compare, OneRunASideCannotTell) {
  const Comparison comparison = MustCompare(Simulation(5).MakeSamples(1, 0.5));
  EXPECT_EQ(comparison.answer.verdict, AbResult::CANNOT_TELL);
  EXPECT_EQ(comparison.answer.runs_needed, 4);
  EXPECT_FALSE(comparison.answer.low.has_value());
  EXPECT_THAT(DescribeAnswer(comparison), HasSubstr("too few for 99 %; at least 4 a side are needed"));
}

TEST(Compare, ThreeRunsASideTellAt95PercentAndNotAt99) {
  EXPECT_EQ(FewestRuns(0.05), 3);
  EXPECT_EQ(FewestRuns(0.01), 4);
  const Samples samples = Simulation(6).MakeSamples(3, 0.5);
  EXPECT_EQ(MustCompare(samples).answer.verdict, AbResult::CANNOT_TELL);
  EXPECT_THAT(DescribeAnswer(MustCompare(samples)), HasSubstr("too few for 99 %"));
  FasterOptions options;
  options.error = 0.05;
  EXPECT_EQ(MustCompare(samples, options).answer.verdict, AbResult::FASTER);
}

// Clean runs: five processes a side of the same program.
TEST(Compare, TheSameProgramIsRarelyCalledDifferent) {
  constexpr int kTrials = 1000;
  int wrong = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const AbResult::Verdict verdict = MustCompare(Simulation(trial).MakeSamples(5, 1)).answer.verdict;
    wrong += verdict == AbResult::FASTER || verdict == AbResult::SLOWER;
  }
  EXPECT_LE(wrong, 25);  // nominally 10; five standard deviations more
}

TEST(Compare, FamiliesOfMeasurementsAreRarelyCalledDifferent) {
  constexpr int kTrials = 300;
  int wrong = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Simulation simulation(trial);
    Samples samples;
    for (auto* side : {&samples.a, &samples.b}) {
      for (int i = 0; i < 6; ++i) {
        side->push_back(simulation.MakeProcess(0.1, "0"));
        for (int j = 1; j < 10; ++j) simulation.AddMeasurement(absl::StrCat(j), 0.1, &side->back());
      }
    }
    const Comparison comparison = MustCompare(samples);
    bool any = false;
    for (const Result& result : comparison.measurements) {
      any |= result.verdict == AbResult::FASTER || result.verdict == AbResult::SLOWER;
    }
    EXPECT_EQ(any, comparison.answer.verdict == AbResult::FASTER ||
                       comparison.answer.verdict == AbResult::SLOWER ||
                       (any && comparison.answer.verdict == AbResult::CANNOT_TELL));
    wrong += any;
  }
  EXPECT_LE(wrong, 12);  // nominally 3; five standard deviations more
}

// Each pair of runs in turn is looked at, and the first verdict is taken.
TEST(Compare, LookingAfterEachBlockDoesNotMakeItWrongMoreOften) {
  constexpr int kTrials = 200;
  FasterOptions options;
  options.max_runs = 12;
  int wrong = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    Simulation simulation(trial);
    Samples samples;
    for (size_t block = 0; block < 6; ++block) {
      for (auto* side : {&samples.a, &samples.a, &samples.b, &samples.b}) {
        side->push_back(simulation.MakeProcess(0.1));
        side->back().block = block;
      }
      const AbResult::Verdict verdict = MustCompare(samples, options).answer.verdict;
      if (verdict == AbResult::CANNOT_TELL) continue;
      wrong += verdict != AbResult::SAME;
      break;
    }
  }
  EXPECT_LE(wrong, 9);  // nominally 2; five standard deviations more
}

TEST(Compare, InTurnTheChangeIsThatOfTheColumnsAndOnlyMoreRunsWouldTell) {
  int num_open = 0;
  for (int trial = 0; trial < 50; ++trial) {
    Simulation simulation(trial);
    Samples samples;
    for (size_t block = 0; block < 3; ++block) {
      // The machine becomes slower from block to block.
      for (auto* side : {&samples.a, &samples.a, &samples.b, &samples.b}) {
        side->push_back(simulation.MakeProcess(0.1 * (1.0 + 0.1 * static_cast<double>(block))));
        side->back().block = block;
      }
    }
    const Result answer = MustCompare(samples).answer;
    EXPECT_NEAR(answer.seconds_b / answer.seconds_a, *answer.ratio, 1e-9) << trial;
    if (answer.verdict != AbResult::CANNOT_TELL) continue;
    ++num_open;
    ASSERT_TRUE(answer.runs_needed.has_value());
    EXPECT_GT(*answer.runs_needed, 6u) << trial;
    EXPECT_EQ(*answer.runs_needed % 2, 0u) << trial;
  }
  EXPECT_GT(num_open, 0);
}

AbResult::Verdict Opposite(AbResult::Verdict verdict) {
  if (verdict == AbResult::FASTER) return AbResult::SLOWER;
  return verdict == AbResult::SLOWER ? AbResult::FASTER : verdict;
}

TEST(Compare, OtherSidesTurnTheAnswerAndAnotherOrderOfRunsChangesNothing) {
  std::set<AbResult::Verdict> seen;
  for (int trial = 0; trial < 40; ++trial) {
    const bool in_turn = trial % 2 == 0;
    Samples samples = Simulation(trial).MakeSamples(8, std::vector<double>{0.9, 0.99, 1, 1.1}[trial % 8 / 2]);
    for (auto* side : {&samples.a, &samples.b}) {
      for (size_t i = 0; i < side->size() && in_turn; ++i) (*side)[i].block = i / 2;
    }
    const Result answer = MustCompare(samples).answer;
    seen.insert(answer.verdict);
    Samples others = samples;
    std::swap(others.a, others.b);
    std::reverse(others.a.begin(), others.a.end());
    std::rotate(others.b.begin(), others.b.begin() + 3, others.b.end());
    const Result turned = MustCompare(others).answer;
    EXPECT_EQ(turned.verdict, Opposite(answer.verdict)) << trial;
    EXPECT_NEAR(*turned.ratio * *answer.ratio, 1, 1e-9) << trial;
    EXPECT_NEAR(*turned.low * *answer.high, 1, 1e-9) << trial;
    EXPECT_NEAR(*turned.high * *answer.low, 1, 1e-9) << trial;
    EXPECT_NEAR(turned.seconds_a, answer.seconds_b, 1e-9) << trial;
    EXPECT_NEAR(turned.seconds_added, -answer.seconds_added, 1e-9) << trial;
    EXPECT_EQ(turned.runs_needed, answer.runs_needed) << trial;
  }
  EXPECT_GE(seen.size(), 3u);
}

TEST(Compare, RunsNeededAreTheFewestWhoseIntervalIsAsNarrowAsTheMargin) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, 0.01);
  FasterOptions options;
  options.warm_up = 0;
  for (int trial = 0; trial < 40; ++trial) {
    options.margin = 0.002 * (1 + trial % 4);
    Samples samples;
    samples.primary = "iteration";
    std::vector<double> a, b;
    for (int i = 0; i < 4 + trial % 5; ++i) {
      for (auto* values : {&a, &b}) {
        values->push_back(normal(random));
        Process process;
        process.measurements.push_back({"iteration", {std::exp(values->back())}});
        (values == &a ? samples.a : samples.b).push_back(process);
      }
    }
    const Result answer = MustCompare(samples, options).answer;
    if (answer.verdict != AbResult::CANNOT_TELL) continue;
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
}

TEST(Compare, WithoutAPrimaryMeasurementTheWorstIsTheAnswerAndNamed) {
  const std::vector<double> ratios = {0.5, 1, 2};
  for (int code = 0; code < 3 * 3 * 3 * 3; ++code) {
    Simulation simulation(code);
    Samples samples;
    std::vector<std::string> of[3];
    for (int run = 0; run < 6; ++run) {
      samples.a.emplace_back();
      samples.b.emplace_back();
      for (int i = 0, rest = code; i < 4; ++i, rest /= 3) {
        const std::string name = absl::StrCat("m", i);
        if (run == 0) of[rest % 3].push_back(name);
        simulation.AddMeasurement(name, 0.1, &samples.a.back());
        simulation.AddMeasurement(name, 0.1 * ratios[rest % 3], &samples.b.back());
      }
    }
    FasterOptions options;
    options.margin = 0.2;
    const auto list = [](std::vector<std::string> names) {
      if (names.size() > 3) names[3] = "1 more";
      return absl::StrJoin(names, ", ");
    };
    const std::string expected = !of[2].empty()   ? "B is slower in " + list(of[2])
                                 : !of[0].empty() ? "B is faster in " + list(of[0]) + ", and slower in none"
                                                  : "B is the same within 20 % in all 4 measurements";
    EXPECT_EQ(DescribeAnswer(MustCompare(samples, options)), expected);
  }
}

TEST(Compare, TheMeasurementThatAccountsForTheChangeIsNamed) {
  Simulation simulation(7);
  Samples samples;
  for (int i = 0; i < 8; ++i) {
    samples.a.push_back(simulation.MakeProcess(0.1));
    simulation.AddMeasurement("forward", 0.04, &samples.a.back());
    simulation.AddMeasurement("backward", 0.05, &samples.a.back());
    samples.b.push_back(simulation.MakeProcess(0.08));
    simulation.AddMeasurement("forward", 0.04, &samples.b.back());
    simulation.AddMeasurement("backward", 0.03, &samples.b.back());
  }
  samples.primary = "iteration";
  const std::string text = ToText(MustCompare(samples));
  EXPECT_THAT(text,
              ::testing::ContainsRegex("what changed: backward -[12][0-9.]+ ms, of -[12][0-9.]+ ms in all"));
}

TEST(Compare, WhatRunsInSomeIterationsCountsByEachSidesShareOfThem) {
  for (const int runs : {1, 8}) {
    Simulation simulation(9);
    Samples samples;
    for (int i = 0; i < runs; ++i) {
      samples.a.push_back(simulation.MakeProcess(0.1, "save"));
      samples.a.back().measurements[0].share_of_iterations = 0.5;
      samples.b.push_back(simulation.MakeProcess(0.2, "save"));
      samples.b.back().measurements[0].share_of_iterations = 0.125;
    }
    samples.primary = "save";
    const Result& save = MustCompare(samples).answer;
    EXPECT_NEAR(save.seconds_added, 0.125 * save.seconds_b - 0.5 * save.seconds_a, 1e-12);
    EXPECT_NEAR(save.seconds_added, 0.125 * 0.2 - 0.5 * 0.1, 0.005);
  }
}

TEST(Compare, IterationsOfWarmUpDoNotCount) {
  Samples samples = Simulation(8).MakeSamples(8, 0.8);
  // B compiles longer, and is faster afterwards.
  for (Process& process : samples.b) {
    for (int i = 0; i < 10; ++i) process.measurements[0].seconds[i] *= 10;
  }
  const Comparison comparison = MustCompare(samples);
  EXPECT_EQ(comparison.answer.verdict, AbResult::FASTER);
  EXPECT_EQ(comparison.locations_b[0].num_warm_up, 10);
  FasterOptions options;
  options.warm_up = 0;
  options.location = Location::kMean;
  EXPECT_EQ(MustCompare(samples, options).answer.verdict, AbResult::SLOWER);
}

TEST(Compare, MoreWarmUpThanIterationsIsAnError) {
  FasterOptions options;
  options.warm_up = 30;
  const auto comparison = Compare(Simulation(9).MakeSamples(5, 1), options);
  EXPECT_EQ(comparison.status().message(),
            "process 1: only 30 iterations of \"iteration\", and --warmup leaves 30 out");
}

TEST(Compare, SomeIterationsThatBecameSlowerAreNoted) {
  Samples samples = Simulation(10).MakeSamples(8, 1);
  for (Process& process : samples.b) {
    for (int i = 0; i < 30; i += 4) process.measurements[0].seconds[i] *= 3;
  }
  FasterOptions options;
  options.warm_up = 0;
  const std::vector<std::string> notes = MustCompare(samples, options).notes;
  options.location = Location::kMean;
  const double ratio = *MustCompare(samples, options).answer.ratio;
  EXPECT_THAT(notes, Contains(StartsWith(absl::StrFormat(
                         "the mean of the iterations changed by %+.1f %%, another", (ratio - 1) * 100))));
  options.location = Location::kMedian;
  EXPECT_THAT(MustCompare(Simulation(10).MakeSamples(8, 1), options).notes, IsEmpty());
}

TEST(Compare, AProcessThatWasCutShortIsAnError) {
  Samples samples = Simulation(11).MakeSamples(5, 1);
  samples.iterations_must_match = true;
  samples.b[2].measurements[0].seconds.resize(20);
  const auto comparison = Compare(samples, FasterOptions());
  EXPECT_THAT(std::string(comparison.status().message()), HasSubstr("was one cut short?"));
  FasterOptions options;
  options.accepted = {"iterations"};
  EXPECT_TRUE(Compare(samples, options).ok());
}

TEST(Compare, ASideWithoutRunsIsAnError) {
  Samples samples = Simulation(12).MakeSamples(5, 1);
  samples.b.clear();
  EXPECT_THAT(std::string(Compare(samples, FasterOptions()).status().message()), HasSubstr("no runs of B"));
}

TEST(Compare, NothingInCommonIsAnError) {
  Samples samples = Simulation(13).MakeSamples(5, 1);
  for (Process& process : samples.b) process.measurements[0].name = "other";
  EXPECT_THAT(std::string(Compare(samples, FasterOptions()).status().message()), HasSubstr("none in common"));
}

TEST(Conditions, AnotherMachineIsVoidUnlessItIsMeant) {
  Simulation simulation(14);
  Samples samples = simulation.MakeSamples(8, 0.5);
  for (Process& process : samples.a) process.conditions["machine"] = "old";
  for (Process& process : samples.b) process.conditions["machine"] = "new";
  for (Process& process : samples.a) simulation.AddMeasurement("forward", 0.01, &process);
  for (Process& process : samples.b) simulation.AddMeasurement("forward", 0.02, &process);
  EXPECT_EQ(MustCompare(samples).answer.verdict, AbResult::CANNOT_TELL);
  for (const Result& result : MustCompare(samples).measurements) {
    EXPECT_EQ(result.verdict, AbResult::CANNOT_TELL) << result.name;
  }
  EXPECT_THAT(DescribeAnswer(MustCompare(samples)), HasSubstr("machine of A: old; of B: new"));
  FasterOptions options;
  options.accepted = {"machine"};
  EXPECT_EQ(MustCompare(samples, options).answer.verdict, AbResult::FASTER);
  EXPECT_EQ(MustCompare(samples, options).measurements.at(0).verdict, AbResult::SLOWER);
}

TEST(Conditions, TwoKindsOfRunsAreNoted) {
  Samples samples = Simulation(15).MakeSamples(10, 1);
  for (size_t i = 0; i < 10; i += 3) {
    for (double& seconds : samples.b[i].measurements[0].seconds) seconds *= 1.3;
  }
  EXPECT_THAT(MustCompare(samples).notes, ElementsAre(HasSubstr("the runs of B are of two kinds: 6 near ")));
}

TEST(Conditions, DriftAndRunsThatWereNotInTurnAreNoted) {
  Samples samples = Simulation(16).MakeSamples(10, 1);
  for (size_t i = 0; i < 10; ++i) {
    samples.a[i].started = 2.0 * i;
    samples.b[i].started = 2.0 * i + 1;
    for (Process* process : {&samples.a[i], &samples.b[i]}) {
      for (double& seconds : process->measurements[0].seconds) seconds *= 1 + 0.02 * static_cast<double>(i);
    }
  }
  EXPECT_THAT(MustCompare(samples).notes, ElementsAre(HasSubstr("the machine drifted")));
  for (Process& process : samples.b) *process.started += 100;
  EXPECT_THAT(MustCompare(samples).notes, Contains(HasSubstr("all runs of A came before those of B")));
}

TEST(Conditions, LoadByOthersIsNoted) {
  Samples samples = Simulation(17).MakeSamples(8, 1);
  for (Process& process : samples.a) process.cpus_of_others = 0.02;
  for (Process& process : samples.b) process.cpus_of_others = 0.01;
  EXPECT_THAT(MustCompare(samples).notes, IsEmpty());
  for (size_t i = 0; i < 8; ++i) samples.b[i].cpus_of_others = 1 + 0.01 * static_cast<double>(i);
  EXPECT_THAT(MustCompare(samples).notes, ElementsAre(HasSubstr("unequal load may be the difference")));
}

TEST(Report, NamesAreEscapedInEachFormat) {
  Simulation simulation(18);
  Samples samples = simulation.MakeSamples(8, 1.5);
  for (auto* side : {&samples.a, &samples.b}) {
    for (Process& process : *side) simulation.AddMeasurement("<\"data\">\n", 0.01, &process);
  }
  const Comparison comparison = MustCompare(samples);
  EXPECT_THAT(ToCsv(comparison), HasSubstr("\n\"<\"\"data\"\">\n\","));
  const std::string xml = ToJUnitXml(comparison);
  EXPECT_THAT(xml, StartsWith("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                              "<testsuite name=\"ott ab\" tests=\"2\" failures=\"1\" errors=\"1\">\n"
                              "  <testcase classname=\"ott.ab\" name=\"iteration\" time=\"0.149"));
  EXPECT_THAT(xml, HasSubstr("\"><failure message=\"B is slower by "));
  EXPECT_THAT(xml, HasSubstr("name=\"&lt;&quot;data&quot;&gt;\\n\" time=\"0.00996"));
}

class ReadSideTest : public ::testing::Test {
 protected:
  ReadSideTest() {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directories(dir_);
  }

  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/" + name, std::ios::binary) << text;
    return dir_ + "/" + name;
  }

  // Returns the error that a file of this text makes.
  std::string ErrorOf(const std::string& text) const {
    const auto side = ReadSide({Write("file", text)}, ClockKind::kWall);
    EXPECT_FALSE(side.ok());
    EXPECT_THAT(std::string(side.status().message()), HasSubstr(dir_ + "/file"));
    return std::string(side.status().message());
  }

  std::string WriteRun(const std::string& name,
                       const std::vector<std::vector<float>>& seconds_of_ranks) const {
    const std::string run = dir_ + "/" + name;
    RunInfo info;
    info.set_world_size(static_cast<int>(seconds_of_ranks.size()));
    info.add_hosts("host");
    info.set_cpu("model");
    info.set_started("2026-01-02T03:04:05+00:00");
    EXPECT_TRUE(MakeDirectories(run).ok());
    EXPECT_TRUE(WriteRunInfo(run, info).ok());
    for (size_t rank = 0; rank < seconds_of_ranks.size(); ++rank) {
      StopwatchStats stats;
      stats.set_rank(static_cast<int>(rank));
      stats.set_num_measured_iters(static_cast<int64_t>(seconds_of_ranks[rank].size()));
      stats.mutable_iteration_series()->set_stride(1);
      ott::Measurement& forward = *stats.add_measurements();
      forward.set_name("forward");
      for (const float seconds : seconds_of_ranks[rank]) {
        stats.mutable_iteration_series()->add_seconds(seconds);
        forward.mutable_series()->add_seconds(seconds / 2);
      }
      EXPECT_TRUE(MakeDirectories(RankDirectory(run, static_cast<int>(rank))).ok());
      EXPECT_TRUE(WriteFileAtomically(RankDirectory(run, static_cast<int>(rank)) + "/stopwatch.pb",
                                      stats.SerializeAsString())
                      .ok());
    }
    return run;
  }

  const std::string dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

SideSamples MustRead(const std::vector<std::string>& paths, ClockKind clock = ClockKind::kWall) {
  const auto side = ReadSide(paths, clock);
  EXPECT_TRUE(side.ok()) << side.status();
  return side.ok() ? *side : SideSamples();
}

TEST_F(ReadSideTest, AnIterationOfManyRanksGoesFromTheEndOfAllToTheEndOfAll) {
  // Rank 1 is late in the first iteration, and rank 0 in the third.
  const SideSamples side = MustRead({WriteRun("run", {{1, 2, 3}, {2, 1, 2}})});
  EXPECT_EQ(side.primary, "iteration");
  ASSERT_EQ(side.processes.size(), 1);
  ASSERT_EQ(side.processes[0].measurements.size(), 2);
  EXPECT_THAT(side.processes[0].measurements[0].seconds, ElementsAre(2, 1, 3));
  EXPECT_EQ(side.processes[0].measurements[1].name, "forward");
  EXPECT_THAT(side.processes[0].measurements[1].seconds, ElementsAre(0.75, 0.75, 1.25));
  EXPECT_EQ(side.processes[0].conditions.at("ranks"), "2");
  EXPECT_EQ(side.processes[0].conditions.at("CPU"), "model");
  EXPECT_NEAR(*side.processes[0].started, 1767323045, 1);
}

TEST_F(ReadSideTest, FoldersAndGlobsOfRunsAreRead) {
  WriteRun("old_1", {{1, 1}});
  WriteRun("old_2", {{2, 2}});
  WriteRun("kept/a_001/run", {{3, 3}});
  EXPECT_EQ(MustRead({dir_ + "/old_*"}).processes.size(), 2);
  EXPECT_EQ(MustRead({dir_ + "/kept"}).processes.size(), 1);
}

TEST_F(ReadSideTest, ARunWithoutARankOrWithAShorterOneIsAnError) {
  const std::string run = WriteRun("run", {{1, 1}, {1, 1}});
  std::filesystem::remove(RankDirectory(run, 1) + "/stopwatch.pb");
  EXPECT_THAT(std::string(ReadSide({run}, ClockKind::kWall).status().message()),
              HasSubstr("rank_00001/stopwatch.pb"));
  EXPECT_THAT(
      std::string(ReadSide({WriteRun("cut", {{1, 1, 1}, {1, 1}})}, ClockKind::kWall).status().message()),
      HasSubstr("rank 0 measured 3 iterations and rank 1 2"));
  EXPECT_THAT(std::string(ReadSide({WriteRun("nan", {{1, NAN}})}, ClockKind::kWall).status().message()),
              HasSubstr("an iteration of nan seconds"));
  EXPECT_THAT(std::string(ReadSide({WriteRun("zero", {{1, 0}})}, ClockKind::kWall).status().message()),
              HasSubstr("an iteration of 0 seconds"));
  EXPECT_THAT(std::string(ReadSide({WriteRun("none", {{}})}, ClockKind::kWall).status().message()),
              HasSubstr("no iteration was measured"));
}

TEST_F(ReadSideTest, RepetitionsOfGoogleBenchmarkAreIterationsOfOneProcess) {
  const std::string file = Write("benchmark.json", R"({
    "context": {"date": "2026-01-02T03:04:05+00:00", "host_name": "host", "num_cpus": 2, "cpu_scaling_enabled": true,
                "library_build_type": "debug"},
    "benchmarks": [
      {"name": "Sort/1", "run_name": "Sort/1", "run_type": "iteration", "real_time": 2.0, "cpu_time": 1.0, "time_unit": "us"},
      {"name": "Sort/1", "run_name": "Sort/1", "run_type": "iteration", "real_time": 3.0, "cpu_time": 1.5, "time_unit": "us"},
      {"name": "Sort/1_mean", "run_name": "Sort/1", "run_type": "aggregate", "aggregate_name": "mean",
       "real_time": 2.5, "cpu_time": 1.2, "time_unit": "us"},
      {"name": "Find_median", "run_name": "Find", "run_type": "aggregate", "aggregate_name": "median",
       "real_time": 7, "cpu_time": 7, "time_unit": "ns"}]})");
  const SideSamples side = MustRead({file});
  ASSERT_EQ(side.processes.size(), 1);
  ASSERT_EQ(side.processes[0].measurements.size(), 2);
  EXPECT_THAT(side.processes[0].measurements[0].seconds,
              ElementsAre(DoubleNear(2e-6, 1e-12), DoubleNear(3e-6, 1e-12)));
  EXPECT_THAT(side.processes[0].measurements[1].seconds, ElementsAre(DoubleNear(7e-9, 1e-15)));
  EXPECT_EQ(side.processes[0].conditions.at("machine"), "host");
  EXPECT_THAT(side.notes, ElementsAre(HasSubstr("frequency was scaled")));
  EXPECT_THAT(MustRead({file}, ClockKind::kCpu).processes[0].measurements[0].seconds,
              ElementsAre(DoubleNear(1e-6, 1e-12), DoubleNear(1.5e-6, 1e-12)));
}

TEST_F(ReadSideTest, NvbenchHasTheMeanOrTheSamplesBesideIt) {
  const std::string begin =
      R"({"devices": [{"id": 0, "name": "GPU"}], "benchmarks": [{"name": "copy", "states": [
      {"name": "Device=0 Size=1", "is_skipped": false, "summaries": [)";
  const std::string mean =
      R"({"tag": "nv/cold/time/gpu/mean", "data": [{"name": "value", "type": "float64", "value": "0.25"}]})";
  const std::string samples = R"({"tag": "nv/json/bin:nv/cold/sample_times", "data": [
      {"name": "filename", "type": "string", "value": "samples.bin"}, {"name": "size", "type": "int64", "value": "2"}]})";
  const std::string end = R"(]}, {"name": "Device=0 Size=2", "is_skipped": true, "summaries": null}]}]})";
  const SideSamples side = MustRead({Write("mean.json", begin + mean + end)});
  ASSERT_EQ(side.processes.size(), 1);
  EXPECT_EQ(side.processes[0].measurements[0].name, "copy Device=0 Size=1");
  EXPECT_THAT(side.processes[0].measurements[0].seconds, ElementsAre(0.25));
  EXPECT_EQ(side.processes[0].conditions.at("machine"), "GPU");
  const std::string file = Write("samples.json", begin + mean + "," + samples + end);
  EXPECT_THAT(std::string(ReadSide({file}, ClockKind::kWall).status().message()),
              HasSubstr("samples.bin, are not there"));
  const float values[] = {0.5f, 0.75f};
  Write("samples.bin", std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  EXPECT_THAT(MustRead({file}).processes[0].measurements[0].seconds, ElementsAre(0.5, 0.75));
  Write("samples.bin", "abc");
  EXPECT_THAT(std::string(ReadSide({file}, ClockKind::kWall).status().message()),
              HasSubstr("2 samples of 4 bytes"));
}

TEST_F(ReadSideTest, RunsOfHyperfineAreProcesses) {
  const SideSamples side = MustRead(
      {Write("hyperfine.json",
             R"({"results": [{"command": "sleep 1", "times": [1.5, 2.5, 3.5], "exit_codes": [0, 0, 0]}]})")});
  ASSERT_EQ(side.processes.size(), 3);
  EXPECT_EQ(side.processes[0].measurements[0].name, "wall time");
  EXPECT_THAT(side.processes[2].measurements[0].seconds, ElementsAre(3.5));
  EXPECT_THAT(ErrorOf(R"({"results": [{"command": "x", "times": [1], "exit_codes": [7]}]})"),
              HasSubstr("ended with exit code 7"));
  EXPECT_THAT(ErrorOf(R"({"results": [{"command": "x", "times": [1], "exit_codes": [-9]}]})"),
              HasSubstr("ended with exit code -9"));
  EXPECT_THAT(ErrorOf(R"({"results": [{"command": "x", "mean": 1}]})"), HasSubstr("no run has a time"));
}

TEST_F(ReadSideTest, BadFilesGetASentenceThatNamesThem) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("the file is empty"));
  EXPECT_THAT(ErrorOf(" \n\n"), HasSubstr("the file is empty"));
  EXPECT_THAT(ErrorOf("process,milliseconds\n1,2\n"), HasSubstr("another unit"));
  EXPECT_THAT(ErrorOf("process,seconds\n"), HasSubstr("no times"));
  EXPECT_THAT(ErrorOf("process,seconds\n1,2,3\n"), HasSubstr("file:2: 3 fields, and the first line names 2"));
  EXPECT_THAT(ErrorOf("process,seconds\n1,\"2\n"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(ErrorOf("process,seconds\n1,x\n"), HasSubstr("\"x\" is no number"));
  EXPECT_THAT(ErrorOf("process,seconds\n1,nan\n"), HasSubstr("nan seconds: a time is a positive number"));
  EXPECT_THAT(ErrorOf("process,seconds\n1,1\n1,-1\n"), HasSubstr("file:3: -1 seconds"));
  EXPECT_THAT(ErrorOf("process,seconds\n1,0\n"), HasSubstr("0 seconds"));
  EXPECT_THAT(ErrorOf("process,seconds\n1,inf\n"), HasSubstr("inf seconds"));
  EXPECT_THAT(ErrorOf("process,iteration,seconds\n1,0,1\n1,0,2\n"), HasSubstr("has iteration 0"));
  EXPECT_THAT(ErrorOf("\x7f\x45LF\x01"), HasSubstr("its columns are"));
  EXPECT_THAT(ErrorOf("{\"benchmarks\": ["), HasSubstr("no JSON that can be read"));
  EXPECT_THAT(ErrorOf("{}"), HasSubstr("JSON of none of"));
  EXPECT_THAT(ErrorOf("[1, 2]"), HasSubstr("JSON of none of"));
  EXPECT_THAT(ErrorOf(std::string(100000, '[')), HasSubstr("no JSON"));
  EXPECT_THAT(ErrorOf("{\"process\": 1, \"seconds\": \"1\"}"),
              HasSubstr("file:1: a line has process and seconds"));
  EXPECT_THAT(ErrorOf("{\"process\": 1, \"seconds\": 1}\nx\n"), HasSubstr("file:2: no JSON object"));
  EXPECT_THAT(ErrorOf(R"({"benchmarks": [{"name": "x", "real_time": 1, "time_unit": "parsec"}]})"),
              HasSubstr("parsec"));
  EXPECT_THAT(ErrorOf(R"({"benchmarks": [{"name": "x", "real_time": -1, "time_unit": "s"}]})"),
              HasSubstr("is -1"));
  EXPECT_THAT(ErrorOf(R"({"benchmarks": [{"name": "x", "time_unit": "s"}]})"), HasSubstr("is missing"));
  EXPECT_THAT(ErrorOf(R"({"benchmarks": [{"name": "x", "error_occurred": true, "error_message": "boom"}]})"),
              HasSubstr("x failed: boom"));
  EXPECT_THAT(ErrorOf(R"({"benchmarks": []})"), HasSubstr("no benchmark has a time"));
}

TEST_F(ReadSideTest, WhatIsNoFileIsAnErrorAndNothingHangs) {
  EXPECT_THAT(std::string(ReadSide({dir_ + "/none"}, ClockKind::kWall).status().message()),
              HasSubstr("No such file"));
  EXPECT_THAT(std::string(ReadSide({dir_}, ClockKind::kWall).status().message()),
              HasSubstr("neither a run directory"));
  EXPECT_THAT(std::string(ReadSide({"/dev/zero"}, ClockKind::kWall).status().message()),
              HasSubstr("no regular file"));
  ASSERT_EQ(mkfifo((dir_ + "/fifo").c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadSide({dir_ + "/fifo"}, ClockKind::kWall).status().message()),
              HasSubstr("no regular file"));
  Write("huge", "");
  std::filesystem::resize_file(dir_ + "/huge", uintmax_t{1} << 40);
  EXPECT_THAT(std::string(ReadSide({dir_ + "/huge"}, ClockKind::kWall).status().message()),
              HasSubstr("more than 1 GiB"));
  std::filesystem::create_symlink("loop", dir_ + "/loop");
  EXPECT_FALSE(ReadSide({dir_ + "/loop"}, ClockKind::kWall).ok());
}

}  // namespace
}  // namespace ott::faster
