// Compares checkpoints that PyTorch 2.13, NumPy and safetensors wrote, and copies with one fault each.

#include "ott/questions/right/compare/compare_checkpoints.h"

#include <filesystem>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.h"
#include "ott/core/base/file.h"
#include "ott/core/compare/report.h"
#include "ott/core/dump/json_writer.h"
#include "ott/dist/share/processes_for_test.h"
#include "ott/questions/right/compare/checkpoint_pair.h"
#include "ott/questions/right/compare/compare_runs.h"
#include "ott/questions/right/compare/runs_report.h"

namespace ott::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string Data(const std::string& name) { return "core/checkpoint/testdata/" + name; }

RunsComparison Compare(const std::string& reference, const std::string& current, bool bitwise = false) {
  CompareRunsOptions options;
  options.compare.tensors.tolerance.bitwise = bitwise;
  return CompareRuns(reference, current, options).value();
}

std::string Text(const std::string& reference, const std::string& current) {
  return ToText(Compare(Data(reference), Data(current)));
}

TEST(CompareCheckpoints, EqualStatesAreEqualInEachPairOfFormats) {
  const std::vector<std::string> weights = {"weights.pt", "weights.safetensors", "weights.npz",
                                            "weights_compressed.npz", "sharded"},
                                 wholes = {"whole.pt", "whole_legacy.pt", "dcp_1", "dcp_2"};
  for (const std::vector<std::string>& files : {weights, wholes}) {
    for (const std::string& a : files) {
      for (const std::string& b : files) {
        if (a == b) continue;
        EXPECT_EQ(Compare(Data(a), Data(b), /*bitwise=*/true).verdict(), Verdict::kEqual) << a << " " << b;
      }
    }
  }
}

TEST(CompareCheckpoints, MegatronsOptimizersHoldTheSameOnAnyNumberOfRanks) {
  const std::string weights = "weights equal (9)", moments = ", optimizer moments equal (18)";
  for (const auto& [current, verdict, said] :
       {std::tuple("megatron_core_2", Verdict::kEqual,
                   weights + moments + ", optimizer step equal (2), master weights equal (9)"),
        {"megatron_flat", Verdict::kDifferent, weights + moments},
        // Buckets are no difference and no pass.
        {"megatron_buckets", Verdict::kCouldNotCompare, weights}}) {
    const RunsComparison comparison = Compare(Data("megatron_core_1"), Data(current), /*bitwise=*/true);
    EXPECT_EQ(comparison.verdict(), verdict) << ToText(comparison);
    EXPECT_THAT(ToText(comparison), HasSubstr(said));
  }
}

TEST(CompareCheckpoints, ProcessesSayTogetherWhatOneSays) {
  const auto fails = [](const std::string&, int) -> absl::StatusOr<std::string> {
    return absl::DataLossError("its disk is full");
  };
  const auto alone = CompareCheckpoints(Data("whole.pt"), Data("fault_moment.pt"), {}, nullptr);
  for (const ShareTask& theirs : {kCompareTensors, ShareTask{kCompareTensors.name, fails}}) {
    const ProcessesForTest processes(kCompareTensors, theirs, {Data("")});
    const auto shared = CompareCheckpoints(Data("whole.pt"), Data("fault_moment.pt"), {}, nullptr);
    ASSERT_EQ(shared->results.results.size(), alone->results.results.size());
    int num_failed = 0;
    for (size_t i = 0; i < alone->results.results.size(); ++i) {
      NamedComparison expected = alone->results.results[i];
      const NamedComparison& found = shared->results.results[i];
      if (found.comparison.detail == "its disk is full") {
        ++num_failed;
        const TensorComparison& of = expected.comparison;
        EXPECT_EQ(found.comparison.shape, of.shape);
        EXPECT_EQ(found.comparison.dtype, of.dtype);
        expected.comparison = found.comparison;
      }
      EXPECT_EQ(*ToJson(ToValue(found)), *ToJson(ToValue(expected))) << i;
    }
    EXPECT_EQ(num_failed > 0, theirs.run != kCompareTensors.run);
  }
}

