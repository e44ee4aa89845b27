// Updates of random weights against what was done to them.

#include "ott/questions/origin/updates.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/questions/origin/differences.h"
#include "ott/questions/origin/origin_for_test.h"

namespace ott::origin {
namespace {

using Elements = std::vector<float>;

// An optimizer reads weights and a gradient, and writes a result: the weights and what it adds to them.
struct LoggedUpdate {
  Elements weights, gradient, result;
  OpRole role = OpRole::kUpdate;
  std::string name = "w";  // of the result
};

// Logs an operation each.
LoggedOps LogUpdates(const std::vector<LoggedUpdate>& updates) {
  std::vector<WrittenOp> ops;
  for (const LoggedUpdate& update : updates) {
    WrittenOp& op = ops.emplace_back(
        WrittenOp{"sgd", {{update.weights, "w"}}, {{update.result, update.name}}, update.role});
    if (!update.gradient.empty()) op.inputs.insert(op.inputs.begin(), {update.gradient, "g"});
  }
  return LogOps({ops});
}

Elements Normal(size_t count, float deviation, std::mt19937_64& random) {
  std::normal_distribution<float> normal(0, deviation);
  Elements elements(count);
  for (float& element : elements) element = normal(random);
  return elements;
}

Elements Add(Elements a, const Elements& b, float times) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += times * b[i];
  return a;
}

LoggedUpdate Sgd(const Elements& weights, const Elements& gradient) {
  return {weights, gradient, Add(weights, gradient, -0.1f)};
}

IncrementExcess ExcessOf(const LoggedUpdate& a, const LoggedUpdate& b, const LoggedUpdate& perturbed) {
  const LoggedOps ops = LogUpdates({a, b, perturbed});
  const int output = ops.ops[0].num_tensors() - 1;
  return *ExcessOfIncrement(ops.ops[0], ops.ops[1], ops.ops[2], output,
                            RoundedOutputOf(ops.ops[0], output, 1));
}

TEST(InputUpdated, IsTheInputOfTheOutputsNameAndSize) {
  const Elements weights(5, 1), gradient(5, 2);
  const LoggedOps ops = LogUpdates({{weights, gradient, gradient},
                                    {weights, gradient, gradient, OpRole::kOperation},
                                    {weights, gradient, gradient, OpRole::kUpdate, "g"},
                                    {weights, gradient, gradient, OpRole::kUpdate, "v"},
                                    {Elements(6, 1), gradient, gradient}});
  const int expected[] = {1, -1, 0, -1, -1};
  for (size_t i = 0; i < ops.ops.size(); ++i) EXPECT_EQ(InputUpdated(ops.ops[i], 2), expected[i]) << i;
}

// Gradients differ by a share of `noise`, in the run and in the perturbed one.
struct NoisyRuns {
  NoisyRuns(size_t count, float noise, std::mt19937_64& random)
      : weights(Normal(count, 1, random)),
        gradient(Normal(count, 1, random)),
        of_b(Add(gradient, Normal(count, noise, random), 1)),
        a(Sgd(weights, gradient)),
        b(Sgd(weights, of_b)),
        perturbed(Sgd(weights, Add(gradient, Normal(count, noise, random), 1))) {}

  Elements weights, gradient, of_b;
  LoggedUpdate a, b, perturbed;
};

TEST(ExcessOfIncrement, WhatIsOffByMoreThanIsUnseenIsSeenAndNothingElse) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 60; ++trial) {
    const float noise = trial % 3 == 0 ? 0 : trial % 3 == 1 ? 1e-5f : 1e-4f;
    NoisyRuns runs(100 + random() % 2000, noise, random);
    // A gradient that is the same need not be logged.
    for (LoggedUpdate* const update : {&runs.a, &runs.b, &runs.perturbed})
      if (noise == 0) update->gradient.clear();
    const IncrementExcess right = ExcessOf(runs.a, runs.b, runs.perturbed);
    EXPECT_LE(right.times(), 1) << trial;
    EXPECT_EQ(right.scale, 1) << trial;
    EXPECT_FALSE(right.is_doubtful) << trial;
    EXPECT_GT(right.unseen, 0) << trial;
    EXPECT_LT(right.unseen, 0.1) << trial;
    // A learning rate that is off.
    for (const float off : {-4.0f, -0.3f, 0.3f, 4.0f}) {
      LoggedUpdate wrong = runs.b;
      const float share = off * static_cast<float>(right.unseen);
      wrong.result = Add(runs.weights, runs.of_b, -0.1f * (1 + share));
      const IncrementExcess excess = ExcessOf(runs.a, wrong, runs.perturbed);
      EXPECT_EQ(excess.times() > 1, std::abs(off) > 1) << trial << ", " << off << " times " << right.unseen;
      if (std::abs(off) > 1) {
        EXPECT_NEAR(excess.difference, std::abs(share), 0.3 * std::abs(share)) << trial;
      }
    }
    // Elements that are off in any direction, by less than few of them may jump.
    if (noise == 1e-5f) {
      LoggedUpdate off = runs.b;
      off.result = Add(off.result, Normal(off.result.size(), 0.008f, random), 1);
      EXPECT_GT(ExcessOf(runs.a, off, runs.perturbed).times(), 1) << trial;
    }
    // Elements that were not updated, and more of them are no multiple of the reference's.
    LoggedUpdate partial = runs.b;
    for (size_t i = 0; i < partial.result.size(); i += 4)
      partial.result[i] = 2 * runs.weights[i] - partial.result[i];
    EXPECT_GT(ExcessOf(runs.a, partial, runs.perturbed).times(), 1) << trial;
  }
}

