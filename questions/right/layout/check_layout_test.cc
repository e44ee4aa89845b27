#include "ott/questions/right/layout/check_layout.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <string>
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

TEST_F(CheckLayoutTest, WithoutRulesRanksHoldReplicas) {
  const Value tree = ValueMap{{"weights", Count({2, 3})}, {"step", 7}, {"host", "node"}};
  WriteRuns({tree}, {tree, tree});
  EXPECT_EQ(Check("").outcome(), BITWISE_EQUAL) << text_;
  EXPECT_THAT(text_, HasSubstr("1 iteration, 3 tensors compared; 1 equal bit for bit"));
}

TEST_F(CheckLayoutTest, UnevenPartsFollowEachOther) {
  WriteRuns({ValueMap{{"w", Count({5, 2})}}},
            {ValueMap{{"w", Count({3, 2})}}, ValueMap{{"w", Count({2, 2}, 6)}}});
  const char* const layout = R"(b { mesh { axes { name: "tensor" size: 2 } }
                                    tensors { path: "w" split { dim: 0 axis: "tensor" } } })";
  EXPECT_EQ(Check(layout).outcome(), BITWISE_EQUAL) << text_;
  EXPECT_THAT(text_, HasSubstr("dim 0 split over tensor: 1 tensor, such as \"w\" [5, 2]: dim 0 = 3 + 2"));
  b_ = WriteRun("other", {ValueMap{{"w", Count({3, 2})}}, ValueMap{{"w", Floats({2, 2}, {6, 7, 80, 9})}}});
  const LayoutVerdict verdict = Check(layout);
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
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

TEST_F(CheckLayoutTest, SectionsOfFusedTensorsAreWholeTensors) {
  // Per rank one head: q, k, v of 2 rows each.
  const auto head = [](float first) {
    std::vector<float> elements;
    for (const float section : {0.0f, 100.0f, 200.0f}) {
      for (int i = 0; i < 2; ++i) elements.push_back(section + first + static_cast<float>(i));
    }
    return ValueMap{{"h", ValueMap{{"0", ValueMap{{"qkv", Floats({6, 1}, elements)}}}}}};
  };
  const Value split = ValueMap{
      {"layer0", ValueMap{{"q", Count({4, 1})}, {"k", Count({4, 1}, 100)}, {"v", Count({4, 1}, 200)}}}};
  WriteRuns({split}, {head(0), head(2)});
  const char* const layout = R"(
      b { mesh { axes { name: "tensor" size: 2 } }
          tensors { path: "h.{layer}.qkv"
                    fused { dim: 0 sections { whole: "layer{layer}.q" } sections { whole: "layer{layer}.k" }
                            sections { whole: "layer{layer}.v" } }
                    split { dim: 0 axis: "tensor" } } })";
  EXPECT_EQ(Check(layout).outcome(), BITWISE_EQUAL) << text_;
  EXPECT_EQ(Check(layout).num_tensors(), 3);
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

TEST_F(CheckLayoutTest, APaddedVocabularyIsComparedWithoutItsPadding) {
  WriteRuns(
      {ValueMap{{"embedding", Count({3, 2})}}},
      {ValueMap{{"embedding", Count({2, 2})}}, ValueMap{{"embedding", Floats({2, 2}, {4, 5, -1, -1})}}});
  const char* const layout = R"(b { mesh { axes { name: "tensor" size: 2 } }
      tensors { path: "embedding" split { dim: 0 axis: "tensor" } padding { dim: 0 size: 3 } } })";
  EXPECT_EQ(Check(layout).outcome(), BITWISE_EQUAL) << text_;
  EXPECT_THAT(text_, HasSubstr("1 of padding in dim 0"));
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
  WriteRuns({ValueMap{{"y", Floats({2}, {0.3f, 5})}}},
            {ValueMap{{"y", Floats({2}, {0.1f, 2})}}, ValueMap{{"y", Floats({2}, {0.2f, 3})}}});
  const char* const layout =
      R"(b { mesh { axes { name: "tensor" size: 2 } } tensors { path: "*" sum: "tensor" } })";
  EXPECT_EQ(Check(layout).outcome(), WITHIN_TOLERANCE) << text_;
  b_ = WriteRun("other",
                {ValueMap{{"y", Floats({2}, {0.1f, 2})}}, ValueMap{{"y", Floats({2}, {0.2001f, 3})}}});
  EXPECT_EQ(Check(layout).outcome(), DIFFERENT);
  EXPECT_THAT(text_, HasSubstr("in b on all 2 ranks"));
  EXPECT_THAT(text_, HasSubstr("in b, the sum of ranks 0, 1, \"y\" [0]"));
  LayoutOptions loose;
  loose.tolerance = Tolerance{1e-3, 0};
  EXPECT_EQ(Check(layout, loose).outcome(), WITHIN_TOLERANCE);
  const char* const mean =
      R"(b { mesh { axes { name: "data" size: 2 } } tensors { path: "*" average: "data" } })";
  a_ = WriteRun("mean", {ValueMap{{"y", Floats({2}, {0.15f, 2.5f})}}});
  b_ = WriteRun("b2", {ValueMap{{"y", Floats({2}, {0.1f, 2})}}, ValueMap{{"y", Floats({2}, {0.2f, 3})}}});
  EXPECT_EQ(Check(mean).outcome(), WITHIN_TOLERANCE) << text_;
}

