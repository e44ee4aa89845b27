// Tests which operation is named in logs that are written by hand.

#include "ott/questions/origin/origin.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/op_log/op_log.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/origin/origin_for_test.h"
#include "ott/questions/origin/origin_text.h"

namespace ott::origin {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(OriginOfHandWrittenLogs, InsertedRenamedAndFusedOperationsDoNotDerailIt) {
  HandWritten a = A();
  a.Op("linear", {10, 20}, 30);
  a.Op("add_bias", {30, 1}, 31);
  a.Op("gelu", {31}, 40);
  a.Op("linear2", {40}, 50);
  a.Op("softmax", {50}, 60);
  a.Finish();
  HandWritten b = B();
  b.Op("clone", {10}, 10);
  b.Op("fused_linear", {10, 20, 1}, 31);
  b.Op("gelu_tanh", {31}, 40);
  b.Op("linear2", {40}, 50);
  b.Op("softmax", {50}, 61);
  b.Finish();
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->operation(), "softmax") << FormatOrigin(*verdict);
  EXPECT_EQ(verdict->kind(), OriginVerdict::OPERATION);
  EXPECT_FALSE(verdict->in_one_run_only());
}

TEST_F(OriginOfHandWrittenLogs, AFusedOperationThatIsWrongIsNamed) {
  HandWritten a = A();
  a.Op("linear", {10, 20}, 30);
  a.Op("add_bias", {30, 1}, 31);
  a.Op("softmax", {31}, 60);
  a.Finish();
  HandWritten b = B();
  b.Op("fused_linear", {10, 20, 1}, 32);
  b.Op("softmax", {32}, 61);
  b.Finish();
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->operation(), "fused_linear") << FormatOrigin(*verdict);
  EXPECT_THAT(verdict->detail(), HasSubstr("it stands for add_bias"));
}

TEST_F(OriginOfHandWrittenLogs, AnyInputOfAFusedOperationThatIsOfNoneIsNamed) {
  for (const size_t wrong : {0, 1, 2}) {
    SetUp();
    std::vector<float> inputs = {10, 20, 1};
    HandWritten a = A();
    a.Op("linear", {inputs[0], inputs[1]}, 30);
    a.Op("add_bias", {30, inputs[2]}, 31);
    a.Op("softmax", {31}, 60);
    a.Finish();
    inputs[wrong] += 7;
    HandWritten b = B();
    b.Op("fused_linear", inputs, 32);
    b.Op("softmax", {32}, 61);
    b.Finish();
    const auto verdict = Find();
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    // The first one is in place of what "linear" made, which the fused operation stands for as well.
    const std::string input = "input" + std::to_string(wrong);
    if (wrong == 0) {
      EXPECT_THAT(verdict->detail(), HasSubstr("wrote as " + input)) << FormatOrigin(*verdict);
      continue;
    }
    EXPECT_EQ(verdict->kind(), OriginVerdict::INPUT) << FormatOrigin(*verdict);
    EXPECT_EQ(verdict->tensor(), input);
  }
}

TEST_F(OriginOfHandWrittenLogs, WhatIsWrongIsAnOperationAnUpdateOrAnInputByItsRole) {
  for (const auto& [role, kind] : {std::pair(OpRole::kOperation, OriginVerdict::OPERATION),
                                   {OpRole::kUpdate, OriginVerdict::UPDATE},
                                   {OpRole::kLoad, OriginVerdict::INPUT},
                                   {OpRole::kCollective, OriginVerdict::OPERATION}}) {
    SetUp();
    HandWritten a = A();
    HandWritten b = B();
    a.Op("it", {10}, 30, role);
    b.Op("it", {10}, 31, role);
    a.Finish();
    b.Finish();
    const auto verdict = Find();
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_EQ(verdict->kind(), kind) << FormatOrigin(*verdict);
    EXPECT_EQ(verdict->collective(), role == OpRole::kCollective);
  }
}

