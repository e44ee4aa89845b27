#include "ott/questions/origin/origin_text.h"

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/origin/origin_answer.h"

namespace ott::origin {
namespace {

OriginVerdict LinearOfOneRank() {
  OriginVerdict verdict;
  verdict.set_kind(OriginVerdict::OPERATION);
  verdict.set_iteration(3);
  verdict.set_world_size(1);
  verdict.add_ranks(0);
  verdict.set_operation("linear\n");
  verdict.set_direction("backward");
  verdict.set_tensor("output0");
  verdict.set_relative_difference(0.02);
  verdict.set_explained(0.01);
  return verdict;
}

TEST(FormatSentence, SaysWhatIsKnownOfTheOperation) {
  const std::string linear = "iteration 3, on rank 0, backward: linear\\n: ";
  const std::string equal = "inputs equal bit for bit; output0 differs ";
  const std::string by = "by 0.02 of its norm";
  using Change = std::function<void(OriginVerdict&)>;
  for (const auto& [change, text] : std::vector<std::pair<Change, std::string>>{
           {[](auto&) {}, linear + equal + by + ", 2 times what its rounding explains"},
           {[](auto& verdict) { verdict.set_explained(0.02); },
            linear + equal + by + ", 1 times what its rounding explains: another order of its sums would"},
           {[](auto& verdict) { verdict.set_explained(0); }, linear + equal + by},
           {[](auto& verdict) { verdict.set_perturbed("run"); },
            linear + equal + by + ", 2 times what rounding and its inputs explain"},
           {[](auto& verdict) {
              verdict.set_perturbed("run");
              verdict.set_explained(0.04);
            },
            linear + equal + by + ", 0.5 times what rounding and its inputs explain"},
           {[](auto& verdict) { verdict.set_estimated(true); },
            linear + equal + by + " (estimated), 2 times what its rounding explains"},
           {[](auto& verdict) {
              verdict.set_estimated(true);
              verdict.set_relative_difference(std::numeric_limits<double>::infinity());
            },
            linear + equal + "in size, NaN or infinities"},
           {[](auto& verdict) {
              verdict.set_kind(OriginVerdict::UPDATE);
              verdict.set_of_increment(true);
              verdict.set_input_difference(0.125);
              verdict.set_detail("it adds 2\t");
            },
            linear + "inputs agree within 0.12; what it adds to output0 differs " + by +
                ", 2 times what its rounding explains; it adds 2\\t"},
           {[](auto& verdict) {
              verdict.set_module("fc\t");
              verdict.set_phase("step\t");
              verdict.set_source("a.cc:3\t");
              verdict.set_in_one_run_only(true);
              verdict.set_detail("only the reference runs it");
            },
            "iteration 3, on rank 0, step\\t: linear\\n (fc\\t), a.cc:3\\t: only the reference runs it"},
           {[](auto& verdict) {
              verdict.set_kind(OriginVerdict::INPUT);
              verdict.set_detail("it is stale");
            },
            linear + "output0 differs " + by + ", 2 times what its rounding explains; it is stale"},
           {[](auto& verdict) {
              verdict.set_kind(OriginVerdict::INPUT);
              verdict.set_explained(0);
            },
            linear + "output0 differs " + by},
           {[](auto& verdict) {
              verdict.set_kind(OriginVerdict::NONE);
              verdict.set_num_compared(7);
            },
            "none: no operation is known to have computed something else, of 7 on 1 rank"},
           {[](auto& verdict) {
              verdict.set_kind(OriginVerdict::UNKNOWN);
              verdict.set_num_compared(7);
              verdict.set_world_size(2);
              verdict.set_perturbed("run");
              verdict.set_median_unseen(0.001);
              verdict.set_largest_unseen(0.25);
              verdict.set_largest_unseen_in("adam\t");
            },
            "cannot tell: no operation differs by more than rounding explains, of 7 on 2 ranks; faults below "
            "0.001 of an output (median; at most 0.25, in adam\\t) are not excluded"}}) {
    OriginVerdict verdict = LinearOfOneRank();
    change(verdict);
    EXPECT_EQ(FormatSentence(verdict), text);
  }
}

TEST(FormatSentence, WhatIsWrongOnAllRanksIsTheProgramUnlessItCameFromOutside) {
  const auto is_program = [](int num_named, OriginVerdict::Kind kind, bool is_collective, int world_size) {
    OriginVerdict verdict = LinearOfOneRank();
    verdict.clear_ranks();
    for (int rank = 0; rank < num_named; ++rank) verdict.add_ranks(rank);
    verdict.set_kind(kind);
    verdict.set_collective(is_collective);
    verdict.set_world_size(world_size);
    return FormatSentence(verdict).find("on all ranks, so it is the program and not a device") !=
           std::string::npos;
  };
  EXPECT_TRUE(is_program(2, OriginVerdict::OPERATION, false, 2));
  EXPECT_TRUE(is_program(2, OriginVerdict::UPDATE, false, 2));
  EXPECT_FALSE(is_program(2, OriginVerdict::INPUT, false, 2));
  EXPECT_FALSE(is_program(2, OriginVerdict::OPERATION, true, 2));
  EXPECT_FALSE(is_program(1, OriginVerdict::OPERATION, false, 2));
  EXPECT_FALSE(is_program(1, OriginVerdict::OPERATION, false, 1));
}

TEST(FormatOrigin, CountsWhatWasComparedAndWhatWasNot) {
  OriginVerdict verdict = LinearOfOneRank();
  verdict.set_verdict("it");
  verdict.set_num_compared(5);
  EXPECT_EQ(FormatOrigin(verdict), "origin: it\ncompared 5 operations on 1 rank\n");
  const auto spread = [&](int parent, int depth, int64_t iteration, double in, double out) {
    OriginSpread& added = *verdict.add_spread();
    added.set_parent(parent);
    added.set_depth(depth);
    added.set_iteration(iteration);
    added.set_operation("op");
    added.set_input_difference(in);
    added.set_relative_difference(out);
  };
  spread(-1, 1, 3, 0.1, 0.2);
  spread(0, 2, 3, 0.1, 0.21);
  spread(-1, 1, 4, 0.1, 0.05);
  spread(0, 2, 3, 0.1, 0.049);
  spread(2, 2, 4, 0.1, 0);
  verdict.set_num_differ_after(4);
  verdict.set_num_swallow_after(1);
  verdict.set_world_size(2);
  verdict.set_num_renamed(2);
  verdict.set_num_only_in_reference(3);
  verdict.set_num_only_in_current(4);
  verdict.set_num_not_judged(6);
  verdict.add_notes("a\tnote");
  verdict.add_problems("a\tproblem");
  EXPECT_EQ(
      FormatOrigin(verdict),
      "origin: it\nhow it spreads:\n"
      "  op: 0.1 -> 0.2\n"
      "    op: 0.1 -> 0.21, grows\n"
      "    op: 0.1 -> 0.049, shrinks\n"
      "  op, iteration 4: 0.1 -> 0.05\n"
      "    op, iteration 4: 0.1 swallowed\n"
      "after it 4 operations differ for that reason, 1 swallow it\n"
      "compared 5 operations on 2 ranks, 2 by another name, 3 only in the reference, 4 only in the current "
      "run; 6 outputs were not judged: the perturbed run does not tell what becomes of their inputs\n"
      "a\\tnote\nINCOMPLETE: a\\tproblem\n");
}

TEST(AnswerOrigin, IsGoodNewsOnlyIfNothingIsNamed) {
  OriginVerdict verdict;
  verdict.set_verdict("it");
  verdict.set_num_compared(7);
  verdict.set_world_size(2);
  for (const auto& [kind, finding] : {std::pair(OriginVerdict::NONE, Answer::GOOD),
                                      {OriginVerdict::UNKNOWN, Answer::CANNOT_TELL},
                                      {OriginVerdict::OPERATION, Answer::BAD},
                                      {OriginVerdict::UPDATE, Answer::BAD},
                                      {OriginVerdict::INPUT, Answer::BAD}}) {
    verdict.set_kind(kind);
    const Answer answer = AnswerOrigin(verdict);
    EXPECT_EQ(answer.evidence(), verdict.SerializeAsString());
    EXPECT_EQ(answer.finding(), finding);
    EXPECT_EQ(answer.sentences(0), "it");
    EXPECT_EQ(answer.how_sure(), "7 operations on 2 ranks were compared bit for bit");
    EXPECT_THAT(answer.pictures(), ::testing::ElementsAre("origin"));
  }
  verdict.set_perturbed("run");
  EXPECT_EQ(AnswerOrigin(verdict).how_sure(),
            "7 operations on 2 ranks were compared within what rounding explains");
  const Answer none = AnswerOrigin(absl::NotFoundError("a\tb"));
  EXPECT_EQ(none.finding(), Answer::CANNOT_TELL);
  EXPECT_EQ(none.sentences(0), "a\\tb");
}

}  // namespace
}  // namespace ott::origin
