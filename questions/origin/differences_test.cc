// Judges what logs say of tensors by plain definitions.

#include "ott/questions/origin/differences.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/questions/origin/collectives.h"
#include "ott/questions/origin/gains.h"
#include "ott/questions/origin/origin_for_test.h"

namespace ott::origin {
namespace {

// An operation without inputs for each tensor.
LoggedOps LogTensors(const std::vector<WrittenTensor>& tensors) {
  std::vector<WrittenOp> ops;
  for (const WrittenTensor& tensor : tensors) ops.push_back({"make", {}, {tensor}});
  return LogOps({ops});
}

TEST(RelativeDifference, IsTheNormOfTheDifferenceOverTheLargerNorm) {
  const float nan = std::nanf(""), infinity = INFINITY;
  const LoggedOps ops = LogTensors({{{3, 4}},
                                    {{3, 4}},
                                    {{6, 8}},
                                    {{3, 4, 0}},
                                    {{0, 0}},
                                    {{-0.0f, 0}},
                                    {{nan, 4}},
                                    {{nan, 5}},
                                    {{infinity, 4}},
                                    {{3, nan}, "", DType::kFloat32, /*is_lost=*/true}});
  const double inf = std::numeric_limits<double>::infinity();
  const double expected[10][10] = {
      {0, 0, 0.5, inf, 1, 1, inf, inf, inf, -1}, {0, 0, 0.5, inf, 1, 1, inf, inf, inf, -1},
      {0, 0, 0, inf, 1, 1, inf, inf, inf, -1},   {0, 0, 0, 0, inf, inf, inf, inf, inf, -1},
      {0, 0, 0, 0, 0, 0, inf, inf, inf, -1},     {0, 0, 0, 0, 0, 0, inf, inf, inf, -1},
      {0, 0, 0, 0, 0, 0, 0, 0.2, inf, -1},       {0, 0, 0, 0, 0, 0, 0, 0, inf, -1},
      {0, 0, 0, 0, 0, 0, 0, 0, 0, -1},           {0, 0, 0, 0, 0, 0, 0, 0, 0, -1}};
  for (int i = 0; i < 10; ++i) {
    for (int j = i; j < 10; ++j) {
      for (const auto& [a, b] : {std::pair(i, j), {j, i}}) {
        const double is = RelativeDifference(ops.ops[a], 0, ops.ops[b], 0);
        const double should = expected[i][j];
        const bool is_right = should < 0 ? std::isnan(is) : is == should || std::abs(is - should) < 1e-6;
        EXPECT_TRUE(is_right) << a << ", " << b << ": " << is << " instead of " << should;
      }
    }
  }
}

TEST(RelativeDifference, IsNotKnownIfNothingButTheNonFiniteMayDiffer) {
  const float infinity = INFINITY;
  const LoggedOps ops =
      LogTensors({{{0, -infinity}}, {{-infinity, 0}}, {{0, infinity}}, {{4, infinity}}, {{4, -infinity}}});
  for (const auto& [a, b] : {std::pair(0, 1), {1, 2}, {0, 2}, {3, 4}})
    EXPECT_TRUE(std::isnan(RelativeDifference(ops.ops[a], 0, ops.ops[b], 0))) << a << ", " << b;
}

TEST(RelativeDifference, OfNumbersWhoseSumsAreEqualIsOneRoundingOfTheLargest) {
  for (const auto& [dtype, apart] : {std::pair(DType::kBFloat16, 2.0 / 256), {DType::kInt64, 1 / 4.0}}) {
    std::vector<WrittenTensor> tensors(200, {std::vector<float>(200, 0), "", dtype});
    // A number in another place, whose part of the sketch may be the same.
    for (size_t i = 0; i + 1 < tensors.size(); ++i) tensors[i].elements[i] = 4;
    const LoggedOps logged = LogTensors(tensors);
    const std::vector<LoggedOp>& ops = logged.ops;
    int num_hidden = 0;
    for (size_t i = 1; i + 1 < ops.size(); ++i) {
      EXPECT_DOUBLE_EQ(RelativeDifference(ops[i], 0, ops.back(), 0), 1);
      if (!std::equal(ops[0].sketch(0), ops[0].sketch(0) + TensorSketch::kNumSums, ops[i].sketch(0)))
        continue;
      ++num_hidden;
      EXPECT_DOUBLE_EQ(RelativeDifference(ops[0], 0, ops[i], 0), apart);
      // Its halves in both places.
      WrittenTensor halves = tensors.back();
      halves.elements[0] = halves.elements[i] = 2;
      const LoggedOps both = LogTensors({tensors[0], halves});
      for (const auto& [a, b] : {std::pair(0, 1), {1, 0}})
        EXPECT_DOUBLE_EQ(RelativeDifference(both.ops[a], 0, both.ops[b], 0), apart);
    }
    EXPECT_GT(num_hidden, 0);
  }
}

TEST(Writers, AreTheLastThatWroteAValueBeforeAnOperation) {
  std::mt19937 random(1);
  const auto tensor = [&] { return WrittenTensor{{static_cast<float>(random() % 7)}}; };
  std::vector<WrittenOp> written;
  for (int i = 0; i < 60; ++i) {
    WrittenOp& op = written.emplace_back(WrittenOp{"op"});
    for (unsigned j = 0; j < random() % 3; ++j) op.inputs.push_back(tensor());
    for (unsigned j = 0; j < random() % 3; ++j) op.outputs.push_back(tensor());
  }
  const LoggedOps ops = LogOps({written});
  const LoggedOps values = LogTensors({{{0}}, {{1}}, {{2}}, {{3}}, {{4}}, {{5}}, {{6}}, {{7}}});
  Writers indexed(ops, true), searching(ops, false);
  for (size_t end = 0; end <= ops.ops.size(); ++end) {
    indexed.GoTo(end);
    searching.GoTo(end);
    for (size_t value = 0; value < values.ops.size(); ++value) {
      int64_t writer = -1;
      bool is_known = false;
      for (size_t i = 0; i < end; ++i) {
        const auto has = [&](const std::vector<WrittenTensor>& tensors) {
          return std::any_of(tensors.begin(), tensors.end(),
                             [&](const auto& t) { return t.elements[0] == static_cast<float>(value); });
        };
        is_known = is_known || has(written[i].inputs) || has(written[i].outputs);
        if (has(written[i].outputs)) writer = static_cast<int64_t>(i);
      }
      const Digest digest = values.ops[value].digest(0);
      EXPECT_EQ(indexed.WriterOf(digest), writer) << end << ", " << value;
      EXPECT_EQ(searching.WriterOf(digest), writer) << end << ", " << value;
      EXPECT_EQ(searching.Knows(digest), is_known) << end << ", " << value;
    }
  }
}

// Returns an operation whose input is off by a share, and whose output by a multiple of that.
WrittenOp Scale(const std::string& module, float off, float gain, OpRole role = OpRole::kOperation) {
  return {"scale", {{{100 * (1 + off)}}}, {{{100 * (1 + off * gain)}}}, role, module};
}

double GainOf(const std::vector<WrittenOp>& a, const std::vector<WrittenOp>& perturbed, size_t op) {
  const LoggedOps of_a = LogOps({a}), of_perturbed = LogOps({perturbed});
  const AlignedOps aligned = AlignOps(of_a, of_perturbed);
  CollectiveInputs collectives;
  collectives.Add(aligned, &aligned);
  Gains gains;
  gains.Add(aligned, collectives, 1);
  return gains.MedianOf(of_a.ops[op].definition(), 1).value_or(-1 - gains.LargestMedian());
}

TEST(Gains, AreOfTheFirstOfManyRuns) {
  std::vector<WrittenOp> a, perturbed;
  for (int i = 0; i < 300; ++i) {
    a.push_back(Scale("", 0, 1));
    perturbed.push_back(Scale("", 1e-5f, 2 + static_cast<float>(i)));
  }
  EXPECT_NEAR(GainOf(a, perturbed, 0), 2 + 256 / 2, 10);
}

TEST(Gains, AreOfRunsWhoseInputsDifferByAFiniteNumber) {
  const WrittenOp plain = Scale("", 0, 1);
  WrittenOp infinite = plain, infinite_after = Scale("", 0.001f, 1);
  infinite.inputs[0].elements[0] = infinite_after.outputs[0].elements[0] = INFINITY;
  for (const WrittenOp& other : {plain, infinite, infinite_after, Scale("", 0, 1, OpRole::kCollective)}) {
    WrittenOp a = plain;
    a.role = other.role;
    EXPECT_EQ(GainOf({a}, {other}, 0), -1);
  }
  // Another name, or direction, says nothing of it.
  WrittenOp other = plain, backward = plain;
  other.name = "other";
  backward.is_backward = true;
  for (const WrittenOp& a : {other, backward}) {
    WrittenOp perturbed = Scale("", 0.001f, 3);
    perturbed.name = a.name;
    perturbed.is_backward = a.is_backward;
    EXPECT_NEAR(GainOf({a, a, a, a, plain}, {perturbed, perturbed, perturbed, perturbed, plain}, 4), -4, 0.3);
    EXPECT_EQ(GainOf({a, a, a, plain}, {perturbed, perturbed, perturbed, plain}, 3), -1);
  }
}

}  // namespace
}  // namespace ott::origin
