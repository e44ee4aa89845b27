#include "tools/report/run_report.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/questions.h"
#include "tools/report/document_json.h"
#include "tools/report/page.h"
#include "tools/report/prometheus.h"
#include "tools/report/run_report_for_test.h"
#include "tools/report/runs_for_test.h"

namespace ott::report {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(RunReportTest, ACleanRunIsCompleteAndNamesTheSlowRank) {
  const RunReport report = Read();
  EXPECT_FALSE(Diverges(report));
  EXPECT_TRUE(IsComplete(report)) << ::testing::PrintToString(report.problems);
  EXPECT_THAT(Text(report), AllOf(HasSubstr("3 ranks on host node<1>"), HasSubstr("slowest rank: rank 1"),
                                  HasSubstr("2 checks, all equal bit for bit")));
}

TEST_F(RunReportTest, ReplicasThatDifferBetweenChecksDoNotAgree) {
  for (int rank = 0; rank < kNumRanks; ++rank) {
    const std::string record = absl::StrCat(
        R"({"num_iterations": 9, "rules": [{"name": "replicas_differ", "num_checks": 2}], "facts": [)",
        R"({"rule": "replicas_differ", "name": "parameters", "iterations": [6, 8], "values": ["a", ")",
        rank == 1 ? "b" : "a", R"("]}]})");
    ASSERT_TRUE(WriteFileAtomically(RankDirectory(run_dir_, rank) + "/sound.json", record).ok());
  }
  const RunReport report = Read();
  EXPECT_TRUE(Diverges(report));
  const Answer replicas = AnswerTo("replicas", report);
  EXPECT_EQ(replicas.finding(), Answer::BAD);
  EXPECT_EQ(TextOf(replicas),
            "replicas: 2 checks, all equal bit for bit\n"
            "between these checks replicas DIFFER since iteration 8, by the rules of a sound step");
}

TEST_F(RunReportTest, RanksThatHoldTheSameDataAreADivergenceOfTheirOwn) {
  Add(Verdict(0, 0, DISTINCT, ALL_DISTINCT));
  EXPECT_FALSE(Diverges(Read()));
  EXPECT_THAT(Text(Read()), HasSubstr("distinct: 1 check, all ranks have their own"));
  Add(Verdict(0, 10, DISTINCT, DIFFERENT));
  const RunReport report = Read();
  EXPECT_TRUE(Diverges(report));
  EXPECT_THAT(Text(report), AllOf(HasSubstr("replicas: 2 checks, all equal bit for bit"),
                                  HasSubstr("distinct: 2 checks, 1 THE SAME on several ranks"),
                                  HasSubstr("first: iteration 10: distinct tensors are THE SAME in tensor")));
  EXPECT_THAT(Metrics(report), HasSubstr("subject=\"distinct\",outcome=\"same\"} 1\n"));
  const Json series = DocumentWithPictures(report).pictures.at("checks").at("series");
  EXPECT_EQ(series.back().at("subject"), "distinct");
  EXPECT_EQ(series.back().at("checks").at(0).at("outcome"), "ALL_DISTINCT");
  EXPECT_EQ(series.back().at("checks").at(1).at("outcome"), "DIFFERENT");
}

TEST_F(RunReportTest, TheErrorsOfAllRanksAgainstTheReferenceAreShownByIteration) {
  for (int rank = 0; rank < kNumRanks; ++rank) {
    for (const int iteration : {0, 10, 20}) {
      CrossCheckVerdict verdict =
          Verdict(rank, iteration, REFERENCE, iteration == 0 ? BITWISE_EQUAL : WITHIN_TOLERANCE);
      if (rank > 0 && iteration == 0) verdict.add_tensor_errors()->set_tensor("bias");
      if (iteration > 0) {
        TensorError& error = *verdict.add_tensor_errors();
        error.set_tensor("weights");
        error.set_max_abs_error(iteration + rank);
      }
      Add(verdict);
    }
  }
  EXPECT_THAT(Text(Read()), HasSubstr("max abs error, of all ranks  from iteration  at 0  at 10  at 20\n"
                                      "bias                                      0     0      0      0\n"
                                      "weights                                  10     0     12     22\n"));
}

