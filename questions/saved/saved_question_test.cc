// Asks runs, and runs `ott whatif`.

#include "ott/questions/saved/saved_question.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/command_for_test.h"
#include "ott/questions/saved/iteration_sample.pb.h"
#include "ott/questions/saved/iteration_sample_for_test.h"
#include "ott/questions/saved/whatif_command.h"

namespace ott::saved {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// Two ranks reduce until 1.9 ms of each iteration of 2 ms; one comes after 0.7 ms of work, the other after
// 1.7 ms.
class SavedQuestionTest : public ::testing::Test {
 protected:
  SavedQuestionTest() {
    run_.run_dir = absl::StrCat(::testing::TempDir(), "/",
                                ::testing::UnitTest::GetInstance()->current_test_info()->name());
    for (const int rank : {0, 1}) {
      IterationSample sample = WorkAndReduce(rank, 2);
      IterationBlock& block = *sample.add_blocks();
      const int64_t work = rank == 1 ? 1'700'000 : 700'000;
      for (int iteration = 0; iteration < 100; ++iteration) {
        block.add_iteration_end(2'000'000);
        for (const int name : {0, 1}) {
          block.add_name(name);
          block.add_start(name == 1 ? work : iteration == 0 ? 0 : 2'000'000 - work);
          block.add_duration(name == 0 ? work : 1'900'000 - work);
        }
      }
      std::filesystem::create_directories(RankDirectory(run_.run_dir, rank));
      EXPECT_TRUE(WriteFileAtomically(IterationsPath(run_.run_dir, rank), sample.SerializeAsString()).ok());
    }
  }

  // Returns the exit code and what was printed.
  std::pair<int, std::string> Run(std::vector<std::string> words) {
    words.insert(words.begin(), {"whatif", run_.run_dir});
    return RunForTest(&AddWhatIfCommand, words);
  }

  AskedRun run_;
};

TEST_F(SavedQuestionTest, TheRunIsAnsweredToldAndDrawn) {
  const Findings findings = *SavedQuestion().ask(run_);
  ASSERT_EQ(findings.answers.size(), 1);
  const Answer& answer = findings.answers[0];
  EXPECT_EQ(answer.finding(), Answer::BAD);
  EXPECT_THAT(answer.ranks(), ElementsAre(1));
  EXPECT_THAT(
      answer.sentences(),
      ElementsAre("what if: without rank 1's excess in \"work\" an iteration takes 1 ms instead of 2 ms "
                  "(-50 %, 95 %: 50 to 50)"));
  EXPECT_EQ(answer.how_sure(),
            "a replay of 99 iterations of 2 ranks, which is off by 0.00 % of what was measured (limit 2 %)");
  EXPECT_THAT(answer.next(),
              ElementsAre(absl::StrCat("ott whatif ", run_.run_dir, " --timeline ideal.json")));
  EXPECT_THAT(findings.problems, IsEmpty());
  ASSERT_EQ(findings.details.size(), 1);
  EXPECT_EQ(findings.details[0].title, "What would be saved");
  Document document;
  findings.draw({}, &document);
  EXPECT_EQ(document.pictures["what_if"]["by_rank"].size(), 2);
  EXPECT_EQ(document.pictures["timeline"]["iterations"][0]["ranks"].size(), 2);
  EXPECT_THAT(document.thinned, ElementsAre("the timeline shows 8 of 100 iterations that were kept"));
}

TEST_F(SavedQuestionTest, WhatIsMissingIsNoGoodNews) {
  std::filesystem::remove(IterationsPath(run_.run_dir, 0));
  const Findings one = *SavedQuestion().ask(run_);
  EXPECT_EQ(one.answers[0].finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(one.problems, ElementsAre(HasSubstr("1 of 2 ranks left no iterations: 0")));
  std::filesystem::remove(IterationsPath(run_.run_dir, 1));
  const Findings none = *SavedQuestion().ask(run_);
  EXPECT_EQ(none.answers[0].finding(), Answer::NOT_ASKED);
  EXPECT_THAT(none.problems, IsEmpty());
  EXPECT_THAT(none.details, IsEmpty());
}

TEST_F(SavedQuestionTest, TheCommandPrintsWhatTheQuestionTells) {
  const std::string details = SavedQuestion().ask(run_)->details[0].text;
  EXPECT_EQ(Run({}), std::pair(1, absl::StrCat(details, "next: ott whatif ", run_.run_dir,
                                               " --timeline ideal.json\n")));
  const std::string timeline = run_.run_dir + "/ideal.json";
  const auto [code, scaled] = Run({"--timeline", timeline, "--scale", "rank=1,measurement=work,0.5"});
  EXPECT_EQ(code, 1);
  EXPECT_THAT(scaled,
              HasSubstr("\nscaled: with rank=1,measurement=work,0.5 an iteration takes 1.15 ms instead "
                        "of 2 ms (-42.5 %)\n"));
  EXPECT_TRUE(PathExists(timeline));
  EXPECT_THAT(Run({"--format", "json"}).second, StartsWith("{"));
  EXPECT_EQ(Run({"--scale", "rank=2,0.5"}),
            std::pair(2, std::string("ott whatif: --scale rank=2,0.5: no rank=2 here; there are 0, 1\n")));
  run_.run_dir += "/steps.json";
  ASSERT_TRUE(WriteFileAtomically(run_.run_dir, R"([
      {"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "PP rank 0"}},
      {"ph": "X", "name": "gc", "pid": 0, "tid": 0, "ts": 1, "dur": 1, "args": {"step": 1, "seq_id": 0}}])")
                  .ok());
  const std::string sizes = run_.run_dir + ".sizes";
  ASSERT_TRUE(WriteFileAtomically(sizes, "dp_size: 2").ok());
  EXPECT_THAT(Run({"--sizes", sizes}).second, HasSubstr("1 rank is missing: stage 0 of replica 1"));
}

}  // namespace
}  // namespace ott::saved
