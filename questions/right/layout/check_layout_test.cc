#include "ott/questions/right/layout/check_layout.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/tensor/value.h"
#include "ott/questions/right/crosscheck/run_for_test.h"
#include "ott/questions/right/layout/layout_text.h"
#include "ott/questions/right/layout/path_pattern.h"
#include "ott/questions/right/layout/rank_dump.h"
#include "questions/right/layout/tensors_for_test.h"

namespace ott::crosscheck {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Layout ParseLayout(const std::string& text) {
  Layout layout;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &layout)) << text;
  return layout;
}

// Two runs of this test, and their comparison.
class CheckLayoutTest : public testing::Test {
 protected:
  // The trees of all ranks in iteration 0.
  std::string WriteRun(const std::string& name, const std::vector<Value>& trees) {
    std::string dir = MakeRunForTest(name, static_cast<int>(trees.size()));
    for (size_t rank = 0; rank < trees.size(); ++rank)
      WriteTreeForTest(dir, static_cast<int>(rank), 0, trees[rank]);
    return dir;
  }

  void WriteRuns(const std::vector<Value>& a, const std::vector<Value>& b) {
    a_ = WriteRun("a", a);
    b_ = WriteRun("b", b);
  }

  LayoutVerdict Check(const std::string& layout, const LayoutOptions& options = {}) {
    const auto verdicts = CheckLayout(a_, b_, ParseLayout(layout), options);
    EXPECT_TRUE(verdicts.ok()) << verdicts.status();
    if (!verdicts.ok() || verdicts->size() != 1) return {};
    text_ = LayoutVerdictsToText(*verdicts);
    return (*verdicts)[0];
  }

  // Something could not be compared, for this reason among others.
  void ExpectNotCompared(const std::string& layout, const std::string& reason) {
    EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
    EXPECT_THAT(text_, HasSubstr(reason));
  }

  // Why nothing could be compared.
  std::string ErrorOf(const std::string& layout) {
    const auto verdicts = CheckLayout(a_, b_, ParseLayout(layout), {});
    EXPECT_FALSE(verdicts.ok());
    return std::string(verdicts.status().message());
  }

  std::string a_;
  std::string b_;
  std::string text_;
};

TEST(PathPattern, KeepsWhatItMatched) {
  const auto pattern = PathPattern::Parse("layers.{layer}.*");
  ASSERT_TRUE(pattern.ok());
  const auto captures = pattern->Match("layers.3.mlp.w1");
  ASSERT_TRUE(captures.has_value());
  EXPECT_EQ(PathPattern::Parse("h{layer}/*")->Expand(*captures), "h3/mlp.w1");
  EXPECT_FALSE(pattern->Match("layers..mlp").has_value());
  EXPECT_FALSE(pattern->Match("layers.3").has_value());
  for (const auto& [text, matches] : {std::pair("{a}.w", false), {"*.w", true}, {"{a}.{b}.w", true}})
    EXPECT_EQ(PathPattern::Parse(text)->Match("x.y.w").has_value(), matches) << text;
  // Quickly: places that failed are not tried again.
  const std::string stars = "*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(PathPattern::Parse(stars)->Match(std::string(300, 'a')).has_value());
  for (const char* const wrong : {"{", "}", "{}", "{a", "{a.b}", "{a}{a}", "a}"}) {
    EXPECT_FALSE(PathPattern::Parse(wrong).ok()) << wrong;
  }
}

TEST(RankDump, KeepsNoFileMapped) {
  const std::string run = MakeRunForTest("mapped", 1);
  WriteTreeForTest(run, 0, 0, ValueMap{{"weights", Count({64, 64})}, {"step", 3}});
  const auto dump = RankDump::Read(DumpsDirectory(run, 0) + "/0").value();
  const auto num_mapped = [] {
    std::ifstream maps("/proc/self/maps");
    const std::string text{std::istreambuf_iterator<char>(maps), {}};
    return text.find("weights.bin") != text.npos;
  };
  EXPECT_FALSE(num_mapped());
  const auto weights = dump.Open(0).value();
  EXPECT_TRUE(num_mapped());
  EXPECT_EQ(static_cast<const float*>(weights.view.data())[4095], 4095);
}

