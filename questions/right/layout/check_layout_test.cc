#include "ott/questions/right/layout/check_layout.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/check/tolerance_file.h"
#include "ott/questions/right/crosscheck/run_for_test.h"
#include "ott/questions/right/layout/layout_text.h"
#include "ott/questions/right/layout/path_pattern.h"
#include "ott/questions/right/layout/rank_dump.h"
#include "ott/questions/right/layout/tree_layout.h"

namespace ott::crosscheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Layout ParseLayout(const std::string& text) {
  Layout layout;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &layout)) << text;
  return layout;
}

// A float32 tensor that owns its elements: first, first + 1, ...
Value Count(const Dims& shape, float first = 0) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  auto owner = std::make_shared<std::vector<float>>();
  for (int64_t i = 0; i < count; ++i) owner->push_back(first + static_cast<float>(i));
  return Tensor{TensorView(owner->data(), shape), owner};
}

Value Floats(const Dims& shape, std::vector<float> elements) {
  auto owner = std::make_shared<std::vector<float>>(std::move(elements));
  return Tensor{TensorView(owner->data(), shape), owner};
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
  // Quickly: places that failed are not tried again.
  const std::string stars = "*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(PathPattern::Parse(stars)->Match(std::string(300, 'a')).has_value());
  for (const char* const wrong : {"{", "}", "{}", "{a", "{a.b}", "{a}{a}", "a}"}) {
    EXPECT_FALSE(PathPattern::Parse(wrong).ok()) << wrong;
  }
}

TEST(ToWholes, AStackOfLayersIsTakenApart) {
  RunLayout layout;
  StackedTensors& stacked = *layout.add_stacked();
  stacked.set_path("*layers.mlp.{of}");
  stacked.set_each("*layers.{number}.mlp.{of}");
  layout.add_tensors()->set_path("*");
  const Value tree = ValueMap{{"model", ValueMap{{"layers.mlp.weight", Count({2, 3})}}}, {"step", 1}};
  std::vector<std::string> problems;
  const Value wholes = ToWholes(tree, layout, &problems).value();
  EXPECT_EQ(wholes.map().size(), 3);
  const TensorView& second = wholes.map().Find("model.layers.1.mlp.weight")->tensor().view;
  EXPECT_EQ(second.shape(), Dims({3}));
  EXPECT_EQ(*static_cast<const float*>(second.data()), 3);
  // The stack is taken apart by columns, and the rule has a name that its path has not.
  stacked.set_dim(1);
  EXPECT_EQ(ToWholes(tree, layout, &problems)->map().size(), 4);
  EXPECT_THAT(problems, testing::IsEmpty());
  stacked.set_dim(2);
  EXPECT_EQ(
      ToWholes(tree, layout, &problems).status().message(),
      "stacked { path: \"*layers.mlp.{of}\" }: 'model.layers.mlp.weight' is [2, 3] and has no dimension "
      "2");
  stacked.set_each("{layer}");
  EXPECT_THAT(ToWholes(tree, layout, &problems).status().message(), HasSubstr("{layer}"));
}

TEST(RankDump, KeepsNoFileMapped) {
  const std::string run = MakeRunForTest("mapped", 1);
  WriteTreeForTest(run, 0, 0, ValueMap{{"weights", Count({64, 64})}, {"step", 3}});
  const auto dump = RankDump::Read(DumpsDirectory(run, 0) + "/0");
  ASSERT_TRUE(dump.ok()) << dump.status();
  const auto num_mapped = [] {
    std::ifstream maps("/proc/self/maps");
    const std::string text{std::istreambuf_iterator<char>(maps), {}};
    return text.find("weights.bin") != text.npos;
  };
  EXPECT_FALSE(num_mapped());
  const auto weights = dump->Open(0);
  ASSERT_TRUE(weights.ok()) << weights.status();
  EXPECT_TRUE(num_mapped());
  EXPECT_EQ(static_cast<const float*>(weights->view.data())[4095], 4095);
}