// Applies the rules of docs/origin.md for what an update adds once more, to the sums of its sketches.
IncrementExcess ExcessByDefinition(const LoggedOp& a, const LoggedOp& b, const LoggedOp& perturbed) {
  constexpr int kSums = TensorSketch::kNumSums;
  const RoundedOutput output = RoundedOutputOf(a, 2, 1);
  const auto added = [](const LoggedOp& op, int i) -> double {
    return static_cast<double>(op.sketch(2)[i]) - op.sketch(1)[i];
  };
  // The sums that differ most are left out.
  const auto distance = [&](const LoggedOp& other, int left_out) {
    std::vector<double> squares;
    for (int i = 0; i < kSums; ++i) squares.push_back(std::pow(added(other, i) - added(a, i), 2));
    std::sort(squares.begin(), squares.end());
    return std::sqrt(std::accumulate(squares.begin(), squares.end() - left_out, 0.0));
  };
  double norm = 0;
  for (int i = 0; i < kSums; ++i) norm += std::pow(added(a, i), 2);
  norm = std::sqrt(norm);
  const double inputs = RelativeDifference(a, 0, b, 0), amplified = RelativeDifference(a, 0, perturbed, 0);
  const auto times = [&](int left_out, double num_steps) {
    const double gain = amplified > 0 ? std::max(1.0, distance(perturbed, left_out) / norm / amplified) : 1;
    double explained =
        AfterRounding(output, 8 * gain * inputs * norm / a.norm(2) + SummationBound(output, 1));
    explained += TensorSketch::kResolution;
    // An element may jump by three times the mean.
    const auto count = static_cast<double>(output.num_elements);
    if (inputs > 0) explained += 3 * std::sqrt(num_steps / count) * norm / a.norm(2);
    if (RelativeDifference(a, 1, b, 1) > 0) explained += 2 * UnitRoundoff(output.dtype);
    return distance(b, left_out) / explained / a.norm(2);
  };
  const double near_zero = static_cast<double>(output.num_elements) * std::min(4 * inputs, 1.0);
  const double num_more = near_zero + 8 * std::sqrt(near_zero) - 4;
  const bool is_measured = inputs == 0 || amplified > 0;
  double most = is_measured ? times(0, 4) : 0;
  IncrementExcess excess;
  if (is_measured && num_more < 4) {
    most = std::max(most, times(4, std::max(num_more, 0.0)));
  } else {
    excess.is_doubtful = times(kSums / 2 - 1, 0) > 1;
  }
  excess.difference = distance(b, 0) / norm;
  excess.explained = most > 0 ? excess.difference / most : INFINITY;
  // By how much sums are a multiple of others, less 1, with the standard error of that.
  const auto scale = [](const std::vector<double>& of_a, const std::vector<double>& of_b) {
    double squares = 0, products = 0, largest = 0, residuals = 0;
    for (int i = 0; i < kSums; ++i) {
      squares += of_a[i] * of_a[i];
      products += of_a[i] * of_b[i];
      largest = std::max(largest, of_a[i] * of_a[i]);
    }
    for (int i = 0; i < kSums; ++i) residuals += std::pow(of_b[i] - products / squares * of_a[i], 2);
    return std::pair(products / squares - 1,
                     std::sqrt(residuals / (kSums - 1) / squares) / (1 - largest / squares));
  };
  std::vector<double> added_a, added_b;
  for (int i = 0; i < kSums; ++i) {
    added_a.push_back(added(a, i));
    added_b.push_back(added(b, i));
  }
  const auto [off, error] = scale(added_a, added_b);
  const double of_inputs =
      std::abs(scale({a.sketch(0), a.sketch(0) + kSums}, {b.sketch(0), b.sketch(0) + kSums}).first);
  const double explained = 16 * error + 8 * of_inputs + 2 * UnitRoundoff(output.dtype) + 1e-5;
  if (std::abs(off) > std::max(1.0, most) * explained) {
    excess.difference = std::abs(off);
    excess.explained = explained;
    excess.scale = 1 + off;
  }
  excess.unseen = std::min(excess.explained, explained);
  return excess;
}

