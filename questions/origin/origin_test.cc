// Tests which operation is named in logs that are written by hand.

#include "ott/questions/origin/origin.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/origin/origin_for_test.h"
#include "ott/questions/origin/origin_text.h"
#include "ott/questions/origin/rounding.h"

namespace ott::origin {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

using Ranks = std::vector<std::string>;

// Returns what is named, or why nothing is.
std::string Summary(const absl::StatusOr<OriginVerdict>& verdict) {
  if (!verdict.ok()) return std::string(verdict.status().message());
  const std::string kind = OriginVerdict::Kind_Name(verdict->kind());
  if (verdict->operation().empty()) return absl::StrCat(kind, ": ", absl::StrJoin(verdict->problems(), "; "));
  return absl::StrCat(kind, " ", verdict->operation(), verdict->collective() ? "&" : "",
                      verdict->in_one_run_only() ? " alone" : "", " in ", verdict->iteration(), " on ",
                      absl::StrJoin(verdict->ranks(), ","), ": ", verdict->tensor(), "; ", verdict->detail(),
                      verdict->last_written_by().empty() ? "" : "; last ", verdict->last_written_by());
}

TEST_F(OriginOfHandWrittenLogs, WhatIsNamedIsWhatMadeIt) {
  const std::string one = "linear 10 > 30; softmax 30 > 60";
  const std::string fused = "linear 10 20 > 30; add_bias 30 1 > 31; softmax 31 > 60";
  const std::string alone =
      " alone in 0 on 0: input0; the reference does not run it; softmax reads what it makes as input0";
  const std::string weights =
      "use 1 > 9; step! 2 > 3; @1; use 3 > 4; step! 3 > 5; @2; use 5 > 6; step! 5 > 7";
  struct Case {
    Ranks a, b;
    std::string named;
  };
  for (const auto& [a, b, named] : std::vector<Case>{
           {{one}, {one}, "NONE: "},
           // Operations that were inserted, renamed and fused do not derail it.
           {{"linear 10 20 > 30; add_bias 30 1 > 31; gelu 31 > 40; linear2 40 > 50; softmax 50 > 60"},
            {"clone 10 > 10; fused_linear 10 20 1 > 31; gelu_tanh 31 > 40; linear2 40 > 50; softmax 50 > 61"},
            "OPERATION softmax in 0 on 0: output0; "},
           {{fused},
            {"fused_linear 10 20 1 > 32; softmax 32 > 61"},
            "OPERATION fused_linear in 0 on 0: output0; it stands for add_bias of the reference"},
           // The first input is in place of what "linear" made, which the fused operation stands for as well.
           {{fused},
            {"fused_linear 17 20 1 > 32; softmax 32 > 61"},
            "OPERATION linear alone in 0 on 0: input0; only the reference runs it; fused_linear reads what "
            "no operation that was logged wrote as input0"},
           {{fused},
            {"fused_linear 10 27 1 > 32; softmax 32 > 61"},
            "INPUT fused_linear in 0 on 0: input1; no operation that was logged made it, in either run"},
           {{fused},
            {"fused_linear 10 20 8 > 32; softmax 32 > 61"},
            "INPUT fused_linear in 0 on 0: input2; no operation that was logged made it, in either run"},
           // It may read what was made before those that it stands for, and not what they make.
           {{"f 1 > 2; g 3 > 4; h 4 > 5; k 5 > 6; s 6 > 7"},
            {"f 1 > 2; g 3 > 4; hk 4 2 > 8; s 8 > 9"},
            "OPERATION hk in 0 on 0: output0; it stands for k of the reference"},
           {{"f 1 > 2; g 3 > 4; h 4 > 5; k 5 > 6; s 6 > 7"},
            {"f 1 > 2; g 3 > 4; hk 6 > 8; s 8 > 9"},
            "OPERATION h alone in 0 on 0: input0; only the reference runs it; hk reads what no operation "
            "that was logged wrote as input0"},
           {{"it 10 > 30 5"}, {"it 10 > 30 6"}, "OPERATION it in 0 on 0: output1; "},
           {{"it =up 10 > 30"},
            {"it =down 10 > 31"},
            "OPERATION it in 0 on 0: output0; its arguments are argument1=down instead of argument1=up"},
           {{"it 10 > nan"}, {"it 10 > 30"}, "OPERATION it in 0 on 0: output0; "},
           {{"it 10 > inf"}, {"it 10 > nan"}, "OPERATION it in 0 on 0: output0; "},
           // Of inserted operations the first is named, of missing ones the last.
           {{one},
            {"linear 10 > 30; to_half 30 > 29; scale 29 4 > 28; to_float 5 28 > 27; softmax 27 > 58"},
            "OPERATION to_half" + alone},
           {{one},
            {"linear 10 > 30; first 5 > 28; inserted 28 > 29; later 7 > 28; softmax 29 > 61"},
            "OPERATION inserted" + alone},
           {{"linear 10 > 30; clip 30 > 29; clip2 29 > 28; softmax 28 > 60"},
            {"linear 10 > 30; softmax 30 > 61"},
            "OPERATION clip2 alone in 0 on 0: input0; only the reference runs it; softmax reads what linear "
            "in iteration 0 wrote as input0"},
           {{weights},
            {"use 1 > 9; @1; use 2 > 8; step! 2 > 5; @2; use 5 > 6; step! 5 > 7"},
            "UPDATE step alone in 0 on 0: input0; only the reference runs it; use reads what no operation "
            "that was logged wrote as input0"},
           // Values that are stale, or changed between two operations.
           {{one},
            {"linear 10 > 30; softmax 31 > 61"},
            "INPUT softmax in 0 on 0: input0; it is not what linear in iteration 0 wrote, as in the "
            "reference: something that is not logged wrote it; last linear in iteration 0"},
           {{"linear 10 > 30; softmax 31 > 61"},
            {one},
            "INPUT softmax in 0 on 0: input0; it is what linear in iteration 0 wrote; in the reference "
            "something that is not logged wrote it; last linear in iteration 0"},
           {{weights},
            {"use 1 > 9; step! 2 > 3; @1; use 3 > 4; step! 3 > 5; @2; use 3 > 4; step! 5 > 7"},
            "INPUT use in 2 on 0: input0; it is what step in iteration 0 wrote; in the reference it is what "
            "step in iteration 1 wrote; last step in iteration 0"},
           // Views are not logged, and digests do not tell what they are of.
           {{"linear 10 > 30; softmax ~30 > 60"},
            {"linear 10 > 30; softmax ~31 > 61"},
            "INPUT softmax in 0 on 0: input0; it is no view of what linear in iteration 0 wrote, as in the "
            "reference: something that is not logged wrote it; last linear in iteration 0"},
           {{"linear 10 > 30; softmax ~10 > 60"},
            {"linear 10 > 30; softmax ~11 > 61"},
            "INPUT softmax in 0 on 0: input0; no operation that was logged made it, in either run"},
           {{"softmax 30 > 60"},
            {"softmax ~30 > 61"},
            "INPUT softmax in 0 on 0: input0; it has the reference's elements in another order, as a "
            "transposed "
            "tensor has; no operation that was logged made it, in either run"},
           // What came in iterations that were not logged is nobody's.
           {{"linear 5 > 10; @10; linear 5 > 10"},
            {"linear 5 > 10; @10; linear 6 > 12"},
            "INPUT linear in 10 on 0: input0; no operation that was logged made it, in either run; it may be "
            "of iterations 1 to 9, which were not logged: log them to see"},
           {{"linear 5 > 10; @2; linear 5 > 10"},
            {"linear 5 > 10; @2; linear 6 > 12"},
            "INPUT linear in 2 on 0: input0; no operation that was logged made it, in either run; it may be "
            "of iterations 1 to 1, which were not logged: log them to see"},
           {{"@2; linear 5 > 10"},
            {"@2; linear 6 > 12"},
            "INPUT linear in 2 on 0: input0; no operation that was logged made it, in either run; it may be "
            "of iterations 0 to 1, which were not logged: log them to see"},
           {{"linear 5 > 10; @1; linear 5 > 10"},
            {"linear 5 > 10; @1; linear 6 > 12"},
            "INPUT linear in 1 on 0: input0; no operation that was logged made it, in either run"},
           // What came from another rank is not blamed on a collective; one that is wrong on all ranks is.
           {{"linear 10 > 5; sum& 5 > 10; step 10 > 20", "linear 10 > 5; sum& 5 > 10; step 10 > 20"},
            {"linear 10 > 5; sum& 5 > 11; step 11 > 21", "linear 10 > 6; sum& 6 > 11; step 11 > 21"},
            "OPERATION linear in 0 on 1: output0; "},
           {{"sum& 5 > 10", "sum& 5 > 10"},
            {"sum& 5 > 11", "sum& 5 > 11"},
            "OPERATION sum& in 0 on 0,1: output0; "},
           // Nor is what reads what came from there, by an operation of the name of the one that is to blame.
           {{"linear 10 > 5; copy 5 > 6; copy 7 > 8", "linear 10 > 5; copy 5 > 6; copy 7 > 8"},
            {"linear 10 > 5; copy 5 > 6; copy 9 > 8", "linear 10 > 5; copy 4 > 3; copy 9 > 8"},
            "INPUT copy in 0 on 1: input0; it is not what linear in iteration 0 wrote, as in the reference: "
            "something that is not logged wrote it; last linear in iteration 0"},
           // Nor is anything after it, on a rank that another one's operation reached.
           {{"sum& 5 > 10; step 10 > 20", "p 1 > 1; q 1 > 1; linear 10 > 5; sum& 5 > 10"},
            {"sum& 5 > 11; step 11 > 21", "p 1 > 1; q 1 > 1; linear 10 > 6; sum& 6 > 11"},
            "OPERATION linear in 0 on 1: output0; "},
           // It is named where it is found, and not where that was made.
           {{"use 1 > 9; step! 2 > 3; @1; use 3 > 4", "use 1 > 9; step! 2 > 3; @1; use 3 > 4"},
            {"use 1 > 9; @1; use 2 > 8", "use 1 > 9; step! 2 > 5; @1; use 5 > 6"},
            "UPDATE step in 0 on 1: output0; "},
           {{"m:f 1 > 2; n:f 1 > 3", "m:f 1 > 2; n:f 1 > 3"},
            {"m:f 1 > 2; n:f 1 > 7", "m:f 1 > 8; n:f 1 > 3"},
            "OPERATION f in 0 on 1: output0; "},
           // Updates that nothing reads, which one run skips or repeats.
           {{"f 1 > 2; adam! 2 > 3; @1; f 1 > 2; adam! 2 > 3"},
            {"f 1 > 2; adam! 2 > 3; @1; f 1 > 2"},
            "UPDATE adam alone in 1 on 0: ; only the reference runs it"},
           {{"f 1 > 2; adam! 2 > 3; @1; f 1 > 2; adam! 2 > 3"},
            {"f 1 > 2; adam! 2 > 3; @1; f 1 > 2; adam! 2 > 3; adam! 2 > 4"},
            "UPDATE adam alone in 1 on 0: ; the reference does not run it"},
           {{"f 1 > 2; m:adam! 2 > 3; adam! 2 > 3"},
            {"f 1 > 2"},
            "UNKNOWN: rank 0: only one of the runs logged adam (m) in iteration 0; did the other one make "
            "that update?"},
           // Both runs read the same values in the next iteration, so the update alone is no difference.
           {{"f 1 > 2; adam! 2 > 3; @1; f 1 > 2"}, {"f 1 > 2; @1; f 1 > 2"}, "NONE: "},
           // It may be made by an update of another name.
           {{"f 1 > 2; adam! 2 > 3"}, {"f 1 > 2; fused_adam! 2"}, "NONE: "},
           // What could not be read is neither blamed nor passed.
           {{"f 1 > ?"},
            {"f 1 > ?"},
            "UNKNOWN: 2 of 4 tensors could not be read when they were logged; the run's FinishIter() said "
            "why"},
           {{"f 1 ? > 1"},
            {"f ? 2 > 2"},
            "UNKNOWN: 2 of 6 tensors could not be read when they were logged; the run's FinishIter() said "
            "why; "
            "operations differ whose differences came from other ranks, but none was found where they began"},
           {{"f", "f"},
            {"f", "f"},
            "UNKNOWN: no operation was logged with what it reads or writes: there is nothing to compare"},
           // One run lacks what the other has.
           {{"f 5 > 10; @10; f 5 > 10", "f 5 > 10; @10; f 5 > 10", "f 5 > 10; @10; f 5 > 10"},
            {"f 5 > 10; @10; f 5 > 10", "f 5 > 10", "f 5 > 10; @7; f 5 > 10; @10; f 5 > 10"},
            "UNKNOWN: rank 2: iterations logged in the reference only: 0, in the current run only: 1, in "
            "both: 2, 0 to 10; rank 1: iterations logged in the reference only: 1, in the current run only: "
            "0, in both: 1, 0 to 0"},
           {{"f 5 > 10", "f 5 > 10"},
            {"f 5 > 10"},
            "UNKNOWN: the reference has 2 ranks, and the current run 1: only ranks of both are compared"},
           {{"f 5 > 10"},
            {"f 5 > 10", "f 5 > 10"},
            "UNKNOWN: the reference has 1 ranks, and the current run 2: only ranks of both are compared"},
       }) {
    EXPECT_EQ(Summary(FindIn(a, b)), named) << absl::StrJoin(a, "\n") << "\n" << absl::StrJoin(b, "\n");
  }
}

TEST_F(OriginOfHandWrittenLogs, LogsThatTellNothingAreRefused) {
  const std::string few =
      " operations of the one are in the other; are these runs of one program, parallel in the same way?";
  for (const auto& [a, b, says] : std::vector<std::tuple<std::string, std::string, std::string>>{
           {"linear 10 > 30", "conv 10 3 > 30", "only 0 of 1" + few},
           {"", "", "/a: no operation was logged in the iterations that both logged"},
           {"linear 10 > 30", "", "/b: no operation was logged in the iterations that both logged"},
           {"", "linear 10 > 30", "/a: no operation was logged in the iterations that both logged"},
           {"qkv 1 > 2; scores 1 > 2; softmax 1 > 2; adam! 1 > 2",
            "qkv& 1 3 > 2; scores& 1 3 > 2; softmax& 1 3 > 2; adam! 1 > 2", "only 1 of 4" + few},
           {"f 1 > 2; g 1 > 2; h 1 > 2; i 1 > 2", "f 1 > 2; g 1 > 2; h& 1 > 2; i& 1 > 2; j& 1 > 2", ""}}) {
    EXPECT_THAT(std::string(FindIn({a}, {b}).status().message()), HasSubstr(says)) << a;
  }
  EXPECT_THAT(Summary(FindOrigin(dir_ + "/a", dir_ + "/none", "")), HasSubstr("cannot be listed"));
  for (const auto& ranks : {std::pair(0, 1), {1, 0}}) {
    EXPECT_THAT(Summary(FindOrigin(dir_ + "/a", dir_ + "/b", "", {ranks})),
                HasSubstr("no rank has a log of operations in both"));
  }
  std::filesystem::remove(OpLogPath(dir_ + "/b", 0));
  EXPECT_THAT(Summary(FindOrigin(dir_ + "/a", dir_ + "/b", "")), HasSubstr("no log of operations"));
}

TEST_F(OriginOfHandWrittenLogs, HowItSpreadsIsATree) {
  const auto verdict =
      FindIn({"random > 30; gelu 30 > 40; argmax 40 > 3; scale 30 > 100; add 30 > 1000; other 5 > 6"},
             {"random > 33; gelu 33 > 44; argmax 44 > 3; rescale 33 5 > 150; add 33 > 1001; other 5 > 6"});
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_THAT(FormatOrigin(*verdict),
              HasSubstr("\nhow it spreads:\n"
                        "  gelu: 0.09 -> 0.091\n"
                        "    argmax: 0.091 swallowed\n"
                        "  rescale: 0.09 -> 0.33, grows\n"
                        "  add: 0.09 -> 0.001, shrinks\n"
                        "after it 3 operations differ for that reason, 1 swallow it\n"));
  EXPECT_EQ(verdict->differences_size(), 6);
}

// Two iterations of ten operations on each rank, which read what was made before, or one of three parameters.
// In one iteration, on some of the ranks, an operation's result is wrong, or a parameter.
TEST_F(OriginOfHandWrittenLogs, OfARandomProgramTheWrongOperationOrInputIsNamed) {
  constexpr int kParameters = 3, kOperations = 10;
  // Marks of an operation, an update and a load, and what each is called if it is wrong.
  const std::pair<const char*, OriginVerdict::Kind> roles[] = {
      {"", OriginVerdict::OPERATION}, {"!", OriginVerdict::UPDATE}, {"^", OriginVerdict::INPUT}};
  std::mt19937 random(1);
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<std::vector<int>> reads(kOperations);  // below kParameters: that parameter, else an operation
    for (int i = 0; i < kOperations; ++i) {
      for (int j = draw(2); j < 2; ++j)
        reads[i].push_back(i > 0 && trial % 4 == 0 ? kParameters + i - 1 : draw(kParameters + i));
    }
    const int num_ranks = 1 + draw(3), wrong_iteration = draw(2), wrong = draw(kParameters + kOperations);
    std::set<int> wrong_ranks = {draw(num_ranks)};
    if (draw(2) == 0) wrong_ranks.insert(draw(num_ranks));
    const auto write = [&](bool is_b) {
      Ranks ranks;
      for (int rank = 0; rank < num_ranks; ++rank) {
        std::string& text = ranks.emplace_back();
        for (int iteration = 0; iteration < 2; ++iteration) {
          absl::StrAppend(&text, "@", iteration, ";");
          const bool is_wrong = is_b && wrong_ranks.count(rank) > 0 && iteration == wrong_iteration;
          std::vector<int> values;
          for (int i = 0; i < kParameters + kOperations; ++i) {
            int value = 4099 * (i < kParameters ? 20 * iteration + 4 * rank + i : 50 + i);
            if (i >= kParameters) absl::StrAppend(&text, "op", i - kParameters, roles[i % 3].first);
            for (const int read : i < kParameters ? std::vector<int>() : reads[i - kParameters]) {
              absl::StrAppend(&text, " ", values[read]);
              value = (value + 1021 * values[read]) % 1000003;
            }
            values.push_back(value + static_cast<int>(is_wrong && wrong == i));
            if (i >= kParameters) absl::StrAppend(&text, " > ", values.back(), ";");
          }
        }
      }
      return ranks;
    };
    // The operations that a wrong value reaches, in order.
    const auto reached_by = [&](int value) {
      std::vector<int> reached;
      std::set<int> differ = {value};
      for (int i = 0; i < kOperations; ++i) {
        if (std::none_of(reads[i].begin(), reads[i].end(), [&](int read) { return differ.count(read) > 0; }))
          continue;
        differ.insert(kParameters + i);
        reached.push_back(i);
      }
      return reached;
    };
    const auto verdict = FindIn(write(false), write(true));
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    const bool is_input = wrong < kParameters;
    const std::vector<int> readers = reached_by(wrong);
    if (is_input && readers.empty()) {
      EXPECT_EQ(verdict->kind(), OriginVerdict::NONE) << FormatOrigin(*verdict);
      continue;
    }
    const int named = is_input ? readers[0] : wrong - kParameters;
    EXPECT_EQ(verdict->kind(), is_input ? OriginVerdict::INPUT : roles[wrong % 3].second);
    EXPECT_EQ(verdict->operation(), absl::StrCat("op", named)) << FormatOrigin(*verdict);
    EXPECT_EQ(verdict->iteration(), wrong_iteration);
    EXPECT_THAT(verdict->ranks(), testing::ElementsAreArray(wrong_ranks));
    EXPECT_EQ(verdict->num_compared(), 2 * num_ranks * kOperations);
    EXPECT_EQ(verdict->num_only_in_reference() + verdict->num_only_in_current() + verdict->num_renamed(), 0);
    EXPECT_EQ(verdict->num_swallow_after(), 0);
    // Its result reaches these.
    std::vector<int> reached = reached_by(kParameters + named);
    EXPECT_EQ(verdict->num_differ_after(), reached.size());
    // Each follows the nearest to the origin of what it reads; those far from it are left out.
    std::map<int, int> depth = {{named, 0}};
    int num_listed = 0;
    for (const int op : reached) {
      int nearest = kOperations;
      for (const int read : reads[op]) {
        const auto found = depth.find(read - kParameters);
        if (found != depth.end()) nearest = std::min(nearest, found->second);
      }
      depth[op] = nearest + 1;
      if (nearest >= 6) continue;
      ASSERT_LT(num_listed, verdict->spread_size());
      const OriginSpread& spread = verdict->spread(num_listed++);
      EXPECT_EQ(spread.operation(), absl::StrCat("op", op));
      EXPECT_EQ(spread.depth(), nearest + 1);
      EXPECT_EQ(spread.parent() < 0 ? 0 : verdict->spread(spread.parent()).depth(), nearest);
    }
    EXPECT_EQ(verdict->spread_size(), num_listed);
    // In the picture each operation is a part, of which differ it and these, and what read the same
    // parameter.
    const int first_of_iteration = wrong_iteration * kOperations;
    EXPECT_EQ(verdict->origin_part(), first_of_iteration + named);
    if (is_input) reached = readers;
    reached.push_back(named);
    ASSERT_EQ(verdict->differences_size(), 2 * kOperations);
    for (int part = 0; part < verdict->differences_size(); ++part) {
      EXPECT_EQ(verdict->differences(part) > 0,
                std::count(reached.begin(), reached.end(), part - first_of_iteration) > 0)
          << trial << ", part " << part;
    }
  }
}

