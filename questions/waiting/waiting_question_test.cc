// Asks runs of which something was gathered.

#include "ott/questions/waiting/waiting_question.h"

#include <chrono>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::waiting {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class WaitingQuestionTest : public ::testing::Test {
 protected:
  WaitingQuestionTest() {
    run_.run_dir = absl::StrCat(::testing::TempDir(), "/",
                                ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(run_.run_dir);
    run_.info.emplace().mutable_config()->mutable_stopwatch()->add_collective_measurements("loss");
  }

  void Gather(const std::string& json) {
    ASSERT_TRUE(WriteFileAtomically(ClusterStatsPath(run_.run_dir), json).ok());
  }

  AskedRun run_;
};

constexpr char kHeldUp[] = R"({"colour": 1, "arrivals": [
    {"name": "sum", "numIntervals": 90},
    {"name": "loss", "group": "data/0", "numRanks": 2, "numIntervals": 100, "numLeft": 4, "errorBound": 1e-6,
     "holdUp": {"rank": 1, "host": "node1", "secondsPerIteration": 0.01, "secondsLow": 0.009,
                "secondsHigh": 0.011, "shareOfIteration": 0.25}}]})";

TEST_F(WaitingQuestionTest, WhoIsWaitedForIsAnsweredDrawnAndMeasured) {
  ASSERT_NO_FATAL_FAILURE(Gather(kHeldUp));
  const auto before = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  std::filesystem::last_write_time(ClusterStatsPath(run_.run_dir), before);
  const Findings findings = *WaitingQuestion().ask(run_);
  ASSERT_EQ(findings.answers.size(), 1);
  const Answer& answer = findings.answers[0];
  EXPECT_EQ(answer.finding(), Answer::BAD);
  EXPECT_THAT(answer.ranks(), ElementsAre(1));
  EXPECT_THAT(answer.sentences(),
              ElementsAre("all wait for rank 1 (node1) at \"loss\" of group data/0: 10 ms an "
                          "iteration (9 ms to 11 ms), 25.0% of it"));
  EXPECT_EQ(
      answer.how_sure(),
      "up to 96 moments at which all waited for the last one; where ranks are alike, the rule is to name one "
      "in 0.25 % of the runs; two ranks' clocks are compared within 1 us");
  EXPECT_THAT(answer.next(), ElementsAre(absl::StrCat("ott whatif ", run_.run_dir)));
  EXPECT_THAT(answer.pictures(), ElementsAre("arrivals"));
  EXPECT_THAT(findings.problems, ElementsAre(HasSubstr("of another version: ")));
  ASSERT_EQ(findings.metrics.size(), 2);
  EXPECT_STREQ(findings.metrics[0].name, "ott_waiting_for_rank_seconds");
  ASSERT_EQ(findings.metrics[0].samples.size(), 1);
  EXPECT_EQ(findings.metrics[0].samples[0].value, 0.01);
  std::string labels;
  for (const auto& [name, value] : findings.metrics[0].samples[0].labels)
    absl::StrAppend(&labels, name, "=", value, " ");
  EXPECT_EQ(labels, "rank=1 host=node1 collective=loss group=data/0 ");
  EXPECT_STREQ(findings.metrics[1].name, "ott_gather_age_seconds");
  EXPECT_NEAR(findings.metrics[1].samples.at(0).value, 3600, 60);
  Document document;
  findings.draw({}, &document);
  EXPECT_EQ(document.pictures["arrivals"]["collectives"].size(), 2);
  EXPECT_THAT(document.thinned, IsEmpty());
}

TEST_F(WaitingQuestionTest, WhatIsMissingOrDamagedIsNoGoodNews) {
  const Findings none = *WaitingQuestion().ask(run_);
  EXPECT_EQ(none.answers[0].finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(none.answers[0].sentences(),
              ElementsAre("cannot tell: nothing was gathered of all ranks; there is no cluster_stats.json"));
  EXPECT_THAT(none.problems, IsEmpty());
  EXPECT_THAT(none.metrics, IsEmpty());
  EXPECT_FALSE(none.draw);
  ASSERT_NO_FATAL_FAILURE(Gather("{"));
  const Findings damaged = *WaitingQuestion().ask(run_);
  EXPECT_EQ(damaged.answers[0].finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(damaged.problems, ElementsAre(StartsWith(ClusterStatsPath(run_.run_dir) + ": ")));
  // Iterations are measured, but nobody said what ranks wait for; then not even that; then nothing is known.
  std::filesystem::remove(ClusterStatsPath(run_.run_dir));
  run_.info->mutable_config()->mutable_stopwatch()->clear_collective_measurements();
  for (int known = 2; known >= 0; --known) {
    EXPECT_EQ(WaitingQuestion().ask(run_)->answers[0].finding(), Answer::NOT_ASKED) << known;
    known == 2 ? run_.info->clear_config() : run_.info.reset();
  }
}

TEST_F(WaitingQuestionTest, OfManyCollectivesFiftyAreDrawn) {
  std::string json;
  for (int i = 0; i < 51; ++i) absl::StrAppend(&json, i == 0 ? "" : ",", R"({"name": "a"})");
  ASSERT_NO_FATAL_FAILURE(Gather(absl::StrCat(R"({"arrivals": [)", json, "]}")));
  Document document;
  WaitingQuestion().ask(run_)->draw({}, &document);
  EXPECT_EQ(document.pictures["arrivals"]["collectives"].size(), 50);
  EXPECT_THAT(document.thinned, ElementsAre("arrivals at 50 of 51 collectives are shown"));
}

}  // namespace
}  // namespace ott::waiting
