// Holds a run and what is reported of it.

#ifndef OTT_TOOLS_REPORT_RUN_REPORT_FOR_TEST_H_
#define OTT_TOOLS_REPORT_RUN_REPORT_FOR_TEST_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/stopwatch/stats_for_test.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/questions.h"
#include "tools/report/document_text.h"
#include "tools/report/page.h"
#include "tools/report/prometheus.h"
#include "tools/report/run_report.h"

namespace ott::report {

inline constexpr int kNumRanks = 3;

inline CrossCheckVerdict Verdict(int rank, int64_t iteration, CrossCheckMode mode, Outcome outcome) {
  CrossCheckVerdict verdict;
  verdict.set_rank(rank);
  verdict.set_host("node<1>");
  verdict.set_iteration(iteration);
  verdict.set_mode(mode);
  verdict.set_outcome(outcome);
  verdict.set_tensor(outcome == DIFFERENT ? "weights" : "");
  return verdict;
}

inline std::string Text(const RunReport& report) { return ToText(MakeDocument(report), TextStyle()); }

inline Document DocumentWithPictures(const RunReport& report) {
  Document document = MakeDocument(report);
  AddPictures(report, &document);
  return document;
}

inline std::string Page(const RunReport& report) { return ToPage(DocumentWithPictures(report)); }

inline std::string Metrics(const RunReport& report) { return ToPrometheus(report, MakeDocument(report)); }

inline bool IsComplete(const RunReport& report) {
  return Metrics(report).find("\nott_complete{run=\"" + report.run.run_dir + "\"} 1\n") != std::string::npos;
}

inline bool Diverges(const RunReport& report) {
  return Metrics(report).find("\nott_diverged{run=\"" + report.run.run_dir + "\"} 1\n") != std::string::npos;
}

inline absl::StatusOr<RunReport> ReportOf(const std::string& run_dir) {
  AskedRun run;
  run.run_dir = run_dir;
  return ReadRunReport(std::move(run), AllQuestions());
}

inline Answer AnswerTo(const char* question, const RunReport& report) {
  for (const Answer& answer : MakeDocument(report).answers) {
    if (answer.question() == question) return answer;
  }
  ADD_FAILURE() << question << " was not asked";
  return Answer();
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

  void WriteStats(int rank, double seconds) {
    StopwatchStats stats;
    stats.set_rank(rank);
    stats.set_host("node<1>");
    stats.set_world_size(kNumRanks);
    stats.set_num_measured_iters(10);
    *stats.mutable_iteration() = AlikeForTest(10, seconds);
    *stats.mutable_own_work()->mutable_time()->mutable_all() = SteadyForTest(seconds, 0.001 * seconds);
    EXPECT_TRUE(
        WriteFileAtomically(RankDirectory(run_dir_, rank) + "/stopwatch.pb", stats.SerializeAsString()).ok());
  }

  void Add(const CrossCheckVerdict& verdict) { AddLine(verdict.rank(), VerdictToJsonLine(verdict)); }

  void AddLine(int rank, const std::string& line) {
    std::string lines;
    if (std::filesystem::exists(VerdictsPath(rank))) lines = *ReadFile(VerdictsPath(rank));
    EXPECT_TRUE(WriteFileAtomically(VerdictsPath(rank), lines + line).ok());
  }

  RunReport Read() const { return ReportOf(run_dir_).value(); }

  const std::string run_dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_RUN_REPORT_FOR_TEST_H_