TEST_F(OriginOfHandWrittenLogs, NamesThatAreNoUtf8StayOutOfTheVerdict) {
  const auto verdict = FindIn({"f\xff 10 > 30; g\xff 30 > 60"}, {"f\xff 10 > 31; g\xff 31 > 61"});
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->operation(), "f\uFFFD");
  ASSERT_EQ(verdict->spread_size(), 1);
  EXPECT_EQ(verdict->spread(0).operation(), "g\uFFFD");
}

TEST_F(OriginOfHandWrittenLogs, TwoRanksOfOneRunAreCompared) {
  WriteRun(dir_ + "/uneven", {"f 10 > 30", "f 10 > 30; @1; f 10 > 30"});
  for (const auto& [rank, other] : {std::pair(0, 1), {1, 0}}) {
    EXPECT_THAT(
        Summary(FindOrigin(dir_ + "/uneven", dir_ + "/uneven", "", {{rank, other}})),
        HasSubstr(absl::StrCat("rank ", other, ": iterations logged in the reference only: ", rank, ", ")));
  }
  WriteRun(dir_ + "/a", {"f 10 > 30", "f 10 > 31"});
  EXPECT_EQ(Summary(FindOrigin(dir_ + "/a", dir_ + "/a", "", {{0, 1}})), "OPERATION f in 0 on 1: output0; ");
  EXPECT_EQ(Summary(FindOrigin(dir_ + "/a", dir_ + "/a", "", {{1, 0}})), "OPERATION f in 0 on 0: output0; ");
}

