#include "ott/core/tensor/ragged_batch.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/tensor/strided_copy.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<float> ElementsOf(const Value& value) {
  const TensorView& view = value.tensor().view;
  std::vector<float> elements(view.num_elements());
  CopyElements(view, 0, view.num_elements(), elements.data());
  return elements;
}

class RaggedBatchTest : public testing::Test {
 protected:
  // Three samples [2, at most 2].
  RaggedBatch Make() {
    return {{TensorView(data_, {3, 2, 2}), nullptr}, {TensorView(sizes_, {3}), nullptr}, 2};
  }

  const float data_[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  int32_t sizes_[3] = {2, 0, 1};
};

TEST_F(RaggedBatchTest, StructureHasItsMembers) {
  const Value structure = RaggedBatchStructure(Make());
  const ValueMap& map = structure.map();
  EXPECT_EQ(map.Find("data")->tensor().view.data(), data_);
  EXPECT_EQ(map.Find("sample_sizes")->tensor().view.data(), sizes_);
  EXPECT_EQ(map.Find("non_uniform_dim")->int_value(), 2);
  EXPECT_EQ(map.Find("num_batch_dims")->int_value(), 1);
}

TEST_F(RaggedBatchTest, SamplesAreCutToTheirSize) {
  const Value samples = RaggedBatchSamples(Make()).value();
  ASSERT_EQ(samples.list().size(), 3u);
  EXPECT_THAT(ElementsOf(samples.list()[0]), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(samples.list()[1].tensor().view.shape(), Dims({2, 0}));
  EXPECT_EQ(samples.list()[2].tensor().view.shape(), Dims({2, 1}));
  EXPECT_THAT(ElementsOf(samples.list()[2]), ElementsAre(9, 11));
}

TEST_F(RaggedBatchTest, BatchDimensionsAreNestedLists) {
  RaggedBatch batch = Make();
  const int64_t sizes[6] = {1, 2, 0, 1, 2, 2};
  batch.sample_sizes = {TensorView(sizes, {3, 2}), nullptr};
  batch.num_batch_dims = 2;
  const Value samples = RaggedBatchSamples(batch).value();
  ASSERT_EQ(samples.list().size(), 3u);
  EXPECT_THAT(ElementsOf(samples.list()[0].list()[1]), ElementsAre(3, 4));
  EXPECT_THAT(ElementsOf(samples.list()[1].list()[0]), ElementsAre());
  EXPECT_THAT(ElementsOf(samples.list()[1].list()[1]), ElementsAre(7));
}

TEST_F(RaggedBatchTest, MembersThatDoNotFitAreErrors) {
  const auto error = [](const RaggedBatch& batch) {
    return std::string(RaggedBatchSamples(batch).status().message());
  };
  sizes_[1] = 3;
  EXPECT_THAT(error(Make()), HasSubstr("sample 1 has size 3 of at most 2"));
  sizes_[1] = -1;
  EXPECT_THAT(error(Make()), HasSubstr("sample 1 has size -1 of at most 2"));
  sizes_[1] = 0;
  RaggedBatch batch = Make();
  for (const int dim : {-1, 0, 3}) {
    batch.non_uniform_dim = dim;
    EXPECT_NE(error(batch), "") << dim;
  }
  batch = Make();
  batch.num_batch_dims = 2;
  EXPECT_THAT(error(batch), HasSubstr("sample sizes [3], 2 batch"));
  batch.num_batch_dims = 0;
  batch.sample_sizes = {TensorView(sizes_, {}), nullptr};
  EXPECT_THAT(error(batch), HasSubstr("sample sizes [], 0 batch"));
  batch = Make();
  batch.sample_sizes = {TensorView(data_, {3}), nullptr};
  EXPECT_THAT(error(batch), HasSubstr("sample sizes are float32"));
}

}  // namespace
}  // namespace ott
