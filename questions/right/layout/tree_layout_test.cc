// Checkpoints' trees, of layers in stacks and of folders of ranks, are made whole.

#include "ott/questions/right/layout/tree_layout.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/tensor/scattered_elements.h"
#include "ott/core/tensor/value.h"
#include "questions/right/layout/tensors_for_test.h"

namespace ott::crosscheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ToWholes, AStackOfLayersIsTakenApart) {
  RunLayout layout;
  StackedTensors& stacked = *layout.add_stacked();
  stacked.set_path("*layers.mlp.{of}");
  stacked.set_each("*layers.{number}.mlp.{of}");
  layout.add_tensors()->set_path("*");
  const Value tree = ValueMap{{"model", ValueMap{{"layers.mlp.weight", Count({2, 3})}}}, {"step", 1}};
  std::vector<std::string> problems;
  const Value wholes = ToWholes(tree, layout, &problems).value();
  EXPECT_EQ(wholes.map().size(), 3);
  const TensorView& second = wholes.map().Find("model.layers.1.mlp.weight")->tensor().view;
  EXPECT_EQ(second.shape(), Dims({3}));
  EXPECT_EQ(*static_cast<const float*>(second.data()), 3);
  // Its layers lie on two ranks.
  const Tensor rows =
      ScatteredElements::Join(second.dtype(), {2, 3}, {2, 3},
                              {{Count({1, 3}, 5).tensor(), {0, 0}}, {Count({1, 3}).tensor(), {1, 0}}})
          .value();
  const Value parts = ToWholes(ValueMap{{"layers.mlp.weight", Value(rows)}}, layout, &problems).value();
  for (const int layer : {0, 1}) {
    const Tensor part =
        Gathered(parts.map().Find(absl::StrCat("layers.", layer, ".mlp.weight"))->tensor()).value();
    EXPECT_EQ(*static_cast<const float*>(part.view.data()), layer == 0 ? 5 : 0);
  }
  // The stack is taken apart by columns, and the rule has a name that its path has not.
  stacked.set_dim(1);
  EXPECT_EQ(ToWholes(tree, layout, &problems)->map().size(), 4);
  EXPECT_THAT(problems, testing::IsEmpty());
  for (const int dim : {2, -3}) {
    stacked.set_dim(dim);
    EXPECT_EQ(ToWholes(tree, layout, &problems).status().message(),
              absl::StrCat("stacked { path: \"*layers.mlp.{of}\" }: 'model.layers.mlp.weight' is [2, 3] and ",
                           "has no dimension ", dim));
  }
  stacked.set_each("{layer}");
  EXPECT_THAT(ToWholes(tree, layout, &problems).status().message(), HasSubstr("{layer}"));
}

TEST(ToWholes, FoldersOfRanksArePutTogetherAndTheirLayersCounted) {
  RunLayout layout;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(tensors { path: "{layer}.w" split { dim: 0 axis: "tp" } numbers { name: "layer" axis: "pp" } }
             tensors { path: "*" })",
      &layout));
  // The first stage has two layers, the last of which comes first, and the second one has one.
  const auto two = [](float first) {
    return ValueMap{{"1.w", Count({1}, first + 2)}, {"0.w", Count({1}, first)}, {"bias", Count({1})}};
  };
  const auto one = [](float first) { return ValueMap{{"0.w", Count({1}, first)}}; };
  ValueMap tree = {{"mp_rank_00_000", two(0)},
                   {"mp_rank_00_001", one(4)},
                   {"mp_rank_01_000", two(1)},
                   {"latest", Count({1})}};
  std::vector<std::string> problems;
  EXPECT_EQ(ToWholes(tree, layout, &problems).status().message(),
            "has 3 folders mp_rank_*, but 2 of tensor, 2 of pipeline and 1 of expert parallelism");
  tree.Insert("mp_rank_01_001", one(5));
  const Value wholes = ToWholes(tree, layout, &problems).value();
  EXPECT_THAT(problems, ElementsAre("latest lies beside the folders of ranks, and is not compared"));
  ASSERT_EQ(wholes.map().size(), 4);
  for (const int layer : {0, 1, 2}) {
    const Tensor whole = Gathered(wholes.map().Find(absl::StrCat(layer, ".w"))->tensor()).value();
    ASSERT_EQ(whole.view.shape(), Dims({2}));
    const float* const elements = static_cast<const float*>(whole.view.data());
    EXPECT_THAT(std::vector<float>(elements, elements + 2), ElementsAre(2 * layer, 2 * layer + 1));
  }
  // Each rank of experts has its own.
  layout.mutable_tensors(0)->Clear();
  layout.mutable_tensors(0)->set_path("*");
  const Value experts = ValueMap{{"mp_rank_00_000_000", ValueMap{{"e0", Count({1})}}},
                                 {"mp_rank_00_000_001", ValueMap{{"e1", Count({1})}}}};
  EXPECT_EQ(ToWholes(experts, layout, &problems).value().map().size(), 2);
  const Value deep = ValueMap{{"mp_rank_00_000_000_000", ValueMap{{"w", Count({1})}}}};
  EXPECT_NE(ToWholes(deep, layout, &problems).value().map().Find("mp_rank_00_000_000_000.w"), nullptr);
}

TEST(ToWholes, TransposedTensorsAreTurnedAndSumsAreLeftToRuns) {
  std::vector<std::string> problems;
  const auto of = [&](const std::string& rule) {
    RunLayout layout;
    EXPECT_TRUE(
        google::protobuf::TextFormat::ParseFromString("tensors { path: \"w\" " + rule + " }", &layout));
    const Value tree = ValueMap{{"mp_rank_00", ValueMap{{"w", Count({2, 3})}}},
                                {"mp_rank_01", ValueMap{{"w", Count({2, 3}, 6)}}}};
    return ToWholes(tree, layout, &problems);
  };
  const Tensor turned =
      Gathered(of(R"(transpose: [1, 0] split { dim: 1 axis: "tp" })").value().map().Find("w")->tensor())
          .value();
  ASSERT_EQ(turned.view.shape(), Dims({3, 4}));
  const float* const elements = static_cast<const float*>(turned.view.data());
  EXPECT_THAT(std::vector<float>(elements, elements + 12), ElementsAre(0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11));
  EXPECT_TRUE(of(R"(sum: "tp")").value().map().empty());
  EXPECT_THAT(problems, ElementsAre(HasSubstr("sums are compared by `ott crosscheck --layout`")));
}

}  // namespace
}  // namespace ott::crosscheck
