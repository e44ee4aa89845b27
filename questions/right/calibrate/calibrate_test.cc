#include "ott/questions/right/calibrate/calibrate.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/check/tolerance_file.h"
#include "ott/dist/check/verdict.h"
#include "ott/questions/right/crosscheck/check_reference.h"
#include "ott/questions/right/crosscheck/run_for_test.h"

namespace ott::calibrate {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr int kIterations[] = {0, 5, 10, 15};

// A run of 2 ranks and 4 iterations; `change` is added to one element. The largest is rank 1's.
std::string MakeRun(const std::string& name, int rank_changed, int iteration_changed, float change,
                    int64_t step = 0, float largest = -8) {
  const std::string run = crosscheck::MakeRunForTest(name, 2);
  for (int rank = 0; rank < 2; ++rank) {
    for (const int iteration : kIterations) {
      const bool changed = rank == rank_changed && iteration == iteration_changed;
      const float weights[] = {rank == 1 ? largest : 1, 2, changed ? 4 + change : 4};
      crosscheck::WriteTreeForTest(
          run, rank, iteration,
          ValueMap{{"step", iteration + step}, {"weights", TensorView(weights, {std::size(weights)})}});
    }
  }
  return run;
}

TEST(Calibrate, WhatItWritesIsWhatACheckReadsAndNames) {
  const std::string path = testing::TempDir() + "tolerances.textproto";
  for (const float largest : {-8.0f, 8.0f}) {
    const auto make = [&](const std::string& name, int rank, int iteration, float change) {
      return MakeRun(name, rank, iteration, change, 0, largest);
    };
    const std::vector<std::string> runs = {make("a", 0, 15, 0.25f), make("b", 1, 0, 0)};
    ASSERT_TRUE(WriteFileAtomically(path, TolerancesToText(Calibrate(runs, 3)->tolerances)).ok());
    CrossCheckConfig config;
    config.set_reference_run(runs[1]);
    config.set_reference_tolerances(path);
    const auto check = [&](const std::string& name, int iteration, float change) {
      const int index = iteration == 15 ? 7 : 1;
      return (*crosscheck::CheckRunAgainstReference(make(name, 1, iteration, change), config))[index];
    };
    EXPECT_EQ(check("noise", 15, 0.75f).outcome(), WITHIN_TOLERANCE);
    EXPECT_EQ(check("finding", 15, 0.78125f).outcome(), DIFFERENT);
    // In an iteration in which the runs were equal, only what rounding may do.
    const CrossCheckVerdict early = check("early", 0, 1e-5f);
    EXPECT_EQ(early.outcome(), DIFFERENT);
    EXPECT_THAT(FormatVerdict(early), HasSubstr("(atol 2.87e-06 of " + path + ")"));
  }
}

TEST(Calibrate, ARunThatIsAnotherBitForBitDoesNotCount) {
  const auto calibration = Calibrate({MakeRun("a", 0, 5, 0.25f), MakeRun("b", 0, 5, 0.25f),
                                      MakeRun("c", 0, 5, 0.5f), MakeRun("d", 0, 5, 0.375f)})
                               .value();
  EXPECT_THAT(calibration.repeated, ElementsAre(HasSubstr("_b")));
  EXPECT_THAT(calibration.tolerances.runs(), ElementsAre(HasSubstr("_a"), HasSubstr("_c"), HasSubstr("_d")));
  EXPECT_DOUBLE_EQ(calibration.tolerances.factor(), FactorFor(3));
  ASSERT_EQ(calibration.left_out.size(), 3u);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(calibration.left_out[run].run, run);
}

TEST(Calibrate, OfTwoRunsNobodyCanTellAFaultFromNoise) {
  std::vector<std::string> runs = {MakeRun("a", 0, 5, 0.25f), MakeRun("fault", 0, 5, 0.5f)};
  for (const bool is_repeated : {false, true}) {
    if (is_repeated) runs.push_back(MakeRun("again", 0, 5, 0.25f));
    const absl::Status status = Calibrate(runs).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("or a fault of one of them"));
    EXPECT_EQ(
        status.message().find("of two runs that are not another one bit for bit nobody") != std::string::npos,
        is_repeated);
    EXPECT_TRUE(Calibrate(runs, FactorFor(2)).ok());
  }
}

