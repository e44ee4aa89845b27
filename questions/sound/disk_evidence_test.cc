// Rules that dumps and cross-checks tell of, without a record of the ranks.

#include "ott/questions/sound/disk_evidence.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/tensor/value.h"
#include "ott/questions/right/crosscheck/run_for_test.h"
#include "ott/questions/sound/sound.h"
#include "ott/questions/sound/sound_answer.h"

namespace ott::sound {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr float kOne = 1, kNaN = std::numeric_limits<float>::quiet_NaN();

// A dump of two weights and the gradient of the first.
void WriteStep(const std::string& run_dir, int64_t iteration, float first, float second, float gradient,
               const std::string& gradient_of = "grads.a") {
  const std::vector<float> a = {first, 1}, b = {second, 1}, g = {0, gradient};
  const size_t dot = gradient_of.find('.');
  crosscheck::WriteTreeForTest(
      run_dir, 0, iteration,
      ValueMap{
          {"weights", ValueMap{{"a", TensorView(a.data(), {2})}, {"b", TensorView(b.data(), {2})}}},
          {gradient_of.substr(0, dot), ValueMap{{gradient_of.substr(dot + 1), TensorView(g.data(), {2})}}}});
}

SoundVerdict Judge(const std::string& run_dir, RunInfo info = {}) {
  std::vector<std::string> problems;
  info.set_world_size(1);
  const SoundVerdict verdict = JudgeSound(ReadEvidence(run_dir, {0}, info, &problems), 1, {});
  // Verdicts of checks are missed if checks are configured.
  EXPECT_EQ(problems.size(), info.has_config() ? 1 : 0);
  return verdict;
}

// The definition: gradients are finite, and of two dumps of iterations in a row, both with a gradient of it
// that is finite and not 0, a parameter differs where another one does. Each is named once.
TEST(DiskEvidence, RandomDumpsAreJudgedByTheirGradientsAndByWhatTheyChange) {
  struct Step {
    int64_t iteration;
    float a, b;
    std::string gradient;  // its name; empty: none
    float value;
    bool IsOfA() const {
      return gradient == "grads.a" || gradient == "gradients.a" || gradient == "grads.weights.a";
    }
    bool IsUsable() const { return IsOfA() && value != 0 && std::isfinite(value); }
  };
  std::mt19937 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    const std::string run = crosscheck::MakeRunForTest("run", 1);
    std::vector<Step> steps;
    for (int64_t iteration = 0; iteration < 6; ++iteration) {
      if (random() % 4 == 0) continue;
      const auto draw = [&](std::vector<float> of) { return of[random() % of.size()]; };
      const char* const names[] = {"grads.a", "grads.a", "gradients.a", "grads.weights.a", "grads.other", ""};
      const Step& step =
          steps.emplace_back(Step{iteration, draw({1, 2}), draw({1, 2, kNaN}), names[random() % 6],
                                  draw({0.5, 0.5, 0.5, 0, kNaN, HUGE_VALF})});
      const TensorView a(&step.a, {1}), b(&step.b, {1}), gradient(&step.value, {1});
      ValueMap tree = {{"weights", ValueMap{{"a", a}, {"b", b}}}};
      const size_t dot = step.gradient.find('.'), last = step.gradient.rfind('.');
      if (!step.gradient.empty()) {
        const Value leaf = ValueMap{{step.gradient.substr(last + 1), gradient}};
        tree.Insert(step.gradient.substr(0, dot), dot == last ? leaf : Value(ValueMap{{"weights", leaf}}));
      }
      crosscheck::WriteTreeForTest(run, 0, iteration, tree);
    }
    std::vector<std::string> expected;
    int64_t num_with_gradient = 0, num_in_a_row = 0, num_changes = 0;
    bool is_finite = true, has_stayed = false;
    for (size_t i = 0; i < steps.size(); ++i) {
      const Step& now = steps[i];
      num_with_gradient += !now.gradient.empty();
      if (is_finite && !now.gradient.empty() && !std::isfinite(now.value)) {
        is_finite = false;
        expected.push_back(absl::StrCat("dumped_gradient_nonfinite ", now.iteration, " ", now.gradient));
      }
      if (i == 0 || steps[i - 1].iteration + 1 != now.iteration) continue;
      const Step& before = steps[i - 1];
      ++num_in_a_row;
      num_changes += before.IsOfA() && now.IsOfA();
      // By their bits.
      const bool b_differs = std::memcmp(&before.b, &now.b, sizeof(float)) != 0;
      if (has_stayed || before.a != now.a || !b_differs || !before.IsUsable() || !now.IsUsable()) continue;
      has_stayed = true;
      expected.push_back(absl::StrCat("dumped_parameter_unchanged ", now.iteration, " weights.a"));
    }
    const SoundVerdict verdict = Judge(run);
    if (num_with_gradient == 0) {
      EXPECT_EQ(verdict.kind(), SoundVerdict::NOT_LOOKED_AT);
      continue;
    }
    std::vector<std::string> found;
    for (const SoundFinding& finding : verdict.findings())
      found.push_back(
          absl::StrCat(finding.rule(), " ", finding.iteration(), " ", absl::StrJoin(finding.names(), " ")));
    EXPECT_EQ(found, expected) << trial;
    EXPECT_EQ(verdict.kind(), expected.empty() ? SoundVerdict::SOUND : SoundVerdict::UNSOUND);
    EXPECT_EQ(verdict.num_iterations(), steps.size());
    ASSERT_EQ(verdict.rules_size(), 2);
    EXPECT_EQ(verdict.rules(0).num_checks(), num_with_gradient);
    EXPECT_EQ(verdict.rules(1).num_checks(), num_changes);
    EXPECT_EQ(verdict.rules(1).not_checked(),
              num_changes > 0    ? ""
              : num_in_a_row > 0 ? "no gradient has the name of a parameter that was dumped with it"
                                 : "no two iterations in a row were dumped");
  }
}

