#include "tools/report/run_report.h"

#include <algorithm>
#include <filesystem>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"
#include "tools/report/report_html.h"
#include "tools/report/report_text.h"

namespace ott::report {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kNumRanks = 3;

CrossCheckVerdict Verdict(int rank, int64_t iteration, CrossCheckMode mode, Outcome outcome) {
  CrossCheckVerdict verdict;
  verdict.set_rank(rank);
  verdict.set_host("node<1>");
  verdict.set_iteration(iteration);
  verdict.set_mode(mode);
  verdict.set_outcome(outcome);
  verdict.set_tensor(outcome == DIFFERENT ? "weights" : "");
  return verdict;
}

// Three ranks, of which rank 1 is slow; the replicas are checked in iterations 0 and 10.
class RunReportTest : public ::testing::Test {
 protected:
  RunReportTest() {
    std::filesystem::remove_all(run_dir_);
    RunInfo info;
    info.set_world_size(kNumRanks);
    for (int rank = 0; rank < kNumRanks; ++rank) info.add_hosts("node<1>");
    info.mutable_config()->mutable_stopwatch();
    info.mutable_config()->mutable_cross_check();
    std::filesystem::create_directories(run_dir_);
    EXPECT_TRUE(WriteRunInfo(run_dir_, info).ok());
    for (int rank = 0; rank < kNumRanks; ++rank) {
      EXPECT_TRUE(MakeDirectories(RankDirectory(run_dir_, rank)).ok());
      WriteStats(rank, rank == 1 ? 0.3 : 0.1);
      for (const int iteration : {0, 10}) Add(Verdict(rank, iteration, REPLICAS, BITWISE_EQUAL));
    }
  }

  std::string VerdictsPath(int rank) const { return RankDirectory(run_dir_, rank) + "/cross_check.jsonl"; }

  void WriteStats(int rank, double seconds, int64_t num_iterations = 10) {
    StopwatchStats stats;
    stats.set_rank(rank);
    stats.set_host("node<1>");
    stats.set_world_size(kNumRanks);
    stats.set_num_measured_iters(num_iterations);
    Statistics* const iteration = stats.mutable_iteration();
    iteration->set_count(num_iterations);
    iteration->set_total(static_cast<double>(num_iterations) * seconds);
    iteration->set_mean(seconds);
    iteration->set_min(seconds);
    iteration->set_max(seconds);
    SteadyTimeStats* const work = stats.mutable_own_work()->mutable_time()->mutable_all();
    work->set_seconds(seconds);
    work->set_standard_error(0.001 * seconds);
    work->set_degrees_of_freedom(5);
    EXPECT_TRUE(
        WriteFileAtomically(RankDirectory(run_dir_, rank) + "/stopwatch.pb", stats.SerializeAsString()).ok());
  }

  void Add(const CrossCheckVerdict& verdict) { AddLine(verdict.rank(), VerdictToJsonLine(verdict)); }

  void AddLine(int rank, const std::string& line) {
    std::string lines;
    if (std::filesystem::exists(VerdictsPath(rank))) lines = *ReadFile(VerdictsPath(rank));
    EXPECT_TRUE(WriteFileAtomically(VerdictsPath(rank), lines + line).ok());
  }

  RunReport Read() const {
    absl::StatusOr<RunReport> report = ReadRunReport(run_dir_);
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : RunReport();
  }

