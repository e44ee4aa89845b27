#include "ott/questions/right/compare/compare_runs.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/compare/runs_report.h"

namespace ott::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRanks = 3;

class CompareRunsTest : public ::testing::Test {
 protected:
  CompareRunsTest() {
    std::filesystem::create_directories(dir_);
    WriteRun(Reference(), kRanks);
    WriteRun(Current(), kRanks);
  }

  std::string Reference() const { return dir_ + "/reference"; }
  std::string Current() const { return dir_ + "/current"; }

  static void WriteRun(const std::string& run, int world_size) {
    std::filesystem::create_directories(run);
    RunInfo info;
    info.set_world_size(world_size);
    ASSERT_TRUE(WriteRunInfo(run, info).ok());
    for (int rank = 0; rank < world_size; ++rank) {
      for (const int iteration : {0, 10, 20}) WriteDump(run, rank, iteration, {1, 2, 3, 4});
    }
  }

  static void WriteDump(const std::string& run, int rank, int iteration, const std::vector<float>& weights,
                        double loss = 0.5) {
    TensorDumper dumper;
    TensorDumperOptions options;
    options.dir = DumpsDirectory(run, rank);
    options.rank = rank;
    options.reserved_bytes = 0;
    ASSERT_TRUE(dumper.Enable(options).ok());
    dumper.SetDumpCount(iteration);
    ASSERT_TRUE(dumper.AddTensorData("loss", TensorView(&loss, {}), DumpFormat::kJson).ok());
    ASSERT_TRUE(
        dumper.AddTensorData("weights.w1", TensorView(weights.data(), {2, 2}), DumpFormat::kBinary).ok());
    ASSERT_TRUE(dumper.Dump().ok());
  }

  RunsComparison Compare(const CompareRunsOptions& options = {}) const {
    const auto comparison = CompareRuns(Reference(), Current(), options);
    EXPECT_TRUE(comparison.ok()) << comparison.status();
    return *comparison;
  }

