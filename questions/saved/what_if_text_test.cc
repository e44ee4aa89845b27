#include "ott/questions/saved/what_if_text.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/questions/saved/saved_answer.h"

namespace ott::saved {
namespace {

using ::testing::ElementsAre;

void SetPart(const std::string& name, double slowdown, double seconds, double saved, double margin,
             WhatIfPart* part) {
  part->set_name(name);
  part->set_slowdown(slowdown);
  part->set_seconds(seconds);
  part->set_saved(saved);
  part->set_saved_low(saved - margin);
  part->set_saved_high(saved + margin);
}

WhatIfAnswer SomeAnswer() {
  WhatIfAnswer answer;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(R"(
      verdict: WHAT_IF_RANKS conclusion: "rank 8: like\nthe others" blamed_ranks: 8
      num_ranks: 10 num_steps: 75 first_step: 6 last_step: 84 step_word: "iteration"
      measured_seconds: 0.04 replayed_seconds: 0.032 ideal_seconds: 0.02
      slowdown: 1.6 launch_slowdown: 1.25 replay_error: 0.0123
      worst_ranks_share: 0.875 worst_ranks: 8 notes: "a\tnote" notes: "another")",
                                                            &answer));
  SetPart("rank 8's excess", 0, 0.03, 0.25, 0.03, answer.add_repairs());
  SetPart("rank 3's excess", 0, 0.036, 0.1, 1, answer.add_repairs());
  SetPart("both", 0, 0.028, 0.3, 0.01, answer.mutable_best_repairs_together());
  SetPart("rank=1,0.5", 0, 0.05, -0.25, 0, answer.add_scaled());
  SetPart("communication that nothing overlaps", 0, 0.039, 0.025, 0.001,
          answer.mutable_communication_overlapped());
  for (int rank = 0; rank < 10; ++rank)
    SetPart(absl::StrCat("rank ", rank), 1 + 0.001 * rank, 0.04, 0.01 * rank, 0, answer.add_by_rank());
  // One alone has nothing to be compared with.
  SetPart("forward", 1.5, 0.03, 0.25, 0, answer.add_by_operation());
  for (int host = 0; host < 2; ++host)
    SetPart(absl::StrCat("node", host), 1.5 - host, 0.03, 0.25, 0, answer.add_by_host());
  for (int part = 0; part < 10; ++part) {
    CriticalPart& out = *answer.add_critical_path();
    out.set_rank(absl::StrCat("rank ", part));
    out.set_operation("forward");
    out.set_share(part == 0 ? 0.28 : 0.08);
  }
  return answer;
}

