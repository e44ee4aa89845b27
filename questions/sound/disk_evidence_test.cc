// Rules that dumps and cross-checks tell of, without a record of the ranks.

#include "ott/questions/sound/disk_evidence.h"

#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/tensor/value.h"
#include "ott/questions/right/crosscheck/run_for_test.h"
#include "ott/questions/sound/sound.h"
#include "ott/questions/sound/sound_answer.h"

namespace ott::sound {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A dump of two weights and the gradient of the first.
void WriteStep(const std::string& run_dir, int64_t iteration, float first, float second, float gradient) {
  const std::vector<float> a = {first, 1}, b = {second, 1}, g = {0, gradient};
  crosscheck::WriteTreeForTest(
      run_dir, 0, iteration,
      ValueMap{{"weights", ValueMap{{"a", TensorView(a.data(), {2})}, {"b", TensorView(b.data(), {2})}}},
               {"grads", ValueMap{{"a", TensorView(g.data(), {2})}}}});
}

SoundVerdict Judge(const std::string& run_dir) {
  std::vector<std::string> problems;
  RunInfo info;
  info.set_world_size(1);
  const SoundVerdict verdict = JudgeSound(ReadEvidence(run_dir, {0}, info, &problems), 1, {});
  EXPECT_THAT(problems, IsEmpty());
  return verdict;
}

TEST(DiskEvidence, OfNothingNothingIsSaid) {
  EXPECT_EQ(Judge(crosscheck::MakeRunForTest("run", 1)).kind(), SoundVerdict::NOT_LOOKED_AT);
}

TEST(DiskEvidence, DumpsOfASoundTrainingAreSound) {
  const std::string run = crosscheck::MakeRunForTest("run", 1);
  WriteStep(run, 0, 1, 1, 0.5);
  WriteStep(run, 1, 2, 2, 0.5);
  const SoundVerdict verdict = Judge(run);
  EXPECT_EQ(verdict.kind(), SoundVerdict::SOUND) << ToText(verdict);
  EXPECT_THAT(ToText(verdict), HasSubstr("2 rules, 2 iterations"));
}

TEST(DiskEvidence, AGradientThatIsNotFiniteIsNamedWithItsFirstIteration) {
  const std::string run = crosscheck::MakeRunForTest("run", 1);
  WriteStep(run, 0, 1, 1, 0.5);
  WriteStep(run, 1, 2, 2, std::numeric_limits<float>::quiet_NaN());
  EXPECT_THAT(ToText(Judge(run)),
              HasSubstr("dumped_gradient_nonfinite since iteration 1: grads.a: 1 elements"));
}

TEST(DiskEvidence, AParameterThatStaysWhileOthersChangeIsNamed) {
  const std::string run = crosscheck::MakeRunForTest("run", 1);
  WriteStep(run, 4, 1, 1, 0.5);
  WriteStep(run, 5, 1, 2, 0.5);
  EXPECT_THAT(ToText(Judge(run)),
              HasSubstr("dumped_parameter_unchanged since iteration 5: weights.a: has a gradient"));
}

TEST(DiskEvidence, AParameterMayStayWhereAllDoOrWithoutAGradientOrFarApart) {
  const std::string warm_up = crosscheck::MakeRunForTest("warm_up", 1);
  WriteStep(warm_up, 0, 1, 1, 0.5);
  WriteStep(warm_up, 1, 1, 1, 0.5);
  EXPECT_THAT(Judge(warm_up).findings(), IsEmpty());
  const std::string idle = crosscheck::MakeRunForTest("idle", 1);
  WriteStep(idle, 0, 1, 1, 0);
  WriteStep(idle, 1, 1, 2, 0);
  EXPECT_THAT(Judge(idle).findings(), IsEmpty());
  const std::string seldom = crosscheck::MakeRunForTest("seldom", 1);
  WriteStep(seldom, 0, 1, 1, 0.5);
  WriteStep(seldom, 10, 1, 2, 0.5);
  EXPECT_THAT(ToText(Judge(seldom)), HasSubstr("no two iterations in a row were dumped"));
}

TEST(DiskEvidence, ACrossCheckThatDiffersIsAFindingOfItsCulprit) {
  const std::string run = crosscheck::MakeRunForTest("run", 3);
  for (int rank = 0; rank < 3; ++rank) std::filesystem::create_directories(RankDirectory(run, rank));
  std::ofstream(RankDirectory(run, 0) + "/cross_check.jsonl")
      << R"({"iteration": 7, "mode": "REPLICAS", "outcome": "DIFFERENT", "tensor": "norm.weight", "num_tensors": 2, )"
      << R"("num_different_tensors": 1, "has_majority": true, "culprit_ranks": [2]})"
      << "\n";
  RunInfo info;
  info.set_world_size(3);
  std::vector<std::string> problems;
  const SoundVerdict verdict = JudgeSound(ReadEvidence(run, {0, 1, 2}, info, &problems), 3, {});
  EXPECT_THAT(ToText(verdict),
              HasSubstr("cross_check since iteration 7 on rank 2: norm.weight: 1 of 2 tensors differ"));
}

}  // namespace
}  // namespace ott::sound