TEST_F(OriginOfHandWrittenLogs, KeptTensorsSayHowManyElementsDiffer) {
  const auto verdict = FindIn({"kept 10 > 5 30"}, {"kept 10 > 5 31"});
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_FALSE(verdict->estimated());
  EXPECT_NEAR(verdict->relative_difference(), 1 / std::sqrt(30 * 30 + 14), 1e-6);
  EXPECT_EQ(verdict->detail(), "1 of 4 elements, max rel error 0.033");
  // An update that only one run has is not told by the tensors of the operation before it.
  EXPECT_TRUE(
      FindIn({"adam! 1 > 2; @1; kept 5 > 6; adam! 1 > 2"}, {"adam! 1 > 2; @1; kept 5 > 6"})->estimated());
  const auto with_nan = FindIn({"kept 10 > 5 30"}, {"kept 10 > 5 nan"});
  EXPECT_EQ(with_nan->relative_difference(), INFINITY);
  EXPECT_EQ(with_nan->detail(), "1 of 4 elements, max rel error 0");
}

// Runs of one operation, "kept".
TEST_F(OriginOfHandWrittenLogs, AMaskOfInfinitiesElsewhereIsToBlameAndNotWhatReadsIt) {
  const auto find = [&](const WrittenTensor& mask_a, const WrittenTensor& mask_b, bool is_perturbed = false) {
    SetUp();
    for (const char* const run : {"/a", "/b", "/perturbed"}) {
      HandWritten log(dir_ + run, 0, 1);
      log.BeginIteration(0);
      const float off = run[1] == 'a' ? 0 : run[1] == 'b' ? 1 : 0.00001f;
      log.Op({"kept", {{{1, 2}}, run[1] == 'b' ? mask_b : mask_a}, {{{1 + off}}}});
      log.Finish();
    }
    return FindOrigin(dir_ + "/a", dir_ + "/b", is_perturbed ? dir_ + "/perturbed" : "");
  };
  const auto verdict = find({{0, -INFINITY}}, {{-INFINITY, 0}});
  EXPECT_EQ(Summary(verdict),
            "INPUT kept in 0 on 0: input1; no operation that was logged made it, in either run");
  EXPECT_THAT(verdict->verdict(), HasSubstr("input1 differs in size, NaN or infinities"));
  // Within what rounding explains nobody can say by how much it differs.
  EXPECT_THAT(Summary(find({{0, -INFINITY}}, {{-INFINITY, 0}}, true)),
              HasSubstr("1 outputs could not be judged"));
  // With the same largest element it may have less, or more, beside.
  for (const float of_b : {0.0f, 1.5f})
    EXPECT_THAT(Summary(find({{2, 1}}, {{2, of_b}})), Not(HasSubstr("another order")));
  // Beside a reference of zeros the norm is that of the current run, whatever the dtypes.
  const auto of_zeros = find({{0, 0}}, {{0, 2}, "", DType::kBFloat16});
  EXPECT_FLOAT_EQ(static_cast<float>(of_zeros->relative_difference()), 1);
  EXPECT_THAT(of_zeros->detail(), HasSubstr("1 of 2 elements, max rel error inf"));
}

