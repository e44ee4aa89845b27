#include "ott/dist/check/tensor_selection.h"

#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dist/check/ranks_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::ElementsAre;

absl::StatusOr<TensorSelection> Selection(const std::string& config, int world_size = 4) {
  return TensorSelection::Create(ConfigOf(config), MeshOf("outer", world_size / 2, "inner", 2));
}

TEST(TensorSelection, KindsFollowFromPathsUnlessSaidOtherwise) {
  const auto selection =
      Selection(R"(tensor_kinds { kind: TENSOR_KIND_OPTIMIZER_STATE paths: "*.momentum" })").value();
  for (const auto& [path, kind] : {std::pair("weights.w1", TENSOR_KIND_PARAMETER),
                                   {"parameters.w1", TENSOR_KIND_PARAMETER},
                                   {"grads.w1", TENSOR_KIND_GRADIENT},
                                   {"gradients.w1", TENSOR_KIND_GRADIENT},
                                   {"optimizer.w1.exp_avg", TENSOR_KIND_OPTIMIZER_STATE},
                                   {"weights.momentum", TENSOR_KIND_OPTIMIZER_STATE},
                                   {"my.weights.w1", TENSOR_KIND_OTHER}}) {
    EXPECT_EQ(selection.KindOf(path), kind) << path;
  }
}

TEST(TensorSelection, GradientsHaveNamesOfTheirOwn) {
  const float number = 1;
  const Value leaf = TensorView(&number, {});
  const Value tensors = ValueMap{{"w", leaf}, {"grads", ValueMap{{"w", leaf}}}};
  const Value grads = ValueMap{{"v", leaf}, {"w", leaf}};
  const auto names = [&tensors](const Value* gradients) {
    std::vector<std::string> names;
    for (const NamedTensor& tensor : ListTensorsAndGrads(tensors, gradients, {"grads.w", "w"}, {"w", "v"}))
      names.push_back(tensor.path);
    return names;
  };
  EXPECT_THAT(names(nullptr), ElementsAre("grads.w", "w"));
  EXPECT_THAT(names(&grads), ElementsAre("tensors.grads.w", "w", "grads.w", "grads.v"));
}

TEST(TensorSelection, OnlyTheKindsAskedForAreChecked) {
  const std::string kinds = "kinds: TENSOR_KIND_GRADIENT kinds: TENSOR_KIND_OPTIMIZER_STATE";
  const auto shards = Selection(kinds + " sharded { paths: '*' along: 'inner' }");
  EXPECT_EQ(shards->ShardingOf("grads.w1"), 0);
  EXPECT_EQ(shards->ShardingOf("weights.w1"), -1);
  const auto selection = Selection(kinds);
  EXPECT_TRUE(selection->IsReplicated("grads.w1"));
  EXPECT_TRUE(selection->IsReplicated("optimizer.w1"));
  EXPECT_FALSE(selection->IsReplicated("weights.w1"));
  EXPECT_FALSE(selection->IsReplicated("loss"));
}