TEST(RankDump, WhatStandsForATensorStandsAlone) {
  const RankDump dump = RankDump::Of(ValueMap{{"a", ValueMap{{"tensor_statistics", ValueMap{{"x", 1}}}}},
                                              {"b", ValueMap{{"tensor_statistics", 1}, {"y", 2}}}});
  ASSERT_EQ(dump.tensors().size(), 3u);
  EXPECT_EQ(
      RankDump::Of(ValueMap{{"a", ValueMap{{"tensor_image", ValueMap{{"x", 1}}}}}}).tensors()[0].problem,
      "was dumped as an image, without its elements");
  EXPECT_EQ(dump.tensors()[0].problem, "was dumped as statistics, without its elements");
  EXPECT_EQ(dump.tensors()[1].path, "b.tensor_statistics");
  EXPECT_EQ(dump.tensors()[1].problem, "");
}

TEST_F(CheckLayoutTest, UnevenPartsFollowEachOtherWithoutTheirPadding) {
  WriteRuns({ValueMap{{"w", Count({5, 2})}}},
            {ValueMap{{"w", Count({3, 2})}}, ValueMap{{"w", Floats({3, 2}, {6, 7, 80, 9, -1, -1})}}});
  // Both runs have the same rules.
  EXPECT_EQ(
      Check(R"(a { mesh { axes { name: "tensor" size: 1 } } } b { mesh { axes { name: "tensor" size: 2 } } }
                tensors { path: "w*" whole: "w" split { dim: 0 axis: "tensor" } padding { dim: 0 size: 5 } })")
          .outcome(),
      DIFFERENT);
  EXPECT_THAT(text_, AllOf(HasSubstr(a_ + ": 1 rank = "), HasSubstr(b_ + ": 2 ranks = ")));
  EXPECT_THAT(
      text_,
      HasSubstr("is \"w\"; dim 0 split over tensor; dim 0 padded from 5: 1 tensor, such as \"w\" [5, 2]: "
                "dim 0 = 3 + 3, 1 of padding in dim 0"));
  EXPECT_THAT(text_,
              HasSubstr("first divergence: iteration 0: DIFFER in tensor \"w\" (float32 [5, 2]), in b on "
                        "rank 1 alone: 1 of 4 elements, max abs error 72\n"
                        "    element [4, 0]: 80 in b, rank 1, \"w\" [1, 0]; 8 in a, rank 0, \"w\" [4, 0]"));
}

TEST_F(CheckLayoutTest, SectionsMayAlternateInGroups) {
  // Two groups of two queries, a key and a value.
  WriteRuns(
      {ValueMap{
          {"q", Floats({4}, {0, 1, 2, 3})}, {"k", Floats({2}, {10, 11})}, {"v", Floats({2}, {20, 21})}}},
      {ValueMap{{"qkv", Floats({8}, {0, 1, 10, 20, 2, 3, 11, 21})}}});
  const char* const layout = R"(
      b { tensors { path: "qkv" fused { dim: -1 group: 4 sections { whole: "q" share: 2 } sections { whole: "k" }
                                        sections { whole: "v" } } } })";
  EXPECT_EQ(Check(layout).outcome(), BITWISE_EQUAL) << text_;
  EXPECT_THAT(text_,
              HasSubstr("dim -1 holds \"q\" (2/4), \"k\" (1/4), \"v\" (1/4) in groups of 4: 3 tensors"));
}

TEST_F(CheckLayoutTest, MoreGroupsThanAnyModelHasAreRefused) {
  WriteRuns({ValueMap{{"k", Count({65537})}}}, {ValueMap{{"kv", Count({2 * 65537})}}});
  ExpectNotCompared(
      R"(b { tensors { path: "kv" fused { group: 2 sections { whole: "k" } sections { whole: "v" } } } })",
      "more than 65536 groups of 2");
}

