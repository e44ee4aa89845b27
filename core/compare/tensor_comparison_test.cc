#include "ott/core/compare/tensor_comparison.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/compare/report.h"
#include "ott/core/dump/json_writer.h"

namespace ott {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

template <typename T>
TensorView View(const std::vector<T>& elements) {
  return TensorView(elements.data(), {static_cast<int64_t>(elements.size())});
}

// Passes more than most people would want.
Tolerance Loose() {
  Tolerance tolerance;
  tolerance.atol = 0.1;
  tolerance.rtol = 0.1;
  return tolerance;
}

template <typename T>
TensorComparison Compare(const std::vector<T>& reference, const std::vector<T>& current,
                         Tolerance tolerance = {}) {
  TensorCompareOptions options;
  options.tolerance = tolerance;
  return CompareTensors(View(reference), View(current), options);
}

TEST(FailClosed, EqualBytesOfAnotherShapeDiffer) {
  const float data[6] = {};
  const TensorView none(nullptr, DType::kFloat32, {0, 3}), other(nullptr, DType::kFloat32, {0, 4});
  EXPECT_EQ(CompareTensors(none, other).status, CompareStatus::kShapeDiffers);
  const TensorComparison shape = CompareTensors(TensorView(data, {2, 3}), TensorView(data, {3, 2}));
  EXPECT_EQ(shape.status, CompareStatus::kShapeDiffers);
  EXPECT_EQ(shape.detail, "reference [2, 3], current [3, 2]");
}

TEST(FailClosed, WhatIsNoTolerancePassesNothing) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double none : {std::numeric_limits<double>::quiet_NaN(), -1.0, kInfinity}) {
    for (double Tolerance::*const field : {&Tolerance::atol, &Tolerance::rtol}) {
      Tolerance tolerance;
      tolerance.*field = none;
      const TensorComparison comparison = Compare<float>({1}, {1}, tolerance);
      EXPECT_EQ(comparison.status, CompareStatus::kCouldNotCompare) << none;
      EXPECT_EQ(comparison.detail, absl::StrCat("the tolerance atol ", tolerance.atol, ", rtol ",
                                                tolerance.rtol, " is no tolerance"));
    }
  }
}

TEST(CompareTensors, WhichSideIsRoundedToWhatIsSaid) {
  const float wide[2] = {1, 1.001f};
  const BFloat16 narrow[2] = {FromDouble<BFloat16>(1), FromDouble<BFloat16>(1.001)};
  const BFloat16 other[2] = {FromDouble<BFloat16>(1), FromDouble<BFloat16>(1.1)};
  TensorCompareOptions options;
  options.accept_rounded = true;
  const auto detail = [&](const auto& reference, const auto& current) {
    const TensorComparison result =
        CompareTensors(TensorView(reference, {2}), TensorView(current, {2}), options);
    EXPECT_TRUE(result.rounded);
    EXPECT_EQ(result.status,
              result.num_mismatched == 0 ? CompareStatus::kWithinTolerance : CompareStatus::kMismatch);
    return result.detail;
  };
  EXPECT_EQ(detail(wide, narrow), "the reference rounded to bfloat16 is the current");
  EXPECT_EQ(detail(narrow, wide), "the current rounded to bfloat16 is the reference");
  EXPECT_EQ(detail(wide, other), "the reference rounded to bfloat16 is not the current");
}

TEST(CompareTensors, OfAnyTwoDTypesItIsSaidWhetherTheyAreRoundedOrComparedAsNumbers) {
  const std::vector<char> zeros(16);
  for (int pair = 0; pair < kNumDTypes * kNumDTypes; ++pair) {
    const auto a = static_cast<DType>(pair / kNumDTypes), b = static_cast<DType>(pair % kNumDTypes);
    const auto compare = [&](bool accept_rounded, bool compare_dtype) {
      TensorCompareOptions options;
      options.accept_rounded = accept_rounded;
      options.compare_dtype = compare_dtype;
      return CompareTensors(TensorView(zeros.data(), a, {1}), TensorView(zeros.data(), b, {1}), options);
    };
    // One of two formats of the same size has more digits, and the other more exponents.
    const bool rounds = IsFloatingPoint(a) && IsFloatingPoint(b) && SizeOf(a) != SizeOf(b);
    EXPECT_EQ(compare(true, true).rounded, rounds) << Name(a) << Name(b);
    EXPECT_EQ(compare(true, true).dtype, b);
    EXPECT_EQ(compare(false, true).status,
              a == b ? CompareStatus::kBitwiseEqual : CompareStatus::kDTypeDiffers);
    EXPECT_EQ(compare(false, false).status, a == b                         ? CompareStatus::kBitwiseEqual
                                            : IsComplex(a) || IsComplex(b) ? CompareStatus::kDTypeDiffers
                                                                           : CompareStatus::kEqual);
  }
}