TEST_F(OriginOfHandWrittenLogs, OfInsertedOperationsTheFirstIsNamed) {
  HandWritten a = A();
  a.Op("linear", {10}, 30);
  a.Op("softmax", {30}, 60);
  a.Finish();
  HandWritten b = B();
  b.Op("linear", {10}, 30);
  b.Op("to_half", {30}, 29);
  b.Op("scale", {29, 4}, 28);
  b.Op("to_float", {5, 28}, 27);
  b.Op("softmax", {27}, 58);
  b.Finish();
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->operation(), "to_half") << FormatOrigin(*verdict);
  EXPECT_TRUE(verdict->in_one_run_only());
  EXPECT_EQ(verdict->detail(), "the reference does not run it; softmax reads what it makes as input0");
}

TEST_F(OriginOfHandWrittenLogs, WhatIsNotFiniteInOneRunOnlyDiffersWithoutLimit) {
  const float infinity = INFINITY, nan = std::nanf("");
  for (const auto& [of_a, of_b] : {std::pair(infinity, 30.0f),
                                   {30.0f, infinity},
                                   {nan, 30.0f},
                                   {30.0f, nan},
                                   {nan, infinity},
                                   {infinity, nan}}) {
    SetUp();
    HandWritten a = A();
    HandWritten b = B();
    a.Op("linear", {10}, of_a);
    b.Op("linear", {10}, of_b);
    a.Finish();
    b.Finish();
    const auto verdict = Find();
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_EQ(verdict->operation(), "linear") << of_a << " and " << of_b;
    EXPECT_TRUE(std::isinf(verdict->relative_difference())) << of_a << " and " << of_b;
  }
}

TEST_F(OriginOfHandWrittenLogs, AValueThatChangesBetweenTwoOperationsIsAnInput) {
  HandWritten a = A();
  a.Op("linear", {10}, 30);
  a.Op("softmax", {30}, 60);
  a.Finish();
  HandWritten b = B();
  b.Op("linear", {10}, 30);
  b.Op("softmax", {31}, 61);
  b.Finish();
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->kind(), OriginVerdict::INPUT);
  EXPECT_EQ(verdict->operation(), "softmax");
  EXPECT_EQ(verdict->last_written_by(), "linear in iteration 0");
}

TEST_F(OriginOfHandWrittenLogs, HowItSpreadsIsATree) {
  HandWritten a = A();
  a.Op("random", {}, 30);
  a.Op("gelu", {30}, 40);
  a.Op("argmax", {40}, 3);
  a.Op("scale", {30}, 100);
  a.Op("add", {30}, 1000);
  a.Op("other", {5}, 6);
  a.Finish();
  HandWritten b = B();
  b.Op("random", {}, 33);
  b.Op("gelu", {33}, 44);
  b.Op("argmax", {44}, 3);
  b.Op("scale", {33}, 150);
  b.Op("add", {33}, 1001);
  b.Op("other", {5}, 6);
  b.Finish();
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  ASSERT_EQ(verdict->spread_size(), 4);
  EXPECT_EQ(verdict->spread(0).operation(), "gelu");
  EXPECT_EQ(verdict->spread(1).depth(), 2);
  EXPECT_EQ(verdict->spread(0).parent(), -1);
  EXPECT_EQ(verdict->spread(1).parent(), 0);
  EXPECT_NEAR(verdict->spread(0).input_difference(), 3 / std::sqrt(33 * 33 + 14), 1e-3);
  EXPECT_NEAR(verdict->spread(0).relative_difference(), 4 / std::sqrt(44 * 44 + 14), 1e-3);
  EXPECT_EQ(verdict->spread(1).relative_difference(), 0);
  EXPECT_EQ(verdict->num_swallow_after(), 1);
  EXPECT_THAT(FormatOrigin(*verdict),
              HasSubstr("\nhow it spreads:\n"
                        "  gelu: 0.09 -> 0.091\n"
                        "    argmax: 0.091 swallowed\n"
                        "  scale: 0.09 -> 0.33, grows\n"
                        "  add: 0.09 -> 0.001, shrinks\n"
                        "after it 3 operations differ for that reason, 1 swallow it\n"));
  EXPECT_EQ(verdict->differences_size(), 6);
}

