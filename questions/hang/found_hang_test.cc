#include "ott/questions/hang/found_hang.h"

#include <filesystem>
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

HangVerdict Verdict(HangVerdict::Answer answer, int iteration, const std::string& last_completed,
                    HangRank::State state = HangRank::WAITS) {
  HangVerdict verdict;
  verdict.set_answer(answer);
  for (int i = 0; i < 2; ++i) {
    HangRank& rank = *verdict.add_ranks();
    rank.set_rank(i);
    rank.set_state(i == 0 ? state : HangRank::WORKS);
    rank.set_iteration(iteration);
    rank.set_last_completed(last_completed);
  }
  return verdict;
}

TEST(FoundHang, HoldsUntilARankGoesOn) {
  const HangVerdict found = Verdict(HangVerdict::HANGING, 4, "sum_loss #5");
  EXPECT_TRUE(StillHolds(found, Verdict(HangVerdict::NOT_HANGING, 4, "sum_loss #5")));
  EXPECT_TRUE(StillHolds(found, Verdict(HangVerdict::CANNOT_TELL, 4, "sum_loss #5", HangRank::DEAD)));
  EXPECT_FALSE(StillHolds(found, Verdict(HangVerdict::NOT_HANGING, 4, "average_gradients #6")));
  EXPECT_FALSE(StillHolds(found, Verdict(HangVerdict::NOT_HANGING, 5, "sum_loss #5")));
  EXPECT_FALSE(StillHolds(found, Verdict(HangVerdict::NOT_HANGING, 4, "sum_loss #5", HangRank::FINISHED)));
}

TEST(FoundHang, IsNotNeededWhereTheRecordersSayTheSame) {
  const HangVerdict found = Verdict(HangVerdict::HANGING, 4, "sum_loss #5");
  HangVerdict now = Verdict(HangVerdict::HANGING, 4, "sum_loss #5");
  EXPECT_FALSE(StillHolds(found, now));
  now.add_culprits(1);
  EXPECT_FALSE(StillHolds(found, now)) << "as it knows more";
  EXPECT_FALSE(StillHolds(Verdict(HangVerdict::CANNOT_TELL, 4, "sum_loss #5"),
                          Verdict(HangVerdict::NOT_HANGING, 4, "sum_loss #5")));
  HangVerdict of_another_job = found;
  of_another_job.mutable_ranks()->RemoveLast();
  EXPECT_FALSE(StillHolds(of_another_job, Verdict(HangVerdict::NOT_HANGING, 4, "sum_loss #5")));
}

TEST(FoundHang, HoldsWhileItsCulpritsStandWhateverOthersDo) {
  HangVerdict found = Verdict(HangVerdict::HANGING, 4, "sum_loss #5");
  found.add_culprits(1);
  HangVerdict now = Verdict(HangVerdict::HANGING, 4, "sum_loss #5");
  now.add_culprits(0);
  now.mutable_ranks(0)->set_iteration(5);
  EXPECT_TRUE(StillHolds(found, now));
  now.mutable_ranks(1)->set_place("forward");
  EXPECT_FALSE(StillHolds(found, now));
  now.mutable_ranks(1)->set_state(HangRank::DEAD);
  EXPECT_TRUE(StillHolds(found, now));
  now.mutable_ranks(1)->set_last_completed("forward");
  EXPECT_FALSE(StillHolds(found, now));
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
  HangVerdict earlier = Verdict(HangVerdict::HANGING, 4, "");
  earlier.add_culprits(1);
  HangVerdict now = earlier;
  EXPECT_EQ(AnswerHang(now, earlier).sentences_size(), 1);
  now.set_culprits(0, 0);
  EXPECT_EQ(AnswerHang(now, earlier).sentences_size(), 2);
  now = earlier;
  now.set_answer(HangVerdict::CANNOT_TELL);
  EXPECT_EQ(AnswerHang(now, earlier).sentences_size(), 2);
  EXPECT_EQ(AnswerHang(std::nullopt, earlier).sentences_size(), 2);
  EXPECT_THAT(AnswerHang(std::nullopt, std::nullopt).sentences(),
              ElementsAre("Not recorded: no rank kept a flight recorder."));
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
