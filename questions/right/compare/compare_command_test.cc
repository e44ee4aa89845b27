#include "ott/questions/right/compare/compare_command.h"

#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/questions/answer/command_for_test.h"
#include "ott/questions/right/crosscheck/run_for_test.h"

namespace ott::compare {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST(CompareCommand, EachFlagChangesWhatIsEqual) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const auto write = [](const std::string& name, const Value& tree) {
    const std::string run = crosscheck::MakeRunForTest(name, 1);
    crosscheck::WriteTreeForTest(run, 0, 0, tree);
    return run;
  };
  const auto tensor = [](const std::vector<float>& elements) {
    return TensorView(elements.data(), {static_cast<int64_t>(elements.size())});
  };
  const std::vector<float> two = {2, 3}, off = {2, 3.25f}, unknown = {2, kNaN}, zero = {0, 1},
                           minus = {-0.0f, 1}, rounded = {2, 3.000002f};
  const std::string a = write("a", ValueMap{{"v", tensor(two)}, {"w", tensor(two)}});
  const auto b = [&](const std::vector<float>& w) {
    return write("b", ValueMap{{"v", tensor(two)}, {"w", tensor(w)}});
  };
  const auto run = [](std::vector<std::string> words) {
    words.insert(words.begin(), "compare");
    return RunForTest(&AddCompareCommand, words);
  };
  const auto exit_code = [&](const std::vector<std::string>& words) { return run(words).first; };
  EXPECT_EQ(exit_code({a, b(two)}), 0);
  EXPECT_EQ(exit_code({a, b(off)}), 1);
  EXPECT_EQ(exit_code({a, b(off), "--warn-only"}), 0);
  EXPECT_THAT(run({a, b({1, 3.25f})}).second, Not(HasSubstr("3.25")));
  EXPECT_THAT(run({a, b({1, 3.25f}), "--worst", "2"}).second, HasSubstr("3.25"));
  EXPECT_EQ(exit_code({a, b(off), "--atol", "0.25"}), 0);
  EXPECT_EQ(exit_code({a, b(off), "--rtol", "0.1"}), 0);
  EXPECT_EQ(exit_code({a, b(off), "--rtol", "0.01"}), 1);
  EXPECT_EQ(exit_code({a, b(off), "--tolerance", "w=0.25,0"}), 0);
  EXPECT_EQ(exit_code({a, b(off), "--tolerance", "w=0,0.1"}), 0);
  EXPECT_EQ(exit_code({a, b(off), "--tolerance", "v=1,0"}), 1);
  EXPECT_EQ(exit_code({a, b(off), "--tolerance", "w=0,0", "--tolerance", "*=1,0"}), 1);
  EXPECT_EQ(exit_code({a, b(rounded)}), 1);
  EXPECT_EQ(exit_code({a, b(rounded), "--default-tolerances"}), 0);
  for (const char* text : {"w", "w=1", "w=1,2,3", "w=-1,0", "w=0,-1", "w=x,0", "w=0,inf"}) {
    EXPECT_THAT(run({a, b(off), "--tolerance", text}).second, HasSubstr("needs GLOB=ATOL,RTOL")) << text;
  }
  const std::string z = write("zero", ValueMap{{"w", tensor(zero)}}),
                    m = write("minus", ValueMap{{"w", tensor(minus)}});
  EXPECT_EQ(exit_code({z, m}), 0);
  EXPECT_EQ(exit_code({z, m, "--bitwise"}), 1);
  const std::string nan = write("nan", ValueMap{{"w", tensor(unknown)}});
  EXPECT_EQ(exit_code({nan, b(unknown), "--allow-extra"}), 1);
  EXPECT_EQ(exit_code({nan, b(unknown), "--allow-extra", "--nan-equal"}), 0);
  EXPECT_EQ(exit_code({nan, b(unknown), "--allow-extra", "--nan-equal", "--tolerance", "w=1,0"}), 0);
  EXPECT_EQ(exit_code({nan, b(unknown), "--allow-extra", "--nan-equal", "--default-tolerances"}), 0);
  EXPECT_EQ(exit_code({nan, b(unknown), "--nan-equal"}), 1);
  EXPECT_EQ(exit_code({b(unknown), nan, "--nan-equal", "--allow-extra"}), 1);
  EXPECT_EQ(exit_code({b(unknown), nan, "--nan-equal", "--allow-missing"}), 0);
  const std::string swapped = write("swapped", ValueMap{{"w", tensor(two)}, {"v", tensor(two)}});
  EXPECT_EQ(exit_code({a, swapped}), 0);
  EXPECT_EQ(exit_code({a, swapped, "--order"}), 1);
  std::filesystem::copy(a, swapped + "/attempt_2", std::filesystem::copy_options::recursive);
  EXPECT_THAT(run({a, swapped}).second, HasSubstr("ott compare: " + swapped));
  const std::string text = write("text", ValueMap{{"note", "same"}}),
                    same = write("same", ValueMap{{"note", "same"}}),
                    other = write("other", ValueMap{{"note", "other"}});
  EXPECT_EQ(exit_code({text, same}), 2);
  EXPECT_EQ(exit_code({text, same, "--allow-empty"}), 0);
  EXPECT_EQ(exit_code({text, other, "--allow-empty"}), 1);
  const std::string empty = write("empty", ValueMap{{"w", TensorView(two.data(), {0})}}),
                    as_empty = write("as_empty", ValueMap{{"w", TensorView(two.data(), {0})}});
  EXPECT_EQ(exit_code({empty, as_empty}), 2);
  EXPECT_EQ(exit_code({empty, as_empty, "--allow-empty"}), 0);
  const std::string tolerances = testing::TempDir() + "/tolerances.textproto";
  ASSERT_TRUE(WriteFileAtomically(tolerances, "iterations: 0 tensors { path: \"w\" atol_at: 0.25 }").ok());
  EXPECT_EQ(exit_code({a, b(off), "--tolerances", tolerances}), 0);
  EXPECT_EQ(exit_code({a, b(off), "--tolerances", tolerances + "x"}), 2);
  EXPECT_EQ(exit_code({a, b(off), "--names", tolerances}), 2);
  EXPECT_EQ(exit_code({a, a + "/none"}), 2);
  const std::string one = testing::TempDir() + "/one.pkl", other_one = testing::TempDir() + "/other_one.pkl";
  for (const std::string& path : {one, other_one}) {
    const std::string pickled("\x80\x02}X\x01\x00\x00\x00wK\x01s.", 13);
    ASSERT_TRUE(WriteFileAtomically(path, pickled).ok());
  }
  EXPECT_EQ(exit_code({one, other_one, "--tolerance", "w=1,0"}), 0);
  EXPECT_THAT(run({one, other_one, "--tolerances", tolerances}).second, HasSubstr("are of dumps"));
  // Formats, and where they go.
  EXPECT_THAT(run({a, b(off)}).second, AllOf(StartsWith("reference "), HasSubstr("verdict: different\n")));
  EXPECT_THAT(run({a, b(off), "--format", "json"}).second, AllOf(StartsWith("{"), HasSubstr("\"answers\"")));
  EXPECT_THAT(run({a, b(off), "--format", "csv"}).second, HasSubstr("\n0,0,w,mismatch,"));
  EXPECT_THAT(run({a, b(off), "--format", "junit"}).second,
              HasSubstr("<testsuite name=\"iteration 0, rank 0\" tests=\"3\""));
  const std::string report = testing::TempDir() + "/report.csv";
  EXPECT_THAT(run({a, b(off), "--format", "csv", "-o", report}).second, StartsWith("reference "));
  EXPECT_THAT(ReadFile(report).value(), HasSubstr("\n0,0,w,mismatch,"));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{a},
                                                {a, b(off), "--bitwise", "--atol", "1"},
                                                {a, b(off), "--atol", "-1"},
                                                {a, b(off), "--default-tolerances", "--rtol", "1"},
                                                {a, b(off), "--format", "xml"}}) {
    EXPECT_EQ(exit_code(wrong), -2);
  }
}

