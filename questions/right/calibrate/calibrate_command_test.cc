#include "ott/questions/right/calibrate/calibrate_command.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/check/tolerance_file.h"
#include "ott/questions/answer/command_for_test.h"
#include "ott/questions/right/crosscheck/run_for_test.h"

namespace ott::calibrate {
namespace {

using testing::HasSubstr;

TEST(CalibrateCommand, WritesTolerancesOfRepetitions) {
  std::vector<std::string> runs;
  for (const float weight : {1.0f, 1.5f, 1.25f}) {
    runs.push_back(crosscheck::MakeRunForTest(std::to_string(weight), 1));
    crosscheck::WriteDumpForTest(runs.back(), 0, 0, {weight});
  }
  const std::string file = testing::TempDir() + "/calibrated.textproto";
  const auto run = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "calibrate");
    return RunForTest(&AddCalibrateCommand, words);
  };
  const auto [exit_code, text] = run({runs[0], runs[1], runs[2], "-o", file});
  EXPECT_EQ(exit_code, 0) << text;
  EXPECT_THAT(text, HasSubstr(file + ": tolerances of 1 tensors in 1 iterations, 9.92 times"));
  EXPECT_TRUE(ToleranceFile::Read(file).ok());
  EXPECT_THAT(run({runs[0], runs[1], "-o", file, "--factor", "7"}).second, HasSubstr("7 times what differs"));
  EXPECT_EQ(run({runs[0], runs[1], "-o", file}).first, 2);
  EXPECT_EQ(run({runs[0], runs[1], runs[2], "-o", file + "/none/file"}).first, 2);
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{runs[0], "-o", file},
                                                {runs[0], runs[1]},
                                                {runs[0], runs[1], "-o", file, "--factor", "0.5"}}) {
    EXPECT_EQ(run(wrong).first, -2);
  }
}

}  // namespace
}  // namespace ott::calibrate