  const std::string run_dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(RunReportTest, ACleanRunIsCompleteAndNamesTheSlowRank) {
  const RunReport report = Read();
  EXPECT_FALSE(report.diverged());
  EXPECT_TRUE(report.complete()) << ::testing::PrintToString(report.problems);
  EXPECT_THAT(ToText(report), AllOf(HasSubstr("3 ranks on host node<1>"), HasSubstr("slowest rank: rank 1"),
                                    HasSubstr("2 checks, all equal bit for bit")));
}

TEST_F(RunReportTest, TheFirstDivergenceIsTheEarliestOfAnyRank) {
  Add(Verdict(0, 20, REFERENCE, DIFFERENT));
  Add(Verdict(2, 10, REFERENCE, DIFFERENT));
  Add(Verdict(1, 10, REFERENCE, DIFFERENT));
  Add(Verdict(0, 10, REFERENCE, WITHIN_TOLERANCE));
  const RunReport report = Read();
  EXPECT_TRUE(report.diverged());
  EXPECT_EQ(report.replicas.first_divergence(), nullptr);
  ASSERT_NE(report.reference.first_divergence(), nullptr);
  EXPECT_EQ(report.reference.first_divergence()->iteration(), 10);
  EXPECT_EQ(report.reference.first_divergence()->rank(), 1);
  EXPECT_THAT(ToText(report), HasSubstr("first: iteration 10: rank 1 (node<1>) against"));
}

TEST_F(RunReportTest, TheFirstTensorOfAnyRankComesBeforeTheLowestRank) {
  const auto verdict_of = [](int rank, const std::string& tensor, int position, double error) {
    CrossCheckVerdict verdict = Verdict(rank, 10, REFERENCE, DIFFERENT);
    verdict.set_tensor(tensor);
    verdict.set_tensor_position(position);
    verdict.set_max_abs_error(error);
    return verdict;
  };
  Add(verdict_of(0, "tensors.loss", 9, 0.0659));
  Add(verdict_of(1, "tensors.loss", 9, 0.01));
  Add(verdict_of(2, "tensors.data.inputs", 0, 0.956));
  const RunReport report = Read();
  EXPECT_EQ(report.reference.first_divergence()->rank(), 2);
  EXPECT_THAT(ToText(report), AllOf(HasSubstr("rank 2 (node<1>) against"), HasSubstr("tensors.data.inputs"),
                                    HasSubstr("; on rank 2 alone"), HasSubstr("max abs error 0.956")));
  EXPECT_THAT(ToHtml(report), AllOf(HasSubstr("tensors.data.inputs"), HasSubstr("0.956")));
}

TEST_F(RunReportTest, TheErrorsOfAllRanksAgainstTheReferenceAreShownByIteration) {
  for (int rank = 0; rank < kNumRanks; ++rank) {
    for (const int iteration : {0, 10, 20}) {
      CrossCheckVerdict verdict =
          Verdict(rank, iteration, REFERENCE, iteration == 0 ? BITWISE_EQUAL : WITHIN_TOLERANCE);
      if (rank > 0 && iteration == 0) verdict.add_tensor_errors()->set_tensor("tensors.bias");
      if (iteration > 0) {
        TensorError& error = *verdict.add_tensor_errors();
        error.set_tensor("tensors.weights");
        error.set_max_abs_error(iteration + rank);
      }
      Add(verdict);
    }
  }
  EXPECT_THAT(ToText(Read()),
              HasSubstr("  max abs error, of all ranks  from iteration  at 0  at 10  at 20\n"
                        "  tensors.bias                              0     0      0      0\n"
                        "  tensors.weights                          10     0     12     22\n"));
}

TEST_F(RunReportTest, WhatARankHeardOfALostRankCounts) {
  CrossCheckVerdict verdict = Verdict(0, 20, REFERENCE, BITWISE_EQUAL);
  verdict.set_worst_outcome(DIFFERENT);
  verdict.set_worst_rank(2);
  Add(verdict);
  EXPECT_TRUE(Read().diverged());
}

TEST_F(RunReportTest, AComparisonThatCouldNotBeMadeIsNoPass) {
  Add(Verdict(1, 10, REPLICAS, NOT_COMPARED));
  const RunReport report = Read();
  EXPECT_FALSE(report.diverged());
  EXPECT_FALSE(report.complete());
  EXPECT_EQ(report.replicas.summary.num_not_compared, 1);
}

TEST_F(RunReportTest, ACutLineIsNamedAndTheOthersCount) {
  AddLine(1, VerdictToJsonLine(Verdict(1, 20, REPLICAS, BITWISE_EQUAL)).substr(0, 30));
  const RunReport report = Read();
  EXPECT_EQ(report.replicas.summary.num_checks, 2);
  EXPECT_FALSE(report.complete());
  EXPECT_THAT(report.problems, Contains(HasSubstr("rank_00001/cross_check.jsonl: line 3: ")));
}

TEST_F(RunReportTest, OtherStartsOfTheJobAreSaid) {
  RunInfo info = *ReadRunInfo(run_dir_);
  info.add_resumptions()->set_start_iteration(1000);
  ASSERT_TRUE(WriteRunInfo(run_dir_, info).ok());
  std::filesystem::create_directories(run_dir_ + "/attempt_2");
  EXPECT_THAT(ToText(Read()), AllOf(HasSubstr(", continued from iteration 1000"),
                                    HasSubstr(", started again in attempt_2:")));
}

TEST_F(RunReportTest, AMissingRankIsNamed) {
  std::filesystem::remove_all(RankDirectory(run_dir_, 1));
  const RunReport report = Read();
  EXPECT_FALSE(report.complete());
  EXPECT_THAT(report.problems, AllOf(Contains(HasSubstr("no statistics of rank 1")),
                                     Contains(HasSubstr("verdicts of 2 of 3 ranks, those of ranks 0, 2"))));
}

TEST_F(RunReportTest, StatisticsThatEndEarlyAreNoCompleteReport) {
  WriteStats(2, 0.1, 4);
  EXPECT_THAT(Read().problems, Contains("the statistics of some ranks end after 4 of 10 iterations"));
}

TEST_F(RunReportTest, ManyProblemsMakeNoLongReport) {
  std::string lines;
  for (int i = 0; i < 5000; ++i) lines += "no verdict\n";
  AddLine(1, lines);
  const RunReport report = Read();
  EXPECT_LE(report.problems.size(), 11u);
  EXPECT_EQ(report.problems.back(), "and 4990 more");
}

TEST_F(RunReportTest, WhatIsNoRunIsAnError) {
  EXPECT_TRUE(absl::IsNotFound(ReadRunReport(run_dir_ + "/nowhere").status()));
  for (int rank = 0; rank < kNumRanks; ++rank) std::filesystem::remove_all(RankDirectory(run_dir_, rank));
  EXPECT_TRUE(absl::IsNotFound(ReadRunReport(run_dir_).status()));
}

TEST_F(RunReportTest, NamesInThePageAreTextNotMarkup) {
  const std::string page = ToHtml(Read());
  EXPECT_THAT(page, AllOf(HasSubstr("node&lt;1&gt;"), Not(HasSubstr("node<1>"))));
}

TEST_F(RunReportTest, ALongRunMakesNoLargerPage) {
  std::string lines;
  for (int iteration = 0; iteration < 5000; ++iteration) {
    lines += VerdictToJsonLine(
        Verdict(0, iteration, REPLICAS, iteration >= 2000 && iteration < 4000 ? DIFFERENT : BITWISE_EQUAL));
  }
  AddLine(0, lines);
  const std::string page = ToHtml(Read());
  EXPECT_LT(page.size(), 50'000u);
  EXPECT_THAT(page, AllOf(HasSubstr("iteration 1975 to 1999: equal bit for bit"),
                          HasSubstr("iteration 2000 to 2024: DIFFER"), HasSubstr("... and 1995 more")));
}

}  // namespace
}  // namespace ott::report