// A program of two iterations of ten operations on each rank, all of which read what was made before, or one
// of three parameters. Values depend on all that they are made of.
struct RandomProgram {
  static constexpr int kParameters = 3, kOperations = 10;

  std::vector<std::vector<int>> inputs;  // by operation; below kParameters: that parameter, else an operation

  explicit RandomProgram(std::mt19937& random) {
    for (int i = 0; i < kOperations; ++i) {
      std::vector<int>& read = inputs.emplace_back();
      for (int j = 0; j < 1 + static_cast<int>(random() % 2); ++j)
        read.push_back(static_cast<int>(random() % static_cast<unsigned>(kParameters + i)));
    }
  }

  // Logs a run. In one iteration, or if that is -1 in each, something is wrong: an operation's result, or
  // before it a parameter. All parameters are off by a share of about `noise`.
  void Run(const std::string& run_dir, int num_ranks, int wrong_rank, int wrong_iteration, int wrong,
           float noise = 0) const {
    std::minstd_rand random(7);
    for (int rank = 0; rank < num_ranks; ++rank) {
      HandWritten log(run_dir, rank, num_ranks);
      for (int iteration = 0; iteration < 2; ++iteration) {
        if (iteration > 0) log.BeginIteration(iteration);
        const bool is_wrong = rank == wrong_rank && (wrong_iteration < 0 || iteration == wrong_iteration);
        std::vector<float> values;
        for (int i = 0; i < kParameters; ++i) {
          values.push_back(static_cast<float>(10 * (i + 1) + 3 * rank + 50 * iteration));
          values.back() *= 1 + noise * (0.5f + static_cast<float>(random() % 1000) / 1000);
          if (is_wrong && wrong == i) values.back() += 1;
        }
        for (int i = 0; i < kOperations; ++i) {
          std::vector<float> read;
          float result = static_cast<float>(i) + 0.5f;
          for (const int input : inputs[i]) {
            read.push_back(values[input]);
            result += 0.7f * values[input];
          }
          if (is_wrong && wrong == kParameters + i) result += 1;
          log.Op("op" + std::to_string(i), read, result);
          values.push_back(result);
        }
      }
      log.Finish();
    }
  }

  // The operations that a wrong value reaches, in order.
  std::vector<int> Reached(int wrong) const {
    std::vector<int> reached;
    std::set<int> differ = {wrong};
    for (int i = 0; i < kOperations; ++i) {
      const bool reads =
          std::any_of(inputs[i].begin(), inputs[i].end(), [&](int input) { return differ.count(input) > 0; });
      if (!reads) continue;
      differ.insert(kParameters + i);
      reached.push_back(i);
    }
    return reached;
  }
};

TEST_F(OriginOfHandWrittenLogs, OfARandomProgramTheWrongOperationOrInputIsNamed) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    SetUp();
    const RandomProgram program(random);
    const int num_ranks = 1 + static_cast<int>(random() % 3);
    const int rank = static_cast<int>(random() % static_cast<unsigned>(num_ranks));
    const int iteration = static_cast<int>(random() % 2);
    const int wrong = static_cast<int>(random() % (RandomProgram::kParameters + RandomProgram::kOperations));
    program.Run(dir_ + "/a", num_ranks, -1, 0, 0);
    program.Run(dir_ + "/b", num_ranks, rank, iteration, wrong);
    const auto verdict = Find();
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    const bool is_input = wrong < RandomProgram::kParameters;
    const std::vector<int> readers = program.Reached(wrong);
    if (is_input && readers.empty()) {
      EXPECT_EQ(verdict->kind(), OriginVerdict::NONE) << FormatOrigin(*verdict);
      continue;
    }
    const int named = is_input ? readers[0] : wrong - RandomProgram::kParameters;
    EXPECT_EQ(verdict->kind(), is_input ? OriginVerdict::INPUT : OriginVerdict::OPERATION);
    EXPECT_EQ(verdict->operation(), "op" + std::to_string(named)) << FormatOrigin(*verdict);
    EXPECT_EQ(verdict->iteration(), iteration);
    EXPECT_THAT(verdict->ranks(), ElementsAre(rank));
    EXPECT_EQ(verdict->num_compared(), 2 * num_ranks * RandomProgram::kOperations);
    EXPECT_EQ(verdict->num_only_in_reference() + verdict->num_only_in_current() + verdict->num_renamed(), 0);
    EXPECT_EQ(verdict->num_swallow_after(), 0);
    // Its result reaches these.
    std::vector<int> reached = program.Reached(RandomProgram::kParameters + named);
    EXPECT_EQ(verdict->num_differ_after(), reached.size());
    // In the picture each operation is a part, of which differ it and these, and what read the same
    // parameter.
    const int first_of_iteration = iteration * RandomProgram::kOperations;
    EXPECT_EQ(verdict->origin_part(), first_of_iteration + named);
    if (is_input) reached = readers;
    reached.push_back(named);
    ASSERT_EQ(verdict->differences_size(), 2 * RandomProgram::kOperations);
    for (int part = 0; part < verdict->differences_size(); ++part) {
      EXPECT_EQ(verdict->differences(part) > 0,
                std::count(reached.begin(), reached.end(), part - first_of_iteration) > 0)
          << trial << ", part " << part;
    }
  }
}

