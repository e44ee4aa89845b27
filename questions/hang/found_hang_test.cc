#include "ott/questions/hang/found_hang.h"

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/hang/hang_answer.h"

namespace ott::hang {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Returns any verdict on ranks 0 to 2, which mostly stand where they stand in others.
HangVerdict AnyVerdict(std::mt19937& random) {
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  HangVerdict verdict;
  verdict.set_answer(one_in(4)   ? HangVerdict::NOT_HANGING
                     : one_in(4) ? HangVerdict::CANNOT_TELL
                                 : HangVerdict::HANGING);
  for (int i = 0; i < 3; ++i) {
    if (one_in(3)) verdict.add_culprits(i);
    if (one_in(12)) continue;
    HangRank& rank = *verdict.add_ranks();
    rank.set_rank(i);
    rank.set_state(one_in(12) ? HangRank::FINISHED : one_in(4) ? HangRank::DEAD : HangRank::WAITS);
    rank.set_iteration(one_in(12) ? 5 : 4);
    rank.set_last_completed(one_in(12) ? "average_gradients #6" : "sum_loss #5");
    rank.set_place(one_in(8) ? "" : "forward");
  }
  return verdict;
}

// The same hang is told by the newer verdict, which says for how long by now.
TEST(FoundHang, HoldsWhileThoseThatItBlamesOrElseAllHaveNotGoneOn) {
  std::mt19937 random(1);
  int num_held = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    const HangVerdict found = AnyVerdict(random), now = AnyVerdict(random);
    const std::vector<int> culprits(found.culprits().begin(), found.culprits().end());
    bool holds = found.answer() == HangVerdict::HANGING;
    if (now.answer() == HangVerdict::HANGING)
      holds &=
          !culprits.empty() && culprits != std::vector<int>(now.culprits().begin(), now.culprits().end());
    for (const HangRank& rank : now.ranks()) {
      if (!culprits.empty() && std::count(culprits.begin(), culprits.end(), rank.rank()) == 0) continue;
      const auto then = std::find_if(found.ranks().begin(), found.ranks().end(),
                                     [&](const HangRank& other) { return other.rank() == rank.rank(); });
      holds &= then != found.ranks().end() && rank.state() != HangRank::FINISHED &&
               rank.iteration() <= then->iteration() && rank.last_completed() == then->last_completed() &&
               (rank.state() != then->state() || rank.place() == then->place());
    }
    ASSERT_EQ(StillHolds(found, now), holds) << found.ShortDebugString() << "\n" << now.ShortDebugString();
    num_held += holds;
  }
  EXPECT_GT(num_held, 500);
}

TEST(FoundHang, ADamagedFileIsNamed) {
  const std::string run_dir = testing::TempDir();
  ASSERT_TRUE(WriteFileAtomically(run_dir + "/hang.json", "{").ok());
  EXPECT_THAT(std::string(ReadFoundHang(run_dir).status().message()), HasSubstr("hang.json: "));
  ASSERT_TRUE(WriteFileAtomically(run_dir + "/hang.json", "{\"answer\": \"HANGING\"}").ok());
  const auto found = ReadFoundHang(run_dir);
  ASSERT_TRUE(found.ok() && *found) << found.status();
  EXPECT_EQ((*found)->answer(), HangVerdict::HANGING);
  EXPECT_THAT((*found)->notes(), IsEmpty());
}

TEST(FoundHang, WhatAnotherVersionWroteIsReadAndPrintedOnOneLine) {
  const std::string run_dir = testing::TempDir();
  ASSERT_TRUE(
      WriteFileAtomically(run_dir + "/hang.json",
                          R"({"answer": "HANGING", "verdict": "a\n\u007f\u001f\u00e9 ~", "colour": 1})")
          .ok());
  const HangVerdict found = **ReadFoundHang(run_dir);
  EXPECT_EQ(found.verdict(), "a   \u00e9 ~");
  EXPECT_THAT(found.notes(), ElementsAre(HasSubstr("of another version: " + run_dir + "/hang.json: ")));
  std::filesystem::remove(run_dir + "/hang.json");
  EXPECT_FALSE(ReadFoundHang(run_dir)->has_value());
}