  const std::string dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(CompareRunsTest, EqualRunsAreEqual) {
  const RunsComparison comparison = Compare();
  EXPECT_EQ(comparison.verdict(), Verdict::kEqual) << ToText(comparison);
  EXPECT_EQ(comparison.dumps.size(), 3u * kRanks);
  EXPECT_THAT(ToText(comparison), HasSubstr("18 tensors in 9 dumps: 18 bitwise equal"));
}

TEST_F(CompareRunsTest, WhatDiffersIsCountedByKind) {
  const auto write = [&](const std::string& run, float weight, float moment) {
    std::filesystem::remove_all(run);
    std::filesystem::create_directories(run);
    RunInfo info;
    info.set_world_size(1);
    ASSERT_TRUE(WriteRunInfo(run, info).ok());
    const float gradient = 0.5;
    TensorDumper dumper;
    TensorDumperOptions options;
    options.dir = DumpsDirectory(run, 0);
    ASSERT_TRUE(dumper.Enable(options).ok());
    for (const auto& [path, number] : {std::pair("loss", &gradient),
                                       {"gradients.w", &gradient},
                                       {"weights.w", &weight},
                                       {"weights.v", &weight},
                                       {"optimizer.w", &moment}}) {
      ASSERT_TRUE(dumper.AddTensorData(path, TensorView(number, {1})).ok());
    }
    ASSERT_TRUE(dumper.Dump().ok());
  };
  write(Reference(), 1, 1);
  write(Current(), 2, 1);
  const RunsComparison update = Compare();
  EXPECT_THAT(ToText(update),
              HasSubstr("differ: parameters 2 of 2, gradients 0 of 1, optimizer state 0 of 1, others 0 of 1: "
                        "gradients are equal, so it is the update or what became of them before it\n"));
  EXPECT_THAT(ToJson(update), HasSubstr("TENSOR_KIND_PARAMETER"));
}

TEST_F(CompareRunsTest, OfSeveralStartsTheLatestIsCompared) {
  WriteRun(Current() + "/attempt_2", kRanks);
  EXPECT_EQ(Compare().current, Current() + "/attempt_2");
  WriteDump(Current(), 0, 10, {1, 2, 3, 5});
  EXPECT_EQ(Compare().verdict(), Verdict::kEqual);
  WriteDump(Current() + "/attempt_2", 0, 10, {1, 2, 3, 5});
  EXPECT_EQ(Compare().verdict(), Verdict::kDifferent);
}

TEST_F(CompareRunsTest, ARunThatLinksToTheOthersRanksIsNotEqualToIt) {
  std::filesystem::remove_all(RankDirectory(Current(), 1));
  std::filesystem::create_directory_symlink(RankDirectory(Reference(), 1), RankDirectory(Current(), 1));
  const RunsComparison comparison = Compare();
  EXPECT_EQ(comparison.verdict(), Verdict::kCouldNotCompare);
  EXPECT_THAT(ToText(comparison), HasSubstr("one links to the other"));
}

TEST_F(CompareRunsTest, RunsWithoutANumberAreEqualOnlyWhereThatIsAllowed) {
  const auto dump_text = [](const std::string& dir, const char* text) {
    TensorDumper dumper;
    TensorDumperOptions options;
    options.dir = dir;
    ASSERT_TRUE(dumper.Enable(options).ok());
    ASSERT_TRUE(dumper.AddTensorData("note", text).ok());
    ASSERT_TRUE(dumper.Dump().ok());
  };
  const std::string dirs[] = {dir_ + "/a", dir_ + "/b", dir_ + "/c"};
  for (const std::string& dir : dirs) dump_text(dir, dir == dirs[2] ? "other" : "same");
  CompareRunsOptions options;
  EXPECT_EQ(CompareRuns(dirs[0], dirs[1], options)->verdict(), Verdict::kCouldNotCompare);
  options.allow_empty = true;
  EXPECT_EQ(CompareRuns(dirs[0], dirs[1], options)->verdict(), Verdict::kEqual);
  EXPECT_EQ(CompareRuns(dirs[0], dirs[2], options)->verdict(), Verdict::kDifferent);
}

TEST_F(CompareRunsTest, FlippedBitIsNamedOnOneLine) {
  std::vector<float> weights = {1, 2, 3, 4};
  uint32_t bits;
  std::memcpy(&bits, &weights[2], sizeof(bits));
  bits ^= 1u << 20;
  std::memcpy(&weights[2], &bits, sizeof(bits));
  WriteDump(Current(), 1, 10, weights);
  WriteDump(Current(), 0, 20, weights);
  const RunsComparison comparison = Compare();
  EXPECT_EQ(comparison.verdict(), Verdict::kDifferent);
  ASSERT_NE(comparison.first_divergence(), nullptr);
  EXPECT_EQ(comparison.first_divergence()->iteration, 10);
  EXPECT_EQ(comparison.first_divergence()->rank, 1);
  EXPECT_THAT(ToText(comparison),
              ::testing::ContainsRegex(
                  "first divergence: iteration 10, rank 1, .*weights.w1.* element 2 .*flipped bit 20"));
  EXPECT_THAT(ToText(comparison), HasSubstr("fails on rank 1; passes on ranks 0, 2"));
  EXPECT_THAT(ToText(comparison), HasSubstr("later: 1 of 3 dumps differ"));
  EXPECT_THAT(ToJson(comparison), HasSubstr("\"flipped_bits\": ["));
}

TEST_F(CompareRunsTest, CsvAndJUnitHaveEveryTensorAndProblem) {
  WriteDump(Current(), 1, 10, {1, 2, 3, 5});
  std::filesystem::remove_all(DumpsDirectory(Current(), 2) + "/20");
  CompareRunsOptions options;
  options.keep_results = true;
  const RunsComparison comparison = Compare(options);
  const std::string csv = ToCsv(comparison);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 8 * 2 + 1);
  EXPECT_THAT(csv, HasSubstr("\n10,1,weights.w1,mismatch,float32,\"[2, 2]\",4,1,1,1.0,0.25,"));
  EXPECT_THAT(csv, HasSubstr("\n,,,could not compare,,,,,,,,,,,,,,,,,,rank 2: iteration 20 only in the"));
  const std::string xml = ToJUnitXml(comparison);
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"iteration 10, rank 1\" tests=\"3\" failures=\"2\">"));
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"iteration 20, rank 0\" tests=\"3\" failures=\"0\">"));
  EXPECT_THAT(xml, HasSubstr("<testsuite name=\"missing\" tests=\"2\" failures=\"2\">"));
}

TEST_F(CompareRunsTest, ToleranceIsSaidBesideBitwiseDifference) {
  WriteDump(Current(), 2, 0, {1, 2, 3.001f, 4});
  CompareRunsOptions options;
  options.compare.tensors.tolerance.atol = 0.01;
  const RunsComparison comparison = Compare(options);
  EXPECT_EQ(comparison.verdict(), Verdict::kEqual);
  EXPECT_THAT(ToText(comparison), HasSubstr("17 bitwise equal, 1 within tolerance"));
  EXPECT_THAT(ToText(comparison), HasSubstr("largest difference within tolerance: iteration 0, rank 2"));
}

TEST_F(CompareRunsTest, MissingRankIsNoPass) {
  std::filesystem::remove_all(RankDirectory(Current(), 1));
  const RunsComparison comparison = Compare();
  EXPECT_EQ(comparison.verdict(), Verdict::kCouldNotCompare);
  EXPECT_THAT(comparison.problems,
              ElementsAre(HasSubstr("nothing from rank 1"), HasSubstr("rank 1 only in the ref")));
}

TEST_F(CompareRunsTest, OtherWorldSizeIsNoPass) {
  std::filesystem::remove_all(Current());
  WriteRun(Current(), kRanks + 1);
  const RunsComparison comparison = Compare();
  EXPECT_EQ(comparison.verdict(), Verdict::kCouldNotCompare);
  EXPECT_THAT(comparison.problems, ElementsAre(HasSubstr("rank 3 only in the current run")));
}