TEST_F(CheckLayoutTest, StagesOfAPipelineCountTheirLayersFromZero) {
  const auto layers = [](const std::vector<float>& firsts) {
    ValueMap map;
    for (size_t i = 0; i < firsts.size(); ++i)
      map.Insert(std::to_string(i), ValueMap{{"w", Count({2}, firsts[i])}});
    return ValueMap{{"layers", map}};
  };
  WriteRuns({layers({0, 10, 20})}, {layers({0, 20}), layers({10})});
  const char* const layout = R"(
      b { mesh { axes { name: "pipeline" size: 2 own_tensors: true } }
          tensors { path: "layers.{layer}.*" numbers { name: "layer" axis: "pipeline" positions: [0, 1, 0] } } })";
  EXPECT_EQ(Check(layout).outcome(), BITWISE_EQUAL) << text_;
  const char* const wrong = R"(
      b { mesh { axes { name: "pipeline" size: 2 own_tensors: true } }
          tensors { path: "layers.{layer}.*" numbers { name: "layer" axis: "pipeline" positions: [0, 1] } } })";
  ExpectNotCompared(wrong, "b: rank 0: \"layers.1.w\": {layer} is \"1\", and rank 0 holds 1 of them");
  EXPECT_THAT(text_, HasSubstr("\"layers.2.w\": a has it, b has not"));
  WriteRuns({layers({0, 10, 20, 30})}, {layers({0, 10}), layers({20, 30})});
  const char* const counted = R"(
      b { mesh { axes { name: "pipeline" size: 2 own_tensors: true } }
          tensors { path: "layers.{layer}.*" numbers { name: "layer" axis: "pipeline" count: 4 } } })";
  EXPECT_EQ(Check(counted).outcome(), BITWISE_EQUAL) << text_;
}

// Each run sums, or averages, over two axes of random sizes. b's last addend makes up for all others, but for
// what rounding may explain.
TEST_F(CheckLayoutTest, SumsAreComparedWithinTheirRounding) {
  constexpr int kSize = 64;
  std::mt19937 random(1);
  for (int trial = 0; trial < 16; ++trial) {
    std::vector<std::vector<float>> ranks[2];
    std::string layout, axes[2];
    int divisor[2] = {1, 1};
    for (const int run : {0, 1}) {
      absl::StrAppend(&layout, run == 0 ? "a" : "b", " { mesh { ");
      std::string rule;
      std::vector<std::string> sums, averages;
      size_t num_ranks = 1;
      for (const char* const axis : {"t", "e"}) {
        const int size = 1 + static_cast<int>(random() % 3);
        const bool is_average = random() % 2 == 0;
        num_ranks *= size;
        if (is_average) divisor[run] *= size;
        absl::StrAppend(&layout, "axes { name: \"", axis, "\" size: ", size, " } ");
        absl::StrAppend(&rule, is_average ? "average" : "sum", ": \"", axis, "\" ");
        (is_average ? averages : sums).push_back(axis);
      }
      sums.insert(sums.end(), averages.begin(), averages.end());
      axes[run] = absl::StrJoin(sums, ", ");
      absl::StrAppend(&layout, "} tensors { path: \"*\" ", rule, "} } ");
      ranks[run].assign(num_ranks, std::vector<float>(kSize));
    }
    int num_mismatched = 0, num_different = 0, worst = -1;
    double largest = 0, largest_mismatch = 0;
    for (int i = 0; i < kSize; ++i) {
      long double sums[2] = {0, 0}, bounds[2] = {0, 0};
      for (auto& of_run : ranks) {
        for (auto& rank : of_run) rank[i] = static_cast<float>(static_cast<int>(random() % 200) - 100) / 8;
      }
      for (const auto& rank : ranks[0]) sums[0] += rank[i];
      for (const auto& rank : ranks[1]) sums[1] += rank[i];
      float& last = ranks[1].back()[i];
      const int num_steps = static_cast<int>(random() % 7 * ranks[1].size()) * (random() % 3 > 0);
      last += static_cast<float>(sums[0] / divisor[0] * divisor[1] - sums[1]);
      last += static_cast<float>(num_steps) * std::max(std::abs(last), 1.0f) * 0x1p-24f;
      for (const int run : {0, 1}) {
        sums[run] = 0;
        for (const auto& rank : ranks[run]) {
          sums[run] += rank[i];
          bounds[run] += std::abs(rank[i]) * 0x1p-24L;
        }
        sums[run] /= divisor[run];
        bounds[run] *= static_cast<long double>(ranks[run].size()) / divisor[run];
      }
      const auto error = static_cast<double>(std::abs(sums[1] - sums[0]));
      num_different += error > 0;
      largest = std::max(largest, error);
      const bool are_sums = ranks[0].size() + ranks[1].size() > 2;
      if (error == 0 || (are_sums && error <= bounds[0] + bounds[1])) continue;
      ++num_mismatched;
      if (error > largest_mismatch) worst = i;
      largest_mismatch = std::max(largest_mismatch, error);
    }
    std::vector<Value> trees[2];
    for (const int run : {0, 1}) {
      for (const auto& rank : ranks[run]) trees[run].push_back(ValueMap{{"y", Floats({kSize}, rank)}});
    }
    WriteRuns(trees[0], trees[1]);
    const LayoutVerdict verdict = Check(layout);
    EXPECT_EQ(verdict.outcome(), num_mismatched > 0  ? DIFFERENT
                                 : num_different > 0 ? WITHIN_TOLERANCE
                                                     : BITWISE_EQUAL)
        << layout << text_;
    EXPECT_EQ(verdict.max_abs_error(), largest);
    for (const int run : {0, 1}) {
      EXPECT_THAT(text_,
                  HasSubstr(absl::StrCat("the sum over ", axes[run],
                                         divisor[run] > 1 ? absl::StrCat(" divided by ", divisor[run]) : "",
                                         ": 1 tensor")));
    }
    ASSERT_EQ(verdict.differences_size(), num_mismatched > 0);
    if (num_mismatched == 0) continue;
    const LayoutDifference& difference = verdict.differences(0);
    EXPECT_EQ(difference.num_mismatched(), num_mismatched) << trial;
    EXPECT_EQ(difference.num_bits_differ(), num_different);
    EXPECT_EQ(difference.num_ranks(), ranks[1].size());
    EXPECT_THAT(difference.index(), ElementsAre(worst));
    EXPECT_EQ(difference.found().ranks_size(), ranks[1].size());
    EXPECT_EQ(difference.expected().ranks_size(), ranks[0].size());
  }
}