TEST(HangAnswer, SaysWhatWasFoundBeforeUnlessItIsTheSameHang) {
  HangVerdict earlier;
  earlier.set_answer(HangVerdict::HANGING);
  earlier.add_culprits(1);
  HangVerdict now = earlier;
  EXPECT_EQ(AnswerHang(now, earlier).sentences_size(), 1);
  EXPECT_THAT(AnswerHang(now, earlier).ranks(), ElementsAre(1));
  now.set_culprits(0, 0);
  EXPECT_EQ(AnswerHang(now, earlier).sentences_size(), 2);
  now = earlier;
  now.set_answer(HangVerdict::CANNOT_TELL);
  now.set_verdict("rank 1 never came to a\\nb");  // escaped already
  earlier.set_verdict("it waits in a\\tb");
  EXPECT_EQ(AnswerHang(now, earlier).evidence(), now.SerializeAsString());
  EXPECT_THAT(AnswerHang(now, earlier).sentences(),
              ElementsAre("rank 1 never came to a\\nb", "found while it stood: it waits in a\\tb"));
  EXPECT_EQ(AnswerHang(std::nullopt, earlier).sentences_size(), 2);
  EXPECT_THAT(AnswerHang(std::nullopt, std::nullopt).sentences(),
              ElementsAre("Not recorded: no rank kept a flight recorder."));
}

TEST(HangAnswer, LeadsOnUnlessNothingHangs) {
  for (const auto& [verdict, finding] : {std::pair(HangVerdict::HANGING, Answer::BAD),
                                         {HangVerdict::NOT_HANGING, Answer::GOOD},
                                         {HangVerdict::CANNOT_TELL, Answer::CANNOT_TELL}}) {
    HangVerdict now;
    now.set_answer(verdict);
    Answer answer = AnswerHang(now, std::nullopt);
    AddNextOf("run", &answer);
    EXPECT_EQ(answer.finding(), finding);
    EXPECT_EQ(answer.next_size(), verdict != HangVerdict::NOT_HANGING);
  }
}

// Ranks without a recorder, that the verdict did not need, count as little as those that it did.
TEST(HangAnswer, CountsTheRecordersThatWereRead) {
  HangVerdict verdict;
  for (const HangRank::State state : {HangRank::WORKS, HangRank::UNKNOWN, HangRank::WAITS})
    verdict.add_ranks()->set_state(state);
  EXPECT_THAT(AnswerHang(verdict, std::nullopt).how_sure(), HasSubstr("of 2 of 3 ranks"));
}

TEST(HangAnswer, SaysWhereTheFirstTwoRanksToBlameStand) {
  const std::string run_dir = ::testing::TempDir() + "/stacks";
  for (const int rank : {1, 3, 5}) {
    std::filesystem::create_directories(RankDirectory(run_dir, rank));
    const std::string line = "rank " + std::to_string(rank);
    ASSERT_TRUE(
        WriteFileAtomically(RankDirectory(run_dir, rank) + "/stacks.txt", line + " waits\nmore\n").ok());
  }
  const std::vector<std::string> expected = {"rank 1 waits", "rank 3 waits"};
  for (int num_ranks = 0; num_ranks <= 3; ++num_ranks) {
    Answer answer;
    for (int i = 0; i < num_ranks; ++i) answer.add_ranks(1 + 2 * i);
    AddStacksOf(run_dir, &answer);
    ASSERT_EQ(answer.sentences_size(), std::min(num_ranks, 2));
    for (int i = 0; i < answer.sentences_size(); ++i) EXPECT_EQ(answer.sentences(i), expected[i]);
  }
}

}  // namespace
}  // namespace ott::hang