TEST(RankDump, WhatStandsForATensorStandsAlone) {
  const RankDump dump = RankDump::Of(ValueMap{{"a", ValueMap{{"tensor_statistics", ValueMap{{"x", 1}}}}},
                                              {"b", ValueMap{{"tensor_statistics", 1}, {"y", 2}}}});
  ASSERT_EQ(dump.tensors().size(), 3u);
  EXPECT_EQ(dump.tensors()[0].problem, "was dumped as statistics, without its elements");
  EXPECT_EQ(dump.tensors()[1].path, "b.tensor_statistics");
  EXPECT_EQ(dump.tensors()[1].problem, "");
}

TEST_F(CheckLayoutTest, UnevenPartsFollowEachOtherWithoutTheirPadding) {
  WriteRuns({ValueMap{{"w", Count({5, 2})}}},
            {ValueMap{{"w", Count({3, 2})}}, ValueMap{{"w", Floats({3, 2}, {6, 7, 80, 9, -1, -1})}}});
  EXPECT_EQ(Check(R"(b { mesh { axes { name: "tensor" size: 2 } } tensors {
                path: "w" split { dim: 0 axis: "tensor" } padding { dim: 0 size: 5 } } })")
                .outcome(),
            DIFFERENT);
  EXPECT_THAT(text_,
              HasSubstr("dim 0 split over tensor; dim 0 padded from 5: 1 tensor, such as \"w\" [5, 2]: "
                        "dim 0 = 3 + 3, 1 of padding in dim 0"));
  EXPECT_THAT(text_,
              HasSubstr("first divergence: iteration 0: DIFFER in tensor \"w\" (float32 [5, 2]), in b on "
                        "rank 1 alone: 1 of 4 elements, max abs error 72\n"
                        "    element [4, 0]: 80 in b, rank 1, \"w\" [1, 0]; 8 in a, rank 0, \"w\" [4, 0]"));
}

TEST_F(CheckLayoutTest, BothRunsCanHaveTheSameRules) {
  const auto half = [](float first) { return Value(ValueMap{{"w", Count({2, 2}, first)}}); };
  WriteRuns({half(0), half(4)}, {ValueMap{{"w", Count({4, 2})}}});
  const char* const layout =
      R"(a { mesh { axes { name: "tensor" size: 2 } } } b { mesh { axes { name: "tensor" size: 1 } } }
                                tensors { path: "w" split { dim: 0 axis: "tensor" } })";
  EXPECT_EQ(Check(layout).outcome(), BITWISE_EQUAL) << text_;
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
  const LayoutVerdict verdict = Check(
      R"(b { tensors { path: "kv" fused { group: 2 sections { whole: "k" } sections { whole: "v" } } } })");
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("more than 65536 groups of 2"));
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
  EXPECT_EQ(Check(wrong).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("b: rank 0: \"layers.1.w\": {layer} is \"1\", and rank 0 holds 1 of them"));
  EXPECT_THAT(text_, HasSubstr("\"layers.2.w\": a has it, b has not"));
}