TEST(ExcessOfIncrement, IsAsTheRulesSay) {
  std::mt19937_64 random(5);
  const auto one_in = [&](uint64_t n) { return random() % n == 0; };
  int num_doubtful = 0, num_scaled = 0, num_large = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const size_t count = one_in(4) ? 30 : 100 + random() % 2000;
    const auto noise = static_cast<float>(std::pow(10, -2 - static_cast<double>(random() % 5)));
    NoisyRuns runs(count, noise, random);
    if (one_in(4)) runs.b = Sgd(Add(runs.weights, Normal(count, 1e-6f, random), 1), runs.of_b);
    if (one_in(6)) runs.b = Sgd(runs.weights, runs.gradient);
    if (one_in(6)) runs.b = Sgd(runs.weights, Add(runs.gradient, runs.gradient, noise));
    if (one_in(6)) runs.perturbed = runs.a;
    const float off = noise * static_cast<float>(random() % 40);
    if (one_in(3)) runs.b.result = Add(runs.b.result, Normal(count, 0.1f * off, random), 1);
    if (one_in(3))
      runs.b.result = Add(runs.b.result, runs.gradient, -0.1f * off * static_cast<float>(1 + random() % 30));
    if (one_in(6)) runs.b.result[0] += off;
    const LoggedOps ops = LogUpdates({runs.a, runs.b, runs.perturbed});
    const IncrementExcess expected = ExcessByDefinition(ops.ops[0], ops.ops[1], ops.ops[2]);
    const IncrementExcess found =
        *ExcessOfIncrement(ops.ops[0], ops.ops[1], ops.ops[2], 2, RoundedOutputOf(ops.ops[0], 2, 1));
    const auto near = [&](double is, double should) {
      EXPECT_TRUE(is == should || std::abs(is - should) <= 1e-9 * std::abs(should))
          << trial << ": " << is << " instead of " << should;
    };
    near(found.difference, expected.difference);
    near(found.explained, expected.explained);
    near(found.scale, expected.scale);
    near(found.unseen, expected.unseen);
    EXPECT_EQ(found.is_doubtful, expected.is_doubtful) << trial;
    num_doubtful += expected.is_doubtful;
    num_scaled += expected.scale != 1;
    num_large += expected.scale == 1 && expected.times() > 1;
  }
  EXPECT_GT(std::min({num_doubtful, num_scaled, num_large}), 20)
      << num_doubtful << " " << num_scaled << " " << num_large;
}

TEST(ExcessOfIncrement, OfWhatAddsNothingOrIsNoUpdateNothingIsKnown) {
  std::mt19937_64 random(4);
  const NoisyRuns runs(100, 1e-4f, random);
  LoggedUpdate still = runs.a, other = runs.a, zero = runs.a;
  still.result = still.weights;
  other.name = "v";
  zero.result.assign(100, 0);
  for (const LoggedUpdate& a : {still, other, zero}) {
    const LoggedOps ops = LogUpdates({a, runs.b, runs.perturbed});
    EXPECT_FALSE(ExcessOfIncrement(ops.ops[0], ops.ops[1], ops.ops[2], 2, RoundedOutputOf(ops.ops[0], 2, 1)));
    EXPECT_EQ(StepAllowance(ops.ops[0], 2, 4), 0);
  }
}

TEST(FindLoneUpdate, IsNoneWhereAnOperationMayMakeWhatItMakes) {
  const auto tensor = [](size_t count) { return WrittenTensor{Elements(count, 7)}; };
  const WrittenOp both = {"both", {}, {tensor(1)}},
                  update = {"adam", {tensor(3)}, {tensor(1), tensor(2)}, OpRole::kUpdate};
  for (const OpRole role : {OpRole::kOperation, OpRole::kUpdate}) {
    for (const size_t read : {1, 2, 3, 4}) {
      for (const size_t made : {1, 2, 3, 4}) {
        const WrittenOp other = {"fused", {tensor(read)}, {tensor(4), tensor(made)}, role};
        const LoggedOps a = LogOps({{both, update}, {both, update}}),
                        b = LogOps({{both, update}, {both, other}});
        std::string first_in_last;
        const bool may_stand_for = role == OpRole::kUpdate || made <= 2;
        EXPECT_EQ(FindLoneUpdate(AlignOps(a, b), first_in_last).has_value(), !may_stand_for)
            << read << " " << made;
      }
    }
  }
}

}  // namespace
}  // namespace ott::origin