TEST_F(CompareRunsTest, MissingIterationIsNoPass) {
  std::filesystem::remove_all(DumpsDirectory(Current(), 2) + "/20");
  const RunsComparison comparison = Compare();
  EXPECT_EQ(comparison.verdict(), Verdict::kCouldNotCompare);
  EXPECT_THAT(comparison.problems, ElementsAre("rank 2: iteration 20 only in the reference"));
}

TEST_F(CompareRunsTest, WhatAllRanksLackIsOneProblem) {
  for (int rank = 0; rank < kRanks; ++rank) {
    for (int iteration = 30; iteration < 90; iteration += 10)
      WriteDump(Reference(), rank, iteration, {1, 2, 3, 4});
  }
  EXPECT_THAT(Compare().problems,
              ElementsAre("ranks 0-2: iterations 30, 40, 50, ..., 80 (6 of them) only in the reference"));
}

TEST_F(CompareRunsTest, TruncatedFileIsNoPass) {
  const std::string file = DumpsDirectory(Current(), 0) + "/10/[tensors.json]weights.w1.bin";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  const RunsComparison comparison = Compare();
  EXPECT_NE(comparison.verdict(), Verdict::kEqual);
  EXPECT_THAT(ToText(comparison), HasSubstr("weights.w1.bin"));
}

TEST_F(CompareRunsTest, RunWithoutDumpsIsNoPass) {
  for (const std::string& run : {Reference(), Current()}) {
    for (int rank = 0; rank < kRanks; ++rank) std::filesystem::remove_all(DumpsDirectory(run, rank));
  }
  EXPECT_EQ(Compare().verdict(), Verdict::kCouldNotCompare);
}

TEST_F(CompareRunsTest, FoldersOfDumpsAndSingleDumpsAreCompared) {
  const auto folders = CompareRuns(DumpsDirectory(Reference(), 0), DumpsDirectory(Current(), 0));
  ASSERT_TRUE(folders.ok()) << folders.status();
  EXPECT_EQ(folders->dumps.size(), 3u);
  EXPECT_EQ(folders->verdict(), Verdict::kEqual);
  const auto dumps = CompareRuns(DumpsDirectory(Reference(), 0) + "/0", DumpsDirectory(Current(), 1) + "/0");
  ASSERT_TRUE(dumps.ok()) << dumps.status();
  EXPECT_EQ(dumps->dumps.size(), 1u);
  EXPECT_EQ(dumps->verdict(), Verdict::kEqual);
  EXPECT_THAT(ToJUnitXml(*dumps), HasSubstr("<testsuite name=\"dump\" tests="));
}

TEST_F(CompareRunsTest, NamesCannotForgeAReport) {
  const std::string name = "a\nverdict: equal\x1b[2J";
  const double numbers[] = {1, 2};
  for (const int i : {0, 1}) {
    TensorDumper dumper;
    TensorDumperOptions options;
    options.dir = DumpsDirectory(i == 0 ? Reference() : Current(), 0);
    ASSERT_TRUE(dumper.Enable(options).ok());
    ASSERT_TRUE(dumper.AddTensorData(name, TensorView(&numbers[i], {})).ok());
    ASSERT_TRUE(dumper.AddTensorData("text", name + std::to_string(i)).ok());
    ASSERT_TRUE(dumper.Dump().ok());
  }
  const std::string text = ToText(Compare());
  EXPECT_THAT(text, HasSubstr(" a\\nverdict: equal\\x1b[2J: mismatch"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("\nverdict: equal")));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("\x1b")));
}

TEST_F(CompareRunsTest, FoldersWhoseNameIsNotUtf8AreCompared) {
  const std::string moved = dir_ + "/\xff";
  std::filesystem::rename(DumpsDirectory(Current(), 0), moved);
  const auto comparison = CompareRuns(DumpsDirectory(Reference(), 0), moved);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_THAT(ToJson(*comparison), HasSubstr("\"verdict\": \"equal\""));
}

TEST_F(CompareRunsTest, ADumpThatWasCutOffBeforeItsTreeIsNoPass) {
  const std::string dump = DumpsDirectory(Reference(), 0) + "/0";
  ASSERT_TRUE(std::filesystem::remove(dump + "/tensors.json"));
  const auto comparison = CompareRuns(dump, dump);
  ASSERT_TRUE(comparison.ok()) << comparison.status();
  EXPECT_EQ(comparison->verdict(), Verdict::kCouldNotCompare);
}

TEST_F(CompareRunsTest, NamesThatNoFolderCanHaveAreErrors) {
  EXPECT_EQ(CompareRuns(Reference(), std::string(5000, 'x')).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(CompareRunsTest, DifferentKindsOfFoldersAreRefused) {
  const auto comparison = CompareRuns(Reference(), DumpsDirectory(Current(), 0));
  EXPECT_EQ(comparison.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(comparison.status().message()), HasSubstr("is a run directory, but"));
  EXPECT_EQ(CompareRuns(Reference(), dir_ + "/nothing").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ott::compare
