#include "ott/core/tensor/element.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace ott {
namespace {

// The value of a small floating-point format by its definition: sign, exponent, mantissa.
double ByDefinition(int bits, int num_exponent_bits, int num_mantissa_bits, int bias) {
  const int mantissa = bits & ((1 << num_mantissa_bits) - 1);
  const int exponent = bits >> num_mantissa_bits & ((1 << num_exponent_bits) - 1);
  const int sign = bits >> (num_mantissa_bits + num_exponent_bits);
  const double fraction = std::ldexp(mantissa, -num_mantissa_bits);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return sign ? -magnitude : magnitude;
}

void ExpectSame(float actual, double expected, int bits) {
  EXPECT_EQ(actual, expected) << "bits " << bits;
  EXPECT_EQ(std::signbit(actual), std::signbit(expected)) << "bits " << bits;
}

// The highest exponent is of infinities and NaN, or all ones alone are NaN.
template <typename T, typename Bits>
void ExpectConvertsExactly(int num_exponent_bits, int num_mantissa_bits, bool has_infinities) {
  const int bias = (1 << (num_exponent_bits - 1)) - 1;
  const int mantissa = (1 << num_mantissa_bits) - 1;
  const int highest = ((1 << num_exponent_bits) - 1) << num_mantissa_bits;
  for (int bits = 0; bits <= std::numeric_limits<Bits>::max(); ++bits) {
    const float value = T{static_cast<Bits>(bits)};
    const bool is_special = (bits & highest) == highest;
    if (is_special && has_infinities && (bits & mantissa) == 0) {
      ExpectSame(value, bits >> (num_exponent_bits + num_mantissa_bits) ? -INFINITY : INFINITY, bits);
    } else if (is_special && (has_infinities || (bits & mantissa) == mantissa)) {
      EXPECT_TRUE(std::isnan(value)) << "bits " << bits;
    } else {
      ExpectSame(value, ByDefinition(bits, num_exponent_bits, num_mantissa_bits, bias), bits);
    }
  }
}

TEST(Element, EverySmallFloatConvertsExactly) {
  ExpectConvertsExactly<Float16, uint16_t>(5, 10, true);
  ExpectConvertsExactly<BFloat16, uint16_t>(8, 7, true);
  ExpectConvertsExactly<Float8E4M3, uint8_t>(4, 3, false);
  ExpectConvertsExactly<Float8E5M2, uint8_t>(5, 2, true);
}

// Every number of T survives; halfway points go to the even neighbour.
template <typename T, typename Bits>
void ExpectRoundsToNearest() {
  for (uint32_t bits = 0; bits <= std::numeric_limits<Bits>::max(); ++bits) {
    const T element = {static_cast<Bits>(bits)};
    const double value = element;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(FromDouble<T>(value))) << "bits " << bits;
      continue;
    }
    EXPECT_EQ(FromDouble<T>(value).bits, bits);
    const double next = T{static_cast<Bits>(bits + 1)};
    if (!std::isfinite(next) || std::signbit(next) != std::signbit(value)) continue;
    const double middle = value / 2 + next / 2;
    EXPECT_EQ(FromDouble<T>(middle).bits, bits % 2 == 0 ? bits : bits + 1) << "above bits " << bits;
    EXPECT_EQ(FromDouble<T>(std::nextafter(middle, value)).bits, bits);
    EXPECT_EQ(FromDouble<T>(std::nextafter(middle, next)).bits, bits + 1);
  }
}

TEST(Element, DoublesAreRoundedToTheNearestSmallFloat) {
  ExpectRoundsToNearest<Float16, uint16_t>();
  ExpectRoundsToNearest<BFloat16, uint16_t>();
  ExpectRoundsToNearest<Float8E4M3, uint8_t>();
  ExpectRoundsToNearest<Float8E5M2, uint8_t>();
}

TEST(Element, DoublesThatAreTooLargeBecomeInfiniteOrNaN) {
  EXPECT_EQ(FromDouble<Float16>(65519.99).bits, 0x7bff);
  EXPECT_EQ(FromDouble<Float16>(65520.0).bits, 0x7c00);
  EXPECT_EQ(FromDouble<Float16>(-1e300).bits, 0xfc00);
  EXPECT_EQ(FromDouble<BFloat16>(INFINITY).bits, 0x7f80);
  EXPECT_EQ(FromDouble<Float8E4M3>(464.0).bits, 0x7e);
  EXPECT_EQ(FromDouble<Float8E4M3>(465.0).bits, 0x7f);
  EXPECT_EQ(FromDouble<Float8E4M3>(-INFINITY).bits, 0xff);
}

template <typename T>
void ExpectRoundedAsTheTableSays() {
  const DType dtype = DTypeOf<T>();
  const auto rounded = [](double value) { return static_cast<double>(FromDouble<T>(value)); };
  const double next = 1 + 2 * UnitRoundoff(dtype);
  EXPECT_GT(next, 1) << Name(dtype);
  EXPECT_EQ(rounded(next), next) << Name(dtype);
  EXPECT_EQ(rounded(1 + UnitRoundoff(dtype)), 1) << Name(dtype);
  EXPECT_EQ(rounded(SmallestPositive(dtype)), SmallestPositive(dtype)) << Name(dtype);
  if (dtype != DType::kFloat64) {  // no double is smaller
    EXPECT_EQ(rounded(SmallestPositive(dtype) / 2), 0) << Name(dtype);
  }
  EXPECT_EQ(std::isinf(rounded(INFINITY)), InfoOf(dtype).has_infinities) << Name(dtype);
}

TEST(Element, NumbersAreRoundedAsTheTableSays) {
#define OTT_EXPECT(dtype, element, ...) ExpectRoundedAsTheTableSays<element>();
  OTT_FLOATING_POINT_DTYPES(OTT_EXPECT)
#undef OTT_EXPECT
  EXPECT_EQ(UnitRoundoff(DType::kComplex64), UnitRoundoff(DType::kFloat32));
  EXPECT_EQ(UnitRoundoff(DType::kComplex128), UnitRoundoff(DType::kFloat64));
  EXPECT_EQ(UnitRoundoff(DType::kInt64), 0);
  EXPECT_EQ(UnitRoundoff(DType::kBool), 0);
}

TEST(Element, EveryDTypeHasItsNameSizeAndType) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(Name(dtype)).value(), dtype);
    VisitDType(dtype, [&](auto element) {
      EXPECT_EQ(DTypeOf<decltype(element)>(), dtype);
      EXPECT_EQ(static_cast<int64_t>(sizeof(element)), SizeOf(dtype));
    });
  }
  EXPECT_EQ(ParseDType("float31").status().message(), "'float31' is not the name of a dtype");
  EXPECT_EQ(DTypeOf<long>(), DType::kInt64);
  EXPECT_EQ(DTypeOf<unsigned long long>(), DType::kUInt64);
}

}  // namespace
}  // namespace ott