// The configuration says what else is a gradient.
TEST(DiskEvidence, EitherPartOfAComplexGradientMayNotBeFinite) {
  RunInfo info;
  TensorsOfKind& kind = *info.mutable_config()->mutable_cross_check()->add_tensor_kinds();
  kind.set_kind(TENSOR_KIND_GRADIENT);
  kind.add_paths("delta.*");
  for (const std::complex<float> gradient : {std::complex<float>(kNaN, 1), std::complex<float>(1, kNaN)}) {
    const std::string run = crosscheck::MakeRunForTest("run", 1);
    crosscheck::WriteTreeForTest(run, 0, 0, ValueMap{{"delta", ValueMap{{"a", TensorView(&gradient, {1})}}}});
    EXPECT_THAT(ToText(Judge(run, info)), HasSubstr("delta.a: 1 elements"));
  }
}

// Each is named once, where it first stayed, whatever is found in between.
TEST(DiskEvidence, AllParametersThatStayAreNamedAndAllStepsCounted) {
  const std::string run = crosscheck::MakeRunForTest("run", 1);
  for (int64_t iteration = 0; iteration < 66; ++iteration) {
    const std::vector<float> stays = {1, 2}, changes = {static_cast<float>(iteration), 1},
                             stays_late = {std::min(changes[0], 9.0f), 1},
                             gradient = {iteration == 5 ? std::numeric_limits<float>::infinity() : 1.0f, 0},
                             other_gradient = {1, 0};
    const TensorView fixed(stays.data(), {2}), of_step(other_gradient.data(), {2});
    crosscheck::WriteTreeForTest(run, 0, iteration,
                                 ValueMap{{"weights", ValueMap{{"a", fixed},
                                                               {"b", fixed},
                                                               {"c", TensorView(changes.data(), {2})},
                                                               {"d", TensorView(stays_late.data(), {2})}}},
                                          {"grads", ValueMap{{"a", of_step},
                                                             {"weights", ValueMap{{"b", of_step}}},
                                                             {"c", TensorView(gradient.data(), {2})},
                                                             {"d", of_step}}}});
  }
  const SoundVerdict verdict = Judge(run);
  ASSERT_EQ(verdict.findings_size(), 3);
  EXPECT_EQ(verdict.findings(0).iteration(), 1);
  EXPECT_THAT(verdict.findings(0).names(), ElementsAre("weights.a", "weights.b"));
  EXPECT_EQ(verdict.findings(1).iteration(), 5);
  EXPECT_THAT(verdict.findings(1).names(), ElementsAre("grads.c"));
  EXPECT_EQ(verdict.findings(2).iteration(), 10);
  EXPECT_THAT(verdict.findings(2).names(), ElementsAre("weights.d"));
  EXPECT_EQ(verdict.findings(2).seen(), "has a gradient and did not change, and others did");
  EXPECT_EQ(verdict.num_iterations(), 64);
  ASSERT_EQ(verdict.rules_size(), 2);
  EXPECT_EQ(verdict.rules(0).name(), "dumped_gradient_nonfinite");
  EXPECT_EQ(verdict.rules(0).num_checks(), 64);
  EXPECT_EQ(verdict.rules(0).not_checked(), "only the first 64 dumps were read");
  EXPECT_EQ(verdict.rules(1).num_checks(), 63);
}