TEST(Calibrate, EachRunIsLeftOutInTurnAndRaisesTheFactorOfItsTensor) {
  const std::vector<std::string> runs = {MakeRun("a", 0, 5, 0.25f), MakeRun("b", 0, 5, 0.5f),
                                         MakeRun("c", 0, 5, 0.375f), MakeRun("d", 0, 5, 4)};
  const auto calibration = Calibrate(runs).value();
  ASSERT_EQ(calibration.left_out.size(), 4u);
  EXPECT_GT(calibration.left_out[3].part, 1);
  EXPECT_DOUBLE_EQ(calibration.tolerances.factor(), FactorFor(4));
  ASSERT_EQ(calibration.tolerances.tensors_size(), 1);
  EXPECT_DOUBLE_EQ(calibration.tolerances.tensors(0).factor(), FactorFor(4) * calibration.left_out[3].part);
  // A factor that is given stays.
  EXPECT_EQ(Calibrate(runs, FactorFor(3))->tolerances.tensors(0).factor(), 0);
}

TEST(Calibrate, NaNInAllRunsIsNoDifference) {
  const float nan = std::nanf("");
  // Besides, they differ.
  std::vector<std::string> runs;
  for (const float own : {0.25f, 0.5f}) {
    runs.push_back(MakeRun(std::to_string(own), 0, 5, nan));
    crosscheck::WriteDumpForTest(runs.back(), 1, 5, {own, 2, nan});
  }
  for (const std::string& run : runs) crosscheck::WriteDumpForTest(run, 0, 5, {1, 2, nan});
  const auto calibration = Calibrate(runs, 2).value();
  EXPECT_EQ(calibration.tolerances.tensors(0).noise(), 0.25);
}