TEST(TensorSelection, BracketsInAPathAreNoCharacterClass) {
  const auto selection = Selection(R"(replicated: "layers[0].w" replicated: "blocks[*")");
  EXPECT_TRUE(selection->IsReplicated("layers[0].w"));
  EXPECT_TRUE(selection->IsReplicated("blocks[1].w"));
  EXPECT_FALSE(selection->IsReplicated("layers0.w"));
}

TEST(TensorSelection, CutsTheRanksPartOutOfTheWhole) {
  std::vector<float> whole(2 * 5);
  std::iota(whole.begin(), whole.end(), 0.0f);
  const TensorView view(whole.data(), {2, 5});
  const auto selection = Selection(R"(sharded { paths: "w" dimension: 1 along: "inner" })");
  const auto first = selection->Slice(0, 2, view).value();
  EXPECT_THAT(first.shape(), ElementsAre(2, 3));
  EXPECT_EQ(static_cast<const float*>(first.data())[first.strides()[0]], 5.0f);
  const auto rest = selection->Slice(0, 3, view);
  EXPECT_THAT(rest->shape(), ElementsAre(2, 2));
  EXPECT_EQ(*static_cast<const float*>(rest->data()), 3.0f);

  EXPECT_TRUE(absl::IsInvalidArgument(selection->Slice(0, 1, TensorView(whole.data(), {10})).status()));
  EXPECT_THAT(selection->Slice(0, 1, TensorView(whole.data(), {10, 1}))->shape(), ElementsAre(10, 0));
  const auto of_four = Selection(R"(sharded { paths: "w" dimension: 1 along: "outer" })", 8);
  EXPECT_THAT(of_four->Slice(0, 6, TensorView(whole.data(), {5, 2}))->shape(), ElementsAre(5, 0));
}

TEST(TensorSelection, ShardsAlongNoAxisAreRefused) {
  for (const char* const bad : {"paths: 'w' along: 'expert'", "paths: 'w'", "along: 'inner'",
                                "paths: 'w' along: 'inner' dimension: -1"})
    EXPECT_TRUE(absl::IsInvalidArgument(Selection(absl::StrCat("sharded {", bad, "}")).status())) << bad;
}

TEST(TensorSelection, EachGlobAndKindThatMatchesNothingIsNamed) {
  const float number = 1;
  const auto names = [&](const std::string& stand_in) {
    std::vector<NamedTensor> tensors;
    for (const char* const path : {"w", "s", "d", "loss"}) {
      tensors.push_back({path, Tensor{TensorView(&number, {}), nullptr}});
      if (path == stand_in) tensors.back().content = NamedTensor::Content::kStandIn;
    }
    return tensors;
  };
  const std::string rules = R"(tensor_kinds { kind: TENSOR_KIND_PARAMETER paths: ["w", "s", "bias"] }
      replicated: ["w", "wieghts*", "loss"] sharded { paths: ["s", "experts.*"] along: "inner" }
      sharded { paths: "w" along: "inner" } distinct: ["d", "e.*"])";
  const auto selection = *Selection(rules + " kinds: [TENSOR_KIND_PARAMETER, TENSOR_KIND_OPTIMIZER_STATE]");
  const std::string replicated = "replicated: \"wieghts*\" matches no tensor; ";
  EXPECT_EQ(selection.FindUnmatched(names("s")),
            replicated +
                "replicated: \"loss\" matches no tensor; tensor_kinds: \"bias\" matches no tensor; "
                "no tensor is TENSOR_KIND_OPTIMIZER_STATE");
  EXPECT_EQ(Selection(rules)->FindUnmatched(names("")) + "; ", replicated);
  const std::string stand_in =
      ": is of an image, or of statistics, without a digest of its tensor, and other tensors have the same; ";
  EXPECT_EQ(Selection("replicated: '*x'")->FindUnmatched(names("w")), "replicated: \"*x\" matches no tensor");
  EXPECT_EQ(Selection("replicated: ['w', 'x']")->FindUnmatched(names("w")),
            "w" + stand_in + "replicated: \"x\" matches no tensor");
  const std::string shards = "sharded: \"experts.*\" matches no tensor";
  EXPECT_EQ(selection.FindUnmatchedShards(0, names("w")), shards);
  EXPECT_EQ(selection.FindUnmatchedShards(0, names("s")), "s" + stand_in + shards);
  EXPECT_EQ(selection.FindUnmatchedShards(1, names("s")), "");
  EXPECT_EQ(selection.FindUnmatchedDistinct(names("w")), "distinct: \"e.*\" matches no tensor");
  EXPECT_EQ(selection.FindUnmatchedDistinct(names("d")),
            "d" + stand_in + "distinct: \"e.*\" matches no tensor");
}

}  // namespace
}  // namespace ott