TEST_F(CheckLayoutTest, AnInfinityIsNoRoundingOfASum) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Value finite = ValueMap{{"y", Floats({1}, {2})}};
  const Value infinite = ValueMap{{"y", Floats({1}, {infinity})}};
  const char* const layout =
      R"(b { mesh { axes { name: "tensor" size: 2 } } tensors { path: "*" sum: "tensor" } })";
  WriteRuns({infinite}, {finite, finite});
  EXPECT_EQ(Check(layout).outcome(), DIFFERENT) << text_;
  LayoutOptions loose;
  loose.tolerance = Tolerance{0, 1e-3};
  EXPECT_EQ(Check(layout, loose).outcome(), DIFFERENT) << text_;
  WriteRuns({finite}, {finite, infinite});
  EXPECT_EQ(Check(layout).outcome(), DIFFERENT) << text_;
  WriteRuns({infinite}, {finite, infinite});
  EXPECT_EQ(Check(layout).outcome(), BITWISE_EQUAL) << text_;
}

TEST(SumBound, IsWhatRoundingExplains) {
  EXPECT_EQ(SumBound(DType::kInt64, 4, 1e9), 0);
  EXPECT_NEAR(SumBound(DType::kFloat32, 4, 1), 4.0 / (1 << 24), 1e-12);
  EXPECT_NEAR(SumBound(DType::kBFloat16, 2, 8), 2 * 8.0 / 256, 1e-12);
}

TEST_F(CheckLayoutTest, OneReplicaIsEnoughWhereTheLayoutSaysSo) {
  WriteRuns({ValueMap{{"x", Count({2})}}}, {ValueMap{{"x", Count({2})}}, ValueMap{{"x", Count({2}, 9)}}});
  EXPECT_EQ(Check(R"(b { tensors { path: "x" one_of: "rank" } })").outcome(), BITWISE_EQUAL) << text_;
  EXPECT_EQ(Check("").outcome(), DIFFERENT);
}

TEST_F(CheckLayoutTest, ReplicasOfTheReferenceAreComparedToo) {
  WriteRuns({ValueMap{{"x", Count({2})}}, ValueMap{{"x", Floats({2}, {0, 4})}}},
            {ValueMap{{"x", Count({2})}}});
  EXPECT_EQ(Check("").outcome(), DIFFERENT);
  EXPECT_THAT(text_, HasSubstr("in a on rank 1 alone: 1 of 2 elements"));
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
  const Value rank0 = ValueMap{{"w", Count({3, 2})}};
  WriteRuns({ValueMap{{"w", Count({5, 2})}}}, {rank0, ValueMap{{"w", Count({3, 2})}}});
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_,
              HasSubstr("\"w\": a has [5, 2], b [6, 2] (dim 0 = 3 + 3): parts are missing, or overlap"));
  b_ = WriteRun("columns", {rank0, ValueMap{{"w", Count({2, 3})}}});
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("its parts do not fit: [3, 2] on rank 0, [2, 3] on rank 1"));
  b_ = WriteRun("none", {rank0, ValueMap{{"v", 1}}});
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("\"w\" of b: parts are missing on rank 1"));
  std::filesystem::remove_all(DumpsDirectory(b_, 1));
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("b: rank 1 has no dump: "));
  b_ = WriteRun("scalar", {rank0, ValueMap{{"w", 1.5}}});
  EXPECT_EQ(Check(layout).outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("rank 1"));
}