TEST_F(CheckLayoutTest, SumsThatAreNotFiniteOrHaveAToleranceAreComparedByThat) {
  const float infinity = std::numeric_limits<float>::infinity();
  struct Case {
    float a;
    std::vector<float> b;
    std::optional<Tolerance> tolerance;
    Outcome outcome;
  };
  for (const auto& [a, b, tolerance, outcome] :
       std::vector<Case>{{0.3f, {0.1f, 0.2001f}, Tolerance{1e-3, 0}, WITHIN_TOLERANCE},
                         // The tolerance is relative to the reference.
                         {10, {5, 6.05f}, Tolerance{0, 0.1}, DIFFERENT},
                         {10, {5, 6.05f}, Tolerance{0, 0.11}, WITHIN_TOLERANCE},
                         // An infinity is no rounding.
                         {infinity, {2, 2}, std::nullopt, DIFFERENT},
                         {infinity, {2, 2}, Tolerance{0, 1e-3}, DIFFERENT},
                         {2, {2, infinity}, std::nullopt, DIFFERENT},
                         {infinity, {2, infinity}, std::nullopt, BITWISE_EQUAL},
                         {infinity - infinity, {2, infinity - infinity}, std::nullopt, BITWISE_EQUAL},
                         {infinity - infinity, {2, 2}, Tolerance{9, 0}, DIFFERENT}}) {
    const auto tree = [](float number) { return Value(ValueMap{{"y", Floats({1}, {number})}}); };
    WriteRuns({tree(a)}, {tree(b[0]), tree(b[1])});
    LayoutOptions options;
    options.tolerance = tolerance;
    EXPECT_EQ(Check(R"(b { mesh { axes { name: "t" size: 2 } } tensors { path: "*" sum: "t" } })", options)
                  .outcome(),
              outcome)
        << a << " " << text_;
    EXPECT_EQ(text_.find("in b, the sum of ranks 0, 1, \"y\" [0]") != text_.npos, outcome == DIFFERENT);
  }
}

TEST_F(CheckLayoutTest, ZerosOfTwoSignsAreNotEqualBitForBit) {
  WriteRuns({ValueMap{{"x", Floats({2}, {0, 1})}}}, {ValueMap{{"x", Floats({2}, {-0.0f, 1})}}});
  EXPECT_EQ(Check("").outcome(), DIFFERENT) << text_;
  EXPECT_THAT(text_, HasSubstr("such as \"x\" [2]\n"));
  LayoutOptions options;
  options.tolerance.emplace().atol = 1;
  EXPECT_EQ(Check("", options).outcome(), WITHIN_TOLERANCE) << text_;
}

