#include "examples/transformer/transformer.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::examples {
namespace {

constexpr ModelSize kSmall = {/*context=*/6,   /*width=*/8,  /*heads=*/2,
                              /*hidden=*/12,   /*layers=*/2,
                              /*dropout=*/0.2f};

Batch MakeBatch() {
  const std::string text =
      "To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer";
  return DrawBatch(text, kSmall.context, /*batch_size=*/2, /*seed=*/3, /*iteration=*/0, /*part=*/0,
                   /*num_parts=*/1);
}

Transformer MakeModel() {
  auto model = Transformer::Create(kSmall, Grid(), /*seed=*/1, Plant());
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

TEST(Transformer, GradientsAreThoseOfFiniteDifferences) {
  Transformer model = MakeModel();
  const Batch batch = MakeBatch();
  model.Forward(batch, 0);
  model.Backward();
  constexpr float kStep = 3e-3f;
  for (Parameter& parameter : model.parameters()) {
    double largest = 0;
    double largest_error = 0;
    const Matrix gradient = parameter.gradient;
    // Some elements of each.
    for (size_t i = 0; i < gradient.data.size(); i += 1 + gradient.data.size() / 23) {
      float& value = parameter.value.data[i];
      const float kept = value;
      value = kept + kStep;
      const double above = model.Forward(batch, 0);
      value = kept - kStep;
      const double below = model.Forward(batch, 0);
      value = kept;
      const double expected = (above - below) / (2 * kStep);
      largest = std::max(largest, std::fabs(expected));
      largest_error = std::max(largest_error, std::fabs(expected - static_cast<double>(gradient.data[i])));
    }
    EXPECT_LT(largest_error, 2e-3 * largest + 2e-4) << parameter.name;
  }
}

TEST(Transformer, LearnsATextByHeart) {
  Transformer model = MakeModel();
  const Batch batch = MakeBatch();
  const float first = model.Forward(batch, 0);
  EXPECT_NEAR(first, std::log(128.0), 0.3);
  for (int i = 0; i < 150; ++i) {
    model.Forward(batch, i);
    model.Backward();
    model.Step(1e-2f);
  }
  EXPECT_LT(model.Forward(batch, 0), 0.5f * first);
}

TEST(Attention, APositionSeesNoneBehindIt) {
  Attention attention;
  Matrix qkv(4, 3 * 2);
  for (size_t i = 0; i < qkv.data.size(); ++i) qkv.data[i] = std::sin(static_cast<float>(i));
  const Matrix before = attention.Forward(qkv, 4, 1);
  for (int64_t j = 0; j < qkv.columns; ++j) qkv.row(3)[j] += 1;
  const Matrix after = attention.Forward(qkv, 4, 1);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < before.columns; ++j) EXPECT_EQ(before.row(i)[j], after.row(i)[j]);
  }
  EXPECT_NE(before.row(3)[0], after.row(3)[0]);
}

TEST(Transformer, SizesThatCannotBeSpreadAreRefused) {
  ModelSize size = kSmall;
  size.heads = 3;
  EXPECT_FALSE(Transformer::Create(size, Grid(), 1, Plant()).ok());
}

TEST(Text, AMissingFileIsNamedWithAWayOut) {
  const auto text = ReadText("/nowhere/GPL-3", 10);
  EXPECT_TRUE(absl::IsNotFound(text.status()));
  EXPECT_THAT(std::string(text.status().message()),
              testing::HasSubstr("/nowhere/GPL-3: no such text; Debian's"));
}

TEST(Text, PartsMakeUpTheBatch) {
  const Batch whole = DrawBatch("abcdefghijklmnopqrstuvwxyz", 4, 6, 1, 5, 0, 1);
  Batch parts;
  for (int part = 0; part < 3; ++part) {
    const Batch batch = DrawBatch("abcdefghijklmnopqrstuvwxyz", 4, 6, 1, 5, part, 3);
    EXPECT_EQ(batch.first_sequence, 2 * part);
    parts.tokens.insert(parts.tokens.end(), batch.tokens.begin(), batch.tokens.end());
  }
  EXPECT_EQ(parts.tokens, whole.tokens);
}

}  // namespace
}  // namespace ott::examples