TEST_F(CheckLayoutTest, SumsAreComparedWithinTheirRounding) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::string sum = R"(axes { name: "t" size: 2 } } tensors { path: "*" sum: "t" } })",
                    mean = R"(axes { name: "t" size: 2 } } tensors { path: "*" average: "t" } })",
                    mean_of_six = R"(axes { name: "t" size: 2 } axes { name: "e" size: 3 } }
                                     tensors { path: "*" average: "t" average: "e" } })";
  struct Case {
    float a;
    std::vector<float> b;
    std::string rule;
    std::optional<Tolerance> tolerance;
    Outcome outcome;
  };
  for (const auto& [a, b, rule, tolerance, outcome] :
       std::vector<Case>{{5, {2, 3}, sum, std::nullopt, BITWISE_EQUAL},
                         {0.3f, {0.1f, 0.2f}, sum, std::nullopt, WITHIN_TOLERANCE},
                         {0.3f, {0.1f, 0.2001f}, sum, std::nullopt, DIFFERENT},
                         {0.3f, {0.1f, 0.2001f}, sum, Tolerance{1e-3, 0}, WITHIN_TOLERANCE},
                         {0.15f, {0.1f, 0.2f}, mean, std::nullopt, WITHIN_TOLERANCE},
                         {3, {1, 2, 3, 3, 4, 5}, mean_of_six, std::nullopt, BITWISE_EQUAL},
                         // The tolerance is relative to the reference.
                         {10, {5, 6.05f}, sum, Tolerance{0, 0.1}, DIFFERENT},
                         {10, {5, 6.05f}, sum, Tolerance{0, 0.11}, WITHIN_TOLERANCE},
                         // An infinity is no rounding.
                         {infinity, {2, 2}, sum, std::nullopt, DIFFERENT},
                         {infinity, {2, 2}, sum, Tolerance{0, 1e-3}, DIFFERENT},
                         {2, {2, infinity}, sum, std::nullopt, DIFFERENT},
                         {infinity, {2, infinity}, sum, std::nullopt, BITWISE_EQUAL}}) {
    const auto tree = [](float number) { return Value(ValueMap{{"y", Floats({1}, {number})}}); };
    std::vector<Value> trees;
    for (const float number : b) trees.push_back(tree(number));
    WriteRuns({tree(a)}, trees);
    LayoutOptions options;
    options.tolerance = tolerance;
    EXPECT_EQ(Check("b { mesh { " + rule, options).outcome(), outcome) << a << " " << text_;
    if (outcome == DIFFERENT) {
      EXPECT_THAT(text_, HasSubstr("in b on all 2 ranks"));
      EXPECT_THAT(text_, HasSubstr("in b, the sum of ranks 0, 1, \"y\" [0]"));
    }
  }
}

TEST(SumBound, IsWhatRoundingExplains) {
  EXPECT_EQ(SumBound(DType::kInt64, 4, 1e9), 0);
  EXPECT_NEAR(SumBound(DType::kFloat32, 4, 1), 4.0 / (1 << 24), 1e-12);
  EXPECT_NEAR(SumBound(DType::kBFloat16, 2, 8), 2 * 8.0 / 256, 1e-12);
}

TEST_F(CheckLayoutTest, WhatMatchesNothingIsNeverAPass) {
  WriteRuns({ValueMap{{"x", Count({2})}, {"only_a", 1}}}, {ValueMap{{"x", Count({2})}, {"only_b", 1}}});
  EXPECT_EQ(Check("").outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("NOT COMPARED: \"only_a\": a has it, b has not"));
  EXPECT_THAT(text_, HasSubstr("NOT COMPARED: \"only_b\": b has it, a has not"));
  EXPECT_EQ(Check(R"(a { ignore: "only_*" } b { ignore: "only_*" })").outcome(), BITWISE_EQUAL) << text_;
  EXPECT_THAT(text_, HasSubstr("ignored: 1 tensors of ranks"));
  EXPECT_EQ(Check(R"(a { ignore: "only_a" } b { tensors { path: "x" } })").outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("b: no rule matches \"only_b\", which 1 rank holds"));
  EXPECT_EQ(
      Check(R"(a { ignore: "only_a" } b { tensors { path: "z" } tensors { path: "*" } ignore: "only_b" })")
          .outcome(),
      NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("b: no tensor matches the rule for \"z\""));
  EXPECT_EQ(Check(R"(a { ignore: "*" } b { ignore: "*" })").outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("there is no element to compare"));
}