TEST_F(CheckLayoutTest, WhatMatchesNothingIsNeverAPass) {
  WriteRuns({ValueMap{{"x", Count({2})}, {"only_a", 1}}}, {ValueMap{{"x", Count({2})}, {"only_b", 1}}});
  ExpectNotCompared("", "NOT COMPARED: \"only_a\": a has it, b has not");
  EXPECT_THAT(text_, HasSubstr("NOT COMPARED: \"only_b\": b has it, a has not"));
  EXPECT_EQ(Check(R"(a { ignore: "only_*" } b { ignore: "only_*" })").outcome(), BITWISE_EQUAL) << text_;
  EXPECT_THAT(text_, HasSubstr("ignored: 1 tensors of ranks"));
  ExpectNotCompared(R"(a { ignore: "only_a" } b { tensors { path: "x" } })",
                    "b: no rule matches \"only_b\", which 1 rank holds");
  ExpectNotCompared(
      R"(a { ignore: "only_a" } b { tensors { path: "z" } tensors { path: "*" } ignore: "only_b" })",
      "b: no tensor matches the rule for \"z\"");
  EXPECT_THAT(text_, HasSubstr(": 0 tensors\n"));
  ExpectNotCompared(R"(a { ignore: "*" } b { ignore: "*" })", "there is no element to compare");
}

TEST_F(CheckLayoutTest, PartsThatDoNotAddUpAreNamed) {
  const char* const layout =
      R"(b { mesh { axes { name: "tensor" size: 2 } } tensors { path: "w" split { dim: 0 axis: "tensor" } } })";
  const Value three = ValueMap{{"w", Count({3, 2})}}, none = ValueMap{{"v", 1}};
  a_ = WriteRun("a", {ValueMap{{"w", Count({5, 2})}}});
  const auto expect = [&](const std::vector<Value>& b, const std::string& reason,
                          const std::string& under = "") {
    b_ = WriteRun("b", b);
    ExpectNotCompared(under.empty() ? layout : under, reason);
  };
  expect({three, three}, "\"w\": a has [5, 2], b [6, 2] (dim 0 = 3 + 3): parts are missing, or overlap");
  expect({three, ValueMap{{"w", Count({2, 3})}}}, "its parts do not fit: [3, 2] on rank 0, [2, 3] on rank 1");
  expect({three, ValueMap{{"w", 1.5}}}, "its parts are float32 on rank 0 and float64 on rank 1");
  expect({ValueMap{{"w", TensorView("ab", DType::kUInt8, {2})}}, ValueMap{{"w", "ab"}}},
         "its parts are uint8 on rank 0 and uint8 on rank 1");
  expect({three, none, none, none, none, none},
         "parts are missing on rank 1, rank 2, rank 3, rank 4 and 1 more\n",
         R"(b { tensors { path: "w" } ignore: "v" })");
  expect({three, none}, "\"w\" of b: parts are missing on rank 1");
  std::filesystem::remove_all(DumpsDirectory(b_, 1));
  ExpectNotCompared(layout, "b: rank 1 has no dump: ");
}

TEST_F(CheckLayoutTest, OnePlaceIsClaimedOnce) {
  WriteRuns({ValueMap{{"w", Count({2})}}}, {ValueMap{{"u", Count({2})}, {"v", Count({2})}}});
  ExpectNotCompared(R"(b { tensors { path: "{name}" whole: "w" } })",
                    "\"w\" of b: it is there twice: rank 0 as \"u\", and rank 0 as \"v\"");
  ExpectNotCompared(R"(b { tensors { path: "u" whole: "w" } tensors { path: "v" whole: "w" } })",
                    "two rules make it");
}

TEST_F(CheckLayoutTest, OneRunIsComparedWithItselfUnderAnotherLayoutOnly) {
  WriteRuns({ValueMap{{"x", Count({2})}}, ValueMap{{"x", Count({2})}}}, {ValueMap{{"x", Count({2})}}});
  b_ = a_;
  EXPECT_THAT(ErrorOf(""), HasSubstr("would be compared with itself"));
  EXPECT_EQ(Check(R"(b { tensors { path: "x" one_of: "rank" } })").outcome(), BITWISE_EQUAL) << text_;
}