TEST_F(CheckLayoutTest, OnePlaceIsClaimedOnce) {
  WriteRuns({ValueMap{{"w", Count({2})}}}, {ValueMap{{"u", Count({2})}, {"v", Count({2})}}});
  EXPECT_EQ(Check(R"(b { tensors { path: "{name}" whole: "w" } })").outcome(), NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("\"w\" of b: it is there twice: rank 0 as \"u\", and rank 0 as \"v\""));
  EXPECT_EQ(Check(R"(b { tensors { path: "u" whole: "w" } tensors { path: "v" whole: "w" } })").outcome(),
            NOT_COMPARED);
  EXPECT_THAT(text_, HasSubstr("two rules make it"));
}

TEST_F(CheckLayoutTest, OtherDtypesDiffer) {
  const int64_t integers[2] = {0, 1};
  WriteRuns({ValueMap{{"w", Count({2})}}}, {ValueMap{{"w", TensorView(integers, {2})}}});
  EXPECT_EQ(Check("").outcome(), DIFFERENT);
  EXPECT_THAT(text_, HasSubstr("a is float32, b int64"));
}

// No tolerance is of texts.
TEST_F(CheckLayoutTest, TextsAreEqualOrDiffer) {
  LayoutOptions loose;
  loose.tolerance = Tolerance{1000, 0};
  for (const auto& [b, problem] : {std::pair(Value("abd"), "1 of 3 elements"),
                                   {Value("abcd"), "the texts differ"},
                                   {Count({3}), "one of them is a text"}}) {
    WriteRuns({ValueMap{{"x", "abc"}}}, {ValueMap{{"x", b}}});
    for (const LayoutOptions& options : {LayoutOptions(), loose}) {
      EXPECT_EQ(Check("", options).outcome(), DIFFERENT) << text_;
      EXPECT_THAT(text_, HasSubstr(problem));
    }
  }
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

// The parts of a sum are off by what is relative to the reference, and means are of all ranks.
TEST_F(CheckLayoutTest, SumsAreOffRelativeToTheReference) {
  const auto rank = [](float value) -> Value { return ValueMap{{"y", Floats({1}, {value})}}; };
  WriteRuns({rank(10)}, {rank(5), rank(6.05f)});
  LayoutOptions loose;
  loose.tolerance = Tolerance{0, 0.1};
  const char* const sum =
      R"(b { mesh { axes { name: "tensor" size: 2 } } tensors { path: "*" sum: "tensor" } })";
  EXPECT_EQ(Check(sum, loose).outcome(), DIFFERENT) << text_;
  loose.tolerance = Tolerance{0, 0.11};
  EXPECT_EQ(Check(sum, loose).outcome(), WITHIN_TOLERANCE) << text_;
  WriteRuns({rank(3)}, {rank(1), rank(2), rank(3), rank(3), rank(4), rank(5)});
  EXPECT_EQ(Check(R"(b { mesh { axes { name: "data" size: 2 } axes { name: "expert" size: 3 } }
                         tensors { path: "*" average: "data" average: "expert" } })")
                .num_different(),
            0)
      << text_;
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
  b_ += "/nothing";
  EXPECT_THAT(ErrorOf(""), HasSubstr("nothing"));
}

TEST_F(CheckLayoutTest, DimensionsThatATensorLacksAreNotCompared) {
  const Value tree = ValueMap{{"w", Count({4})}};
  WriteRuns({tree}, {tree, tree});
  for (const char* const what :
       {R"(split { dim: 1 axis: "rank" })", "transpose: [1, 0]", "padding { dim: 3 size: 2 }",
        "padding { dim: 0 size: 9 }", R"(fused { dim: 2 sections { whole: "w" } sections { } })",
        R"(fused { dim: 0 sections { whole: "w" } sections { } sections { } })"}) {
    EXPECT_EQ(Check(std::string("b { tensors { path: \"w\" ") + what + " } }").outcome(), NOT_COMPARED)
        << what;
  }
}