TEST_F(CheckLayoutTest, PartsThatDoNotAddUpAreNamed) {
  const char* const layout =
      R"(b { mesh { axes { name: "tensor" size: 2 } } tensors { path: "w" split { dim: 0 axis: "tensor" } } })";
  const Value rank0 = ValueMap{{"w", Count({3, 2})}}, none = ValueMap{{"v", 1}};
  WriteRuns({ValueMap{{"w", Count({5, 2})}}}, {rank0, ValueMap{{"w", Count({3, 2})}}});
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_,
              HasSubstr("\"w\": a has [5, 2], b [6, 2] (dim 0 = 3 + 3): parts are missing, or overlap"));
  b_ = WriteRun("columns", {rank0, ValueMap{{"w", Count({2, 3})}}});
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("its parts do not fit: [3, 2] on rank 0, [2, 3] on rank 1"));
  b_ = WriteRun("none", {rank0, none});
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("\"w\" of b: parts are missing on rank 1"));
  std::filesystem::remove_all(DumpsDirectory(b_, 1));
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("b: rank 1 has no dump: "));
  b_ = WriteRun("scalar", {rank0, ValueMap{{"w", 1.5}}});
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("its parts are float32 on rank 0 and float64 on rank 1"));
  b_ = WriteRun("many", {rank0, none, none, none, none, none});
  EXPECT_EQ(Check(R"(b { tensors { path: "w" } ignore: "v" })").outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("parts are missing on rank 1, rank 2, rank 3, rank 4 and 1 more\n"));
  b_ = WriteRun("text", {ValueMap{{"w", TensorView("ab", DType::kUInt8, {2})}}, ValueMap{{"w", "ab"}}});
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("its parts are uint8 on rank 0 and uint8 on rank 1"));
}

TEST_F(CheckLayoutTest, OnePlaceIsClaimedOnce) {
  WriteRuns({ValueMap{{"w", Count({2})}}}, {ValueMap{{"u", Count({2})}, {"v", Count({2})}}});
  EXPECT_EQ(Check(R"(b { tensors { path: "{name}" whole: "w" } })").outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("\"w\" of b: it is there twice: rank 0 as \"u\", and rank 0 as \"v\""));
  EXPECT_EQ(Check(R"(b { tensors { path: "u" whole: "w" } tensors { path: "v" whole: "w" } })").outcome(),
            NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("two rules make it"));
}

TEST_F(CheckLayoutTest, OneRunIsComparedWithItselfUnderAnotherLayoutOnly) {
  WriteRuns({ValueMap{{"x", Count({2})}}, ValueMap{{"x", Count({2})}}}, {ValueMap{{"x", Count({2})}}});
  b_ = a_;
  EXPECT_THAT(ErrorOf(""), HasSubstr("would be compared with itself"));
  EXPECT_EQ(Check(R"(b { tensors { path: "x" one_of: "rank" } })").outcome(), BITWISE_EQUAL) << text_;
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
  EXPECT_EQ(Check("").outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("w.bin: 5000 bytes"));
  // A dtype that there is not.
  std::ifstream file(dump + "/manifest.json");
  std::string manifest{std::istreambuf_iterator<char>(file), {}};
  manifest.replace(manifest.find("float32"), 7, "float23");
  std::ofstream(dump + "/manifest.json") << manifest;
  EXPECT_EQ(Check("").outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("float23"));
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
  EXPECT_EQ(Check("").outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("\"w\" of b: rank 0 as \"w\" was dumped as statistics, without its elements"));
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
              HasSubstr("the size 3, and the run 2 ranks"));
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
    EXPECT_EQ(Check(std::string("b { tensors { path: \"w\" ") + what + " } }").outcome(), NOT_COMPARED);
    EXPECT_THAT(text_, HasSubstr(message));
  }
}

// Holds a run's tensors, all of two elements, and a text, by rank and name.
struct Side {
  bool is_narrow = false;        // float32 instead of float64
  bool has_text = true;          // or a tensor in its place
  std::vector<bool> has_dtypes;  // by rank, whose dump is JSON alone otherwise
  std::vector<std::map<std::string, std::vector<double>>> ranks;

  bool AreDtypesKnown() const { return std::count(has_dtypes.begin(), has_dtypes.end(), false) == 0; }
  bool IsText(const std::string& name) const { return name == "text" && has_text; }

