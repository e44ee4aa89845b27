#include "ott/core/op_log/perturbation.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

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

TEST_F(PerturbationTest, EachElementMovesByUnitsInItsLastPlace) {
  Enable(1, 2);
  const std::vector<float> data(1000, 1.5f);
  int up = 0;
  for (const float value : Moved("weights.w1", data)) {
    EXPECT_TRUE(value == 1.5f + 2 * 0x1p-23f || value == 1.5f - 2 * 0x1p-23f) << value;
    up += value > 1.5f;
  }
  EXPECT_GT(up, 400);
  EXPECT_LT(up, 600);
}

TEST_F(PerturbationTest, WhatIsNotFiniteZeroOrAnIntegerStays) {
  Enable(1, 1);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> moved =
      Moved("x", {0, infinity, std::nanf(""), std::numeric_limits<float>::max()});
  EXPECT_EQ(moved[0], 0);
  EXPECT_EQ(moved[1], infinity);
  EXPECT_TRUE(std::isnan(moved[2]));
  EXPECT_TRUE(std::isfinite(moved[3]));
  int64_t count = 5;
  EXPECT_TRUE(Perturbation::Offer("n", &count, {}).ok());
  EXPECT_EQ(count, 5);
  EXPECT_EQ(Perturbation::Get().moved().count("n"), 0u);
}

TEST_F(PerturbationTest, TheSeedAndThePathSayHow) {
  Enable(1, 1, {"weights.*"});
  const std::vector<float> data(64, 1.0f);
  const std::vector<float> first = Moved("weights.a", data);
  EXPECT_EQ(Moved("weights.a", data), first);
  EXPECT_NE(Moved("weights.b", data), first);
  EXPECT_EQ(Moved("bias", data), data);
  Perturbation::Get().Disable();
  Enable(2, 1);
  EXPECT_NE(Moved("weights.a", data), first);
}

TEST_F(PerturbationTest, AllFloatingPointDTypesMoveByTheirOwnUnits) {
  Enable(1, 1);
  for (const DTypeInfo& info : kDTypes) {
    if (!IsFloatingPoint(info.dtype)) continue;
    VisitDType(info.dtype, [&](auto element) {
      using T = decltype(element);
      if constexpr (!std::is_integral_v<T> && !std::is_same_v<T, std::complex<float>> &&
                    !std::is_same_v<T, std::complex<double>>) {
        T value = FromDouble<T>(1.25);
        ASSERT_TRUE(Perturbation::OfferView("x", TensorView(&value, info.dtype, {}), &value).ok());
        EXPECT_NE(static_cast<double>(value), 1.25) << info.name;
        EXPECT_NEAR(static_cast<double>(value), 1.25, 0.26) << info.name;
      }
    });
  }
}

// Tests all numbers of a format with at most 16 bits.
template <typename T>
void ExpectFiniteStaysFinite() {
  std::vector<T> before(size_t{1} << (8 * sizeof(T)));
  for (size_t i = 0; i < before.size(); ++i) before[i].bits = static_cast<decltype(T::bits)>(i);
  std::vector<T> moved = before;
  const TensorView view(moved.data(), {static_cast<int64_t>(moved.size())});
  ASSERT_TRUE(Perturbation::OfferView("x", view, moved.data()).ok());
  for (size_t i = 0; i < before.size(); ++i) {
    if (std::isfinite(static_cast<float>(before[i]))) {
      EXPECT_TRUE(std::isfinite(static_cast<float>(moved[i]))) << Name(DTypeOf<T>()) << " " << i;
    } else {
      EXPECT_EQ(moved[i].bits, before[i].bits) << Name(DTypeOf<T>()) << " " << i;
    }
  }
}

TEST_F(PerturbationTest, FiniteNumbersStayFiniteAndOthersStay) {
  Enable(1, 1);
  ExpectFiniteStaysFinite<Float16>();
  ExpectFiniteStaysFinite<BFloat16>();
  ExpectFiniteStaysFinite<Float8E4M3>();
  ExpectFiniteStaysFinite<Float8E5M2>();
}

TEST_F(PerturbationTest, WhatMakesNoSenseIsRefused) {
  Perturbation::Options options;
  options.ulps = -1;
  EXPECT_TRUE(absl::IsInvalidArgument(Perturbation::Get().Enable(options)));
  Enable(1, 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(Perturbation::Get().Enable({})));
}

}  // namespace
}  // namespace ott
