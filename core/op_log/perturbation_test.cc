#include "ott/core/op_log/perturbation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/tensor/element.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {
namespace {

class PerturbationTest : public ::testing::Test {
 protected:
  void TearDown() override { Perturbation::Get().Disable(); }

  static void Enable(uint64_t seed, int ulps, std::vector<std::string> paths = {}) {
    Perturbation::Options options;
    options.seed = seed;
    options.ulps = ulps;
    options.paths = std::move(paths);
    const absl::Status status = Perturbation::Get().Enable(options);
    ASSERT_TRUE(status.ok()) << status;
  }

  static std::vector<float> Moved(const std::string& path, std::vector<float> data) {
    const absl::Status status = Perturbation::Offer(path, data.data(), {static_cast<int64_t>(data.size())});
    EXPECT_TRUE(status.ok()) << status;
    return data;
  }
};

TEST_F(PerturbationTest, OffNothingMoves) {
  EXPECT_EQ(Moved("weights.w1", {1, 2, 3}), (std::vector<float>{1, 2, 3}));
}

TEST_F(PerturbationTest, TheSeedAndThePathSayHow) {
  Enable(1, 1, {"weights.*"});
  const std::vector<float> data(64, 1.0f);
  const std::vector<float> first = Moved("weights.a", data);
  EXPECT_EQ(Moved("weights.a", data), first);
  EXPECT_NE(Moved("weights.b", data), first);
  EXPECT_EQ(Moved("bias", data), data);
  EXPECT_EQ(Perturbation::Get().moved(), (std::set<std::string>{"weights.a", "weights.b"}));
  Perturbation::Get().Disable();
  EXPECT_EQ(Moved("weights.a", data), data);
  Enable(2, 1);
  EXPECT_EQ(Perturbation::Get().moved(), std::set<std::string>());
  EXPECT_NE(Moved("weights.a", data), first);
}

// All numbers of a format with at most 16 bits; of others the least and the largest ones, and any.
template <typename T>
void ExpectMovedByUnits(DType dtype, int64_t num_parts, int ulps) {
  using Bits = std::conditional_t<
      sizeof(T) == 8, uint64_t,
      std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
  constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  const auto is_finite = [](Bits bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(value));
    return std::isfinite(static_cast<double>(value));
  };
  Bits largest = 0;
  for (Bits bit = kSign / 2; bit != 0; bit = static_cast<Bits>(bit / 2)) {
    if (is_finite(static_cast<Bits>(largest | bit))) largest = static_cast<Bits>(largest | bit);
  }
  std::mt19937_64 random(1);
  std::vector<Bits> before(1 << 16);
  for (size_t i = 0; i < before.size(); ++i) {
    const uint64_t bits = sizeof(T) <= 2 ? i : i < 1000 ? i / 2 : i < 2000 ? largest - i / 2 + 500 : random();
    before[i] = static_cast<Bits>(bits | (sizeof(T) > 2 && i % 2 == 0 ? kSign : 0));
  }
  std::vector<Bits> moved = before;
  const TensorView view(moved.data(), dtype, {static_cast<int64_t>(moved.size()) / num_parts});
  ASSERT_TRUE(Perturbation::OfferView("x", view, moved.data()).ok());
  int64_t num_up = 0, num_down = 0;
  for (size_t i = 0; i < before.size(); ++i) {
    const uint64_t magnitude = before[i] & ~kSign, to = moved[i] & ~kSign;
    if (magnitude == 0 || magnitude > largest) {
      ASSERT_EQ(moved[i], before[i]) << Name(dtype) << " " << i;
      continue;
    }
    const uint64_t up = std::min<uint64_t>(magnitude + static_cast<uint64_t>(ulps), largest);
    const uint64_t down = magnitude - std::min<uint64_t>(static_cast<uint64_t>(ulps), magnitude - 1);
    ASSERT_TRUE(to == up || to == down) << Name(dtype) << " " << i;
    ASSERT_EQ(moved[i] & kSign, before[i] & kSign);
    num_up += to == up;
    num_down += to == down;
  }
  EXPECT_NEAR(static_cast<double>(num_up) / static_cast<double>(num_up + num_down), 0.5, 0.1);
}

TEST_F(PerturbationTest, FiniteNumbersMoveByUnitsOfTheirDTypeAndOthersStay) {
  for (const int ulps : {1, 300}) {
    Enable(1, ulps);
    for (const DTypeInfo& info : kDTypes) {
      VisitDType(info.dtype, [&](auto element) {
        using T = decltype(element);
        if constexpr (std::is_integral_v<T>) {
          T value = 1;
          EXPECT_TRUE(Perturbation::OfferView(info.name, TensorView(&value, info.dtype, {}), &value).ok());
          EXPECT_EQ(value, T{1});
          EXPECT_EQ(Perturbation::Get().moved().count(std::string(info.name)), 0u);
        } else if constexpr (kIsComplex<T>) {
          ExpectMovedByUnits<typename T::value_type>(info.dtype, 2, ulps);
        } else {
          ExpectMovedByUnits<T>(info.dtype, 1, ulps);
        }
      });
    }
    Perturbation::Get().Disable();
  }
}

TEST_F(PerturbationTest, WhatMakesNoSenseIsRefused) {
  Perturbation own;
  Perturbation::Options options;
  for (const int ulps : {-1, 0, (1 << 20) + 1}) {
    options.ulps = ulps;
    EXPECT_EQ(own.Enable(options),
              absl::InvalidArgumentError(absl::StrCat("perturb: ", ulps, " ulps is not in [1, 1048576]")));
  }
  options.ulps = 1 << 20;
  EXPECT_EQ(own.Enable(options), absl::OkStatus());
  EXPECT_EQ(Moved("a", {1}), std::vector<float>{1}) << "another one than the process's is enabled";
  Enable(1, 1);
  own.Disable();
  EXPECT_NE(Moved("a", {1}), std::vector<float>{1});
  EXPECT_EQ(Perturbation::Get().Enable({}), absl::FailedPreconditionError("perturb: enabled already"));
  float x[4] = {1, 1, 1, 1};
  EXPECT_EQ(Perturbation::OfferView("b", TensorView(x, DType::kFloat32, {2}, {2}), x),
            absl::InvalidArgumentError("perturb: b is not contiguous"));
  EXPECT_EQ(
      Perturbation::OfferView("b", TensorView(x, DType::kFloat32, {2}, {1}, {Device::Kind::kCuda, 0}), x),
      absl::UnimplementedError("perturb: b is in device memory; offer it before it is copied there"));
}

}  // namespace
}  // namespace ott