TEST_F(OriginOfHandWrittenLogs, WhatCameFromAnotherRankIsNotBlamedOnACollective) {
  for (const char* run : {"a", "b"}) {
    for (const int rank : {0, 1}) {
      HandWritten log(dir_ + "/" + run, rank, 2);
      const bool wrong = run[0] == 'b';
      const float local = rank == 1 && wrong ? 6 : 5;
      log.Op("linear", {10}, local);
      log.Op("all_reduce", {local}, wrong ? 11 : 10, OpRole::kCollective);
      log.Op("step", {wrong ? 11.0f : 10.0f}, wrong ? 21 : 20);
      log.Finish();
    }
  }
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->operation(), "linear") << FormatOrigin(*verdict);
  EXPECT_THAT(verdict->ranks(), ElementsAre(1));
  EXPECT_THAT(verdict->verdict(), HasSubstr("on rank 1 alone"));
}

TEST_F(OriginOfHandWrittenLogs, ACollectiveThatIsWrongOnAllRanksIsBlamed) {
  for (const char* run : {"a", "b"}) {
    for (const int rank : {0, 1}) {
      HandWritten log(dir_ + "/" + run, rank, 2);
      log.Op("all_reduce", {5}, run[0] == 'b' ? 11 : 10, OpRole::kCollective);
      log.Finish();
    }
  }
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->operation(), "all_reduce");
  // One rank's network would do.
  EXPECT_THAT(verdict->verdict(), Not(HasSubstr("and not a device")));
}

TEST_F(OriginOfHandWrittenLogs, AnOperationThatIsWrongOnAllRanksIsTheProgram) {
  for (const char* run : {"a", "b"}) {
    for (const int rank : {0, 1}) {
      HandWritten log(dir_ + "/" + run, rank, 2);
      log.Op("linear", {5}, run[0] == 'b' ? 11 : 10);
      log.Finish();
    }
  }
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_THAT(verdict->verdict(), HasSubstr("on all ranks, so it is the program and not a device"));
}

TEST_F(OriginOfHandWrittenLogs, WhatCameInIterationsThatWereNotLoggedIsNobodys) {
  for (const char* run : {"a", "b"}) {
    for (const int rank : {0, 1}) {
      HandWritten log(dir_ + "/" + run, rank, 2);
      log.Op("linear", {5}, 10);
      log.BeginIteration(10);
      log.Op("linear", {run[0] == 'b' ? 6.0F : 5.0F}, run[0] == 'b' ? 12 : 10);
      log.Finish();
    }
  }
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->kind(), OriginVerdict::INPUT);
  EXPECT_THAT(verdict->verdict(), HasSubstr("it may be of iterations 1 to 9, which were not logged"));
  EXPECT_THAT(verdict->verdict(), Not(HasSubstr("and not a device")));
}