TEST_F(RunReportTest, AComparisonThatCouldNotBeMadeIsNoPass) {
  Add(Verdict(1, 10, REPLICAS, NOT_COMPARED));
  const RunReport report = Read();
  EXPECT_FALSE(Diverges(report));
  EXPECT_FALSE(IsComplete(report));
  EXPECT_EQ(AnswerTo("replicas", report).finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(Metrics(report), HasSubstr("subject=\"replicas\",outcome=\"not_compared\"} 1\n"));
}

TEST_F(RunReportTest, WhatWouldBeSavedIsNotToldWithoutTheSlowRanksIterations) {
  WritePlantedRun(run_dir_ + "/planted", PlantedRun());
  const std::string run_dir = run_dir_ + "/planted";
  const Answer saved = AnswerTo("saved", ReportOf(run_dir).value());
  ASSERT_EQ(saved.finding(), Answer::BAD) << TextOf(saved);
  EXPECT_THAT(saved.ranks(), Contains(PlantedRun().slow_rank));
  std::filesystem::remove(IterationsPath(run_dir, PlantedRun().slow_rank));
  const RunReport report = ReportOf(run_dir).value();
  EXPECT_FALSE(IsComplete(report));
  EXPECT_THAT(Text(report),
              HasSubstr("? What would mending it save?\n  what if: cannot tell: the 3 ranks that are"));
}

int g_num_asked_about_files = 0;
int g_num_asked_about_time = 0;

// A question that says how often it was asked.
Question AskedAboutFiles() {
  g_num_asked_about_files = 0;
  Question question;
  question.ask = [](const AskedRun&) -> absl::StatusOr<Findings> {
    Findings findings;
    findings.is_news = true;
    findings.problems = {absl::StrCat("asked ", ++g_num_asked_about_files)};
    return findings;
  };
  return question;
}

// --follow reads a run each few seconds.
TEST_F(RunReportTest, OnlyWhatDependsOnTimeIsAskedAgainWhereNoFileChanged) {
  g_num_asked_about_time = 0;
  std::vector<Question> questions = {AskedAboutFiles(), Question()};
  questions[1].ask = [](const AskedRun&) -> absl::StatusOr<Findings> {
    ++g_num_asked_about_time;
    return Findings();
  };
  questions[1].depends_on_time = true;
  AskedRun run;
  run.run_dir = run_dir_;
  RunReport report = ReadRunReport(run, questions).value();
  const auto read_again = [&] { report = ReadRunReport(run, questions, &report).value(); };
  read_again();
  EXPECT_THAT(report.problems, ElementsAre("asked 1"));
  EXPECT_EQ(g_num_asked_about_time, 2);
  Add(Verdict(1, 20, REPLICAS, BITWISE_EQUAL));
  read_again();
  EXPECT_THAT(report.problems, ElementsAre("asked 2"));
  std::filesystem::create_directories(DumpsDirectory(run_dir_, 0) + "/12");
  read_again();
  EXPECT_THAT(report.problems, ElementsAre("asked 3"));
  EXPECT_TRUE(WriteFileAtomically(DumpsDirectory(run_dir_, 0) + "/12/manifest.json", "{}").ok());
  read_again();
  EXPECT_THAT(report.problems, ElementsAre("asked 4"));
  read_again();
  EXPECT_THAT(report.problems, ElementsAre("asked 4"));
  // The report does not look at files outside of the run.
  run.reference = run_dir_;
  read_again();
  read_again();
  EXPECT_THAT(report.problems, ElementsAre("asked 6"));
  EXPECT_EQ(g_num_asked_about_time, 8);
}

// A rank's folder has files that the question does not ask for, and they change nothing.
TEST_F(RunReportTest, QuestionsReadNoFilesOfRanksButThoseThatTheyName) {
  const std::string run_dir = run_dir_ + "/planted";
  WritePlantedRun(run_dir, PlantedRun());
  AskedRun run;
  run.run_dir = run_dir;
  run.ranks = ListRanks(run_dir).value();
  int num_compared = 0;
  for (const Question& question : AllQuestions()) {
    if (question.reads.empty()) continue;
    const Findings all = question.ask(run).value();
    const std::string copy = run_dir_ + "/copy";
    std::filesystem::remove_all(copy);
    std::filesystem::copy(run_dir, copy, std::filesystem::copy_options::recursive);
    for (const int rank : run.ranks) {
      for (const auto& file : std::filesystem::directory_iterator(RankDirectory(run_dir, rank))) {
        const std::string name = file.path().filename();
        if (std::none_of(question.reads.begin(), question.reads.end(),
                         [&](const char* begin) { return absl::StartsWith(name, begin); })) {
          std::filesystem::remove_all(file.path());
          ++num_compared;
        }
      }
    }
    const Findings named = question.ask(run).value();
    EXPECT_EQ(named.problems, all.problems) << question.title;
    ASSERT_EQ(named.answers.size(), all.answers.size());
    for (size_t i = 0; i < all.answers.size(); ++i) {
      EXPECT_EQ(named.answers[i].SerializeAsString(), all.answers[i].SerializeAsString()) << question.title;
    }
    std::filesystem::remove_all(run_dir);
    std::filesystem::rename(copy, run_dir);
  }
  EXPECT_GT(num_compared, 0);
}

TEST_F(RunReportTest, OnlyQuestionsWhoseFilesChangedAreAskedAgain) {
  Question question = AskedAboutFiles();
  question.reads = {"stopwatch.pb", "cross_check"};
  AskedRun run;
  run.run_dir = run_dir_;
  RunReport report = ReadRunReport(run, {question}).value();
  const auto problems_after = [&](const std::string& file) {
    EXPECT_TRUE(WriteFileAtomically(run_dir_ + "/" + file, absl::StrCat(g_num_asked_about_files)).ok());
    report = ReadRunReport(run, {question}, &report).value();
    return report.problems;
  };
  EXPECT_THAT(problems_after("rank_00000/iterations.pb"), ElementsAre("asked 1"));
  EXPECT_THAT(problems_after("rank_00000/stopwatch.pb"), ElementsAre("asked 2"));
  EXPECT_THAT(problems_after("rank_00000/cross_check.jsonl"), ElementsAre("asked 3"));
  EXPECT_THAT(problems_after("cluster_stats.json"), ElementsAre("asked 4"));
  // The folder's own time does not tell that the file in it was written again.
  const auto old = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  const std::string folder = RankDirectory(run_dir_, 0);
  std::filesystem::last_write_time(folder, old);
  EXPECT_THAT(problems_after("cluster_stats.json"), ElementsAre("asked 5"));
  std::ofstream(folder + "/stopwatch.pb", std::ios::app) << "more";
  report = ReadRunReport(run, {question}, &report).value();
  EXPECT_THAT(report.problems, ElementsAre("asked 6"));
  // A rank that has only begun.
  const std::string begun = RankDirectory(run_dir_, 77);
  std::filesystem::create_directories(begun);
  std::ofstream(begun + "/being_written") << "more";
  const auto tick = std::filesystem::file_time_type::clock::now() + std::chrono::hours(1);
  std::filesystem::last_write_time(begun, tick);
  report = ReadRunReport(run, {question}, &report).value();
  EXPECT_THAT(report.problems, ElementsAre("asked 7"));
  // Its first file, in the same tick of the clock of files.
  std::filesystem::rename(begun + "/being_written", begun + "/stopwatch.pb");
  std::filesystem::last_write_time(begun, tick);
  report = ReadRunReport(run, {question}, &report).value();
  EXPECT_THAT(report.problems, ElementsAre("asked 8"));
}

TEST_F(RunReportTest, WhatCannotBeToldOfAHangIsNoCompleteReport) {
  ASSERT_TRUE(IsComplete(Read()));
  ASSERT_TRUE(WriteFileAtomically(run_dir_ + "/hang.json", R"({"answer": "CANNOT_TELL"})").ok());
  EXPECT_FALSE(IsComplete(Read()));
  ASSERT_TRUE(WriteFileAtomically(run_dir_ + "/hang.json", R"({"answer": "NOT_HANGING"})").ok());
  EXPECT_TRUE(IsComplete(Read()));
}

TEST_F(RunReportTest, ARunThatHungBeforeAnyStatisticsShowsWhatItFound) {
  const std::string run_dir = run_dir_ + "/hung";
  RunInfo info;
  info.set_world_size(2);
  ASSERT_TRUE(MakeDirectories(RankDirectory(run_dir, 0)).ok());
  ASSERT_TRUE(WriteRunInfo(run_dir, info).ok());
  EXPECT_TRUE(absl::IsNotFound(ReportOf(run_dir).status()));
  ASSERT_TRUE(WriteFileAtomically(run_dir + "/hang.json",
                                  R"({"answer": "HANGING", "culprits": [1], "verdict": "rank 1 never came"})")
                  .ok());
  const RunReport report = ReportOf(run_dir).value();
  EXPECT_THAT(Text(report), HasSubstr("! Does it hang?\n  rank 1 never came\n"));
  DocumentWithPictures(report);
  ASSERT_TRUE(MakeDirectories(RankDirectory(run_dir, 1)).ok());
  ASSERT_TRUE(WriteFileAtomically(RankDirectory(run_dir, 1) + "/stacks.txt",
                                  "rank 1 stands in load, \033train.py:7\n\nthread MainThread:\n")
                  .ok());
  EXPECT_THAT(Text(*ReportOf(run_dir)),
              HasSubstr("  rank 1 never came\n  rank 1 stands in load, \\x1btrain.py:7\n"));
}

TEST_F(RunReportTest, TheLatestStartIsReportedOnAndSaid) {
  const std::string latest = run_dir_ + "/attempt_2";
  std::filesystem::remove_all(run_dir_ + "_latest");
  std::filesystem::copy(run_dir_, run_dir_ + "_latest", std::filesystem::copy_options::recursive);
  std::filesystem::rename(run_dir_ + "_latest", latest);
  RunInfo info = *ReadRunInfo(latest);
  info.add_resumptions()->set_start_iteration(1000);
  ASSERT_TRUE(WriteRunInfo(latest, info).ok());
  const RunReport report = Read();
  EXPECT_EQ(report.run.run_dir, latest);
  EXPECT_THAT(Text(report), AllOf(HasSubstr(", continued from iteration 1000"),
                                  HasSubstr("was started 2 times: this is of the latest, " + latest)));
}

TEST_F(RunReportTest, AMissingRankIsNamed) {
  std::filesystem::remove_all(RankDirectory(run_dir_, 1));
  const RunReport report = Read();
  EXPECT_FALSE(IsComplete(report));
  EXPECT_THAT(report.problems, AllOf(Contains(HasSubstr("no statistics of rank 1")),
                                     Contains(HasSubstr("verdicts of 2 of 3 ranks, those of ranks 0, 2"))));
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
  EXPECT_TRUE(absl::IsNotFound(ReportOf(run_dir_ + "/nowhere").status()));
  for (int rank = 0; rank < kNumRanks; ++rank) std::filesystem::remove_all(RankDirectory(run_dir_, rank));
  EXPECT_TRUE(absl::IsNotFound(ReportOf(run_dir_).status()));
}

}  // namespace
}  // namespace ott::report