TEST(CompareTensors, ATensorThatWasRefusedIsEqualToNothing) {
  const float data[2] = {1, 2};
  const TensorView views[] = {TensorView(data, {2}), TensorView(nullptr, DType::kFloat32, {2})};
  for (const int pair : {1, 2, 3}) {
    const TensorComparison comparison = CompareTensors(views[pair & 1], views[pair >> 1], {});
    EXPECT_EQ(comparison.status, CompareStatus::kCouldNotCompare);
    EXPECT_EQ(comparison.detail, "a TensorView that was refused when it was made, as stderr says");
  }
}

TEST(FailClosed, IntegersBeyondDoublePrecisionDiffer) {
  const std::vector<int64_t> reference = {(int64_t{1} << 53) + 1};
  const std::vector<int64_t> current = {int64_t{1} << 53};
  ASSERT_EQ(static_cast<double>(reference[0]), static_cast<double>(current[0]));
  EXPECT_EQ(Compare(reference, current).status, CompareStatus::kMismatch);

  // The same number of another dtype, as from JSON.
  const double number = static_cast<double>(current[0]);
  TensorCompareOptions numbers;
  numbers.compare_dtype = false;
  const TensorComparison result = CompareTensors(View(reference), TensorView(&number, {1}), numbers);
  EXPECT_EQ(result.status, CompareStatus::kMismatch);
  EXPECT_EQ(result.worst[0].difference, -1);
  EXPECT_EQ(CompareTensors(View(current), TensorView(&number, {1}), numbers).status, CompareStatus::kEqual);
}

TEST(TensorComparison, ComplexNumbersDifferByTheirDistance) {
  using Complex = std::complex<float>;
  Tolerance tolerance;
  tolerance.atol = 4.9;
  const TensorComparison result = Compare<Complex>({{0, 0}, {1, 1}}, {{3, 4}, {1, 1}}, tolerance);
  EXPECT_EQ(result.status, CompareStatus::kMismatch);
  EXPECT_EQ(result.max_abs_error->error, 5);
  EXPECT_EQ(result.worst[0].current_text, "3+4j");
  // The figures are of the imaginary part, which differs.
  const ElementDifference imaginary = Compare<Complex>({{1, 2}}, {{1, 12}}, tolerance).worst.at(0);
  EXPECT_EQ(imaginary.reference, 2);
  EXPECT_EQ(imaginary.current, 12);
  tolerance.atol = 5;
  EXPECT_EQ(Compare<Complex>({{0, 0}}, {{3, 4}}, tolerance).status, CompareStatus::kWithinTolerance);
  EXPECT_EQ(Compare<Complex>({{0, kNaN}}, {{0, kNaN}}, Loose()).status, CompareStatus::kMismatch);
}