TEST_F(OriginOfHandWrittenLogs, NamesThatAreNoUtf8StayOutOfTheVerdict) {
  HandWritten a = A();
  a.Op("linear \xff", {10}, 30);
  a.Op("softmax \xff", {30}, 60);
  a.Finish();
  HandWritten b = B();
  b.Op("linear \xff", {10}, 31);
  b.Op("softmax \xff", {31}, 61);
  b.Finish();
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->operation(), "linear \uFFFD");
  ASSERT_EQ(verdict->spread_size(), 1);
  EXPECT_EQ(verdict->spread(0).operation(), "softmax \uFFFD");
}

TEST_F(OriginOfHandWrittenLogs, TwoRanksOfOneRunAreCompared) {
  for (const int rank : {0, 1}) {
    HandWritten log(dir_ + "/a", rank, 2);
    log.Op("linear", {10}, rank == 1 ? 31 : 30);
    log.Finish();
  }
  const auto verdict = FindOrigin(dir_ + "/a", dir_ + "/a", "", {{0, 1}});
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->operation(), "linear");
  EXPECT_THAT(verdict->ranks(), ElementsAre(1));
}

TEST_F(OriginOfHandWrittenLogs, KeptTensorsSayHowManyElementsDiffer) {
  for (const char* run : {"a", "b"}) {
    HandWritten log(dir_ + "/" + run, 0, 1);
    log.Op("kept", {10}, run[0] == 'b' ? 31 : 30);
    log.Finish();
  }
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_FALSE(verdict->estimated());
  EXPECT_THAT(verdict->verdict(), HasSubstr("1 of 4 elements, max rel error 0.033"));
}

TEST_F(OriginOfHandWrittenLogs, ACopyOfEitherRunIsNoPerturbedOne) {
  const auto write = [&](const std::string& run, float output) {
    HandWritten log(dir_ + "/" + run, 0, 1);
    log.Op("linear", {10}, output);
    log.Finish();
  };
  write("a", 30);
  write("b", 31);
  write("like_a", 30);
  write("like_b", 31);
  write("perturbed", 30.00001f);
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

TEST_F(OriginOfHandWrittenLogs, ARankThatLinksToAnotherIsNotComparedWithIt) {
  HandWritten log(dir_ + "/a", 0, 2);
  log.Op("linear", {10}, 30);
  log.Finish();
  std::filesystem::create_directory_symlink(RankDirectory(dir_ + "/a", 0), RankDirectory(dir_ + "/a", 1));
  EXPECT_THAT(std::string(FindOrigin(dir_ + "/a", dir_ + "/a", "", {{0, 1}}).status().message()),
              HasSubstr("always agrees"));
}

// An update that nothing reads, as those of the last iteration or of an average of the weights.
TEST_F(OriginOfHandWrittenLogs, AnUpdateThatOneRunSkipsOrRepeatsIsNamedThoughNothingReadsIt) {
  const auto write = [&](const std::string& run, int iterations, int num_updates_of_last) {
    HandWritten log(dir_ + "/" + run, 0, 1);
    for (int i = 0; i < iterations; ++i) {
      log.BeginIteration(i);
      log.Op("linear", {10}, 30);
      const bool is_last = i == iterations - 1;
      for (int update = 0; update < (is_last ? num_updates_of_last : 1); ++update) {
        log.Op("adam", {20, 30}, 21 + static_cast<float>(update), OpRole::kUpdate);
      }
    }
    log.Finish();
  };
  write("a", 3, 1);
  write("skipped", 3, 0);
  write("repeated", 3, 2);
  for (const auto& [run, detail] :
       {std::pair("skipped", "only the reference runs it"), {"repeated", "the reference does not run it"}}) {
    const auto verdict = FindOrigin(dir_ + "/a", dir_ + "/" + run, "");
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    EXPECT_EQ(verdict->kind(), OriginVerdict::UPDATE) << FormatOrigin(*verdict);
    EXPECT_EQ(verdict->iteration(), 2);
    EXPECT_EQ(verdict->operation(), "adam");
    EXPECT_THAT(verdict->verdict(), HasSubstr(detail));
  }
  // If it never logs one, it may make it unseen.
  write("once", 1, 1);
  write("never", 1, 0);
  const auto untold = FindOrigin(dir_ + "/once", dir_ + "/never", "");
  ASSERT_TRUE(untold.ok()) << untold.status();
  EXPECT_EQ(untold->kind(), OriginVerdict::UNKNOWN);
  EXPECT_THAT(untold->problems(), ElementsAre(HasSubstr("did the other one make that update?")));
}

TEST_F(OriginOfHandWrittenLogs, AnInputThatOnlyOneRunsOperationMadeIsThatOperations) {
  const auto write = [&](const char* run, float in, float out, float weight, bool is_made) {
    HandWritten log(dir_ + "/" + run, 0, 1);
    log.Op("embed", {in}, out);
    if (is_made) log.Op("clone", {4}, weight);
    log.Op("linear", {weight}, 60);
    log.Finish();
  };
  write("a", 3, 10, 5, false);
  write("perturbed", 3.001f, 10.003f, 5, false);
  write("b", 3.0005f, 10.0015f, 5.001f, true);
  const auto verdict = FindOrigin(dir_ + "/a", dir_ + "/b", dir_ + "/perturbed");
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->operation(), "clone") << FormatOrigin(*verdict);
}