TEST_F(CheckLayoutTest, OfReplicasThatOneStageHoldsTheFirstIsCompared) {
  const Value none = ValueMap(), x = ValueMap{{"x", Count({2})}}, other = ValueMap{{"x", Count({2}, 7)}};
  const char* const layout =
      R"(b { mesh { axes { name: "stage" size: 2 own_tensors: true } axes { name: "data" size: 2 } }
             tensors { path: "x" one_of: "stage" one_of: "data" } })";
  WriteRuns({x}, {none, none, x, other});
  EXPECT_EQ(Check(layout).outcome(), BITWISE_EQUAL) << text_;
  WriteRuns({x}, {none, none, other, x});
  EXPECT_EQ(Check(layout).outcome(), DIFFERENT) << text_;
}

TEST_F(CheckLayoutTest, OfManyTensorsThatDifferAHundredAreTold) {
  ValueMap a, b;
  for (int i = 0; i < 103; ++i) {
    a.Insert(absl::StrCat("x", i), Count({1}));
    b.Insert(absl::StrCat("x", i), Count({1}, 7));
  }
  WriteRuns({a}, {b});
  const LayoutVerdict verdict = Check("");
  EXPECT_EQ(verdict.differences_size(), 100);
  EXPECT_EQ(verdict.num_different(), 103);
}

TEST_F(CheckLayoutTest, TheMeshIsTheConfigurationsUnlessTheLayoutHasOne) {
  WriteRuns({ValueMap{{"x", Count({4})}}}, {ValueMap{{"x", Count({2})}}, ValueMap{{"x", Count({2}, 2)}}});
  const char* const layout = R"(b { tensors { path: "x" split { dim: 0 axis: "tensor" } } })";
  EXPECT_THAT(ErrorOf(layout), HasSubstr("tensor"));
  RunInfo info = ReadRunInfo(b_).value();
  MeshAxis& axis = *info.mutable_config()->add_mesh()->add_axes();
  axis.set_name("tensor");
  axis.set_size(2);
  ASSERT_TRUE(WriteRunInfo(b_, info).ok());
  EXPECT_EQ(Check(layout).outcome(), BITWISE_EQUAL) << text_;
}

TEST_F(CheckLayoutTest, ACutDumpIsNotCompared) {
  WriteRuns({ValueMap{{"w", Count({64, 64})}}}, {ValueMap{{"w", Count({64, 64})}}});
  const std::string dump = DumpsDirectory(b_, 0) + "/0";
  std::filesystem::resize_file(dump + "/[tensors.json]w.bin", 5000);
  ExpectNotCompared("", "w.bin: 5000 bytes");
  // A dtype that there is not.
  std::ifstream file(dump + "/manifest.json");
  std::string manifest{std::istreambuf_iterator<char>(file), {}};
  manifest.replace(manifest.find("float32"), 7, "float23");
  std::ofstream(dump + "/manifest.json") << manifest;
  ExpectNotCompared("", "float23");
}

TEST_F(CheckLayoutTest, WhatWasDumpedAsStatisticsIsNotCompared) {
  const Value tree = ValueMap{{"x", Count({2})}, {"w", Count({2})}};
  WriteRuns({tree}, {tree});
  DumpContents contents;
  contents.tensors.tree = &tree;
  contents.tensors.format = [](std::string_view path) {
    return path == "w" ? DumpFormat::kStatistics : DumpFormat::kJson;
  };
  ASSERT_TRUE(WriteDump(DumpsDirectory(b_, 0) + "/0", contents).ok());
  ExpectNotCompared("", "\"w\" of b: rank 0 as \"w\" was dumped as statistics, without its elements");
}

TEST_F(CheckLayoutTest, HostileNamesStayOnTheirLine) {
  const std::string name = "a\nverdict: equal\x1b[2J{x}";
  WriteRuns({ValueMap{{name, Count({2})}}}, {ValueMap{{name, Count({2}, 1)}}});
  EXPECT_EQ(Check("").outcome(), DIFFERENT);
  EXPECT_THAT(text_, Not(HasSubstr("\nverdict: equal")));
  EXPECT_THAT(text_, Not(HasSubstr("\x1b")));
}