TEST(CompareCommand, AGuessOfNamesIsNoPassUntilSomebodyLooksAtItsRules) {
  std::string paths[2];
  for (const bool is_b : {false, true}) {
    const std::string header =
        absl::StrCat("{\"", is_b ? "y.w" : "x.w", R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})");
    paths[is_b] = testing::TempDir() + (is_b ? "/b.safetensors" : "/a.safetensors");
    const std::string size = std::string(1, static_cast<char>(header.size())) + std::string(7, '\0');
    ASSERT_TRUE(WriteFileAtomically(paths[is_b], size + header + "elements").ok());
  }
  const std::string rules = testing::TempDir() + "/rules.textproto";
  const auto [exit_code, text] =
      RunForTest(&AddCompareCommand, {"compare", paths[0], paths[1], "--bitwise", "--guess-names", rules});
  EXPECT_EQ(exit_code, 2) << text;
  EXPECT_THAT(text, AllOf(HasSubstr("weights equal (1)"),
                          HasSubstr("which tensors go together was guessed: 1 by equal elements. A guess is "
                                    "no pass: look at the rules in " +
                                    rules + ", then compare with --names " + rules)));
  EXPECT_THAT(ReadFile(rules).value(),
              StartsWith("# A guess of `ott compare`, by which tensors went together: "
                         "1 by equal elements.\n# Look at each rule"));
  const auto [kept, said] =
      RunForTest(&AddCompareCommand, {"compare", paths[0], paths[1], "--bitwise", "--names", rules});
  EXPECT_EQ(kept, 0) << said;
}

}  // namespace
}  // namespace ott::compare