TEST_F(OriginOfHandWrittenLogs, ACopyOfEitherRunIsNoPerturbedOne) {
  ASSERT_TRUE(FindIn({"f 10 > 30; g 1 > 2"}, {"f 10 > 31; g 1 > 2"}, {"f 10 > 30.00001; g 1 > 2"}).ok());
  WriteRun(dir_ + "/like_a", {"f 10 > 30; g 1 > 2"});
  WriteRun(dir_ + "/like_b", {"f 10 > 31; g 1 > 2"});
  const auto message = [&](const std::string& perturbed) {
    return std::string(FindOrigin(dir_ + "/a", dir_ + "/b", dir_ + "/" + perturbed).status().message());
  };
  EXPECT_THAT(message("like_a"), AllOf(HasSubstr("is bit for bit"), HasSubstr("/a,")));
  EXPECT_THAT(message("like_b"), AllOf(HasSubstr("is bit for bit"), HasSubstr("/b,")));
  EXPECT_EQ(message("perturbed"), "");
  RunInfo info;
  info.set_world_size(1);
  info.mutable_config()->set_run_dir(dir_ + "/perturbed");
  ASSERT_TRUE(WriteRunInfo(dir_ + "/perturbed", info).ok());
  EXPECT_THAT(message("perturbed"), HasSubstr("was run without `perturb {}`"));
  info.mutable_config()->mutable_perturb()->set_ulps(1);
  ASSERT_TRUE(WriteRunInfo(dir_ + "/perturbed", info).ok());
  EXPECT_EQ(message("perturbed"), "");
}