  void Write(const std::string& run, int iteration, const std::vector<std::string>& order) const {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      std::vector<std::vector<float>> narrow;
      narrow.reserve(ranks[rank].size());
      ValueMap tensors, grads;
      for (const auto& [name, elements] : ranks[rank]) {
        const std::vector<float>& rounded = narrow.emplace_back(elements.begin(), elements.end());
        const Value value = IsText(name) ? Value(std::string(elements.begin(), elements.end()))
                            : is_narrow  ? Value(TensorView(rounded.data(), {2}))
                                         : Value(TensorView(elements.data(), {2}));
        name == "grads.u" ? grads.Insert("u", value) : tensors.Insert(name, value);
      }
      const Value tree = tensors, grads_tree = grads;
      DumpContents contents;
      contents.tensors.tree = &tree;
      contents.tensors.order = &order;
      contents.grads.tree = &grads_tree;
      contents.tensors.format = contents.grads.format = [&](std::string_view) {
        return has_dtypes[rank] ? DumpFormat::kBinary : DumpFormat::kJson;
      };
      const std::string dir = DumpPath(run, static_cast<int>(rank), iteration);
      std::filesystem::create_directories(std::filesystem::path(dir).parent_path());
      ASSERT_TRUE(WriteDump(dir, contents).ok());
      if (!has_dtypes[rank]) std::filesystem::remove(dir + "/manifest.json");
    }
  }
};

Side RandomSide(std::mt19937& random, int num_ranks, int num_choices) {
  Side side;
  side.is_narrow = random() % 3 == 0;
  side.has_text = random() % 12 != 0;
  const bool is_long = random() % 12 == 0, has_json = !side.is_narrow && random() % 4 == 0;
  for (int rank = 0; rank < num_ranks; ++rank) {
    side.has_dtypes.push_back(!has_json || random() % 2 == 0);
    auto& held = side.ranks.emplace_back();
    for (const char* const name : {"u", "v", "text", "grads.u"}) {
      if (side.IsText(name)) {
        held[name] = {'a', random() % 9 == 0 ? 'c' * 1.0 : 'a'};
        if (is_long) held[name].push_back('b');
        continue;
      }
      for (const double number : {1.0, 2.0}) {
        const double choices[] = {number, number + 0.25, number + 0.5, std::nan("")};
        held[name].push_back(random() % 3 == 0 ? choices[random() % num_choices] : number);
      }
    }
  }
  return side;
}

// Returns what is said of these tensors, by the definition.
LayoutVerdict Define(const Side& a, const Side& b, const std::vector<std::string>& order,
                     const std::map<std::string, double>& tolerances) {
  LayoutVerdict verdict;
  for (const std::string& name : order) {
    const std::vector<double>& first = a.ranks[0].at(name);
    const auto size = static_cast<int>(first.size());
    const bool is_text = a.IsText(name);
    const int num_before = verdict.differences_size();
    const auto add = [&] {
      LayoutDifference& difference = *verdict.add_differences();
      difference.set_tensor(name);
      difference.set_dtype(is_text ? "uint8" : a.is_narrow ? "float32" : "float64");
      difference.add_shape(size);
      return &difference;
    };
    const bool are_dtypes_known = is_text || (a.AreDtypesKnown() && b.AreDtypesKnown());
    std::string problem;
    if (is_text != b.IsText(name)) {
      problem = "one of them is a text";
    } else if (first.size() != b.ranks[0].at(name).size()) {
      problem = "the texts differ";
    } else if (!is_text && are_dtypes_known && a.is_narrow != b.is_narrow) {
      problem = a.is_narrow ? "a is float32, b float64" : "a is float64, b float32";
    }
    bool has_other_bits = !problem.empty();
    if (!problem.empty()) add()->set_problem(problem);
    for (const Side* const side : {&a, &b}) {
      if (!problem.empty()) break;
      LayoutDifference found;
      double worst = -1, largest = 0;
      for (size_t rank = side == &a ? 1 : 0; rank < side->ranks.size(); ++rank) {
        const std::vector<double>& elements = side->ranks[rank].at(name);
        int num_mismatched = 0;
        for (int i = 0; i < size; ++i) {
          const double x = first[i], y = elements[i];
          const bool is_same = x == y || (std::isnan(x) && std::isnan(y));
          const double error = std::isnan(x - y) ? std::numeric_limits<double>::infinity() : std::abs(x - y);
          has_other_bits = has_other_bits || !is_same;
          if (is_text || side->is_narrow == a.is_narrow)
            found.set_num_bits_differ(found.num_bits_differ() + !is_same);
          if (std::isfinite(error)) largest = std::max(largest, error);
          const auto tolerance = tolerances.find(name);
          if (is_text || tolerance == tolerances.end() ? is_same : error <= tolerance->second) continue;
          ++num_mismatched;
          if (error <= worst) continue;
          worst = error;
          found.clear_index();
          found.add_index(i);
          const auto set = [&](LayoutPlace* place, const char* run, size_t of_rank, double value) {
            place->Clear();
            place->set_run(run);
            place->add_ranks(static_cast<int>(of_rank));
            place->set_path(name);
            place->add_index(i);
            place->set_value(std::isnan(value) ? "nan" : absl::StrCat(value));
          };
          set(found.mutable_expected(), "a", 0, x);
          set(found.mutable_found(), side == &a ? "a" : "b", rank, y);
        }
        found.set_num_mismatched(found.num_mismatched() + num_mismatched);
        if (num_mismatched == 0) continue;
        found.add_ranks(static_cast<int>(rank));
        found.set_num_compared(found.num_compared() + size);
      }
      verdict.set_max_abs_error(std::max(verdict.max_abs_error(), largest));
      if (found.num_mismatched() == 0) continue;
      found.set_run(side == &a ? "a" : "b");
      found.set_num_ranks(static_cast<int>(side->ranks.size()));
      found.set_max_abs_error(largest);
      add()->MergeFrom(found);
    }
    verdict.set_num_tensors(verdict.num_tensors() + 1);
    const bool differs = verdict.differences_size() > num_before;
    verdict.set_num_not_bitwise_equal(verdict.num_not_bitwise_equal() + (differs || has_other_bits));
    verdict.set_num_different(verdict.num_different() + differs);
  }
  return verdict;
}