TEST(DiskEvidence, ADumpThatIsNotWholeIsSaidAndTheNextOnesAreRead) {
  for (const bool is_there : {false, true}) {
    const std::string run = crosscheck::MakeRunForTest("run", 1);
    for (const int64_t iteration : {0, 1, 2, 3})
      WriteStep(run, iteration, 1, static_cast<float>(iteration), 0.5);
    std::filesystem::remove(DumpPath(run, 0, 1) + "/manifest.json");
    if (is_there) std::ofstream(DumpPath(run, 0, 1) + "/manifest.json") << "{";
    const SoundVerdict verdict = Judge(run);
    EXPECT_EQ(verdict.rules(0).num_checks(), 3);
    EXPECT_THAT(verdict.rules(0).not_checked(), HasSubstr("/1 is not whole"));
    EXPECT_EQ(verdict.rules(1).num_checks(), 1);
    EXPECT_EQ(verdict.findings(0).iteration(), 3);
  }
}

TEST(DiskEvidence, AGradientWithoutAFileIsSaidAndTheOthersAreRead) {
  const std::string run = crosscheck::MakeRunForTest("run", 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> weights = {1, 2}, gradient = {nan, nan};
  const TensorView of_step(gradient.data(), {2});
  const Value tree = ValueMap{{"weights", ValueMap{{"a", TensorView(weights.data(), {2})}}},
                              {"grads", ValueMap{{"a", of_step}, {"b", of_step}}}};
  DumpContents contents;
  contents.tensors = {&tree, [](std::string_view path) {
                        return path == "grads.a" ? DumpFormat::kJson : DumpFormat::kBinary;
                      }};
  ASSERT_EQ(WriteDump(DumpPath(run, 0, 0), contents), absl::OkStatus());
  const SoundVerdict verdict = Judge(run);
  ASSERT_EQ(verdict.findings_size(), 1);
  EXPECT_THAT(verdict.findings(0).names(), ElementsAre("grads.b"));
  EXPECT_EQ(verdict.findings(0).seen(), "2 elements are not finite");
  EXPECT_EQ(verdict.rules(0).not_checked(), "gradients that are not in files of their own");
}

TEST(DiskEvidence, ARankWithoutARecordIsMissedWhereOthersLeftOne) {
  const std::string run = crosscheck::MakeRunForTest("run", 2);
  for (const int rank : {0, 1}) std::filesystem::create_directories(RankDirectory(run, rank));
  const std::string verdicts = RankDirectory(run, 0) + "/cross_check.jsonl";
  std::ofstream(verdicts) << R"({"iteration": 1, "mode": "REPLICAS", "outcome": "BITWISE_EQUAL"})"
                          << "\n";
  RunInfo info;
  info.set_world_size(2);
  std::vector<std::string> problems;
  const auto judge = [&] { return JudgeSound(ReadEvidence(run, {0, 1}, info, &problems), 2, {}); };
  EXPECT_EQ(judge().kind(), SoundVerdict::SOUND);
  EXPECT_EQ(judge().rules(0).not_checked(), "");
  std::ofstream(SoundPath(run, 0)) << R"({"num_iterations": 3, "rules": [{"name": "r", "num_checks": 3}]})";
  crosscheck::WriteTreeForTest(run, 1, 0, ValueMap{{"grads", ValueMap{{"a", TensorView(&kOne, {1})}}}});
  EXPECT_THAT(judge().missing_ranks(), ElementsAre(1));
  EXPECT_EQ(judge().kind(), SoundVerdict::CANNOT_TELL);
  EXPECT_EQ(judge().num_iterations(), 3);
  EXPECT_THAT(problems, IsEmpty());
  // Its dumps show a fault, which is told although it left no record. A line that cannot be read is a
  // problem.
  crosscheck::WriteTreeForTest(run, 1, 1, ValueMap{{"grads", ValueMap{{"a\n", TensorView(&kNaN, {1})}}}});
  std::ofstream(verdicts, std::ios::app) << R"({"iteration": 2, "outcome": "DIFFE)";
  EXPECT_THAT(ToText(judge()),
              HasSubstr("since iteration 1 on rank 1: grads.a\\n: 1 elements are not finite"));
  EXPECT_THAT(problems, ElementsAre(HasSubstr(verdicts + ": line 2: ")));
}