TEST(CompareCheckpoints, AProcessThatSeesOtherFilesComparesNothing) {
  static std::mutex mutex;
  static std::string asked;
  const auto remembers = [](const std::string& argument, int num_threads) {
    const std::lock_guard<std::mutex> lock(mutex);
    asked = argument;
    return kCompareTensors.run(argument, num_threads);
  };
  const std::string reference = testing::TempDir() + "/here.pt";
  std::filesystem::copy_file(Data("whole.pt"), reference, std::filesystem::copy_options::overwrite_existing);
  {
    const ProcessesForTest processes(kCompareTensors, {kCompareTensors.name, remembers},
                                     {reference, Data("")});
    ASSERT_TRUE(CompareCheckpoints(reference, Data("fault_moment.pt"), {}, nullptr).ok());
  }
  // It is another one now, which reads as well.
  std::filesystem::copy_file(Data("weights.pt"), reference,
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(std::string(kCompareTensors.run(asked, 1).status().message()),
              HasSubstr("here.pt or core/checkpoint/testdata/fault_moment.pt: is another one here"));
}

TEST(CompareCheckpoints, EachFaultIsNamedFirst) {
  for (const auto& [file, state, first] :
       {std::tuple("fault_bit.pt", "weights DIFFER (1 of 6)",
                   "model.1.weight: mismatch, first at element 4 [1, 1]"),
        {"fault_swapped.pt", "weights DIFFER (2 of 6)", "it is, bit for bit, model.1.bias of the reference"},
        {"fault_transposed.pt", "weights DIFFER (1 of 6)", "it is that of the reference, transposed"},
        {"fault_moment.pt", "optimizer moments DIFFER (1 of 12, 1 missing)",
         "optimizer.state.2.exp_avg_sq: missing"},
        {"fault_step.pt", "weights equal (6), optimizer moments equal (12), optimizer step DIFFER (6 of 6)",
         "optimizer.state.0.step: mismatch"},
        {"fault_random.pt", "random numbers DIFFER", "rng_state.torch: mismatch"},
        {"fault_epoch.pt", "data position DIFFER (1 of 1)", "epoch: mismatch"}}) {
    const std::string text = Text("whole.pt", file);
    EXPECT_THAT(text, HasSubstr(state)) << file;
    EXPECT_THAT(text, HasSubstr(first)) << file;
    EXPECT_THAT(text, HasSubstr("verdict: different")) << file;
  }
}

TEST(CompareCheckpoints, ACopyInFewerBitsIsTheRoundedOne) {
  EXPECT_THAT(Text("weights.pt", "weights_bfloat16.safetensors"),
              AllOf(HasSubstr("6 tensors: the reference rounded to bfloat16 is the current"),
                    HasSubstr("verdict: equal")));
  EXPECT_THAT(Text("weights.pt", "fault_bfloat16.safetensors"), HasSubstr("verdict: different"));
}

TEST(CompareCheckpoints, StatesOfZeroAreComparedInAnyStageAndMerged) {
  for (const auto& [reference, current, says, first] :
       {std::tuple("zero_3", "zero_3_merged.pt",
                   "weights DIFFER (1 of 13, 1 missing; of rank 1), optimizer moments MISSING",
                   "first divergence: rank_1.module.1.mean: missing"),
        {"zero_2_merged.pt", "zero_2", "weights equal (12)",
         "9 tensors: the reference rounded to bfloat16 is the current"},
        {"zero_0", "zero_3",
         "weights DIFFER (1 of 13, 1 only in the current; of rank 1), optimizer moments equal (16), "
         "optimizer step equal (8)",
         "random numbers DIFFER (1 of 2, 1 only in the current; of rank 1)"}}) {
    EXPECT_THAT(Text(reference, current), AllOf(HasSubstr(says), HasSubstr(first)));
  }
}

// names: the file of rules.
RunsComparison CompareWithMegatron(const std::string& hugging_face, const std::string& megatron,
                                   const std::string& names, const std::string& rules_added = "") {
  CompareRunsOptions options;
  EXPECT_TRUE(ReadTextProto("questions/right/layout/" + names, &options.names.emplace()).ok());
  if (!rules_added.empty()) options.names->mutable_a()->add_tensors()->set_path(rules_added);
  options.compare.tensors.tolerance.bitwise = true;
  return CompareRuns(hugging_face, Data(megatron), options).value();
}

RunsComparison CompareLlamas(const std::string& megatron, const std::string& rules_added = "") {
  return CompareWithMegatron(Data("llama_hf.safetensors"), megatron, "llama_megatron.textproto", rules_added);
}

TEST(CompareCheckpoints, NamesAndFusedTensorsOfAnotherFrameworkAreTakenApart) {
  const RunsComparison equal = CompareLlamas("llama_megatron.pt");
  EXPECT_EQ(equal.verdict(), Verdict::kEqual) << ToText(equal);
  EXPECT_EQ(equal.dumps[0].num_bitwise_equal, 21);
  // Megatron-core's stacks.
  for (const char* const written : {"megatron_core_1", "megatron_core_2"}) {
    const RunsComparison distributed = CompareLlamas(written);
    EXPECT_EQ(distributed.verdict(), Verdict::kEqual) << ToText(distributed);
    ASSERT_EQ(distributed.dumps.size(), 1) << written;
    EXPECT_EQ(distributed.dumps[0].num_bitwise_equal, 21);
  }
  EXPECT_THAT(ToText(CompareLlamas("fault_llama_megatron.pt")),
              AllOf(HasSubstr("model.layers.1.mlp.gate_proj.weight: mismatch: it is, bit for bit, "
                              "model.layers.1.mlp.up_proj.weight of the reference"),
                    HasSubstr("weights DIFFER (2 of 21)")));
  // A name that is like no rule is listed and no pass.
  const RunsComparison without_rule = CompareLlamas("llama_megatron.pt", "model.*");
  EXPECT_EQ(without_rule.verdict(), Verdict::kDifferent);
  EXPECT_THAT(ToText(without_rule),
              HasSubstr(R"(names of the reference: no rule matches \"lm_head.weight\", which 1 rank holds)"));
}

TEST(CompareCheckpoints, LayersAndExpertsThatMegatronCoreStacksAreThoseOfHuggingFace) {
  struct Case {
    const char *hugging_face, *megatron, *names;
    int64_t num_tensors;
  };
  for (const Case& model :
       {Case{"gpt2_hf.safetensors", "megatron_gpt2", "gpt2_megatron.textproto", 68},
        Case{"mixtral_hf.safetensors", "megatron_mixtral", "llama_megatron.textproto", 79}}) {
    const RunsComparison equal = CompareWithMegatron(Data(model.hugging_face), model.megatron, model.names);
    EXPECT_EQ(equal.verdict(), Verdict::kEqual) << ToText(equal);
    ASSERT_EQ(equal.dumps.size(), 1);
    EXPECT_EQ(equal.dumps[0].num_bitwise_equal, model.num_tensors);
    std::string bytes = ReadFile(Data(model.hugging_face)).value();
    bytes[bytes.size() / 2] ^= 1;
    const std::string flipped = testing::TempDir() + "/flipped.safetensors";
    ASSERT_TRUE(WriteFileAtomically(flipped, bytes).ok());
    const RunsComparison different = CompareWithMegatron(flipped, model.megatron, model.names);
    EXPECT_EQ(different.verdict(), Verdict::kDifferent) << ToText(different);
    EXPECT_EQ(different.dumps[0].num_failures, 1);
  }
}

// Returns a folder of this test with copies of files, by their new names.
std::string CopiesOf(const std::vector<std::pair<std::string, std::string>>& files) {
  const std::string dir =
      absl::StrCat(testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name());
  std::filesystem::remove_all(dir);
  for (const auto& [to, from] : files) {
    const std::filesystem::path path = absl::StrCat(dir, "/", to);
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::copy_file(Data(from), path);
  }
  return dir;
}

// The reference has 100, 200 and 300; what resumed at 200 has 200 with another RNG and 300 with other
// weights.
TEST(CompareCheckpoints, AResumedSeriesSaysFromWhichStepEachStateDiffers) {
  const std::string dir = CopiesOf({{"run/step_100.pt", "whole.pt"},
                                    {"run/step_200.pt", "whole.pt"},
                                    {"run/step_300.pt", "whole.pt"},
                                    {"resumed/step_200.pt", "fault_random.pt"},
                                    {"resumed/step_300.pt", "fault_bit.pt"},
                                    {"same/step_200.pt", "whole_legacy.pt"},
                                    {"gap/step_100.pt", "wrapped.pt"},
                                    {"gap/step_300.pt", "wrapped.pt"}});
  EXPECT_THAT(
      ToText(Compare(dir + "/run", dir + "/resumed")),
      AllOf(HasSubstr("note: iteration 100 only in the reference: the current begins later"),
            HasSubstr("differ    random numbers from iteration 200 on, weights from iteration 300 on"),
            HasSubstr("first divergence: iteration 200, rng_state.torch: mismatch"),
            Not(HasSubstr("problem")), HasSubstr("verdict: different")));
  // A series of one, and a step that is gone.
  EXPECT_THAT(ToText(Compare(dir + "/run", dir + "/same")),
              AllOf(HasSubstr("problem: iteration 300 only in the reference"),
                    HasSubstr("verdict: could not compare")));
  // The job linked the checkpoint from which it resumed.
  std::filesystem::remove(dir + "/same/step_200.pt");
  std::filesystem::create_symlink(dir + "/run/step_200.pt", dir + "/same/step_200.pt");
  std::filesystem::copy_file(dir + "/run/step_300.pt", dir + "/same/step_300.pt");
  EXPECT_THAT(ToText(Compare(dir + "/run", dir + "/same")),
              AllOf(HasSubstr("problem: the checkpoints of iteration 200 are one file"),
                    HasSubstr("verdict: could not compare")));
  // One within is gone, too, and each step says the same of the names.
  const RunsComparison gap = Compare(dir + "/run", dir + "/gap");
  EXPECT_THAT(gap.problems, testing::ElementsAre("iteration 200 only in the reference"));
  EXPECT_THAT(gap.notes, testing::ElementsAre("state_dict of the current was taken for model",
                                              HasSubstr("module. was left out")));
  EXPECT_FALSE(CompareRuns(Data("whole.pt"), dir + "/run").ok());
}

TEST(CompareCheckpoints, WhatLiesBesideASeriesIsComparedToo) {
  std::vector<std::pair<std::string, std::string>> files = {
      {"run/last.pt", "whole.pt"}, {"same/last.pt", "whole.pt"}, {"other/last.pt", "fault_bit.pt"}};
  for (const char* const side : {"run", "same", "other", "none"}) {
    for (const char* const name : {"step_100.pt", "step_200.pt"})
      files.emplace_back(absl::StrCat(side, "/", name), "whole.pt");
  }
  const std::string dir = CopiesOf(files);
  EXPECT_EQ(Compare(dir + "/run", dir + "/same").verdict(), Verdict::kEqual);
  EXPECT_THAT(ToText(Compare(dir + "/run", dir + "/run")), HasSubstr("both are the same folder"));
  EXPECT_THAT(ToText(Compare(dir + "/run", dir + "/other")),
              HasSubstr("first divergence: last.pt.model.1.weight: mismatch"));
  EXPECT_THAT(
      ToText(Compare(dir + "/run", dir + "/none")),
      AllOf(HasSubstr("problem: last.pt only in the reference"), HasSubstr("verdict: could not compare")));
}

TEST(CompareCheckpoints, WeightsThatWereNotGatheredAreNoPass) {
  const std::string header = R"({"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}  )";
  const std::string dir = CopiesOf({{"a/plain.pkl", "plain.pkl"}, {"b/plain.pkl", "plain.pkl"}});
  for (const char* const side : {"/a", "/b"}) {
    ASSERT_TRUE(
        WriteFileAtomically(absl::StrCat(dir, side, "/model.safetensors"),
                            std::string(1, static_cast<char>(header.size())) + std::string(7, '\0') + header)
            .ok());
  }
  EXPECT_THAT(
      ToText(Compare(dir + "/a", dir + "/b")),
      AllOf(HasSubstr("weights have no element on either side"), HasSubstr("verdict: could not compare")));
  CompareRunsOptions options;
  options.allow_empty = true;
  EXPECT_EQ(CompareRuns(dir + "/a", dir + "/b", options)->verdict(), Verdict::kEqual);
}

}  // namespace
}  // namespace ott::compare
