#include "tools/calibrate/calibrate.h"

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/check/reference_check.h"
#include "tools/crosscheck/check_reference.h"
#include "tools/crosscheck/run_for_test.h"

namespace ott::calibrate {
namespace {

using testing::HasSubstr;

// A run of 2 ranks and 2 iterations; `change` is added to one element.
std::string MakeRun(const std::string& name, int rank_changed, int iteration_changed, float change) {
  const std::string run = crosscheck::MakeRunForTest(name, 2);
  for (int rank = 0; rank < 2; ++rank) {
    for (const int iteration : {0, 5}) {
      const bool changed = rank == rank_changed && iteration == iteration_changed;
      crosscheck::WriteDumpForTest(run, rank, iteration, {1, 2, changed ? 4 + change : 4});
    }
  }
  return run;
}

TEST(Calibrate, TheLargestDifferenceOfAnyTwoRunsIsTheNoise) {
  const std::vector<std::string> runs = {MakeRun("a", 0, 5, 0.25f), MakeRun("b", 1, 0, 0.125f),
                                         MakeRun("c", 0, 5, -0.5f)};
  const auto tolerances = Calibrate(runs, 2);
  ASSERT_TRUE(tolerances.ok()) << tolerances.status();
  ASSERT_EQ(tolerances->tensors_size(), 1);
  EXPECT_EQ(tolerances->tensors(0).path(), "tensors.weights");
  EXPECT_EQ(tolerances->tensors(0).noise(), 0.75);
  EXPECT_EQ(tolerances->tensors(0).atol(), 1.5);
}

TEST(Calibrate, WhatItWritesIsWhatACheckReads) {
  const std::vector<std::string> runs = {MakeRun("a", 0, 5, 0.25f), MakeRun("b", 1, 0, 0)};
  const std::string path = testing::TempDir() + "tolerances.textproto";
  ASSERT_TRUE(WriteFileAtomically(path, TolerancesToText(*Calibrate(runs, 3))).ok());
  const auto read = ReadTolerances(path);
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].tolerance.atol, 0.75);

  CrossCheckConfig config;
  config.set_reference_run(runs[1]);
  config.set_reference_tolerances(path);
  EXPECT_EQ((*crosscheck::CheckRunAgainstReference(MakeRun("noise", 1, 5, 0.75f), config))[3].outcome(),
            WITHIN_TOLERANCE);
  EXPECT_EQ((*crosscheck::CheckRunAgainstReference(MakeRun("finding", 1, 5, 0.78125f), config))[3].outcome(),
            DIFFERENT);
}

TEST(Calibrate, EqualRunsHaveNoNoise) {
  EXPECT_EQ(Calibrate({MakeRun("a", 0, 0, 0), MakeRun("b", 0, 0, 0)}, 3)->tensors_size(), 0);
}

TEST(Calibrate, RunsThatAreNoRepetitionsAreRefused) {
  const std::string run = MakeRun("a", 0, 0, 0);
  const std::string nan = MakeRun("nan", 1, 5, std::nanf(""));
  EXPECT_THAT(std::string(Calibrate({run, nan}, 3).status().message()),
              HasSubstr("rank 1, iteration 5: no repetitions of one training: tensors.weights: NaN"));

  const std::string longer = MakeRun("longer", 0, 0, 0);
  crosscheck::WriteDumpForTest(longer, 0, 0, {1, 2, 4, 8});
  EXPECT_THAT(std::string(Calibrate({run, longer}, 3).status().message()), HasSubstr("shape"));

  const std::string shorter = MakeRun("shorter", 0, 0, 0);
  std::filesystem::remove_all(DumpsDirectory(shorter, 1) + "/5");
  const absl::Status status = Calibrate({run, shorter}, 3).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("iteration 5"));
  EXPECT_TRUE(absl::IsNotFound(Calibrate({run, run + "/nothing"}, 3).status()));
}

}  // namespace
}  // namespace ott::calibrate
