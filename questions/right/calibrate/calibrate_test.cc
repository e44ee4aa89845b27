#include "ott/questions/right/calibrate/calibrate.h"

#include <cmath>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

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
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::Not;

constexpr int kIterations[] = {0, 5, 10, 15};

// A run of 2 ranks and 4 iterations; `change` is added to one element.
std::string MakeRun(const std::string& name, int rank_changed, int iteration_changed, float change,
                    int64_t step = 0) {
  const std::string run = crosscheck::MakeRunForTest(name, 2);
  for (int rank = 0; rank < 2; ++rank) {
    for (const int iteration : kIterations) {
      const bool changed = rank == rank_changed && iteration == iteration_changed;
      const float weights[] = {1, 2, changed ? 4 + change : 4};
      crosscheck::WriteTreeForTest(
          run, rank, iteration,
          ValueMap{{"step", iteration + step}, {"weights", TensorView(weights, {std::size(weights)})}});
    }
  }
  return run;
}

TEST(Calibrate, ATensorsToleranceIsThatOfTheIteration) {
  const std::vector<std::string> runs = {MakeRun("a", 0, 15, 0.25f), MakeRun("b", 1, 0, 0.5f)};
  const auto calibration = Calibrate(runs, 2);
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  const Tolerances& tolerances = calibration->tolerances;
  EXPECT_THAT(tolerances.iterations(), ElementsAreArray(kIterations));
  ASSERT_EQ(tolerances.tensors_size(), 1);
  EXPECT_EQ(tolerances.tensors(0).path(), "weights");
  EXPECT_EQ(tolerances.tensors(0).noise(), 0.5);
  // The dumps beside it have as much.
  EXPECT_THAT(tolerances.tensors(0).atol_at(), ElementsAre(1, 1, 0.5, 0.5));
  EXPECT_THAT(ToText(*calibration), HasSubstr("two runs cannot show how often that is a false alarm"));
}

TEST(Calibrate, WhatItWritesIsWhatACheckReadsAndNames) {
  const std::vector<std::string> runs = {MakeRun("a", 0, 15, 0.25f), MakeRun("b", 1, 0, 0)};
  const std::string path = testing::TempDir() + "tolerances.textproto";
  ASSERT_TRUE(WriteFileAtomically(path, TolerancesToText(Calibrate(runs, 3)->tolerances)).ok());
  CrossCheckConfig config;
  config.set_reference_run(runs[1]);
  config.set_reference_tolerances(path);
  const auto check = [&](const std::string& name, int iteration, float change) {
    const int index = iteration == 15 ? 7 : 1;
    return (*crosscheck::CheckRunAgainstReference(MakeRun(name, 1, iteration, change), config))[index];
  };
  EXPECT_EQ(check("noise", 15, 0.75f).outcome(), WITHIN_TOLERANCE);
  EXPECT_EQ(check("finding", 15, 0.78125f).outcome(), DIFFERENT);
  // In an iteration in which the runs were equal, only what rounding may do.
  const CrossCheckVerdict early = check("early", 0, 1e-5f);
  EXPECT_EQ(early.outcome(), DIFFERENT);
  EXPECT_THAT(FormatVerdict(early), HasSubstr("(atol 1.44e-06 of " + path + ")"));
}

TEST(Calibrate, RunsThatAreAllEqualCalibrateNothing) {
  const absl::Status status = Calibrate({MakeRun("a", 0, 0, 0), MakeRun("b", 0, 0, 0)}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("equal bit for bit, which calibrates nothing"));
}

TEST(Calibrate, ARunThatIsAnotherBitForBitDoesNotCount) {
  const auto calibration = Calibrate({MakeRun("a", 0, 5, 0.25f), MakeRun("b", 0, 5, 0.25f),
                                      MakeRun("c", 0, 5, 0.5f), MakeRun("d", 0, 5, 0.375f)});
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  EXPECT_THAT(calibration->repeated, ElementsAre(HasSubstr("_b")));
  EXPECT_DOUBLE_EQ(calibration->tolerances.factor(), FactorFor(3));
}

TEST(Calibrate, OfTwoRunsNobodyCanTellAFaultFromNoise) {
  std::vector<std::string> runs = {MakeRun("a", 0, 5, 0.25f), MakeRun("fault", 0, 5, 0.5f)};
  for (const bool is_repeated : {false, true}) {
    if (is_repeated) runs.push_back(MakeRun("again", 0, 5, 0.25f));
    const absl::Status status = Calibrate(runs).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("or a fault of one of them"));
    EXPECT_TRUE(Calibrate(runs, FactorFor(2)).ok());
  }
}

TEST(Calibrate, EachRunIsLeftOutInTurnAndRaisesTheFactorOfItsTensor) {
  const auto calibration = Calibrate({MakeRun("a", 0, 5, 0.25f), MakeRun("b", 0, 5, 0.5f),
                                      MakeRun("c", 0, 5, 0.375f), MakeRun("d", 0, 5, 4)});
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  ASSERT_EQ(calibration->left_out.size(), 4u);
  EXPECT_GT(calibration->left_out[3].part, 1);
  EXPECT_DOUBLE_EQ(calibration->tolerances.factor(), FactorFor(4));
  ASSERT_EQ(calibration->tolerances.tensors_size(), 1);
  EXPECT_DOUBLE_EQ(calibration->tolerances.tensors(0).factor(), FactorFor(4) * calibration->left_out[3].part);
  EXPECT_THAT(ToText(*calibration), HasSubstr("1 of 4 would be a false alarm; nearest: "));
}