TEST(Noise, IsWhatItsDefinitionsSay) {
  EXPECT_NEAR(FactorFor(2), 63.66, 0.01);
  EXPECT_NEAR(FactorFor(4), 5.841, 0.001);
  EXPECT_EQ(FactorFor(5), 5);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::mt19937 random(1);
  const auto draw = [&] { return static_cast<double>(random() % 100); };
  for (int trial = 0; trial < 200; ++trial) {
    const int num_runs = 2 + static_cast<int>(random() % 4),
              num_iterations = 1 + static_cast<int>(random() % 4);
    const bool is_close = random() % 2 == 0;
    const int odd_run = static_cast<int>(random() % static_cast<unsigned>(num_runs));
    Noise noise;
    // By tensor, iteration and two runs; those of some tensors are 0 between all runs but one, or one is far
    // off.
    std::map<std::string, std::vector<std::map<std::pair<int, int>, double>>> differences;
    std::map<std::string, std::vector<double>> roundings;
    for (const std::string tensor : {"a", "b", "c"}) {
      const int odd = random() % 2 == 0 ? odd_run : -1;
      const bool is_far = random() % 2 == 0;
      for (int i = 0; i < num_iterations; ++i) {
        noise.AddIteration(10 * i);
        auto& between = differences[tensor].emplace_back();
        const bool are_equal = random() % 3 == 0;
        for (int run = 0; run < num_runs; ++run) {
          for (int other = run + 1; other < num_runs; ++other) {
            double& difference = between[{run, other}];
            for (int rank = 0; rank < 2; ++rank) {
              const bool is_odd = odd >= 0 && (run == odd || other == odd);
              const bool is_equal = are_equal || (odd >= 0 && !is_far && !is_odd) || random() % 4 == 0;
              const double one = (is_equal   ? 0
                                  : is_close ? 50 + draw()
                                             : draw() * draw()) *
                                 (is_odd && is_far ? 10'000 : 1);
              difference = std::max(difference, one);
              rank == 0 ? noise.Add(tensor, 10 * i, run, other, one)
                        : noise.Add(tensor, 10 * i, other, run, one);
            }
          }
        }
        double& rounding = roundings[tensor].emplace_back(0);
        for (int rank = 0; rank < 2; ++rank) {
          const double one = draw() / 3;
          rounding = std::max(rounding, one);
          noise.AddRounding(tensor, 10 * i, one);
        }
      }
    }
    const auto of_pairs = [&](const std::string& tensor, int i, const std::vector<int>& runs) {
      std::vector<double> all;
      for (const int run : runs)
        for (const int other : runs)
          if (run < other) all.push_back(differences[tensor][static_cast<size_t>(i)][{run, other}]);
      return all;
    };
    const auto mean_square = [&](const std::string& tensor, int i, const std::vector<int>& runs) {
      double sum = 0;
      if (i < 0 || i >= num_iterations) return sum;
      for (const double difference : of_pairs(tensor, i, runs)) sum += difference * difference;
      return std::sqrt(sum / static_cast<double>(of_pairs(tensor, i, runs).size()));
    };
    const auto is_noisy = [&](const std::string& tensor, const std::vector<int>& runs) {
      double largest = 0;
      for (int i = 0; i < num_iterations; ++i) largest = std::max(largest, mean_square(tensor, i, runs));
      return largest > 0;
    };
    const auto atol = [&](const std::string& tensor, int i, const std::vector<int>& runs, double factor) {
      return factor * std::max({mean_square(tensor, i - 1, runs), mean_square(tensor, i, runs),
                                mean_square(tensor, i + 1, runs), roundings[tensor][static_cast<size_t>(i)]});
    };
    std::vector<int> all;
    for (int run = 0; run < num_runs; ++run) all.push_back(run);
    for (const int run : all) {
      for (const int other : all) {
        const std::vector<int> two = {std::min(run, other), std::max(run, other)};
        EXPECT_EQ(noise.AreEqual(run, other),
                  run == other || !(is_noisy("a", two) || is_noisy("b", two) || is_noisy("c", two)));
      }
    }
    const std::map<std::string, double> raised = {{"b", 3}};
    const Tolerances tolerances = noise.Fit(all, 7, raised);
    EXPECT_EQ(tolerances.factor(), 7);
    EXPECT_EQ(tolerances.iterations_size(), num_iterations);
    int at = 0;
    std::vector<double> looseness;
    for (const std::string tensor : {"a", "b", "c"}) {
      if (!is_noisy(tensor, all)) continue;
      ASSERT_LT(at, tolerances.tensors_size());
      const TensorTolerance& tolerance = tolerances.tensors(at++);
      EXPECT_EQ(tolerance.path(), tensor);
      EXPECT_EQ(tolerance.factor(), tensor == "b" ? 21 : 0);
      double largest = 0;
      ASSERT_EQ(tolerance.atol_at_size(), num_iterations);
      for (int i = 0; i < num_iterations; ++i) {
        largest = std::max(largest, mean_square(tensor, i, all));
        const double expected = atol(tensor, i, all, tensor == "b" ? 21 : 7);
        EXPECT_NEAR(tolerance.atol_at(i), expected, 1e-9 * expected) << trial;
        const std::vector<double> pairs = of_pairs(tensor, i, all);
        const double of_pair = *std::max_element(pairs.begin(), pairs.end());
        if (of_pair > 0) looseness.push_back(expected / of_pair);
      }
      EXPECT_NEAR(tolerance.noise(), largest, 1e-9 * largest);
    }
    EXPECT_EQ(at, tolerances.tensors_size());
    std::sort(looseness.begin(), looseness.end());
    const auto [median, most] = noise.Looseness(all, 7, raised);
    EXPECT_NEAR(median, looseness.empty() ? 0 : looseness[looseness.size() / 2], 1e-9 * median) << trial;
    EXPECT_NEAR(most, looseness.empty() ? 0 : looseness.back(), 1e-9 * most) << trial;

    if (num_runs < 3) continue;
    std::optional<double> factor;
    if (random() % 2 == 0) factor = 4;
    const std::vector<Noise::LeftOut> left_out = noise.LeaveOneOut(all, factor);
    ASSERT_EQ(left_out.size(), all.size());
    std::map<std::string, double> expected_raised;
    for (const int run : all) {
      std::vector<int> others = all;
      others.erase(others.begin() + run);
      const Noise::LeftOut& is = left_out[static_cast<size_t>(run)];
      Noise::Part largest;
      std::optional<Noise::Part> outlier;
      std::map<std::string, double> of_tensors;
      for (const std::string tensor : {"a", "b", "c"}) {
        for (int i = 0; i < num_iterations; ++i) {
          double difference = 0;
          for (const int other : others)
            difference =
                std::max(difference, of_pairs(tensor, i, {std::min(run, other), std::max(run, other)})[0]);
          if (difference == 0) continue;
          const double used = factor.value_or(FactorFor(num_runs - 1));
          const double part =
              is_noisy(tensor, others) ? difference / atol(tensor, i, others, used) : kInfinity;
          of_tensors[tensor] = std::max(of_tensors[tensor], part);
          if (part > largest.part) largest = {part, tensor, 10 * i};
          if (part > kOutlier && (!outlier || 10 * i < outlier->iteration ||
                                  (10 * i == outlier->iteration && part > outlier->part)))
            outlier = Noise::Part{part, tensor, 10 * i};
          if (part > 1) expected_raised[tensor] = std::max(expected_raised[tensor], part);
        }
      }
      EXPECT_EQ(is.run, run);
      EXPECT_DOUBLE_EQ(is.part, largest.part) << trial;
      EXPECT_EQ(is.tensor, largest.tensor) << trial;
      EXPECT_EQ(is.iteration, largest.iteration) << trial;
      ASSERT_EQ(is.outlier.has_value(), outlier.has_value()) << trial;
      if (outlier) {
        EXPECT_DOUBLE_EQ(is.outlier->part, outlier->part) << trial;
        EXPECT_EQ(is.outlier->tensor, outlier->tensor) << trial;
        EXPECT_EQ(is.outlier->iteration, outlier->iteration) << trial;
      }
      ASSERT_EQ(is.of_tensors.size(), of_tensors.size());
      for (const auto& [tensor, part] : of_tensors) EXPECT_DOUBLE_EQ(is.of_tensors.at(tensor), part) << trial;
    }
    const std::map<std::string, double> is_raised = Noise::Raised(left_out);
    ASSERT_EQ(is_raised.size(), expected_raised.size());
    for (const auto& [tensor, times] : expected_raised) EXPECT_DOUBLE_EQ(is_raised.at(tensor), times);
  }
}

TEST(Noise, OfATensorThatAnIterationHasNotIsNothingThere) {
  Noise noise;
  for (const int64_t iteration : {0, 10, 20}) noise.AddIteration(iteration);
  for (const int64_t iteration : {0, 20}) noise.Add("a", iteration, 0, 1, static_cast<double>(1 + iteration));
  // Iteration 10 has no 'a', and counts as 0 between the two that have it.
  EXPECT_THAT(noise.Fit({0, 1}, 2, {}).tensors(0).atol_at(), ElementsAre(42, 0, 42));
}

TEST(ToText, SaysWhatWasFound) {
  Calibration calibration;
  calibration.runs = {"run1", "run2", "run3"};
  calibration.tolerances.set_factor(9.5);
  calibration.tolerances.add_iterations(0);
  for (const auto& [path, noise] : {std::pair("a", 0.25), {"b", 0.5}, {"c", 0.125}}) {
    TensorTolerance& tensor = *calibration.tolerances.add_tensors();
    tensor.set_path(path);
    tensor.set_noise(noise);
  }
  calibration.median_looseness = 2;
  calibration.max_looseness = 3;
  const std::string text =
      "tolerances of 3 tensors in 1 iterations, 9.5 times what differs between 3 runs; most, 0.5, in b\n"
      "they are 2 times the largest difference that was seen (median), 3 at most\n";
  EXPECT_EQ(ToText(calibration), text +
                                     "two runs cannot show how often that is a false alarm; a third makes "
                                     "tolerances 6.4 times tighter\n");
  for (int run = 0; run < 3; ++run) {
    Noise::LeftOut& left_out = calibration.left_out.emplace_back();
    left_out.run = run;
    left_out.part = run == 1 ? 1.5 : run == 2 ? 1 : 0.5;
    left_out.tensor = "b";
    left_out.iteration = 7;
  }
  const std::string left_out =
      "each run against the tolerances of the others: 1 of 3 would be a false alarm; nearest: run2 in "
      "iteration 7, b, 1.5 times its tolerance\n";
  EXPECT_EQ(ToText(calibration), text + left_out);
  calibration.repeated = {"again"};
  calibration.not_calibrated = {"image", "many"};
  calibration.raised = {{"a", 1.5}, {"b", 2.5}};
  EXPECT_EQ(ToText(calibration),
            text +
                "again is another run bit for bit, and says nothing\n"
                "without a tolerance, as only statistics or images of them were dumped: image, many\n" +
                left_out + "so the factor of 2 tensors is raised, by 2.5 times at most, in b\n");
}

// Repetitions in which `image` and `many` were dumped without their elements, and differ.
TEST(Calibrate, TensorsWithoutElementsHaveNoTolerance) {
  const auto write = [](float own, float weight, bool has_grads = false) {
    const std::string run = crosscheck::MakeRunForTest(absl::StrCat(own, "_", weight, "_", has_grads), 1);
    const float data[] = {0, own, 2, 3}, weights[] = {0, weight};
    const Value tree = ValueMap{{"image", TensorView(data, {2, 2})},
                                {"many", TensorView(data, {4})},
                                {"weights", TensorView(weights, {2})}};
    DumpContents contents;
    contents.tensors = {&tree, [](std::string_view path) {
                          return path == "image"  ? DumpFormat::kImageI
                                 : path == "many" ? DumpFormat::kStatistics
                                                  : DumpFormat::kBinary;
                        }};
    if (has_grads) contents.grads = contents.tensors;
    std::filesystem::create_directories(DumpsDirectory(run, 0));
    EXPECT_TRUE(WriteDump(DumpPath(run, 0, 0), contents).ok());
    return run;
  };
  const std::vector<std::string> runs = {write(0.25f, 0.25f), write(0.5f, 0.5f)};
  const auto calibration = Calibrate(runs, FactorFor(2)).value();
  EXPECT_THAT(calibration.not_calibrated, ElementsAre("image", "many"));
  ASSERT_EQ(calibration.tolerances.tensors_size(), 1);
  EXPECT_EQ(calibration.tolerances.tensors(0).path(), "weights");
  // They are not equal, and what differs calibrates nothing.
  EXPECT_THAT(std::string(Calibrate({write(0.25f, 1), write(0.5f, 1)}).status().message()),
              AllOf(HasSubstr("image, many"), Not(HasSubstr("equal bit for bit"))));
  for (const float weight : {0.25f, 1.0f})
    EXPECT_THAT(std::string(Calibrate({runs[0], write(0.25f, weight, true)}, 2).status().message()),
                HasSubstr("no repetitions of one training: this run has gradients, the reference has none"));
}

TEST(Calibrate, RunsThatAreNoRepetitionsAreRefused) {
  const std::string run = MakeRun("run", 0, 0, 0), longer = MakeRun("longer", 0, 0, 0),
                    shorter = MakeRun("shorter", 0, 0, 0);
  crosscheck::WriteDumpForTest(longer, 0, 0, {1, 2, 4, 8});
  crosscheck::WriteDumpForTest(longer, 0, 5, {1, 2, 4, 8});
  const std::string gone = DumpPath(shorter, 1, 5);
  std::filesystem::remove_all(gone);
  std::vector<std::string> texts;
  for (const auto& [schedule, loss] : {std::pair("cosine", 1.0), {"linear", 2.0}}) {
    texts.push_back(crosscheck::MakeRunForTest(schedule, 1));
    crosscheck::WriteTreeForTest(texts.back(), 0, 0,
                                 ValueMap{{"loss", loss}, {"schedule", schedule}, {"warmup", schedule}});
  }
  const std::string a = MakeRun("a", 0, 5, 0.25f), b = MakeRun("b", 0, 5, 0.5f),
                    c = MakeRun("c", 0, 5, 0.375f), far = MakeRun("far", 0, 5, 16),
                    alone = MakeRun("alone", 0, 5, 0.25f, 1), equal = MakeRun("equal", 0, 0, 0),
                    nan = MakeRun("nan", 1, 5, std::nanf(""));
  const auto of_two = [&](const std::string& other, int rank, int iteration, const std::string& problem) {
    return absl::StrCat(other, " and ", DumpPath(other == texts[1] ? texts[0] : run, rank, iteration),
                        ", rank ", rank, ", iteration ", iteration,
                        ": no repetitions of one training: ", problem);
  };
  const std::string way_out =
      ". Find out why, or leave it out; where it is right, take more runs of its kind";
  using Case = std::pair<std::vector<std::string>, std::string>;
  for (const auto& [runs, said] : std::vector<Case>{
           {{run, equal},
            absl::StrCat(run, ", ", equal,
                         ": all are equal bit for bit, which calibrates nothing. Either any difference is a "
                         "finding: compare without tolerances; or take runs that may differ: another build, "
                         "another order of sums")},
           {{run, nan}, of_two(nan, 1, 5, "weights: NaN or infinity in one of them only")},
           {{run, longer}, of_two(longer, 0, 0, "weights: shape differs: reference [3], current [4]")},
           {{run, shorter},
            of_two(shorter, 1, 5,
                   absl::StrCat(gone, "/tensors.json: cannot open: No such file or directory; is ", gone,
                                " a dump?"))},
           {texts, of_two(texts[1], 0, 0, R"(schedule: mismatch: reference "cosine", current "linear")")},
           {{a, b, c, far},
            absl::StrCat("no repetitions of one training: ", far,
                         " differs from the others by 8.98 times the tolerance that these give, from "
                         "iteration 5 on, in weights",
                         way_out)},
           {{alone, b, c},
            absl::StrCat("no repetitions of one training: ", alone,
                         " differs from the others by what they, equal bit for bit, do not allow, from "
                         "iteration 0 on, in step",
                         way_out)}}) {
    EXPECT_EQ(Calibrate(runs).status(), absl::FailedPreconditionError(said));
  }
  EXPECT_TRUE(absl::IsNotFound(Calibrate({run, run + "/nothing"}).status()));
}

}  // namespace
}  // namespace ott::calibrate
