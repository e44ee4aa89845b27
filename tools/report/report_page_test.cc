// Tests how a report is shown: on a page and a terminal, as JSON, for Prometheus, and in pictures.

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/saved/iteration_sample.pb.h"
#include "ott/questions/saved/sampled_timeline.h"
#include "ott/questions/saved/saved_answer.h"
#include "ott/questions/slow/rank_grid.h"
#include "ott/questions/slow/slow_answer.h"
#include "tools/report/document_json.h"
#include "tools/report/document_text.h"
#include "tools/report/page.h"
#include "tools/report/prometheus.h"
#include "tools/report/run_report_for_test.h"
#include "tools/report/runs_for_test.h"

namespace ott::report {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

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

}  // namespace
}  // namespace ott::report