TEST(TensorComparison, MagnitudesThatNoDoubleHoldsAreComparedAllTheSame) {
  using Complex = std::complex<double>;
  const double huge = 1.7e308;
  Tolerance relative;
  relative.rtol = 1e-6;
  for (const Complex number : {Complex(huge, huge), Complex(-huge, huge), Complex(huge, 1)}) {
    EXPECT_EQ(Compare<Complex>({number}, {number}).status, CompareStatus::kBitwiseEqual);
    EXPECT_EQ(Compare<Complex>({number}, {Complex(1, 1)}, relative).status, CompareStatus::kMismatch);
    EXPECT_EQ(Compare<Complex>({number}, {-number}, relative).status, CompareStatus::kMismatch);
    const TensorComparison close = Compare<Complex>({number}, {number * (1 - 1e-7)}, relative);
    EXPECT_EQ(close.status, CompareStatus::kWithinTolerance);
    EXPECT_NEAR(close.max_rel_error->error, 1e-7, 1e-10);
    EXPECT_NEAR(close.passing_rtol, 1e-7, 1e-10);
    Tolerance absolute;
    absolute.atol = 0.9 * close.max_abs_error->error;
    EXPECT_EQ(Compare<Complex>({number}, {number * (1 - 1e-7)}, absolute).status, CompareStatus::kMismatch);
    absolute.atol = 1.1 * close.max_abs_error->error;
    EXPECT_EQ(Compare<Complex>({number}, {number * (1 - 1e-7)}, absolute).status,
              CompareStatus::kWithinTolerance);
  }
  EXPECT_EQ(Compare<double>({huge}, {-huge}, relative).status, CompareStatus::kMismatch);
  EXPECT_EQ(Compare<double>({huge}, {-huge}).passing_rtol, 2);
  relative.rtol = 1.5;
  EXPECT_EQ(Compare<double>({huge}, {-huge}, relative).status, CompareStatus::kMismatch);
}

// One element of each dtype changed by one bit.
TEST(TensorComparison, EveryDTypeIsCompared) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    std::vector<unsigned char> reference(5000 * SizeOf(dtype), 0);
    std::vector<unsigned char> current = reference;
    const TensorView reference_view(reference.data(), dtype, {5000});
    const TensorView current_view(current.data(), dtype, {5000});
    EXPECT_EQ(CompareTensors(reference_view, current_view).status, CompareStatus::kBitwiseEqual)
        << Name(dtype);
    current[3000 * SizeOf(dtype)] = 1;
    const TensorComparison result = CompareTensors(reference_view, current_view);
    EXPECT_EQ(result.status, CompareStatus::kMismatch) << Name(dtype);
    EXPECT_EQ(result.num_mismatched, 1) << Name(dtype);
    EXPECT_GT(result.max_abs_error->error, 0) << Name(dtype);
    EXPECT_EQ(result.first_bit_difference->element.position, 3000) << Name(dtype);
    EXPECT_EQ(result.first_bit_difference->flipped_bits, std::vector<int>{0}) << Name(dtype);
    EXPECT_EQ(result.first_bit_difference->ulp_distance,
              IsFloatingPoint(dtype) ? std::optional<uint64_t>(1) : std::nullopt)
        << Name(dtype);
  }
}

TEST(TensorComparison, ThreadsDoNotChangeTheResult) {
  // More than two chunks, the last of which is not full; differences, ties and NaN in each.
  constexpr int64_t kElements = 2500000;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> reference(kElements);
  for (float& element : reference) element = normal(random);
  std::vector<float> current = reference;
  for (int64_t i = 1000; i < kElements; i += 99991) current[i] += normal(random);
  for (const int64_t i : {5, 1500000, 2400000}) {
    reference[i] = 1;
    current[i] = 1e6;
  }
  current[1200000] = NAN;
  const TensorView reference_view(reference.data(), {kElements});
  const TensorView current_view(current.data(), {kElements});
  TensorCompareOptions options;
  options.num_threads = 1;
  const TensorComparison expected = CompareTensors(reference_view, current_view, options);
  EXPECT_EQ(expected.num_mismatched, 29);
  EXPECT_EQ(expected.max_abs_error->position, 5);
  EXPECT_EQ(expected.max_rel_error->position, 5);
  EXPECT_EQ(expected.first_bit_difference->element.position, 5);
  ASSERT_EQ(expected.worst.size(), 5u);
  EXPECT_EQ(expected.worst[0].position, 1200000);
  EXPECT_EQ(expected.worst[1].position, 5);
  EXPECT_EQ(expected.worst[3].position, 2400000);
  for (const int num_threads : {2, 3, 8}) {
    options.num_threads = num_threads;
    const TensorComparison actual = CompareTensors(reference_view, current_view, options);
    EXPECT_EQ(*ToJson(ToValue(NamedComparison{"w", actual})),
              *ToJson(ToValue(NamedComparison{"w", expected})));
  }
}

}  // namespace
}  // namespace ott
