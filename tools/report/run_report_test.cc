#include "tools/report/run_report.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/op_log/op_log.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/hang/hang_answer.h"
#include "ott/questions/origin/origin_answer.h"
#include "ott/questions/questions.h"
#include "ott/questions/right/crosscheck/check_history.h"
#include "ott/questions/saved/iteration_sample.pb.h"
#include "ott/questions/saved/sampled_timeline.h"
#include "ott/questions/saved/saved_answer.h"
#include "ott/questions/slow/rank_grid.h"
#include "ott/questions/slow/slow_answer.h"
#include "tools/report/document_json.h"
#include "tools/report/document_text.h"
#include "tools/report/page.h"
#include "tools/report/prometheus.h"
#include "tools/report/runs_for_test.h"

namespace ott::report {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
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

std::string Text(const RunReport& report) { return ToText(MakeDocument(report), TextStyle()); }

Document DocumentWithPictures(const RunReport& report) {
  Document document = MakeDocument(report);
  AddPictures(report, &document);
  return document;
}

std::string Page(const RunReport& report) { return ToPage(DocumentWithPictures(report)); }

std::string Metrics(const RunReport& report) { return ToPrometheus(report, MakeDocument(report)); }

bool IsComplete(const RunReport& report) {
  return Metrics(report).find("\nott_complete{run=\"" + report.run.run_dir + "\"} 1\n") != std::string::npos;
}

bool Diverges(const RunReport& report) {
  return Metrics(report).find("\nott_diverged{run=\"" + report.run.run_dir + "\"} 1\n") != std::string::npos;
}

absl::StatusOr<RunReport> ReportOf(const std::string& run_dir) {
  AskedRun run;
  run.run_dir = run_dir;
  return ReadRunReport(std::move(run), AllQuestions());
}

Answer AnswerTo(const char* question, const RunReport& report) {
  for (const Answer& answer : MakeDocument(report).answers) {
    if (answer.question() == question) return answer;
  }
  ADD_FAILURE() << question << " was not asked";
  return Answer();
}

CrossCheckVerdict EvidenceOf(const Answer& answer) {
  CrossCheckVerdict verdict;
  EXPECT_TRUE(verdict.ParseFromString(answer.evidence()));
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

  RunReport Read(const std::string& reference = "", const std::string& perturbed = "") const {
    AskedRun run;
    run.run_dir = run_dir_;
    run.reference = reference;
    run.perturbed = perturbed;
    absl::StatusOr<RunReport> report = ReadRunReport(std::move(run), AllQuestions());
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : RunReport();
  }

  const std::string run_dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(RunReportTest, AReferenceWithoutLogsOfOperationsIsNoGoodAnswer) {
  const std::string reference = run_dir_ + "_reference";
  std::filesystem::remove_all(reference);
  std::filesystem::copy(run_dir_, reference, std::filesystem::copy_options::recursive);
  const RunReport report = Read(reference);
  EXPECT_FALSE(IsComplete(report));
  EXPECT_FALSE(Diverges(report));
  EXPECT_THAT(TextOf(AnswerTo("origin", report)), HasSubstr("no log of operations"));
}

// One linear operation on each rank of a run.
void LogLinear(const std::string& run_dir, float input, float output) {
  RunInfo info;
  info.set_world_size(kNumRanks);
  std::filesystem::create_directories(run_dir);
  EXPECT_TRUE(WriteRunInfo(run_dir, info).ok());
  for (int rank = 0; rank < kNumRanks; ++rank) {
    EXPECT_TRUE(MakeDirectories(RankDirectory(run_dir, rank)).ok());
    OpLog::Options options;
    options.path = OpLogPath(run_dir, rank);
    const auto log = OpLog::Create(options);
    ASSERT_TRUE(log.ok()) << log.status();
    EXPECT_TRUE((*log)->BeginIteration(0).ok());
    ObservedOp op;
    op.name = "linear";
    const TensorView input_view(&input, {1});
    const OpArg input_arg(input_view);
    op.args = {&input_arg, 1};
    void* const open = (*log)->Begin(op);
    const TensorView output_view(&output, {1});
    const OpArg output_arg(output_view);
    (*log)->AddOutputs(open, {&output_arg, 1});
    (*log)->End(open);
    EXPECT_TRUE((*log)->Finish().ok());
  }
}

TEST_F(RunReportTest, WhatAPerturbedRunExplainsIsNoBadNews) {
  LogLinear(run_dir_, 1, 2.0000005f);
  LogLinear(run_dir_ + "/reference", 1.0000001f, 2);
  LogLinear(run_dir_ + "/perturbed", 0.9999999f, 2.0000005f);
  const RunReport bad = Read(run_dir_ + "/reference");
  EXPECT_EQ(AnswerTo("origin", bad).finding(), Answer::BAD);
  EXPECT_TRUE(Diverges(bad));
  const RunReport report = Read(run_dir_ + "/reference", run_dir_ + "/perturbed");
  const Answer answer = AnswerTo("origin", report);
  EXPECT_EQ(answer.finding(), Answer::GOOD) << TextOf(answer);
  EXPECT_FALSE(Diverges(report));
  EXPECT_THAT(answer.how_sure(), HasSubstr("within what rounding explains"));
}

TEST_F(RunReportTest, APerturbedRunThatIsNotThereIsNoGoodAnswer) {
  LogLinear(run_dir_, 1, 2);
  LogLinear(run_dir_ + "/reference", 1, 2);
  const Answer answer = AnswerTo("origin", Read(run_dir_ + "/reference", run_dir_ + "/nothing"));
  EXPECT_EQ(answer.finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(TextOf(answer), HasSubstr("no run directory"));
}

TEST_F(RunReportTest, TheOperationThatMadeADifferenceIsBadNews) {
  OriginVerdict origin;
  origin.set_kind(OriginVerdict::OPERATION);
  origin.set_verdict("iteration 1, on rank 0: relu");
  const Answer answer = origin::AnswerOrigin(origin);
  EXPECT_EQ(answer.finding(), Answer::BAD);
  EXPECT_EQ(TextOf(answer), "iteration 1, on rank 0: relu");
}

TEST_F(RunReportTest, ACleanRunIsCompleteAndNamesTheSlowRank) {
  const RunReport report = Read();
  EXPECT_FALSE(Diverges(report));
  EXPECT_TRUE(IsComplete(report)) << ::testing::PrintToString(report.problems);
  EXPECT_THAT(Text(report), AllOf(HasSubstr("3 ranks on host node<1>"), HasSubstr("slowest rank: rank 1"),
                                  HasSubstr("2 checks, all equal bit for bit")));
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

TEST_F(RunReportTest, ThatNobodyIsSlowIsNoGoodNewsWhereMuchWouldNotBeFound) {
  ClusterStats stats;
  stats.set_num_ranks(kNumRanks);
  stats.set_detectable(0.31);
  EXPECT_EQ(slow::AnswerSlow(stats).finding(), Answer::GOOD);
  stats.set_detectable(0.89);
  EXPECT_EQ(slow::AnswerSlow(stats).finding(), Answer::CANNOT_TELL);
}

TEST_F(RunReportTest, TheFirstDivergenceIsTheEarliestOfAnyRank) {
  Add(Verdict(0, 20, REFERENCE, DIFFERENT));
  Add(Verdict(2, 10, REFERENCE, DIFFERENT));
  Add(Verdict(1, 10, REFERENCE, DIFFERENT));
  Add(Verdict(0, 10, REFERENCE, WITHIN_TOLERANCE));
  const RunReport report = Read();
  EXPECT_TRUE(Diverges(report));
  EXPECT_EQ(AnswerTo("replicas", report).finding(), Answer::GOOD);
  EXPECT_EQ(EvidenceOf(AnswerTo("reference", report)).iteration(), 10);
  EXPECT_EQ(EvidenceOf(AnswerTo("reference", report)).rank(), 1);
  EXPECT_THAT(Text(report), HasSubstr("first: iteration 10: rank 1 (node<1>) against"));
}

TEST_F(RunReportTest, TheFirstTensorOfAnyRankComesBeforeTheLowestRank) {
  const auto verdict_of = [](int rank, const std::string& tensor, int position, double error) {
    CrossCheckVerdict verdict = Verdict(rank, 10, REFERENCE, DIFFERENT);
    verdict.set_tensor(tensor);
    verdict.set_tensor_position(position);
    verdict.set_max_abs_error(error);
    return verdict;
  };
  Add(verdict_of(0, "loss", 9, 0.0659));
  Add(verdict_of(1, "loss", 9, 0.01));
  Add(verdict_of(2, "data.inputs", 0, 0.956));
  const RunReport report = Read();
  EXPECT_EQ(EvidenceOf(AnswerTo("reference", report)).rank(), 2);
  EXPECT_THAT(Text(report), AllOf(HasSubstr("rank 2 (node<1>) against"), HasSubstr("data.inputs"),
                                  HasSubstr("; first on rank 2 alone; 3 of 3 ranks differ"),
                                  HasSubstr("max abs error 0.956")));
  EXPECT_THAT(Page(report), AllOf(HasSubstr("data.inputs"), HasSubstr("0.956")));
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

TEST_F(RunReportTest, WhatARankHeardOfALostRankCounts) {
  CrossCheckVerdict verdict = Verdict(0, 20, REFERENCE, BITWISE_EQUAL);
  verdict.set_worst_outcome(DIFFERENT);
  verdict.set_worst_rank(2);
  Add(verdict);
  EXPECT_TRUE(Diverges(Read()));
}

TEST_F(RunReportTest, AComparisonThatCouldNotBeMadeIsNoPass) {
  Add(Verdict(1, 10, REPLICAS, NOT_COMPARED));
  const RunReport report = Read();
  EXPECT_FALSE(Diverges(report));
  EXPECT_FALSE(IsComplete(report));
  EXPECT_EQ(AnswerTo("replicas", report).finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(Metrics(report), HasSubstr("subject=\"replicas\",outcome=\"not_compared\"} 1\n"));
}

TEST_F(RunReportTest, ACutLineIsNamedAndTheOthersCount) {
  AddLine(1, VerdictToJsonLine(Verdict(1, 20, REPLICAS, BITWISE_EQUAL)).substr(0, 30));
  const RunReport report = Read();
  EXPECT_THAT(AnswerTo("replicas", report).how_sure(), HasSubstr("2 checks from iteration 0 to 10"));
  EXPECT_FALSE(IsComplete(report));
  EXPECT_THAT(report.problems, Contains(HasSubstr("rank_00001/cross_check.jsonl: line 3: ")));
}

TEST_F(RunReportTest, VerdictsThatEndBeforeThoseOfOthersAreNoPass) {
  for (const int rank : {0, 1, 2}) {
    if (rank != 2) Add(Verdict(rank, 20, REPLICAS, BITWISE_EQUAL));
  }
  EXPECT_TRUE(IsComplete(Read()));  // a check behind, as in a run that goes on
  ASSERT_TRUE(WriteFileAtomically(VerdictsPath(2), "").ok());
  EXPECT_THAT(Read().problems,
              Contains(HasSubstr("verdicts of rank 2 end before the first, those of others at 20")));
}

TEST_F(RunReportTest, WhatWouldBeSavedIsNotToldWithoutTheSlowRanksIterations) {
  WritePlantedRun(run_dir_ + "/planted", PlantedRun());
  const std::string run_dir = run_dir_ + "/planted";
  absl::StatusOr<RunReport> report = ReportOf(run_dir);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(AnswerTo("saved", *report).finding(), Answer::BAD) << TextOf(AnswerTo("saved", *report));
  EXPECT_THAT(AnswerTo("saved", *report).ranks(), Contains(PlantedRun().slow_rank));
  std::filesystem::remove(IterationsPath(run_dir, PlantedRun().slow_rank));
  report = ReportOf(run_dir);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_FALSE(IsComplete(*report));
  EXPECT_THAT(Text(*report),
              HasSubstr("? What would mending it save?\n  what if: cannot tell: the 3 ranks that are"));
}

int g_num_asked_about_files = 0;
int g_num_asked_about_time = 0;

// --follow reads a run each few seconds.
TEST_F(RunReportTest, OnlyWhatDependsOnTimeIsAskedAgainWhereNoFileChanged) {
  g_num_asked_about_files = g_num_asked_about_time = 0;
  std::vector<Question> questions(2);
  questions[0].ask = [](const AskedRun&) -> absl::StatusOr<Findings> {
    Findings findings;
    findings.is_news = true;
    findings.problems = {absl::StrCat("asked ", ++g_num_asked_about_files)};
    return findings;
  };
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
  g_num_asked_about_files = 0;
  Question question;
  question.ask = [](const AskedRun&) -> absl::StatusOr<Findings> {
    Findings findings;
    findings.is_news = true;
    findings.problems = {absl::StrCat("asked ", ++g_num_asked_about_files)};
    return findings;
  };
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
  std::filesystem::create_directories(RankDirectory(run_dir_, 77));
  report = ReadRunReport(run, {question}, &report).value();
  EXPECT_THAT(report.problems, ElementsAre("asked 7"));
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
  const absl::StatusOr<RunReport> report = ReportOf(run_dir);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(Text(*report), HasSubstr("! Does it hang?\n  rank 1 never came\n"));
  DocumentWithPictures(*report);
  ASSERT_TRUE(MakeDirectories(RankDirectory(run_dir, 1)).ok());
  ASSERT_TRUE(WriteFileAtomically(RankDirectory(run_dir, 1) + "/stacks.txt",
                                  "rank 1 stands in load, \033train.py:7\n\nthread MainThread:\n")
                  .ok());
  EXPECT_THAT(Text(*ReportOf(run_dir)),
              HasSubstr("  rank 1 never came\n  rank 1 stands in load, \\x1btrain.py:7\n"));
}

TEST_F(RunReportTest, NamesInAVerdictOnAHangAreEscapedOnce) {
  HangVerdict now;
  now.set_verdict("rank 1 never came to a\\nb");
  HangVerdict earlier = now;
  earlier.set_answer(HangVerdict::HANGING);
  EXPECT_EQ(hang::AnswerHang(now, earlier).evidence(), now.SerializeAsString());
  EXPECT_THAT(
      hang::AnswerHang(now, earlier).sentences(),
      testing::ElementsAre("rank 1 never came to a\\nb", "found while it stood: rank 1 never came to a\\nb"));
}

TEST_F(RunReportTest, DamagedStatisticsOfAllRanksAreNoCompleteReport) {
  ASSERT_TRUE(WriteFileAtomically(ClusterStatsPath(run_dir_), "{").ok());
  EXPECT_THAT(Read().problems, Contains(HasSubstr("cluster_stats.json: ")));
}

TEST_F(RunReportTest, WhatThisVersionDoesNotKnowIsSaid) {
  ASSERT_TRUE(WriteFileAtomically(ClusterStatsPath(run_dir_), R"({"of_tomorrow": 1})").ok());
  AddLine(1, R"({"mode": "REPLICAS", "outcome": "BITWISE_EQUAL", "of_yesterday": "a"})"
             "\n");
  const RunReport report = Read();
  EXPECT_THAT(report.problems, Contains(AllOf(HasSubstr("cluster_stats.json: "), HasSubstr("of_tomorrow"))));
  EXPECT_THAT(report.problems,
              Contains(AllOf(HasSubstr("rank_00001/cross_check.jsonl: "), HasSubstr("of_yesterday"))));
  EXPECT_FALSE(IsComplete(report));
}

TEST_F(RunReportTest, WithoutWhatWasGatheredItIsSaidThatThisIsWhy) {
  RunInfo info = *ReadRunInfo(run_dir_);
  info.mutable_config()->mutable_stopwatch()->add_collective_measurements("sum");
  ASSERT_TRUE(WriteRunInfo(run_dir_, info).ok());
  EXPECT_THAT(Text(Read()), HasSubstr("cannot tell: nothing was gathered of all ranks"));
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
  EXPECT_TRUE(absl::IsNotFound(ReportOf(run_dir_ + "/nowhere").status()));
  for (int rank = 0; rank < kNumRanks; ++rank) std::filesystem::remove_all(RankDirectory(run_dir_, rank));
  EXPECT_TRUE(absl::IsNotFound(ReportOf(run_dir_).status()));
}

TEST_F(RunReportTest, NamesInThePageAreTextNotMarkup) {
  const std::string page = Page(Read());
  EXPECT_THAT(page, AllOf(HasSubstr("node&lt;1&gt;"), Not(HasSubstr("node<1>"))));
}

TEST_F(RunReportTest, ALongRunMakesNoLargerPage) {
  std::string lines;
  for (int iteration = 0; iteration < 5000; ++iteration) {
    lines += VerdictToJsonLine(
        Verdict(0, iteration, REPLICAS, iteration >= 2000 && iteration < 4000 ? DIFFERENT : BITWISE_EQUAL));
  }
  AddLine(0, lines);
  const Document document = DocumentWithPictures(Read());
  const Json& checks = document.pictures.at("checks").at("series").at(0).at("checks");
  ASSERT_EQ(checks.size(), 400u);
  // 12 or 13 checks each, of which a column shows the worst.
  EXPECT_EQ(checks.at(159).at("outcome"), "BITWISE_EQUAL");
  EXPECT_EQ(checks.at(160).at("first"), 2000);
  EXPECT_EQ(checks.at(160).at("outcome"), "DIFFERENT");
  EXPECT_THAT(document.thinned, Contains("5000 checks (replicas) share 400 columns, which show the worst"));
  EXPECT_LT(Dump(document.pictures, -1).size(), 100'000u);
}

TEST_F(RunReportTest, AnswersComeInTheirOrderWithAMarkAndHowSureTheyAre) {
  const std::string text = Text(Read());
  size_t at = 0;
  for (const char* const question :
       {"! Who is slow?\n", "? What would mending it save?\n", "? Who waits for whom?\n", "? Does it hang?\n",
        "+ Do the replicas agree?\n", "? Is it the reference run?\n"}) {
    const size_t found = text.find(question, at);
    ASSERT_NE(found, std::string::npos) << question << "in\n" << text;
    at = found;
  }
  EXPECT_THAT(text,
              HasSubstr("\n    how sure: intervals hold the truth in 95 of 100 runs; where ranks are alike"));
  EXPECT_THAT(text, Not(HasSubstr("\033[")));
}

TEST_F(RunReportTest, ATerminalGetsColorsAndLinesThatFit) {
  TextStyle style;
  style.color = true;
  style.width = 60;
  const std::string text = ToText(MakeDocument(Read()), style);
  EXPECT_THAT(text, HasSubstr("\033[31m!\033[0m \033[1mWho is slow?\033[0m\n"));
  std::string plain = text;
  for (size_t begin; (begin = plain.find('\033')) != std::string::npos;)
    plain.erase(begin, plain.find('m', begin) + 1 - begin);
  size_t longest = 0;
  for (size_t begin = 0; begin < plain.size();) {
    const size_t end = plain.find('\n', begin);
    const auto line = plain.substr(begin, end - begin);
    longest = std::max<size_t>(
        longest, std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; }));
    begin = end + 1;
  }
  EXPECT_LE(longest, 60u) << plain;
}

TEST_F(RunReportTest, OnASmallScreenHowSureItIsComesAfterTheAnswers) {
  TextStyle style;
  style.height = 14;
  const Document document = MakeDocument(Read());
  EXPECT_THAT(ToText(document, style), HasSubstr("\n\nHow sure that is\nWho is slow? intervals hold"));
  const std::string summary = ToSummary(document, style);
  EXPECT_LE(std::count(summary.begin(), summary.end(), '\n'), 14);
  EXPECT_THAT(summary, Not(HasSubstr("how sure")));
}

TEST_F(RunReportTest, ALongAnswerIsToldInFullBelow) {
  Document document;
  document.title = "run";
  document.answers = {MakeAnswer(slow::kQuestion)};
  document.answers[0].set_finding(Answer::BAD);
  AddSentences({"1", "2", "3", "4", "5"}, &document.answers[0]);
  EXPECT_EQ(
      ToText(document, TextStyle()),
      "run: \n\n! Who is slow?\n  1\n  2\n  3\n  and 2 more lines, below\n\nWho is slow?\n1\n2\n3\n4\n5\n");
}

TEST_F(RunReportTest, PrometheusGetsWhatOneWouldAlertOn) {
  Add(Verdict(2, 20, REPLICAS, DIFFERENT));
  const std::string text = Metrics(Read());
  EXPECT_THAT(
      text, AllOf(HasSubstr("# TYPE ott_diverged gauge\nott_diverged{run=\"" + run_dir_ + "\"} 1\n"),
                  HasSubstr("\nott_slowest_rank_excess_ratio{run=\"" + run_dir_ +
                            "\",rank=\"1\",host=\"node<1>\"} 2.0"),
                  HasSubstr("subject=\"replicas\",outcome=\"equal\"} 2\n"), HasSubstr("ott_ranks_missing{")));
  // Each name is described before its samples.
  for (size_t at = 0; (at = text.find("\nott_", at)) != std::string::npos; ++at) {
    const std::string name = text.substr(at + 1, text.find('{', at) - at - 1);
    EXPECT_LT(text.find("# TYPE " + name + " "), at) << name;
  }
}

TEST_F(RunReportTest, TheJsonHasAllAnswersAndAVersion) {
  const Json json = Json::parse(Dump(ToJson(DocumentWithPictures(Read())), 1));
  EXPECT_EQ(json.at("schema"), "ott.report");
  EXPECT_EQ(json.at("schema_version"), 4);
  EXPECT_EQ(json.at("answers").size(), 6u);
  EXPECT_EQ(json.at("answers").at(0).at("question"), "slow");
  EXPECT_EQ(json.at("answers").at(0).at("finding"), "BAD");
}

TEST_F(RunReportTest, TheDataOfThePageEndNoElement) {
  CrossCheckVerdict verdict = Verdict(1, 20, REPLICAS, DIFFERENT);
  verdict.set_tensor("</script><script>alert(1)</script>{{script}}<!--" + std::string(100'000, 'x'));
  Add(verdict);
  const std::string page = Page(Read());
  const size_t begin = page.find("id=\"data\">");
  const std::string data = page.substr(begin + 10, page.find("</script>", begin) - begin - 10);
  EXPECT_THAT(data, AllOf(Not(HasSubstr("<")), HasSubstr("\\u003c/script\\u003e"), HasSubstr("{{script}}")));
  EXPECT_TRUE(Json::accept(data));
  EXPECT_LT(data.size(), 60'000u);
}

TEST_F(RunReportTest, APageThatWouldBeTooLargeLeavesOutPicturesAndSaysSo) {
  Document document = MakeDocument(Read());
  document.details.push_back({"Long", std::string(5'000'000, '<')});
  document.answers[0].add_pictures("large");
  document.pictures["large"] = std::string(3'000'000, 'x');
  document.pictures["small"] = "drawn";
  const std::string page = ToPage(document);
  EXPECT_LE(page.size(), kMaxPageBytes);
  EXPECT_THAT(page, AllOf(HasSubstr("the picture large would make the page too large"), HasSubstr("drawn"),
                          Not(HasSubstr("href=\"#large\""))));
}

TEST_F(RunReportTest, ARowOfManyRanksShowsTheOneThatTakesLongest) {
  PlantedRun planted;
  planted.num_ranks = 1000;
  planted.slow_rank = 777;
  planted.with_checks = planted.with_sample = false;
  WritePlantedRun(run_dir_ + "/many", planted);
  const auto grid = slow::ReadRankGrid(run_dir_ + "/many", planted.num_ranks, 0);
  ASSERT_TRUE(grid.ok()) << grid.status();
  ASSERT_EQ(grid->rows.size(), 256u);
  EXPECT_EQ(grid->rows.front().first(), 0);
  EXPECT_EQ(grid->rows.back().last(), 999);
  const size_t num_columns = grid->columns.size();
  ASSERT_EQ(num_columns, 40u);
  for (size_t row = 0; row < grid->rows.size(); ++row) {
    const bool has_slow = grid->rows[row].first() <= 777 && 777 <= grid->rows[row].last();
    for (size_t column = 0; column < num_columns; ++column) {
      EXPECT_NEAR(grid->work[row * num_columns + column], has_slow ? 3e-3 : 1e-3, 1e-8)
          << row << ", " << column;
    }
  }
  ASSERT_EQ(grid->outliers.size(), 1u);
  EXPECT_EQ(grid->outliers[0].iteration(), planted.long_iteration);
  EXPECT_EQ(grid->outliers[0].rank(), 777);
}

TEST_F(RunReportTest, ColumnsOfALongRunAreMeansAndCoverAllIterations) {
  PlantedRun planted;
  planted.num_iterations = 12'345;
  planted.series_limit = 20'000;
  planted.with_checks = planted.with_sample = false;
  WritePlantedRun(run_dir_ + "/long", planted);
  const auto grid = slow::ReadRankGrid(run_dir_ + "/long", planted.num_ranks, 100);
  ASSERT_TRUE(grid.ok()) << grid.status();
  ASSERT_EQ(grid->columns.size(), 400u);
  EXPECT_EQ(grid->columns.front().first(), 105);
  EXPECT_EQ(grid->columns.back().last(), 105 + 12'345 - 1);
  for (size_t i = 1; i < grid->columns.size(); ++i) {
    EXPECT_EQ(grid->columns[i].first(), grid->columns[i - 1].last() + 1);
  }
  // The long iteration, 16 ms beyond the others, is the first column's, of 31.
  EXPECT_NEAR(grid->columns[0].mean(), 4e-3 + 16e-3 / 31, 1e-6);
  EXPECT_NEAR(grid->columns[0].longest(), 20e-3, 1e-6);
  EXPECT_NEAR(grid->columns[1].mean(), 4e-3, 1e-6);

  planted.series_limit = 1000;
  WritePlantedRun(run_dir_ + "/thinned", planted);
  const auto thinned = slow::ReadRankGrid(run_dir_ + "/thinned", planted.num_ranks, 100);
  ASSERT_TRUE(thinned.ok()) << thinned.status();
  EXPECT_EQ(thinned->stride, 16);
  EXPECT_EQ(thinned->columns.back().last(), 105 + 12'345 - 1);
}

TEST_F(RunReportTest, TheTimelineHasTheMeasurementsOfEachRank) {
  WritePlantedRun(run_dir_ + "/known", PlantedRun());
  const auto timeline = saved::ReadSampledTimeline(run_dir_ + "/known", {1});
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(timeline->num_sampled(), 16);
  ASSERT_EQ(timeline->iterations_size(), static_cast<int>(saved::kMaxTimelineIterations));
  const TimelinePicture::Iteration& last = timeline->iterations(timeline->iterations_size() - 1);
  EXPECT_EQ(last.iteration(), 44);
  ASSERT_EQ(last.ranks_size(), 4);
  const TimelinePicture::Rank& rank = last.ranks(1);
  ASSERT_EQ(rank.start_size(), 3);
  EXPECT_EQ(timeline->names(rank.name(1)).name(), "attention");
  EXPECT_EQ(rank.depth(1), 1);
  EXPECT_EQ(rank.start(1), 750'000);
  EXPECT_EQ(rank.duration(1), 1'500'000);
  EXPECT_EQ(rank.depth(2), 0);
  EXPECT_EQ(rank.end(), 4'000'000);
}

TEST_F(RunReportTest, ADamagedSampleIsLeftOut) {
  WritePlantedRun(run_dir_ + "/known", PlantedRun());
  IterationSample sample;
  ASSERT_TRUE(sample.ParseFromString(*ReadFile(run_dir_ + "/known/rank_00001/iterations.pb")));
  sample.mutable_blocks(0)->set_name(0, 77);
  ASSERT_TRUE(
      WriteFileAtomically(run_dir_ + "/known/rank_00001/iterations.pb", sample.SerializeAsString()).ok());
  const auto timeline = saved::ReadSampledTimeline(run_dir_ + "/known", {1});
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(timeline->iterations(timeline->iterations_size() - 1).ranks_size(), 3);
}

TEST_F(RunReportTest, SeriesOfDamagedNumbersAreNoNumbers) {
  StopwatchStats stats;
  stats.set_rank(0);
  stats.set_num_measured_iters(3);
  stats.mutable_iteration_series()->set_stride(1);
  for (const float seconds : {1.0f, std::numeric_limits<float>::quiet_NaN(), -5.0f}) {
    stats.mutable_iteration_series()->add_seconds(seconds);
  }
  slow::RankGridBuilder builder(2, stats, 0);
  builder.Add(stats);
  stats.set_rank(7);
  builder.Add(stats);
  const slow::RankGrid grid = builder.Finish();
  ASSERT_EQ(grid.columns.size(), 3u);
  EXPECT_EQ(grid.columns[0].mean(), 1);
  EXPECT_TRUE(std::isnan(grid.columns[1].mean()));
  EXPECT_TRUE(std::isnan(grid.columns[2].longest()));
}

}  // namespace
}  // namespace ott::report