TEST(Calibrate, ARunThatIsNoneOfTheRepetitionsIsRefusedByName) {
  const absl::Status far = Calibrate({MakeRun("a", 0, 5, 0.25f), MakeRun("b", 0, 5, 0.5f),
                                      MakeRun("c", 0, 5, 0.375f), MakeRun("d", 0, 5, 16)})
                               .status();
  EXPECT_TRUE(absl::IsFailedPrecondition(far)) << far;
  EXPECT_THAT(std::string(far.message()),
              AllOf(HasSubstr("_d differs from the others by 8.98 times"),
                    HasSubstr("from iteration 5 on, in weights"), Not(HasSubstr("_a differs"))));
  const absl::Status alone =
      Calibrate({MakeRun("a", 0, 5, 0.25f, 1), MakeRun("b", 0, 5, 0.5f), MakeRun("c", 0, 5, 0.375f)})
          .status();
  EXPECT_THAT(std::string(alone.message()),
              HasSubstr("_a differs from the others by what they, equal bit for bit, do not allow, from "
                        "iteration 0 on, in step"));
}

TEST(Calibrate, NaNInAllRunsIsNoDifference) {
  const float nan = std::nanf("");
  EXPECT_TRUE(
      absl::IsFailedPrecondition(Calibrate({MakeRun("a", 0, 5, nan), MakeRun("b", 0, 5, 0)}).status()));
  // Besides, they differ.
  std::vector<std::string> runs;
  for (const float own : {0.25f, 0.5f}) {
    runs.push_back(MakeRun(std::to_string(own), 0, 5, nan));
    crosscheck::WriteDumpForTest(runs.back(), 1, 5, {own, 2, nan});
  }
  for (const std::string& run : runs) crosscheck::WriteDumpForTest(run, 0, 5, {1, 2, nan});
  const auto calibration = Calibrate(runs, 2);
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  EXPECT_EQ(calibration->tolerances.tensors(0).noise(), 0.25);
}

// Repetitions in which `image` and `many` were dumped without their elements, and differ.
TEST(Calibrate, TensorsWithoutElementsHaveNoTolerance) {
  std::vector<std::string> runs;
  for (const float own : {0.25f, 0.5f}) {
    runs.push_back(crosscheck::MakeRunForTest(std::to_string(own), 1));
    const float data[] = {0, own, 2, 3};
    const Value tree = ValueMap{{"image", TensorView(data, {2, 2})},
                                {"many", TensorView(data, {4})},
                                {"weights", TensorView(data, {2})}};
    DumpContents contents;
    contents.tensors = {&tree, [](std::string_view path) {
                          return path == "image"  ? DumpFormat::kImageI
                                 : path == "many" ? DumpFormat::kStatistics
                                                  : DumpFormat::kBinary;
                        }};
    std::filesystem::create_directories(DumpsDirectory(runs.back(), 0));
    ASSERT_TRUE(WriteDump(DumpPath(runs.back(), 0, 0), contents).ok());
  }
  const auto calibration = Calibrate(runs, FactorFor(2));
  ASSERT_TRUE(calibration.ok()) << calibration.status();
  EXPECT_THAT(calibration->not_calibrated, ElementsAre("image", "many"));
  ASSERT_EQ(calibration->tolerances.tensors_size(), 1);
  EXPECT_EQ(calibration->tolerances.tensors(0).path(), "weights");
  EXPECT_THAT(ToText(*calibration), HasSubstr("only statistics or images of them were dumped: image, many"));
}

TEST(Calibrate, TextsThatDifferAreNoNoise) {
  std::vector<std::string> runs;
  for (const std::string schedule : {"cosine", "linear"}) {
    runs.push_back(crosscheck::MakeRunForTest(schedule, 1));
    const double loss = static_cast<double>(runs.size());
    crosscheck::WriteTreeForTest(runs.back(), 0, 0, ValueMap{{"loss", loss}, {"schedule", schedule}});
  }
  EXPECT_THAT(std::string(Calibrate(runs).status().message()),
              HasSubstr(R"(schedule: mismatch: reference "cosine", current "linear")"));
}

TEST(FactorFor, IsStudentsT) {
  EXPECT_NEAR(FactorFor(2), 63.66, 0.01);
  EXPECT_NEAR(FactorFor(4), 5.841, 0.001);
}

TEST(Calibrate, RunsThatAreNoRepetitionsAreRefused) {
  const std::string run = MakeRun("a", 0, 0, 0);
  const std::string nan = MakeRun("nan", 1, 5, std::nanf(""));
  EXPECT_THAT(std::string(Calibrate({run, nan}).status().message()),
              HasSubstr("rank 1, iteration 5: no repetitions of one training: weights: NaN"));

  const std::string longer = MakeRun("longer", 0, 0, 0);
  crosscheck::WriteDumpForTest(longer, 0, 0, {1, 2, 4, 8});
  EXPECT_THAT(std::string(Calibrate({run, longer}).status().message()), HasSubstr("shape"));

  const std::string shorter = MakeRun("shorter", 0, 0, 0);
  std::filesystem::remove_all(DumpsDirectory(shorter, 1) + "/5");
  const absl::Status status = Calibrate({run, shorter}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("iteration 5"));
  EXPECT_TRUE(absl::IsNotFound(Calibrate({run, run + "/nothing"}).status()));
}

}  // namespace
}  // namespace ott::calibrate