// Operations that were renamed or fused, and inputs that nobody knows; random programs have none of them.
TEST_F(OriginOfHandWrittenLogs, BesideAPerturbedRunWhatIsNamedIsWhatMadeIt) {
  const std::string fused = "norm 5 > 10; linear 10 20 > 30; add_bias 30 1 > 31";
  const std::string fused_perturbed =
      "norm 5 > 10.00001; linear 10.00001 20 > 30.00003; add_bias 30.00003 1 > 31.00003";
  const std::string of_fused = "OPERATION fused in 0 on 0: output0; it stands for add_bias of the reference";
  const std::string inserted =
      "OPERATION clone alone in 0 on 0: input0; the reference does not run it; linear reads what it makes as "
      "input0";
  const std::string not_judged = "1 outputs could not be judged";
  struct Case {
    std::string a, b, perturbed, named;
  };
  for (const auto& [a, b, perturbed, named] : std::vector<Case>{
           // An input that only one run's operation made, whether or not that reads what both runs made.
           {"embed 3 > 10; linear 5 > 60", "embed 3.0005 > 10.0015; clone 4 > 5.001; linear 5.001 > 60",
            "embed 3.001 > 10.003; linear 5 > 60", inserted},
           {"embed 3 > 10; linear 5 > 60", "embed 3.0005 > 10.0015; clone 10.0015 > 5.001; linear 5.001 > 60",
            "embed 3.001 > 10.003; linear 5 > 60", inserted},
           // An input of the operation before is not what that made.
           {"f 1 > 7; g 7 > 9", "f 1.00001 > 7.00007; g 1.00001 > 9.5",
            "f 1.00001 > 7.00007; g 7.00007 > 9.00009", "INPUT g in 0 on 0: input0; "},
           // A fused operation is judged by the inputs of those that it stands for, and of no others.
           {fused, "norm 5 > 10.00001; fused 10.00001 20 1 > 31.00003", fused_perturbed, "NONE: "},
           {fused, "norm 5 > 10.00001; fused 10.00001 20 1 > 40", fused_perturbed, of_fused},
           {fused, "norm 5 > 10.00001; fused 5 20 1 > 40", fused_perturbed, not_judged},
           // The perturbed run has another operation in its place, which tells nothing of this one.
           {"f 1 > 7; g 7 8 > 9", "f 1.00001 > 7.00007; g 7.00007 8 > 9.01",
            "f 1.00001 > 7.00007; h 7.00007 > 9.00009", not_judged},
           {"m:sum& 3 4 > 7; f 3 > 5; n:sum& 5 6 > 11",
            "m:sum& 3.00001 4 > 7.00001; f 3.00001 > 5.00001; n:sum& 5.00001 6 > 11.5",
            "m:sum& 3.00001 4 > 7.00001; f 3.00001 > 5.00001; all& 5.00001 > 11.00001",
            "OPERATION sum& in 0 on 0: output0; "},
           // An input that nobody knows may differ.
           {"f ? > 7; h 7 > 5", "f ? > 8; h 8 > 5.7", "f ? > 7.00001; h 7.00001 > 5.00001", not_judged},
           {"f 1 > 7; h ? 7 > 5", "f 1 > 7; h ? 7 > 5.7", "f 1 > 7.00001; h ? 7.00001 > 5.00001", not_judged},
           {"f 1 > 7; h ? 7 > 5", "f 1 > 7; h ? 7 > 5.000001", "f 1 > 7.00001; h ? 7.00001 > 5.00001",
            not_judged}}) {
    EXPECT_THAT(Summary(FindIn({a}, {b}, {perturbed})), HasSubstr(named)) << a << "\n" << b;
  }
}

