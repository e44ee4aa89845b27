// Bounds of rounding against numbers that are rounded, and against the formulas of the header.

#include "ott/questions/origin/rounding.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/tensor/element.h"
#include "ott/questions/origin/origin_for_test.h"

namespace ott::origin {
namespace {

OpDefinition Operation(const std::vector<Dims>& inputs, const Dims& output) {
  OpDefinition operation;
  for (size_t i = 0; i <= inputs.size(); ++i) {
    OpTensorDefinition& tensor = operation.tensors.emplace_back();
    tensor.is_output = i == inputs.size();
    tensor.shape = tensor.is_output ? output : inputs[i];
    tensor.num_elements = 1;
    for (const int64_t dimension : tensor.shape) tensor.num_elements *= dimension;
  }
  return operation;
}

TEST(ReductionLength, IsThatOfTheLongestSumThatShapesAllow) {
  const auto length = [](const std::vector<Dims>& inputs, const Dims& output) {
    return ReductionLength(Operation(inputs, output), static_cast<int>(inputs.size()));
  };
  EXPECT_EQ(length({}, {3}), 1);
  EXPECT_EQ(length({{}}, {}), 1);
  EXPECT_EQ(length({{8, 4}}, {8, 4}), 4);             // a norm of rows
  EXPECT_EQ(length({{1000, 2}}, {}), 2000);           // a sum of all
  EXPECT_EQ(length({{1000, 2}}, {2}), 1000);          // of columns
  EXPECT_EQ(length({{8, 64}, {64, 2}}, {8, 2}), 64);  // a product of matrices
  EXPECT_EQ(length({{64, 8}, {64, 2}}, {8, 2}), 64);
  EXPECT_EQ(length({{8, 4}, {8, 4}, {4}}, {8, 4}), std::sqrt(32));
  EXPECT_EQ(length({{0}, {7}}, {0}), 7);
}

TEST(RoundedOutputOf, IsOfTheOutputAndOfACollectiveOfAllRanks) {
  for (const auto& [role, length] : {std::pair(OpRole::kOperation, 4.0), {OpRole::kCollective, 64.0}}) {
    const LoggedOps ops =
        LogOps({{{"norm", {{{1, 2, 3, 4}}}, {{{0, 0}}, {{3, -4}, "", DType::kBFloat16}}, role}}});
    const RoundedOutput output = RoundedOutputOf(ops.ops[0], 2, 64), zero = RoundedOutputOf(ops.ops[0], 1, 2);
    EXPECT_EQ(output.reduction_length, length);
    EXPECT_EQ(output.dtype, DType::kBFloat16);
    EXPECT_EQ(output.num_elements, 2);
    EXPECT_NEAR(output.largest_share, 0.8, 1e-6);
    EXPECT_EQ(zero.largest_share, 0);
    EXPECT_EQ(zero.reduction_length, 4);
  }
}

// Numbers that are close to each other differ by no more than is explained after both are rounded.
TEST(AfterRounding, BoundsWhatNumbersThatWereRoundedDifferBy) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 300; ++trial) {
    RoundedOutput output;
    output.dtype = DType::kBFloat16;
    output.num_elements = static_cast<int64_t>(1 + random() % 3000);
    const double before = std::pow(10, -static_cast<double>(random() % 5) - 1);
    std::vector<double> numbers, others;
    double norm = 0, difference = 0, largest = 0, unrounded = 0;
    for (int64_t i = 0; i < output.num_elements; ++i) {
      const double number = normal(random), other = number + before * normal(random);
      const auto rounded = static_cast<double>(FromDouble<BFloat16>(number));
      unrounded += std::pow(other - number, 2);
      norm += rounded * rounded;
      largest = std::max(largest, std::abs(rounded));
      difference += std::pow(static_cast<double>(FromDouble<BFloat16>(other)) - rounded, 2);
    }
    output.largest_share = largest / std::sqrt(norm);
    const double explained = AfterRounding(output, std::sqrt(unrounded / norm));
    EXPECT_LE(std::sqrt(difference / norm), explained) << trial;
    if (output.num_elements > 300 && before > 1e-3) {
      EXPECT_GE(std::sqrt(difference / norm), explained / 5) << trial;
    }
  }
}

TEST(AfterRounding, IsAsDefined) {
  for (const DType dtype : {DType::kBFloat16, DType::kFloat32, DType::kInt64}) {
    for (const int64_t count : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{1000}}) {
      for (const double before : {0.0, 1e-9, 1e-4, 10.0}) {
        const RoundedOutput output = {1, dtype, count, 0.25};
        const double apart = 2 * UnitRoundoff(dtype);
        const auto n = static_cast<double>(std::max<int64_t>(count, 1));
        // Each number is rounded to another one with a chance of before / apart.
        const double chance = dtype == DType::kInt64 ? 0 : std::min(before / apart, 1.0);
        const double share = std::min(chance + 4 * std::sqrt(chance / n), 1.0);
        const double few = std::min(4.0, n) * 0.25 * 0.25;
        const double expected = std::sqrt(before * before + apart * apart * (share + few));
        EXPECT_NEAR(AfterRounding(output, before), expected, 1e-9 * expected)
            << Name(dtype) << " " << count << " " << before;
        const double back = BeforeRounding(output, expected);
        EXPECT_NEAR(back * back + apart * back, expected * expected, 1e-9 * expected * expected);
        EXPECT_EQ(BeforeRounding(output, 0), 0);
      }
    }
  }
}

TEST(SummationBound, GrowsWithTheRootOfTheLengthAndTheGain) {
  EXPECT_DOUBLE_EQ(SummationBound({100, DType::kFloat32}, 3), 6 * 10 * std::ldexp(1, -24) * 3);
  EXPECT_DOUBLE_EQ(SummationBound({100, DType::kBFloat16}, 1), 6 * 10 * std::ldexp(1, -24));
  EXPECT_DOUBLE_EQ(SummationBound({4, DType::kFloat64}, 1), 6 * 2 * std::ldexp(1, -53));
  EXPECT_DOUBLE_EQ(SummationBound({4, DType::kComplex128}, 1), 6 * 2 * std::ldexp(1, -53));
  // Four elements of the largest magnitude are rounded to the next number of two bits.
  EXPECT_DOUBLE_EQ(LargestJump(0.5), 2 * 0.25 * 0.5);
}

}  // namespace
}  // namespace ott::origin
