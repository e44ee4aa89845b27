#include "ott/questions/right/crosscheck/crosscheck_command.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/check/verdict.h"
#include "ott/questions/answer/command_for_test.h"
#include "ott/questions/right/crosscheck/check_reference.h"
#include "ott/questions/right/crosscheck/run_for_test.h"

namespace ott::crosscheck {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Runs of two ranks; of "wrong" the second one has another last weight.
class CrosscheckCommandTest : public testing::Test {
 protected:
  CrosscheckCommandTest() {
    for (const int rank : {0, 1}) {
      for (const int iteration : {0, 10}) {
        WriteDumpForTest(right_, rank, iteration, {1, 2, 4});
        WriteDumpForTest(wrong_, rank, iteration, {1, 2, rank == 1 && iteration == 10 ? 4.5f : 4});
      }
    }
  }
  static std::pair<int, std::string> Run(std::vector<std::string> words) {
    words.insert(words.begin(), "crosscheck");
    return RunForTest(&AddCrosscheckCommand, words);
  }
  static int ExitCode(const std::vector<std::string>& words) { return Run(words).first; }

  const std::string right_ = MakeRunForTest("right", 2), wrong_ = MakeRunForTest("wrong", 2);
};

TEST_F(CrosscheckCommandTest, ReplicasAgreeOrNot) {
  EXPECT_EQ(ExitCode({right_}), 0);
  const auto [exit_code, text] = Run({wrong_});
  EXPECT_EQ(exit_code, 1);
  EXPECT_THAT(text, AllOf(HasSubstr("DIFFER"), Not(HasSubstr("reference"))));
  EXPECT_EQ(ExitCode({wrong_, "--replicated", "step"}), 0);
  EXPECT_EQ(ExitCode({wrong_, "--replicated", "step", "--replicated", "weights"}), 1);
  EXPECT_EQ(ExitCode({wrong_ + "/none"}), 2);
  const std::string config = testing::TempDir() + "/crosscheck.textproto";
  ASSERT_TRUE(WriteFileAtomically(config, "cross_check { replicated: \"step\" }").ok());
  EXPECT_EQ(ExitCode({wrong_, "--config", config}), 0);
  EXPECT_EQ(ExitCode({wrong_, "--config", config, "--replicated", "weights"}), 1);
  EXPECT_EQ(ExitCode({wrong_, "--config", config + "x"}), 2);
  // The run itself says what is compared, if nothing else does.
  RunInfo info = ReadRunInfo(wrong_).value();
  info.mutable_config()->mutable_cross_check()->add_replicated("step");
  ASSERT_TRUE(WriteRunInfo(wrong_, info).ok());
  EXPECT_EQ(ExitCode({wrong_}), 0);
  EXPECT_EQ(ExitCode({wrong_, "--replicated", "weights"}), 1);
}

TEST_F(CrosscheckCommandTest, ARunIsComparedWithItsReferenceAlsoByALayout) {
  const std::string layout = testing::TempDir() + "/layout.textproto", config = layout + ".config",
                    tolerances = layout + ".tolerances";
  ASSERT_TRUE(WriteFileAtomically(layout,
                                  "tensors { path: \"weights\" whole: \"weights\" } tensors { path: \"step\" "
                                  "whole: \"step\" }")
                  .ok());
  ASSERT_TRUE(WriteFileAtomically(tolerances,
                                  "iterations: 0 iterations: 10 tensors { path: \"weights\" atol_at: 0 "
                                  "atol_at: 0.5 }")
                  .ok());
  for (const bool by_layout : {false, true}) {
    const auto exit_code = [&](std::vector<std::string> words) {
      if (by_layout) words.insert(words.end(), {"--layout", layout});
      return ExitCode(words);
    };
    if (by_layout) WriteDumpForTest(wrong_, 0, 10, {1, 2, 4.5f});  // a whole of which both ranks have a copy
    EXPECT_EQ(exit_code({right_, wrong_}), 1);
    EXPECT_EQ(exit_code({right_, right_}), 2);
    EXPECT_EQ(exit_code({right_, wrong_, "--atol", "0.5"}), 0);
    EXPECT_EQ(exit_code({right_, wrong_, "--atol", "0.25"}), 1);
    // It is relative to the reference.
    EXPECT_EQ(exit_code({right_, wrong_, "--rtol", "0.125"}), 0);
    EXPECT_EQ(exit_code({right_, wrong_, "--rtol", "0.12"}), 1);
    EXPECT_EQ(exit_code({wrong_, right_, "--rtol", "0.12"}), 0);
    EXPECT_EQ(exit_code({right_, wrong_, "--tolerances", tolerances}), 0);
    EXPECT_EQ(exit_code({right_, wrong_, "--tolerances", tolerances + "x"}), 2);
    for (const auto& [tolerance, expected] :
         {std::pair("atol: 0.5", 0), {"rtol: 0.125", 0}, {"atol: -1", 2}, {"rtol: -1", 2}}) {
      ASSERT_TRUE(
          WriteFileAtomically(config, absl::StrCat("cross_check { reference_tolerance { ", tolerance, " } }"))
              .ok());
      EXPECT_EQ(exit_code({right_, wrong_, "--config", config}), expected) << tolerance;
    }
    ASSERT_TRUE(WriteFileAtomically(
                    config, absl::StrCat("cross_check { reference_tolerances: \"", tolerances, "\" }"))
                    .ok());
    EXPECT_EQ(exit_code({right_, wrong_, "--config", config}), 0);
    // Says what the current run was made with.
    for (const std::string& run : {right_, wrong_}) {
      RunInfo info = ReadRunInfo(run).value();
      info.mutable_config()->mutable_cross_check()->mutable_reference_tolerance()->set_atol(
          run == wrong_ ? 0.5 : 0);
      ASSERT_TRUE(WriteRunInfo(run, info).ok());
    }
    EXPECT_EQ(exit_code({right_, wrong_}), 0);
    EXPECT_EQ(exit_code({wrong_, right_}), 1);
    RunInfo info = ReadRunInfo(wrong_).value();
    info.clear_config();
    ASSERT_TRUE(WriteRunInfo(wrong_, info).ok());
  }
  EXPECT_THAT(
      Run({right_, wrong_, "--layout", layout, "--format", "json"}).second,
      AllOf(StartsWith("{"), HasSubstr("\"finding\":\"BAD\""), HasSubstr("Is it the reference run?")));
  EXPECT_THAT(Run({right_, wrong_, "--layout", layout}).second, HasSubstr("weights"));
  EXPECT_EQ(ExitCode({right_, wrong_, "--layout", layout + "x"}), 2);
  // Without a tolerance each bit counts.
  const std::string zero = MakeRunForTest("zero", 1), negative = MakeRunForTest("negative", 1);
  WriteDumpForTest(zero, 0, 0, {0.0f});
  WriteDumpForTest(negative, 0, 0, {-0.0f});
  for (const char* const tolerance : {"0", "1e-9"}) {
    for (const char* const flag : {"--atol", "--rtol"})
      EXPECT_EQ(ExitCode({zero, negative, "--layout", layout, flag, tolerance}), *tolerance == '0');
  }
  EXPECT_THAT(Run({right_, "--layout", layout}).second,
              HasSubstr("--layout compares two runs: give A and B"));
  const std::string two = MakeRunForTest("two", 2);
  for (const int rank : {0, 1}) WriteDumpForTest(two, rank, 0, {rank == 0 ? 0.0f : 1});
  EXPECT_EQ(ExitCode({zero, two}), 2);
  ASSERT_TRUE(WriteFileAtomically(config, "cross_check { reference_ranks: 0 reference_ranks: 0 }").ok());
  EXPECT_EQ(ExitCode({zero, two, "--config", config, "--atol", "1"}), 0);
  EXPECT_EQ(ExitCode({zero, two, "--reference-ranks", "0,0", "--atol", "1"}), 0);
  EXPECT_EQ(ExitCode({two, zero, "--reference-ranks", "0"}), 0);
  EXPECT_EQ(ExitCode({two, zero, "--reference-ranks", "1"}), 1);
  const auto [exit_code, text] = Run({right_, wrong_});
  EXPECT_THAT(
      text, AllOf(HasSubstr("first divergence: iteration 10: rank 0"),
                  HasSubstr("max abs error, of all ranks"), HasSubstr("reference " + right_ + ": 4 checks")));
  std::filesystem::remove_all(DumpsDirectory(wrong_, 0) + "/0");
  EXPECT_EQ(ExitCode({right_, wrong_}), 1);
  EXPECT_EQ(ExitCode({right_, wrong_, "--atol", "0.5"}), 2);
}

TEST_F(CrosscheckCommandTest, TheFirstFiveFailuresArePrinted) {
  for (int iteration = 20; iteration < 90; iteration += 10) {
    for (const int rank : {0, 1}) {
      WriteDumpForTest(right_, rank, iteration, {1, 2, 4});
      WriteDumpForTest(wrong_, rank, iteration, {1, 2, rank == 1 ? 5.0f : 4});
    }
  }
  CrossCheckConfig config;
  config.set_reference_run(right_);
  std::string expected;
  int num_failures = 0;
  const std::vector<CrossCheckVerdict> verdicts = CheckRunAgainstReference(wrong_, config).value();
  for (const CrossCheckVerdict& verdict : verdicts) {
    if (!Passed(verdict) && ++num_failures <= 5) expected += FormatVerdict(verdict);
  }
  EXPECT_EQ(num_failures, 8);
  EXPECT_THAT(Run({right_, wrong_}).second, StartsWith(expected + "reference " + right_ + ": 18 checks"));
}

TEST_F(CrosscheckCommandTest, JsonHasAllVerdictsAndTheAnswerOfTheWorst) {
  const auto [exit_code, text] = Run({right_, wrong_, "--format", "json"});
  EXPECT_EQ(exit_code, 1);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  EXPECT_THAT(last, AllOf(HasSubstr("\"finding\":\"BAD\""), HasSubstr("\"iteration\":\"10\""),
                          HasSubstr("4.5"), testing::ContainsRegex("\"sentences\":\\[[^]]*weights")));
  EXPECT_THAT(Run({right_, "--format", "json"}).second,
              AllOf(HasSubstr("\"finding\":\"GOOD\""), HasSubstr("\"question\":\"replicas\"")));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{},
                                                {right_, "--format", "xml"},
                                                {right_, wrong_, "--atol", "-1"},
                                                {right_, wrong_, "--layout", "x", "--replicated", "*"}}) {
    EXPECT_EQ(ExitCode(wrong), -2);
  }
}

}  // namespace
}  // namespace ott::crosscheck