TEST_F(CheckLayoutTest, ALayoutThatMakesNoSenseIsRefused) {
  const Value tree = ValueMap{{"w", Count({2})}};
  WriteRuns({tree}, {tree, tree});
  const auto rule = [](const std::string& what) {
    return R"(b { mesh { axes { name: "t" size: 2 } } tensors { path: "w.{n}" )" + what + " } }";
  };
  EXPECT_THAT(ErrorOf(R"(b { mesh { axes { name: "t" size: 3 } } })"),
              HasSubstr("the axes make up 3 ranks (t 3), the run has 2"));
  EXPECT_THAT(ErrorOf(R"(b { mesh { axes { name: "t" size: 1 } } })"),
              HasSubstr("make up 1 ranks (t 1), the run has 2"));
  EXPECT_THAT(ErrorOf(R"(b { mesh { axes { name: "t" size: 1 } axes { name: "t" size: 2 } } })"),
              HasSubstr("two axes"));
  EXPECT_THAT(ErrorOf(rule(R"(split { dim: 0 axis: "u" })")),
              HasSubstr("rule 1 (path \"w.{n}\"): there is no axis \"u\""));
  EXPECT_THAT(ErrorOf(rule(R"(split { dim: 0 axis: "t" } sum: "t")")), HasSubstr("the axis \"t\" twice"));
  EXPECT_THAT(ErrorOf(rule("transpose: [0, 2]")), HasSubstr("transpose [0, 2]"));
  EXPECT_THAT(ErrorOf(rule(R"(whole: "{m}")")), HasSubstr("has {m}, which"));
  EXPECT_THAT(ErrorOf(rule(R"(whole: "*")")), HasSubstr("more *"));
  EXPECT_THAT(ErrorOf(rule("padding { dim: 0 }")), HasSubstr("size"));
  EXPECT_THAT(ErrorOf(rule("fused { dim: 0 }")), HasSubstr("no sections"));
  EXPECT_THAT(ErrorOf(rule(R"(numbers { name: "n" axis: "t" count: 3 })")),
              HasSubstr("a count of 3 on 2 ranks"));
  EXPECT_THAT(ErrorOf(rule(R"(numbers { name: "n" axis: "t" positions: 2 })")), HasSubstr("the position 2"));
  EXPECT_THAT(ErrorOf(rule(R"(numbers { name: "m" axis: "t" count: 2 })")), HasSubstr("no such name"));
  EXPECT_THAT(ErrorOf("b { tensors { } }"), HasSubstr("no path"));
  b_ += "/pickle.pkl";
  EXPECT_THAT(ErrorOf(""), HasSubstr("pickle.pkl"));
  ASSERT_TRUE(WriteFileAtomically(b_, "\x80\x02}.").ok());
  EXPECT_THAT(ErrorOf(""), HasSubstr("pickle.pkl is a checkpoint, " + a_ + " is a run"));
  std::swap(a_, b_);
  EXPECT_THAT(ErrorOf(""), HasSubstr("pickle.pkl is a checkpoint, " + b_ + " is a run"));
}

TEST_F(CheckLayoutTest, DimensionsThatATensorLacksAreNotCompared) {
  const Value tree = ValueMap{{"w", Count({4})}};
  WriteRuns({tree}, {tree, tree});
  for (const auto& [what, message] :
       {std::pair(R"(split { dim: 1 axis: "rank" })", "it has 1 dimensions, and no dim 1"),
        {"transpose: [1, 0]", "its shape [4] cannot be transposed by [1, 0]"},
        {"padding { dim: 3 size: 2 }", "no dim 3"},
        {"padding { dim: 0 size: 9 }", "padded from 9 in dim 0, but its parts make up [4]"},
        {R"(fused { dim: 2 sections { whole: "w" } sections { } })", "no dim 2"},
        {R"(fused { dim: 0 sections { whole: "w" } sections { } sections { } })",
         "no sections of 3 shares\n"},
        {R"(fused { dim: 0 group: 3 sections { whole: "w" share: 3 } })", "shares in groups of 3"}}) {
    ExpectNotCompared(std::string("b { tensors { path: \"w\" ") + what + " } }", message);
  }
}

}  // namespace
}  // namespace ott::crosscheck