TEST(DiskEvidence, ACrossCheckThatDiffersIsAFindingOfItsCulpritsOrOfAll) {
  RunInfo info;
  info.set_world_size(3);
  const auto judge = [&](const std::string& name, const std::string& lines) {
    const std::string run = crosscheck::MakeRunForTest(name, 3);
    for (int rank = 0; rank < 3; ++rank) std::filesystem::create_directories(RankDirectory(run, rank));
    std::ofstream(RankDirectory(run, 0) + "/cross_check.jsonl") << lines;
    std::vector<std::string> problems;
    return JudgeSound(ReadEvidence(run, {0, 1, 2}, info, &problems), 3, {});
  };
  const std::string differs = R"("outcome": "DIFFERENT", "tensor": "norm.weight", "num_tensors": 2, )"
                              R"("num_different_tensors": 1)";
  const std::string replicas = R"({"iteration": 7, "mode": "REPLICAS", )" + differs;
  EXPECT_THAT(ToText(judge("one", replicas + R"(, "has_majority": true, "culprit_ranks": [2]})" + "\n")),
              HasSubstr("cross_check since iteration 7 on rank 2: norm.weight: 1 of 2 tensors differ"));
  EXPECT_THAT(ToText(judge("all", replicas + "}\n")),
              HasSubstr("cross_check since iteration 7 on all 3 ranks: norm.weight: 1 of 2 tensors differ"));
  EXPECT_THAT(
      ToText(judge("data", R"({"iteration": 5, "mode": "DISTINCT", )" + differs + "}\n")),
      HasSubstr("since iteration 5 on all 3 ranks: norm.weight: 1 of 2 tensors are the same on several"));
  const SoundVerdict equal =
      judge("equal", R"({"iteration": 1, "mode": "REPLICAS", "outcome": "BITWISE_EQUAL", "num_tensors": 2})"
                     "\n"
                     R"({"iteration": 1, "mode": "DISTINCT", "outcome": "ALL_DISTINCT", "num_tensors": 2})"
                     "\n"
                     R"({"iteration": 3, "mode": "REPLICAS", "outcome": "NOT_COMPARED"})"
                     "\n");
  EXPECT_EQ(equal.kind(), SoundVerdict::SOUND) << ToText(equal);
  ASSERT_EQ(equal.rules_size(), 1);
  EXPECT_EQ(equal.rules(0).num_checks(), 2);
  EXPECT_EQ(equal.rules(0).not_checked(), "1 of 3 checks could not be made");
  EXPECT_EQ(equal.num_iterations(), 2);
}

}  // namespace
}  // namespace ott::sound