TEST_F(OriginOfHandWrittenLogs, AnIterationThatOneRunLacksIsNoPass) {
  for (const char* run : {"a", "b"}) {
    for (const int rank : {0, 1}) {
      HandWritten log(dir_ + "/" + run, rank, 2);
      log.Op("linear", {5}, 10);
      if (run[0] == 'b' && rank == 1) continue;  // killed
      log.BeginIteration(10);
      log.Op("linear", {5}, 10);
      log.Finish();
    }
  }
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->kind(), OriginVerdict::UNKNOWN);
  EXPECT_THAT(verdict->problems(), ::testing::Contains(HasSubstr(
                                       "rank 1: iterations logged in the reference only: 1, in the current "
                                       "run only: 0, in both: 1, 0 to 0")));
}

TEST_F(OriginOfHandWrittenLogs, WhatCouldNotBeReadIsNoPass) {
  for (const char* run : {"a", "b"}) {
    HandWritten log(dir_ + "/" + run, 0, 1);
    log.Op({"linear", {}, {{{0}, "", DType::kFloat32, /*is_lost=*/true}}});
    log.Finish();
  }
  auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->kind(), OriginVerdict::UNKNOWN);
  EXPECT_THAT(verdict->problems(), ElementsAre(HasSubstr("2 of 2 tensors could not be read")));
}

TEST_F(OriginOfHandWrittenLogs, AnOperationWhoseInputCouldNotBeReadIsNotBlamed) {
  for (const char* run : {"a", "b"}) {
    HandWritten log(dir_ + "/" + run, 0, 1);
    log.Op({"linear", {{{0}, "", DType::kFloat32, /*is_lost=*/true}}, {{{*run == 'a' ? 1.0f : 2.0f}}}});
    log.Finish();
  }
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->kind(), OriginVerdict::UNKNOWN) << FormatOrigin(*verdict);
}

TEST_F(OriginOfHandWrittenLogs, OperationsOfWhichNoTensorIsKnownAreNoPass) {
  for (const char* run : {"a", "b"}) {
    HandWritten log(dir_ + "/" + run, 0, 1);
    log.Op(WrittenOp{"linear"});
    log.Finish();
  }
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->kind(), OriginVerdict::UNKNOWN);
  EXPECT_THAT(verdict->problems(), ElementsAre(HasSubstr("there is nothing to compare")));
}