// Random errors, of which a file allows a quarter of "u" in iteration 10, and an option a quarter of the
// others.
TEST_F(CheckLayoutTest, EachIterationIsJudgedByTheTolerancesOfItsTensors) {
  std::mt19937 random(1);
  const std::string file = testing::TempDir() + "/layout_tolerances.textproto";
  ASSERT_TRUE(WriteFileAtomically(
                  file, "iterations: 0 iterations: 10 tensors { path: \"u\" atol_at: 0 atol_at: 0.25 }")
                  .ok());
  LayoutOptions options;
  options.tolerance_file = ToleranceFile::Read(file).value();
  options.tolerance.emplace().atol = 0.25;
  for (int trial = 0; trial < 60; ++trial) {
    a_ = MakeRunForTest("a", 1);
    b_ = MakeRunForTest("b", 1);
    std::map<int, std::map<std::string, float>> errors;
    std::map<int, uint64_t> lacks;  // 1: b has no dump, 2: a lacks a tensor of b
    double largest_of_all = 0;
    for (const int iteration : {0, 10, 20}) {
      lacks[iteration] = random() % 8;
      ValueMap a, b;
      for (const char* const name : {"u", "v", "w"}) {
        const float error = 0.25f * static_cast<float>(std::max<int>(static_cast<int>(random() % 5) - 2, 0));
        errors[iteration][name] = error;
        a.Insert(name, Floats({2}, {1, 2}));
        b.Insert(name, Floats({2}, {1, 2 + error}));
      }
      // No tolerance is of texts.
      errors[iteration]["text"] = random() % 8 == 0 ? 9 : 0;
      a.Insert("text", "same");
      b.Insert("text", errors[iteration]["text"] > 0 ? "sanf" : "same");
      WriteTreeForTest(a_, 0, iteration, a);
      if (lacks[iteration] == 2) b.Insert("x", 1);
      if (lacks[iteration] != 1) WriteTreeForTest(b_, 0, iteration, b);
    }
    const std::vector<LayoutVerdict> verdicts = CheckLayout(a_, b_, Layout(), options).value();
    ASSERT_EQ(verdicts.size(), 3u);
    int count[4] = {};  // equal, within tolerance, different, not compared
    std::string first;
    for (const LayoutVerdict& verdict : verdicts) {
      const auto iteration = static_cast<int>(verdict.iteration());
      if (lacks[iteration] == 1) {
        EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
        EXPECT_THAT(verdict.not_compared(0), HasSubstr("b: rank 0 has no dump: "));
        ++count[3];
        continue;
      }
      std::vector<std::string> different;
      int num_not_equal = 0;
      float largest = 0;
      for (const char* const name : {"u", "v", "w", "text"}) {
        const float error = errors[iteration][name];
        num_not_equal += error > 0;
        if (name != std::string("text")) largest = std::max(largest, error);
        // Between its iterations a file's tolerance is that of the one before.
        if (error > (name == std::string("u") && iteration == 0 ? 0 : 0.25f)) different.emplace_back(name);
      }
      EXPECT_EQ(verdict.num_tensors(), 4);
      EXPECT_EQ(verdict.num_not_bitwise_equal(), num_not_equal) << trial;
      EXPECT_EQ(verdict.num_different(), different.size()) << trial;
      if (different.empty() || different.back() != "text") {
        EXPECT_EQ(verdict.max_abs_error(), largest) << trial;
      }
      ASSERT_EQ(verdict.differences_size(), different.size());
      for (size_t i = 0; i < different.size(); ++i)
        EXPECT_EQ(verdict.differences(static_cast<int>(i)).tensor(), different[i]);
      const bool is_whole = lacks[iteration] != 2;
      EXPECT_EQ(verdict.outcome(), !different.empty()  ? DIFFERENT
                                   : !is_whole         ? NOT_COMPARED
                                   : num_not_equal > 0 ? WITHIN_TOLERANCE
                                                       : BITWISE_EQUAL);
      EXPECT_EQ(verdict.not_compared().empty(), is_whole);
      count[3] += !is_whole;
      if (!different.empty()) ++count[2];
      if (different.empty() && is_whole) ++count[num_not_equal > 0 ? 1 : 0];
      largest_of_all = std::max(largest_of_all, verdict.max_abs_error());
      if (first.empty() && !different.empty())
        first = absl::StrCat("first divergence: iteration ", iteration, ": DIFFER in tensor \"", different[0],
                             "\"");
    }
    // The layout is the same in all, but for what is missing.
    const std::string text = LayoutVerdictsToText(verdicts);
    EXPECT_EQ(verdicts[1].understood().empty(),
              std::min<uint64_t>(lacks[0], 3) % 3 == std::min<uint64_t>(lacks[10], 3) % 3);
    const auto part = [](int number, const char* what) {
      return number > 0 ? absl::StrCat("; ", number, what) : "";
    };
    EXPECT_THAT(text, HasSubstr(absl::StrCat(" tensors compared", part(count[0], " equal bit for bit"),
                                             part(count[1], " within tolerance but not bit for bit"),
                                             part(count[2], " DIFFER"),
                                             part(count[3], " NOT COMPARED, or not in full"),
                                             absl::StrFormat("; max abs error %.3g\n", largest_of_all))));
    EXPECT_THAT(text, HasSubstr(first));
    EXPECT_EQ(text.find("first divergence") == text.npos, first.empty());
  }
}

}  // namespace
}  // namespace ott::crosscheck
