#include "ott/dist/check/tolerance_file.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<ToleranceFile> ReadText(const std::string& text) {
  const std::string path = testing::TempDir() + "tolerances.textproto";
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return ToleranceFile::Read(path);
}

std::vector<double> AtolsAt(const ToleranceFile& file, const std::vector<int64_t>& iterations) {
  std::vector<double> atols;
  for (const int64_t iteration : iterations) atols.push_back(file.At(iteration)[0].tolerance.atol);
  return atols;
}

TEST(ToleranceFile, TolerancesAreThoseOfTheIterationOrOneForAll) {
  const auto by_iteration =
      ReadText("iterations: [10, 20, 30] tensors { path: 'w' atol_at: [0.25, 1, 0.5] }").value();
  EXPECT_TRUE(by_iteration.by_iteration());
  EXPECT_THAT(AtolsAt(by_iteration, {10, 20, 30}), ElementsAre(0.25, 1, 0.5));
  EXPECT_THAT(AtolsAt(by_iteration, {0, 15, 25, 31, 1000}), ElementsAre(0.25, 1, 1, 0.5, 0.5));
  const auto one = ReadText("factor: 3 tensors { path: '*' atol: 0.25 noise: 0.08 }").value();
  EXPECT_FALSE(one.by_iteration());
  EXPECT_EQ(one.At(7)[0].glob, "*");
  EXPECT_THAT(AtolsAt(one, {0, 7}), ElementsAre(0.25, 0.25));
}

TEST(ToleranceFile, WhatIsWrittenHasThreeDigitsAndIsLooserByAHundredthAtMost) {
  std::mt19937 random(1);
  // Some are a little more than a number of three digits.
  const auto number = [&random] {
    const double digits = static_cast<double>(random() % 4 == 0 ? 0 : 100 + random() % 900);
    const double three = digits * std::pow(10, static_cast<double>(random() % 30) - 20);
    const uint32_t kind = random() % 3;
    return kind == 0 ? three : kind == 1 ? std::nextafter(three, 2 * three) : three * 1.0004;
  };
  const auto has_three_digits = [](double of) { return of == std::stod(absl::StrFormat("%.3g", of)); };
  for (int trial = 0; trial < 300; ++trial) {
    Tolerances before, after;
    before.add_iterations(0);
    before.add_iterations(5);
    before.set_factor(number());
    TensorTolerance& tensor = *before.add_tensors();
    tensor.set_path("w");
    tensor.set_atol(number());
    tensor.set_noise(number());
    for (int i = 0; i < 2; ++i) tensor.add_atol_at(number());
    const std::string text = TolerancesToText(before);
    EXPECT_THAT(text, HasSubstr("iterations: [0, 5]"));
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &after)) << text;
    EXPECT_EQ(after.tensors(0).path(), "w");
    const auto all = [](const Tolerances& of) {
      const TensorTolerance& first = of.tensors(0);
      return std::vector<double>{of.factor(), first.atol(), first.noise(), first.atol_at(0),
                                 first.atol_at(1)};
    };
    for (size_t i = 0; i < all(before).size(); ++i) {
      const double was = all(before)[i], is = all(after)[i];
      EXPECT_GE(is, was);
      EXPECT_LE(is, 1.0101 * was);
      EXPECT_TRUE(has_three_digits(is) || has_three_digits(std::nextafter(is, 0))) << is;
    }
  }
}

TEST(ToleranceFile, WhatIsNoneIsRefusedByName) {
  const auto message = [](const std::string& text) { return std::string(ReadText(text).status().message()); };
  EXPECT_THAT(message("tensors { path: 'w' atol: -1 }"), HasSubstr("tolerances.textproto: w: atol -1"));
  EXPECT_THAT(message("iterations: 1 tensors { path: 'w' atol_at: nan }"), HasSubstr("w: atol nan"));
  EXPECT_THAT(message("iterations: [1, 1]"), HasSubstr("1 follows 1"));
  EXPECT_THAT(message("iterations: [1, 2] tensors { path: 'w' atol_at: 1 }"),
              HasSubstr("w: atol_at has 1 entries for 2 iterations"));
  EXPECT_THAT(message("tensors {"), HasSubstr("tolerances.textproto:1"));
}

}  // namespace
}  // namespace ott
