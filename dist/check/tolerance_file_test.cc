#include "ott/dist/check/tolerance_file.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
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

TEST(ToleranceFile, TolerancesAreThoseOfTheIteration) {
  const auto file = ReadText("iterations: [10, 20, 30] tensors { path: 'w' atol_at: [0.25, 1, 0.5] }");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(file->by_iteration());
  EXPECT_THAT(AtolsAt(*file, {10, 20, 30}), ElementsAre(0.25, 1, 0.5));
  EXPECT_THAT(AtolsAt(*file, {0, 15, 25, 31, 1000}), ElementsAre(0.25, 1, 1, 0.5, 0.5));
}

TEST(ToleranceFile, OneToleranceForAllIterationsIsRead) {
  const auto file = ReadText("factor: 3 tensors { path: '*' atol: 0.25 noise: 0.08 }");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE(file->by_iteration());
  EXPECT_EQ(file->At(7)[0].glob, "*");
  EXPECT_THAT(AtolsAt(*file, {0, 7}), ElementsAre(0.25, 0.25));
}

TEST(ToleranceFile, WhatIsWrittenIsReadAndIsNotTighter) {
  Tolerances tolerances;
  tolerances.add_iterations(0);
  tolerances.add_iterations(5);
  TensorTolerance& tensor = *tolerances.add_tensors();
  tensor.set_path("w");
  tensor.add_atol_at(0);
  tensor.add_atol_at(1.23456e-7);
  const std::string text = TolerancesToText(tolerances);
  EXPECT_THAT(text, HasSubstr("iterations: [0, 5]"));
  EXPECT_THAT(text, HasSubstr("atol_at: [0, 1.24e-07]"));
  const auto file = ReadText(text);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(AtolsAt(*file, {0})[0], 0);
  EXPECT_GE(AtolsAt(*file, {5})[0], 1.23456e-7);
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
