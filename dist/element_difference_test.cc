#include "ott/dist/element_difference.h"

#include <cmath>
#include <complex>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::ElementsAre;

std::optional<uint64_t> Ulps(float a, float b) { return UlpDistance(DType::kFloat32, &a, &b); }

TEST(FirstDifferentElement, ComparesWholeElements) {
  EXPECT_EQ(FirstDifferentElement("aaaabbbb", "aaaabbxb", 4), 1);
  EXPECT_EQ(FirstDifferentElement("aaaabbbb", "aaaabbbb", 4), std::nullopt);
  EXPECT_EQ(FirstDifferentElement("", "", 4), std::nullopt);
}

TEST(MultiIndex, IsRowMajor) {
  EXPECT_THAT(MultiIndex(23, {2, 3, 4}), ElementsAre(1, 2, 3));
  EXPECT_THAT(MultiIndex(4, {2, 3, 4}), ElementsAre(0, 1, 0));
  EXPECT_THAT(MultiIndex(0, {}), ElementsAre());
}

TEST(UlpDistance, CountsRepresentableValues) {
  EXPECT_EQ(Ulps(1.0f, std::nextafter(1.0f, 2.0f)), 1);
  EXPECT_EQ(Ulps(std::nextafter(1.0f, 0.0f), std::nextafter(1.0f, 2.0f)), 2);
  EXPECT_EQ(Ulps(0.0f, -0.0f), 0);
  const float tiny = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(Ulps(-tiny, tiny), 2);
  EXPECT_EQ(Ulps(std::nanf(""), 1.0f), std::nullopt);
  const double largest = std::numeric_limits<double>::max();
  const double lowest = -largest;
  EXPECT_EQ(UlpDistance(DType::kFloat64, &largest, &lowest), 2 * 0x7fefffffffffffffu);
}

TEST(UlpDistance, IsTheDifferenceOfIntegers) {
  const int8_t low = -128;
  const int8_t high = 127;
  EXPECT_EQ(UlpDistance(DType::kInt8, &low, &high), 255);
  const uint64_t zero = 0;
  const uint64_t most = ~uint64_t{0};
  EXPECT_EQ(UlpDistance(DType::kUInt64, &zero, &most), most);
}

TEST(UlpDistance, OfComplexNumbersIsUndefined) {
  const std::complex<float> value(1, 2);
  EXPECT_EQ(UlpDistance(DType::kComplex64, &value, &value), std::nullopt);
}

TEST(FlippedBits, ListsPositionsFromTheLeastSignificant) {
  const uint32_t a = 0;
  const uint32_t b = 1u << 31 | 1u << 8 | 1u;
  EXPECT_THAT(FlippedBits(DType::kFloat32, &a, &b), ElementsAre(0, 8, 31));
}

TEST(BitName, NamesThePartsOfEachFormat) {
  EXPECT_EQ(BitName(DType::kFloat32, 31), "sign");
  EXPECT_EQ(BitName(DType::kFloat32, 23), "exponent");
  EXPECT_EQ(BitName(DType::kFloat32, 22), "mantissa");
  EXPECT_EQ(BitName(DType::kBFloat16, 7), "exponent");
  EXPECT_EQ(BitName(DType::kFloat8E4M3, 2), "mantissa");
  EXPECT_EQ(BitName(DType::kInt32, 3), "");
}

TEST(FormatElement, ReadsBackAsTheSameValue) {
  const float third = 1.0f / 3;
  EXPECT_EQ(FormatElement(DType::kFloat32, &third), "0.33333334");
  const double exact = 0.1;
  EXPECT_EQ(FormatElement(DType::kFloat64, &exact), "0.1");
  const uint16_t half = 0x3e00;
  EXPECT_EQ(FormatElement(DType::kFloat16, &half), "1.5");
  const int64_t integer = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(FormatElement(DType::kInt64, &integer), "-9223372036854775808");
  const bool yes = true;
  EXPECT_EQ(FormatElement(DType::kBool, &yes), "1");
  const std::complex<double> complex(1, -2);
  EXPECT_EQ(FormatElement(DType::kComplex128, &complex), "(1, -2)");
  const float nan = std::nanf("");
  EXPECT_EQ(FormatElement(DType::kFloat32, &nan), "nan");
}

}  // namespace
}  // namespace ott