// The longer of both sums counts, and the coarser of both types.
TEST_F(OriginOfHandWrittenLogs, OfARenamedOperationTheSumsOfBothAreExplained) {
  for (const size_t size_a : {4, 4096}) {
    for (const size_t size_b : {4, 4096}) {
      for (const auto& [type_a, type_b] : {std::pair(DType::kFloat32, DType::kBFloat16),
                                           {DType::kBFloat16, DType::kFloat32},
                                           {DType::kFloat32, DType::kFloat32}}) {
        SetUp();
        const auto write = [&](const char* run, const char* name, size_t size, DType dtype, float result) {
          HandWritten log(dir_ + run, 0, 1);
          log.BeginIteration(0);
          const WrittenTensor few = {std::vector<float>(4, 1)}, many = {std::vector<float>(4096, 1)};
          log.Op({"both", {}, {few, many}});
          log.Op({name, {size == 4 ? few : many}, {{{result, 2, 3, 4}, "", dtype}}});
          log.Finish();
        };
        write("/a", "sum", size_a, type_a, 1);
        write("/b", "my_sum", size_b, type_b, 7);
        const RunLogs a = ReadRunLogs(dir_ + "/a").value();
        const auto verdict = FindOrigin(a, ReadRunLogs(dir_ + "/b").value(), nullptr);
        ASSERT_TRUE(verdict.ok()) << verdict.status();
        ASSERT_EQ(Summary(verdict),
                  "OPERATION my_sum in 0 on 0: output0; it stands for sum of the reference");
        RoundedOutput output = RoundedOutputOf(a.ranks.at(0)->ops[1], 1, 1);
        output.reduction_length = static_cast<double>(std::max(size_a, size_b));
        if (type_b == DType::kBFloat16) output.dtype = type_b;
        EXPECT_DOUBLE_EQ(verdict->explained(), AfterRounding(output, SummationBound(output, 1)));
      }
    }
  }
}

