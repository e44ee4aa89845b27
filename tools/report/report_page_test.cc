// Tests how a report is shown: on a page and a terminal, as JSON, for Prometheus, and in pictures.

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/check/verdict.h"
#include "ott/questions/slow/slow_answer.h"
#include "tools/report/document_json.h"
#include "tools/report/document_text.h"
#include "tools/report/page.h"
#include "tools/report/prometheus.h"
#include "tools/report/run_report_for_test.h"

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

}  // namespace
}  // namespace ott::report