TEST_F(OriginOfHandWrittenLogs, ARunIsNotComparedWithItself) {
  HandWritten a = A();
  a.Op("linear", {10}, 30);
  a.Finish();
  for (const char* const name : {"/a", "/a/.", "/a/../a"}) {
    const std::string same = dir_ + name;
    EXPECT_THAT(std::string(FindOrigin(dir_ + "/a", same, "").status().message()), HasSubstr("with itself"));
    EXPECT_THAT(std::string(FindOrigin(dir_ + "/a", dir_ + "/b", same).status().message()),
                HasSubstr("explains whatever differs or nothing"));
    EXPECT_THAT(std::string(FindOrigin(dir_ + "/b", dir_ + "/a", same).status().message()),
                HasSubstr("explains whatever differs or nothing"));
    EXPECT_THAT(std::string(FindOrigin(dir_ + "/a", same, "", {{0, 0}}).status().message()),
                HasSubstr("with itself"));
  }
}

TEST_F(OriginOfHandWrittenLogs, RanksThatLeftNothingAreMissedWhereRunJsonIsDamaged) {
  for (const char* run : {"a", "b"}) {
    HandWritten log(dir_ + "/" + run, 0, 2);
    log.Op("linear", {10}, 30);
    log.Finish();
    ASSERT_TRUE(WriteFileAtomically(dir_ + "/" + run + "/run.json", "{").ok());
  }
  const auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->kind(), OriginVerdict::UNKNOWN);
  EXPECT_EQ(verdict->world_size(), 1);
}

TEST_F(OriginOfHandWrittenLogs, LogsOfOtherProgramsAreRefused) {
  HandWritten a = A();
  a.Op("linear", {10}, 30);
  a.Finish();
  HandWritten b = B();
  b.Op("conv", {10, 3}, 30);
  b.Finish();
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("only 0 of 1 operations of the one are in"));
  EXPECT_THAT(std::string(FindOrigin(dir_ + "/a", dir_ + "/none", "").status().message()),
              HasSubstr("no run directory"));
  std::filesystem::remove(OpLogPath(dir_ + "/b", 0));
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("no log of operations"));
}

TEST_F(OriginOfHandWrittenLogs, OfALogWithoutOperationsItIsSaid) {
  for (const bool other_is_empty : {true, false}) {
    std::filesystem::remove_all(dir_ + "/a");
    std::filesystem::remove_all(dir_ + "/b");
    HandWritten a = A();
    HandWritten b = B();
    if (!other_is_empty) a.Op("linear", {10}, 30);
    a.Finish();
    b.Finish();
    EXPECT_THAT(std::string(Find().status().message()),
                HasSubstr(other_is_empty ? "/a: no operation was logged" : "/b: no operation was logged"));
  }
}

TEST_F(OriginOfHandWrittenLogs, RunsThatHaveLittleInCommonAreRefused) {
  HandWritten a = A();
  HandWritten b = B();
  for (const std::string name : {"qkv", "scores", "softmax"}) {
    a.Op(name, {10}, 30);
    b.Op(name + "_part", {10, 3}, 31, OpRole::kCollective);
  }
  a.Op("adam", {20}, 40);
  b.Op("adam", {21}, 41);
  a.Finish();
  b.Finish();
  EXPECT_THAT(std::string(Find().status().message()), HasSubstr("parallel in the same way?"));
}

TEST_F(OriginOfHandWrittenLogs, WhatACutLogHoldsIsUsedAndItsEndIsSaid) {
  HandWritten a = A();
  HandWritten b = B();
  for (HandWritten* log : {&a, &b}) {
    for (float i = 0; i < 10; ++i) log->Op("linear", {i}, log == &b && i > 5 ? i : i + 1);
    log->Finish();
  }
  const std::string path = OpLogPath(dir_ + "/b", 0);
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size - 100);
  auto verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->operation(), "linear");
  EXPECT_THAT(FormatOrigin(*verdict), HasSubstr("INCOMPLETE: "));
  std::filesystem::resize_file(path, size / 2);
  verdict = Find();
  ASSERT_TRUE(verdict.ok()) << verdict.status();
  EXPECT_EQ(verdict->kind(), OriginVerdict::UNKNOWN);
  EXPECT_THAT(FormatOrigin(*verdict), HasSubstr("after 4 operations: the file was cut"));
}

}  // namespace
}  // namespace ott::origin