TEST(FormatWhatIf, SaysAllThatIsKnownTheMostFirst) {
  WhatIfAnswer answer = SomeAnswer();
  const std::string beginning =
      "10 ranks, 75 iterations (6 to 84)\n"
      "an iteration takes 40 ms, 32 ms without what no operation accounts for, and 20 ms if all ranks were "
      "alike: slowdown 1.600\n"
      "verdict: rank 8: like\\nthe others\n";
  const std::string repair =
      "without rank 8's excess an iteration takes 30 ms instead of 40 ms (-25 %, 95 %: 22 to 28)";
  const std::string end = "note: a\\tnote\nnote: another\n";
  EXPECT_EQ(FormatWhatIf(answer),
            absl::StrCat(
                beginning, "  ", repair, "\n",
                "  without rank 3's excess an iteration takes 36 ms instead of 40 ms (-10 %, 95 %: unknown)\n"
                "together: without both an iteration takes 28 ms instead of 40 ms (-30 %, 95 %: 29 to 31)\n"
                "scaled: with rank=1,0.5 an iteration takes 50 ms instead of 40 ms (+25.0 %)\n"
                "  without communication that nothing overlaps an iteration takes 39 ms instead of 40 ms "
                "(-2 %, 95 %: 2 to 3)\n"
                "rank      slowdown  saved if mended\n"
                "  rank 9     1.009            9.0 %\n"
                "  rank 8     1.008            8.0 %\n"
                "  rank 7     1.007            7.0 %\n"
                "  rank 6     1.006            6.0 %\n"
                "  rank 5     1.005            5.0 %\n"
                "  rank 4     1.004            4.0 %\n"
                "  rank 3     1.003            3.0 %\n"
                "  rank 2     1.002            2.0 %\n"
                "  and 2 more\n"
                "host     slowdown  saved if mended\n"
                "  node0     1.500           25.0 %\n"
                "  node1     0.500           25.0 %\n"
                "of what all repairs would bring, the worst 1 rank brings 87.5 %\n"
                "what the end of an iteration waited for   share\n"
                "  forward on rank 0                      28.0 %\n"
                "  forward on rank 1                       8.0 %\n"
                "  forward on rank 2                       8.0 %\n"
                "  forward on rank 3                       8.0 %\n"
                "  forward on rank 4                       8.0 %\n"
                "  forward on rank 5                       8.0 %\n"
                "  forward on rank 6                       8.0 %\n"
                "  forward on rank 7                       8.0 %\n"
                "  all else                               16.0 %\n"
                "replay error 1.23 % (limit 2 %)\n",
                end));
  EXPECT_EQ(FormatWhatIfLine(answer), absl::StrCat("what if: ", repair));
  // What rests on a replay that is off is not shown.
  answer.set_replay_error(0.021);
  answer.set_step_word("step");
  answer.set_launch_slowdown(1.0004);
  EXPECT_EQ(FormatWhatIf(answer),
            absl::StrCat("10 ranks, 75 steps (6 to 84)\n"
                         "a step takes 40 ms, and 20 ms if all ranks were alike: slowdown 1.600\n"
                         "verdict: rank 8: like\\nthe others\n"
                         "replay error 2.10 % (limit 2 %)\n",
                         end));
  for (const WhatIfVerdict verdict : {WHAT_IF_CANNOT_TELL, WHAT_IF_EVEN}) {
    answer.set_verdict(verdict);
    EXPECT_EQ(FormatWhatIfLine(answer), "what if: rank 8: like\\nthe others");
  }
  answer.set_verdict(WHAT_IF_RANKS);
  answer.clear_repairs();
  EXPECT_EQ(FormatWhatIfLine(answer), "what if: rank 8: like\\nthe others");
}

TEST(AnswerSaved, IsGoodOnlyIfNothingIsToBeMended) {
  WhatIfAnswer answer = SomeAnswer();
  const auto finding = [&](WhatIfVerdict verdict) {
    answer.set_verdict(verdict);
    return AnswerSaved(answer).finding();
  };
  EXPECT_EQ(finding(WHAT_IF_CANNOT_TELL), Answer::CANNOT_TELL);
  EXPECT_EQ(finding(WHAT_IF_EVEN), Answer::GOOD);
  for (const WhatIfVerdict verdict : {WHAT_IF_RANKS, WHAT_IF_LAST_STAGE, WHAT_IF_UNEVEN})
    EXPECT_EQ(finding(verdict), Answer::BAD);
  answer.set_not_excluded(0.05);
  EXPECT_EQ(finding(WHAT_IF_UNEVEN), Answer::CANNOT_TELL);
  EXPECT_EQ(finding(WHAT_IF_RANKS), Answer::BAD);
  answer.set_not_excluded(0.0499);
  EXPECT_EQ(finding(WHAT_IF_UNEVEN), Answer::GOOD);
  const Answer of_ranks = AnswerSaved(SomeAnswer());
  EXPECT_THAT(of_ranks.ranks(), ElementsAre(8));
  EXPECT_THAT(of_ranks.sentences(),
              ElementsAre(FormatWhatIfLine(answer),
                          "without both an iteration takes 28 ms instead of 40 ms (-30 %, 95 %: 29 to 31)"));
  EXPECT_EQ(of_ranks.how_sure(),
            "a replay of 75 iterations of 10 ranks, which is off by 1.23 % of what was measured (limit 2 %)");
  answer.set_incomplete(true);
  EXPECT_EQ(finding(WHAT_IF_EVEN), Answer::CANNOT_TELL);
  // Without iterations there is nothing to say; whatever else is wrong, it cannot be told.
  EXPECT_EQ(AnswerSaved(absl::NotFoundError("none")).finding(), Answer::NOT_ASKED);
  const Answer damaged = AnswerSaved(absl::DataLossError("a\nb"));
  EXPECT_EQ(damaged.finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(damaged.sentences(), ElementsAre("a\\nb"));
}

}  // namespace
}  // namespace ott::saved