TEST_F(OriginOfHandWrittenLogs, ARunIsNotComparedWithItself) {
  WriteRun(dir_ + "/a", {"f 10 > 30", "f 10 > 30"});
  for (const char* const name : {"/a", "/a/.", "/a/../a"}) {
    const std::string same = dir_ + name;
    EXPECT_THAT(Summary(FindOrigin(dir_ + "/a", same, "")), HasSubstr("with itself"));
    EXPECT_THAT(Summary(FindOrigin(dir_ + "/a", same, "", {{0, 0}})), HasSubstr("with itself"));
    for (const auto& [a, b] : {std::pair("/a", "/b"), {"/b", "/a"}}) {
      EXPECT_THAT(Summary(FindOrigin(dir_ + a, dir_ + b, same)),
                  HasSubstr("explains whatever differs or nothing"));
    }
  }
  // A rank that links to another.
  std::filesystem::remove_all(RankDirectory(dir_ + "/a", 1));
  std::filesystem::create_directory_symlink(RankDirectory(dir_ + "/a", 0), RankDirectory(dir_ + "/a", 1));
  EXPECT_THAT(Summary(FindOrigin(dir_ + "/a", dir_ + "/a", "", {{0, 1}})), HasSubstr("always agrees"));
}

TEST_F(OriginOfHandWrittenLogs, RanksThatLeftNothingAreMissed) {
  const Ranks ranks(3, "f 10 > 30");
  FindIn(ranks, ranks, Ranks(3, "f 10 > 31")).IgnoreError();
  std::filesystem::remove_all(RankDirectory(dir_ + "/b", 1));
  EXPECT_EQ(Summary(FindOrigin(dir_ + "/a", dir_ + "/b", "")),
            absl::StrCat("UNKNOWN: ", dir_, "/b: nothing of rank 1"));
  for (const char* run : {"/a", "/b", "/perturbed"})
    ASSERT_TRUE(WriteFileAtomically(dir_ + run + "/run.json", "{").ok());
  const auto verdict = FindOrigin(dir_ + "/a", dir_ + "/b", dir_ + "/perturbed");
  EXPECT_THAT(verdict->problems(),
              ElementsAre(HasSubstr("/a/run.json"), HasSubstr("/b/run.json"),
                          HasSubstr("/b: nothing of rank 1"), HasSubstr("/perturbed/run.json")));
  EXPECT_EQ(verdict->world_size(), 2);
}