// A file allows a quarter of "u" in iteration 10, and an option a quarter of the others, or nothing does.
TEST_F(CheckLayoutTest, EachIterationIsJudgedByItsDefinition) {
  std::mt19937 random(1);
  const std::string file = testing::TempDir() + "/layout_tolerances.textproto";
  ASSERT_TRUE(WriteFileAtomically(
                  file, "iterations: 0 iterations: 10 tensors { path: \"u\" atol_at: 0 atol_at: 0.25 }")
                  .ok());
  for (int trial = 0; trial < 60; ++trial) {
    LayoutOptions options;
    const double atol = trial % 5 == 0 ? 3 : 0.25;
    if (trial % 3 > 0) options.tolerance.emplace().atol = atol;
    if (trial % 3 > 1) options.tolerance_file = ToleranceFile::Read(file).value();
    const int num_ranks[2] = {1 + static_cast<int>(random() % 2), 1 + static_cast<int>(random() % 3)};
    const int num_choices = 1 + static_cast<int>(random() % 4);
    a_ = MakeRunForTest("a", num_ranks[0]);
    b_ = MakeRunForTest("b", num_ranks[1]);
    std::map<int, LayoutVerdict> expected;
    std::vector<std::string> layouts;
    for (const int iteration : {0, 10, 20}) {
      const Side a = RandomSide(random, num_ranks[0], num_choices);
      Side b = RandomSide(random, num_ranks[1], num_choices);
      std::vector<std::string> order = {"text", "u", "v"};
      if (a.has_dtypes[0]) std::shuffle(order.begin(), order.end(), random);
      a.Write(a_, iteration, order);
      LayoutVerdict& verdict = expected[iteration];
      const uint64_t lacks = random() % 8;  // 1: b has no dump, 2: it has no v
      if (lacks == 2) {
        for (auto& rank : b.ranks) rank.erase("v");
        order.erase(std::find(order.begin(), order.end(), "v"));
        verdict.add_not_compared("\"v\": a has it, b has not");
      }
      // Each side's number of tensors, and the first of them, are told.
      const char* const first_of_b = !b.has_dtypes[0] ? "text" : lacks == 2 ? "u" : "v";
      layouts.push_back(absl::StrCat(
          order[0], a.ranks[0].at(order[0]).size(), " ", order.size(), " ",
          lacks == 1 ? "" : absl::StrCat(first_of_b, b.ranks[0].at(first_of_b).size(), b.ranks[0].size())));
      order.emplace_back("grads.u");
      if (lacks == 1) {
        verdict.add_not_compared("b: rank 0 has no dump: ");
      } else {
        b.Write(b_, iteration, {"v", "u", "text"});
        std::map<std::string, double> tolerances;
        if (options.tolerance) tolerances = {{"u", atol}, {"v", atol}, {"text", atol}, {"grads.u", atol}};
        if (options.tolerance_file) tolerances["u"] = iteration == 0 ? 0 : 0.25;
        // Between its iterations a file's tolerance is that of the one before.
        verdict.MergeFrom(Define(a, b, order, tolerances));
      }
      verdict.set_iteration(iteration);
      verdict.set_outcome(verdict.num_different() > 0           ? DIFFERENT
                          : verdict.not_compared_size() > 0     ? NOT_COMPARED
                          : verdict.num_not_bitwise_equal() > 0 ? WITHIN_TOLERANCE
                                                                : BITWISE_EQUAL);
    }
    const std::vector<LayoutVerdict> verdicts = CheckLayout(a_, b_, Layout(), options).value();
    ASSERT_EQ(verdicts.size(), 3u);
    for (const int i : {1, 2})
      EXPECT_EQ(verdicts[i].understood().empty(), layouts[i] == layouts[i - 1]) << trial << " " << layouts[i];
    int count[4] = {};  // by outcome
    double largest = 0;
    std::string first;
    for (LayoutVerdict verdict : verdicts) {
      LayoutVerdict& definition = expected.at(static_cast<int>(verdict.iteration()));
      ASSERT_EQ(verdict.not_compared().empty(), definition.not_compared().empty());
      if (!definition.not_compared().empty()) {
        EXPECT_THAT(verdict.not_compared(0), testing::StartsWith(definition.not_compared(0)));
      }
      count[0] += verdict.outcome() == BITWISE_EQUAL;
      count[1] += verdict.outcome() == WITHIN_TOLERANCE;
      count[2] += verdict.outcome() == DIFFERENT;
      count[3] += !verdict.not_compared().empty();
      largest = std::max(largest, definition.max_abs_error());
      if (first.empty() && verdict.num_different() > 0)
        first = absl::StrCat("first divergence: iteration ", verdict.iteration(), ": DIFFER in tensor \"",
                             definition.differences(0).tensor(), "\"");
      verdict.clear_understood();
      verdict.clear_not_compared();
      definition.clear_not_compared();
      for (LayoutDifference& difference : *verdict.mutable_differences()) {
        const bool is_number = difference.dtype() != "uint8" && difference.expected().value() != "nan" &&
                               difference.found().value() != "nan";
        EXPECT_EQ(difference.has_ulp_distance(), is_number && !difference.flipped_bits().empty()) << trial;
        difference.clear_flipped_bits();
        difference.clear_ulp_distance();
      }
      EXPECT_EQ(verdict.DebugString(), definition.DebugString()) << trial;
    }
    const std::string text = LayoutVerdictsToText(verdicts);
    const auto part = [](int number, const char* what) {
      return number > 0 ? absl::StrCat("; ", number, what) : "";
    };
    EXPECT_THAT(text, HasSubstr(absl::StrCat(" tensors compared", part(count[0], " equal bit for bit"),
                                             part(count[1], " within tolerance but not bit for bit"),
                                             part(count[2], " DIFFER"),
                                             part(count[3], " NOT COMPARED, or not in full"),
                                             absl::StrFormat("; max abs error %.3g\n", largest))));
    EXPECT_THAT(text, HasSubstr(first));
    EXPECT_EQ(text.find("first divergence") == text.npos, first.empty());
  }
}

}  // namespace
}  // namespace ott::crosscheck