TEST_F(OriginOfHandWrittenLogs, WhatACutLogHoldsIsUsedAndItsEndIsSaid) {
  std::string a, b;
  for (int i = 0; i < 10; ++i) {
    absl::StrAppend(&a, "linear ", i, " > ", i + 1, ";");
    absl::StrAppend(&b, "linear ", i, " > ", i > 5 ? i : i + 1, ";");
  }
  ASSERT_TRUE(FindIn({a}, {b}).ok());
  const std::string path = OpLogPath(dir_ + "/b", 0);
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size - 100);
  auto verdict = FindOrigin(dir_ + "/a", dir_ + "/b", "");
  EXPECT_EQ(Summary(verdict), "OPERATION linear in 0 on 0: output0; ");
  EXPECT_THAT(FormatOrigin(*verdict), HasSubstr("INCOMPLETE: "));
  std::filesystem::resize_file(path, size / 2);
  EXPECT_THAT(Summary(FindOrigin(dir_ + "/a", dir_ + "/b", "")),
              AllOf(HasSubstr("UNKNOWN"), HasSubstr("after 4 operations: the file was cut")));
  // Wherever either log is cut, no update is said to be left out by that run; one before the cut is.
  const std::string step = "f 1 > 2; g:adam! 2 > 3; h:adam! 2 > 4";
  const std::string steps = absl::StrCat(step, "; @1; ", step, "; @2; ", step);
  ASSERT_TRUE(FindIn({steps}, {steps}).ok());
  for (const char* const run : {"/a", "/b"}) {
    const std::string log = OpLogPath(dir_ + run, 0);
    const std::string whole = *ReadFile(log);
    for (size_t cut = 0; cut < whole.size(); cut += 40) {
      ASSERT_TRUE(WriteFileAtomically(log, whole.substr(0, cut)).ok());
      EXPECT_THAT(Summary(FindOrigin(dir_ + "/a", dir_ + "/b", "")), Not(HasSubstr("adam"))) << run << cut;
    }
    ASSERT_TRUE(WriteFileAtomically(log, whole).ok());
  }
  ASSERT_TRUE(FindIn({steps}, {absl::StrCat(step, "; @1; ", step, "; @2; f 1 > 2; h:adam! 2 > 4")}).ok());
  const std::string log = OpLogPath(dir_ + "/b", 0);
  std::filesystem::resize_file(log, std::filesystem::file_size(log) - 8);
  EXPECT_EQ(Summary(FindOrigin(dir_ + "/a", dir_ + "/b", "")),
            "UPDATE adam alone in 2 on 0: ; only the reference runs it");
}

}  // namespace
}  // namespace ott::origin
