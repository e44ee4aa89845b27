#include "ott/core/compare/compare.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/compare/report.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/json/json_cursor.h"
#include "ott/core/tensor/scattered_elements.h"

namespace ott {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

std::vector<std::pair<std::string, CompareStatus>> Statuses(const TreeComparison& comparison) {
  std::vector<std::pair<std::string, CompareStatus>> statuses;
  for (const NamedComparison& result : comparison.results) {
    statuses.emplace_back(result.path, result.comparison.status);
  }
  return statuses;
}

class CompareTest : public testing::Test {
 protected:
  std::string WriteDumpOf(const Value& tensors, const Value* grads = nullptr,
                          DumpFormat format = DumpFormat::kBinary) {
    std::string dir = testing::TempDir() + "/compare_test_XXXXXX";
    EXPECT_NE(mkdtemp(dir.data()), nullptr);
    DumpContents contents;
    contents.tensors.tree = &tensors;
    contents.tensors.format = contents.grads.format = [format](std::string_view) { return format; };
    contents.grads.tree = grads;
    EXPECT_TRUE(WriteDump(dir, contents).ok());
    return dir;
  }

  const float one_[2] = {1, 2};
  const float other_[2] = {1, 3};
  const TensorView a_{one_, {2}};
  const TensorView b_{other_, {2}};
};

TEST_F(CompareTest, DifferencesAreReportedByPath) {
  const Value reference =
      ValueMap{{"a", a_}, {"gone", ValueMap{{"x", a_}, {"y", 1}}}, {"list", Value::List{a_, "s", 1}}};
  const Value current = ValueMap{{"list", Value::List{b_, "t"}}, {"a", b_}, {"new", a_}};
  const TreeComparison comparison = CompareTrees(reference, current);
  EXPECT_THAT(
      Statuses(comparison),
      ElementsAre(Pair("a", CompareStatus::kMismatch), Pair("gone.x", CompareStatus::kMissing),
                  Pair("gone.y", CompareStatus::kMissing), Pair("list", CompareStatus::kLengthDiffers),
                  Pair("list.0", CompareStatus::kMismatch), Pair("list.1", CompareStatus::kMismatch),
                  Pair("new", CompareStatus::kExtra)));
  EXPECT_EQ(comparison.verdict(), Verdict::kDifferent);
  EXPECT_EQ(comparison.first_failure()->path, "a");
}

TEST_F(CompareTest, MissingOrExtraTensorsPassWhereAllowed) {
  const Value both = ValueMap{{"a", a_}, {"b", b_}};
  const Value one = ValueMap{{"a", a_}};
  CompareOptions options;
  options.allow_missing = true;
  EXPECT_EQ(CompareTrees(both, one, options).verdict(), Verdict::kEqual);
  EXPECT_EQ(CompareTrees(one, both, options).verdict(), Verdict::kDifferent);
  EXPECT_EQ(CompareTrees(both, ValueMap(), options).verdict(), Verdict::kCouldNotCompare);
  EXPECT_EQ(CompareDumps(WriteDumpOf(one, &one), WriteDumpOf(one), options).verdict(), Verdict::kEqual);
  options.allow_extra = true;
  EXPECT_EQ(CompareTrees(one, both, options).verdict(), Verdict::kEqual);
  EXPECT_EQ(CompareDumps(WriteDumpOf(one), WriteDumpOf(one, &one), options).verdict(), Verdict::kEqual);
}

TEST_F(CompareTest, OrderOfNamesIsADifferenceOnlyWhereAskedFor) {
  const Value reference = ValueMap{{"a", a_}, {"b", b_}};
  const Value current = ValueMap{{"b", b_}, {"a", a_}};
  EXPECT_TRUE(CompareTrees(reference, current).bitwise_equal());
  CompareOptions options;
  options.compare_order = true;
  EXPECT_TRUE(CompareTrees(reference, reference, options).bitwise_equal());
  // The names that both have, in the order of each.
  options.allow_missing = options.allow_extra = true;
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<std::string> names[2];
    ValueMap maps[2];
    for (const int side : {0, 1}) {
      std::vector<std::string> all = {"a", "b", "c", "d", "e"};
      std::shuffle(all.begin(), all.end(), random);
      all.resize(2 + random() % 4);
      names[side] = all;
      for (const std::string& name : all) maps[side].Insert(name, a_);
    }
    std::vector<std::string> common[2];
    for (const int side : {0, 1}) {
      std::copy_if(names[side].begin(), names[side].end(), std::back_inserter(common[side]),
                   [&](const std::string& name) { return maps[1 - side].Find(name) != nullptr; });
    }
    const auto first = std::mismatch(common[0].begin(), common[0].end(), common[1].begin());
    const TreeComparison comparison = CompareTrees(maps[0], maps[1], options);
    if (first.first == common[0].end()) {
      EXPECT_NE(comparison.verdict(), Verdict::kDifferent);
      continue;
    }
    EXPECT_EQ(comparison.first_failure()->comparison.status, CompareStatus::kOrderDiffers);
    EXPECT_EQ(comparison.first_failure()->comparison.detail,
              "the reference has \"" + *first.first + "\" where the current has \"" + *first.second + "\"");
  }
}

TEST_F(CompareTest, KindsAreToldApart) {
  const TreeComparison comparison = CompareTrees(ValueMap{{"a", a_}}, ValueMap{{"a", ValueMap{{"b", a_}}}});
  EXPECT_THAT(Statuses(comparison), ElementsAre(Pair("a", CompareStatus::kKindDiffers)));
  EXPECT_EQ(comparison.results[0].comparison.detail, "reference tensor, current map");
  EXPECT_THAT(Statuses(CompareTrees(ValueMap{{"a", Value()}, {"b", a_}}, ValueMap{{"a", "x"}, {"b", a_}})),
              ElementsAre(Pair("a", CompareStatus::kKindDiffers), Pair("b", CompareStatus::kBitwiseEqual)));
}

TEST_F(CompareTest, TreesThatAgreeWithoutElementsAreEqualUnlessThatIsRefused) {
  CompareOptions refuse;
  refuse.allow_empty = false;
  const TensorView empty(nullptr, DType::kFloat32, {0});
  const Value trees[] = {ValueMap(), ValueMap{{"a", "x"}}, ValueMap{{"a", Value()}}, ValueMap{{"a", empty}}};
  for (const Value& tree : trees) {
    EXPECT_TRUE(CompareTrees(tree, tree).bitwise_equal());
    EXPECT_EQ(CompareTrees(tree, tree, refuse).verdict(), Verdict::kCouldNotCompare);
  }
  EXPECT_TRUE(CompareDumps(WriteDumpOf(trees[0]), WriteDumpOf(trees[0])).bitwise_equal());
  EXPECT_EQ(ToText(CompareTrees(trees[1], trees[1])), "equal (bit for bit): no numbers on either side\n");
}

TEST_F(CompareTest, NothingToCompareIsNotEqual) {
  EXPECT_EQ(TreeComparison().verdict(), Verdict::kCouldNotCompare);
  EXPECT_EQ(CompareTrees(ValueMap{{"a", "x"}}, ValueMap{{"a", "y"}}).verdict(), Verdict::kDifferent);
  EXPECT_EQ(CompareTrees(ValueMap(), ValueMap{{"a", "x"}}).verdict(), Verdict::kDifferent);
  // A tensor that is left out was not found to agree.
  CompareOptions options;
  options.allow_missing = options.allow_extra = true;
  const Value some = ValueMap{{"a", a_}};
  EXPECT_EQ(CompareTrees(some, ValueMap(), options).verdict(), Verdict::kCouldNotCompare);
  EXPECT_EQ(CompareTrees(ValueMap(), some, options).verdict(), Verdict::kCouldNotCompare);
  const Value nothing = ValueMap();
  EXPECT_EQ(CompareDumps(WriteDumpOf(nothing, &some), WriteDumpOf(nothing), options).verdict(),
            Verdict::kCouldNotCompare);
}

TEST_F(CompareTest, NumbersListsOfNumbersAndTensorsAreComparedAsNumbers) {
  CompareOptions options;
  options.tensors.compare_dtype = false;
  const Value list = ValueMap{{"a", Value::List{1, 2.0}}};
  EXPECT_EQ(CompareTrees(list, ValueMap{{"a", a_}}, options).verdict(), Verdict::kEqual);
  EXPECT_EQ(CompareTrees(ValueMap{{"a", b_}}, list, options).verdict(), Verdict::kDifferent);
  EXPECT_EQ(CompareTrees(ValueMap{{"a", 1}}, ValueMap{{"a", TensorView(one_, {})}}).verdict(),
            Verdict::kEqual);
}

TEST_F(CompareTest, ResultsComeInTheOrderOfAdding) {
  const auto tree = [&](const TensorView& first, const TensorView& later) {
    return Value(ValueMap{{"data", ValueMap{{"0", a_}, {"1", later}}}, {"loss", ValueMap{{"0", first}}}});
  };
  const auto dump = [](const Value& added) {
    std::string dir = testing::TempDir() + "/compare_test_XXXXXX";
    EXPECT_NE(mkdtemp(dir.data()), nullptr);
    const std::vector<std::string> order = {"data.0", "loss.0", "data.1"};
    DumpContents contents;
    contents.tensors.tree = &added;
    contents.tensors.order = &order;
    EXPECT_TRUE(WriteDump(dir, contents).ok());
    return dir;
  };
  const TreeComparison comparison = CompareDumps(dump(tree(a_, a_)), dump(tree(b_, b_)));
  EXPECT_THAT(Statuses(comparison), ElementsAre(Pair("data.0", CompareStatus::kBitwiseEqual),
                                                Pair("loss.0", CompareStatus::kMismatch),
                                                Pair("data.1", CompareStatus::kMismatch)));
  EXPECT_EQ(comparison.first_failure()->path, "loss.0");
}

TEST_F(CompareTest, DumpsOfAnyFormatAreCompared) {
  const Value tree = ValueMap{{"a", a_}, {"b", ValueMap{{"c", b_}}}};
  const std::string binary = WriteDumpOf(tree);
  const std::string json = WriteDumpOf(tree, nullptr, DumpFormat::kJson);
  const TreeComparison comparison = CompareDumps(binary, json);
  EXPECT_TRUE(comparison.bitwise_equal());
  EXPECT_THAT(Statuses(comparison), ElementsAre(Pair("a", CompareStatus::kBitwiseEqual),
                                                Pair("b.c", CompareStatus::kBitwiseEqual)));
}

TEST_F(CompareTest, TensorsOfADumpHaveTheProgramsNames) {
  const Value tensors = ValueMap{{"w", a_}, {"grads", ValueMap{{"w", a_}}}, {"tensors", a_}};
  const Value grads = ValueMap{{"w", b_}};
  const auto names = [](const TreeComparison& comparison) {
    std::vector<std::string> names;
    for (const NamedComparison& result : comparison.results) names.push_back(result.path);
    return names;
  };
  const std::string dir = WriteDumpOf(tensors);
  EXPECT_THAT(names(CompareDumps(dir, dir)), ElementsAre("w", "grads.w", "tensors"));
  const std::string with_gradients = WriteDumpOf(tensors, &grads);
  EXPECT_THAT(names(CompareDumps(with_gradients, with_gradients)),
              ElementsAre("w", "tensors.grads.w", "tensors", "grads.w"));
  EXPECT_THAT(names(CompareToDump(dir, tensors, &grads)),
              ElementsAre("w", "tensors.grads.w", "tensors", "grads"));
}

TEST_F(CompareTest, ImagesAreComparedAsImages) {
  const float range[4] = {0, 1, 2, 1000};
  const float other[4] = {0, 1, 2.5, 1000};  // makes the same image
  const float scaled[4] = {0, 2, 4, 2000};   // makes the same pixels
  const Value tree = ValueMap{{"a", TensorView(range, {1, 2, 2})}};
  const Value other_tree = ValueMap{{"a", TensorView(other, {1, 2, 2})}};
  const std::string image = WriteDumpOf(tree, nullptr, DumpFormat::kImageI);
  const std::string other_image = WriteDumpOf(other_tree, nullptr, DumpFormat::kImageI);
  const auto pixels = [](CompareStatus status) { return Pair("a.0.tensor_image.pixels", status); };
  const auto range_is = [](CompareStatus status) { return Pair("a.0.tensor_image.original_range", status); };
  EXPECT_THAT(Statuses(CompareDumps(image, WriteDumpOf(tree, nullptr, DumpFormat::kImageI))),
              ElementsAre(Pair("a.0", CompareStatus::kBitwiseEqual)));
  const TreeComparison by_digest = CompareDumps(image, WriteDumpOf(tree));
  EXPECT_THAT(Statuses(by_digest), ElementsAre(Pair("a.0", CompareStatus::kBitwiseEqual)));
  EXPECT_EQ(by_digest.results[0].comparison.cosine_similarity, 1);
  EXPECT_EQ(by_digest.results[0].comparison.num_elements, 4);
  // The digests know better than the images.
  for (const std::string& dir : {other_image, WriteDumpOf(other_tree)}) {
    const TreeComparison comparison = CompareDumps(image, dir);
    EXPECT_THAT(Statuses(comparison),
                ElementsAre(Pair("a.0", CompareStatus::kCouldNotCompare), pixels(CompareStatus::kEqual),
                            range_is(CompareStatus::kEqual)));
    EXPECT_EQ(comparison.verdict(), Verdict::kCouldNotCompare);
  }
  // Without digests, images that agree tell nothing, and those that differ do: their range too.
  for (const std::string& dir : {image, other_image}) ASSERT_EQ(unlink((dir + "/manifest.json").c_str()), 0);
  for (const std::string& dir : {other_image, WriteDumpOf(other_tree)}) {
    const TreeComparison comparison = CompareDumps(image, dir);
    EXPECT_EQ(comparison.verdict(), Verdict::kCouldNotCompare);
    EXPECT_EQ(comparison.results[0].comparison.detail, "there is no digest, and only images were dumped");
  }
  EXPECT_THAT(Statuses(CompareDumps(image, WriteDumpOf(ValueMap{{"a", TensorView(scaled, {1, 2, 2})}}))),
              ElementsAre(Pair("a.0", CompareStatus::kCouldNotCompare), pixels(CompareStatus::kEqual),
                          range_is(CompareStatus::kMismatch)));
  EXPECT_EQ(CompareDumps(image, WriteDumpOf(ValueMap{{"a", Value::List{"text"}}})).verdict(),
            Verdict::kDifferent);
  EXPECT_THAT(Statuses(CompareDumps(image, WriteDumpOf(ValueMap{{"a", TensorView(range, {1, 4})}}))),
              ElementsAre(Pair("a.0", CompareStatus::kCouldNotCompare)));
}

TEST_F(CompareTest, StatisticsTellNothingWithoutADigest) {
  const auto statistics = [](const char* name) {
    return ValueMap{{"a", ValueMap{{"tensor_statistics", ValueMap{{"min", -2.5}, {name, 4}}}}}};
  };
  for (const Value& other :
       {Value(statistics("max")), Value(statistics("sum")), Value(ValueMap{{"a", a_}})}) {
    EXPECT_THAT(Statuses(CompareTrees(statistics("max"), other)),
                ElementsAre(Pair("a", CompareStatus::kCouldNotCompare)));
  }
  EXPECT_EQ(CompareTrees(statistics("max"), ValueMap{{"a", 4}}).verdict(), Verdict::kDifferent);
  EXPECT_THAT(Statuses(CompareTrees(statistics("max"), ValueMap())),
              ElementsAre(Pair("a", CompareStatus::kMissing)));
}

TEST_F(CompareTest, DumpWithoutDTypesIsComparedAsNumbers) {
  const Value tree = ValueMap{{"a", a_}};
  const std::string python = WriteDumpOf(tree, nullptr, DumpFormat::kJson);
  ASSERT_EQ(unlink((python + "/manifest.json").c_str()), 0);
  const TreeComparison comparison = CompareDumps(WriteDumpOf(tree), python);
  EXPECT_EQ(comparison.verdict(), Verdict::kEqual);
  EXPECT_FALSE(comparison.bitwise_equal());
}

TEST_F(CompareTest, DTypesThatFilesDescribeCountWithoutAManifest) {
  const double twice[2] = {1, 2};
  const Value float32 = ValueMap{{"a", a_}};
  const Value float64 = ValueMap{{"a", TensorView(twice, {2})}};
  for (const DumpFormat format : {DumpFormat::kBinary, DumpFormat::kNpy, DumpFormat::kSafetensors}) {
    const std::string with_manifest = WriteDumpOf(float32, nullptr, format);
    const std::string single = WriteDumpOf(float32, nullptr, format);
    const std::string wide = WriteDumpOf(float64, nullptr, format);
    for (const std::string& dir : {single, wide}) ASSERT_EQ(unlink((dir + "/manifest.json").c_str()), 0);
    for (const std::string& dir : {single, with_manifest}) {
      EXPECT_THAT(Statuses(CompareDumps(dir, wide)), ElementsAre(Pair("a", CompareStatus::kDTypeDiffers)));
      EXPECT_THAT(Statuses(CompareDumps(wide, dir)), ElementsAre(Pair("a", CompareStatus::kDTypeDiffers)));
    }
    EXPECT_EQ(CompareToDump(single, float64, nullptr).verdict(), Verdict::kDifferent);
    EXPECT_TRUE(CompareDumps(single, with_manifest).bitwise_equal());
  }
}

TEST_F(CompareTest, DumpWithoutDTypesHasTheSameNumbersWhereBitsAreAskedFor) {
  const auto python_dump = [&](float number) {
    const float data[] = {0.1f, number, std::nanf(""), -std::numeric_limits<float>::infinity()};
    std::string dir = WriteDumpOf(ValueMap{{"a", TensorView(data, {4})}}, nullptr, DumpFormat::kJson);
    EXPECT_EQ(unlink((dir + "/manifest.json").c_str()), 0);
    return dir;
  };
  const float data[] = {0.1f, -0.0f, std::nanf(""), -std::numeric_limits<float>::infinity()};
  const std::string reference = WriteDumpOf(ValueMap{{"a", TensorView(data, {4})}});
  CompareOptions options;
  options.tensors.tolerance.bitwise = true;
  EXPECT_EQ(CompareDumps(reference, python_dump(-0.0f), options).verdict(), Verdict::kEqual);
  EXPECT_EQ(CompareDumps(python_dump(-0.0f), reference, options).verdict(), Verdict::kEqual);
  EXPECT_EQ(CompareDumps(reference, python_dump(0.0f), options).verdict(), Verdict::kDifferent);
  EXPECT_EQ(CompareDumps(reference, python_dump(1e-45f), options).verdict(), Verdict::kDifferent);
}

TEST_F(CompareTest, GradientsOfOneDumpAloneAreADifference) {
  const Value tree = ValueMap{{"a", a_}};
  const TreeComparison comparison = CompareDumps(WriteDumpOf(tree, &tree), WriteDumpOf(tree));
  EXPECT_EQ(comparison.verdict(), Verdict::kDifferent);
  EXPECT_EQ(comparison.first_failure()->path, "grads");
}

TEST_F(CompareTest, UnreadableDumpsCouldNotBeCompared) {
  const std::string good = WriteDumpOf(ValueMap{{"a", a_}});
  EXPECT_EQ(CompareDumps(good, "/no/such/dump").verdict(), Verdict::kCouldNotCompare);
  EXPECT_EQ(CompareDumps("/no/such/dump", "/no/such/dump").verdict(), Verdict::kCouldNotCompare);

  const std::string cut = WriteDumpOf(ValueMap{{"a", a_}});
  const std::string blob = cut + "/[tensors.json]a.bin";
  ASSERT_EQ(truncate(blob.c_str(), 7), 0);
  const TreeComparison comparison = CompareDumps(good, cut);
  EXPECT_EQ(comparison.verdict(), Verdict::kCouldNotCompare);
  EXPECT_THAT(comparison.results[0].comparison.detail,
              HasSubstr("the current: " + blob +
                        ": 7 bytes, but [2] float32 has 8; the program was probably killed"));
}

TEST_F(CompareTest, FilesThatAreNotWhatTheManifestSaysCouldNotBeCompared) {
  const uint64_t unsigned_number[] = {5};
  const int64_t signed_number[] = {5};
  for (const auto& [view, number] : {std::pair(TensorView(unsigned_number, {1}), "-1"),
                                     {TensorView(unsigned_number, {1}), "1.5"},
                                     {TensorView(unsigned_number, {1}), "true"},
                                     {TensorView(signed_number, {1}), "18446744073709551615"}}) {
    const std::string dir = WriteDumpOf(ValueMap{{"a", view}}, nullptr, DumpFormat::kJson);
    EXPECT_EQ(CompareDumps(dir, dir).verdict(), Verdict::kEqual);
    ASSERT_TRUE(WriteFileAtomically(dir + "/tensors.json", std::string("{\"a\": [") + number + "]}").ok());
    EXPECT_THAT(CompareDumps(dir, dir).results[0].comparison.detail,
                HasSubstr("tensors.json: 'a': the number"))
        << number;
  }
  const float data[6] = {1, 2, 3, 4, 5, 6};
  const std::string rows = WriteDumpOf(ValueMap{{"a", TensorView(data, {2, 3})}}, nullptr, DumpFormat::kNpy);
  const std::string columns =
      WriteDumpOf(ValueMap{{"a", TensorView(data, {3, 2})}}, nullptr, DumpFormat::kNpy);
  const std::string npy = "/[tensors.json]a.npy";
  ASSERT_TRUE(WriteFileAtomically(columns + npy, ReadFile(rows + npy).value()).ok());
  EXPECT_THAT(CompareDumps(rows, columns).results[0].comparison.detail,
              HasSubstr("is not the [3, 2] float32 of the manifest"));
}

TEST_F(CompareTest, TextReportSaysWhatAPersonNeeds) {
  const TreeComparison comparison =
      CompareTrees(ValueMap{{"a", a_}, {"b", a_}, {"c", a_}}, ValueMap{{"a", a_}, {"b", b_}});
  EXPECT_EQ(ToText(comparison), R"(b: mismatch
  1 of 2 elements (50 %) are out of tolerance
  max abs error 1 at [1], max rel error 0.5 at [1]
  mean abs error 0.5, RMSE 0.707107, cosine similarity 0.989949494
  b[1]: current 3, dumped 2, difference (current - dumped) 1
  first difference in bits at [1]: reference 2, current 3, flipped bit 22, 4194304 ULP apart
  smallest tolerance that passes: atol 1, or rtol 0.5
c: missing: a tensor
different: 1 bitwise equal, 1 mismatch, 1 missing
)");
  EXPECT_THAT(ToText(comparison, 1), HasSubstr("... and 1 more\n"));
}

TEST_F(CompareTest, NoInfiniteToleranceIsCalledOneThatPasses) {
  const float with_nan[] = {1, std::nanf("")}, zeros[] = {0, 2};
  const Value a = ValueMap{{"x", a_}};
  const std::string nan = ToText(CompareTrees(a, ValueMap{{"x", TensorView(with_nan, {2})}}));
  EXPECT_THAT(nan, AllOf(HasSubstr("  no tolerance passes\n"), Not(HasSubstr("tol inf"))));
  const std::string zero = ToText(CompareTrees(ValueMap{{"x", TensorView(zeros, {2})}}, a));
  EXPECT_THAT(zero, AllOf(HasSubstr("passes: atol 1\n"), Not(HasSubstr("tol inf"))));
}

TEST_F(CompareTest, BitsAreNamedOnlyWhereFewFlipped) {
  EXPECT_EQ(FlippedBitsText({}), "");
  EXPECT_EQ(FlippedBitsText({20}), "flipped bit 20");
  EXPECT_EQ(FlippedBitsText({3, 20}), "flipped bits 3, 20");
  EXPECT_EQ(FlippedBitsText({2, 5, 7}), "");
  const float close[2] = {1, 2.00001f};
  EXPECT_THAT(ToText(CompareTrees(ValueMap{{"a", a_}}, ValueMap{{"a", TensorView(close, {2})}})),
              HasSubstr("reference 2, current 2.00001, 42 ULP apart\n"));
}

TEST_F(CompareTest, TextReportSaysBothWhereValuesPassAndBitsDiffer) {
  CompareOptions options;
  options.tensors.tolerance.atol = 1;
  EXPECT_EQ(ToText(CompareTrees(ValueMap{{"a", a_}}, ValueMap{{"a", b_}}, options)),
            "largest error within tolerance: 1 in a\nequal (not bit for bit): 1 within tolerance\n");
  EXPECT_EQ(ToText(CompareTrees(ValueMap{{"a", a_}}, ValueMap{{"a", a_}})),
            "equal (bit for bit): 1 bitwise equal\n");
}

TEST_F(CompareTest, JsonReportHasAllFigures) {
  std::string json = ToJson(CompareTrees(ValueMap{{"a", a_}, {"c", a_}}, ValueMap{{"a", b_}}));
  json.erase(std::remove_if(json.begin(), json.end(), [](char c) { return c == ' ' || c == '\n'; }),
             json.end());
  EXPECT_EQ(
      json,
      R"({"verdict":"different","bitwise_equal":false,"results":[)"
      R"({"path":"a","status":"mismatch","dtype":"float32","shape":[2],"num_elements":2,"num_mismatched":1,)"
      R"("num_bits_differ":1,"max_abs_error":{"error":1.0,"index":[1]},"max_rel_error":{"error":0.5,"index":[1]},)"
      R"("mean_abs_error":0.5,"root_mean_square_error":0.7071067811865476,"cosine_similarity":0.9899494936611664,)"
      R"("max_ulp_distance":4194304,"num_nan_reference":0,"num_nan_current":0,"num_inf_reference":0,)"
      R"("num_inf_current":0,"passing_atol":1.0,"passing_rtol":0.5,"worst":[{"position":1,"index":[1],)"
      R"("reference":"2","current":"3","difference":1.0}],"first_bit_difference":{"position":1,"index":[1],)"
      R"("reference":"2","current":"3","flipped_bits":[22],"ulp_distance":4194304}},)"
      R"({"path":"c","status":"missing","detail":"atensor"}]})");
}

TEST_F(CompareTest, SummaryCountsEachStatusByName) {
  TreeComparison comparison;
  for (int status = 0; status <= static_cast<int>(CompareStatus::kCouldNotCompare); ++status) {
    comparison.results.emplace_back().comparison.status = static_cast<CompareStatus>(status);
  }
  EXPECT_EQ(
      SummaryText(comparison),
      "different: 1 bitwise equal, 1 equal, 1 within tolerance, 1 mismatch, 1 dtype differs, 1 shape "
      "differs, "
      "1 kind differs, 1 length differs, 1 order differs, 1 missing, 1 extra, 1 empty, 1 could not compare");
}

TEST_F(CompareTest, CsvReportHasALineForEachResult) {
  const std::string csv = ToCsv(CompareTrees(ValueMap{{"a", a_}, {"c,\"d", a_}}, ValueMap{{"a", b_}}));
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n');
  ASSERT_EQ(lines.size(), 4u);
  const auto columns = [](const std::string& line) { return std::count(line.begin(), line.end(), ','); };
  EXPECT_EQ(lines[1].substr(0, 36), "a,mismatch,float32,[2],2,1,1,1.0,0.5");
  EXPECT_EQ(columns(lines[1]), columns(lines[0]));
  EXPECT_EQ(lines[2], "\"c,\"\"d\",missing,,,,,,,,,,,,,,,,,,a tensor");
  EXPECT_EQ(columns(lines[2]), columns(lines[0]) + 1);
}

TEST_F(CompareTest, JsonAndCsvReportsHaveTheSameFigures) {
  const TreeComparison comparison = CompareTrees(ValueMap{{"a", a_}}, ValueMap{{"a", b_}});
  const Value report = ParseJson(ToJson(comparison)).value();
  const ValueMap& figures = report.map().Find("results")->list()[0].map();
  const std::vector<std::string> lines = absl::StrSplit(ToCsv(comparison), '\n');
  const std::vector<std::string> names = absl::StrSplit(lines[0], ',');
  const std::vector<std::string> fields = absl::StrSplit(lines[1], ',');
  ASSERT_EQ(fields.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "shape" || names[i] == "detail") continue;
    const Value* figure = figures.Find(names[i]);
    ASSERT_NE(figure, nullptr) << names[i];
    if (figure->is_map()) figure = figure->map().Find("error");
    const std::string text =
        figure->kind() == Value::Kind::kString ? figure->string_value() : ToJson(*figure).value();
    EXPECT_EQ(text, fields[i]) << names[i];
  }
}

TEST_F(CompareTest, JUnitReportFailsWhatDoesNotPass) {
  const std::string xml =
      ToJUnitXml(CompareTrees(ValueMap{{"a", a_}, {"b", a_}, {"<&>\n", a_}}, ValueMap{{"a", a_}, {"b", b_}}));
  EXPECT_THAT(xml, HasSubstr("tests=\"4\" failures=\"3\""));
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"ott.compare\" name=\"a\"/>"));
  EXPECT_THAT(xml, HasSubstr("name=\"b\">\n      <failure message=\"mismatch\">b: mismatch\n"));
  EXPECT_THAT(xml, HasSubstr("name=\"&lt;&amp;&gt;\\n\">\n      <failure message=\"missing\">"));
  EXPECT_THAT(xml, HasSubstr("name=\"(verdict)\">\n      <failure message=\"different\">"));
  EXPECT_EQ(ToJUnitXml(CompareTrees(ValueMap{{"a", a_}}, ValueMap{{"a", a_}})).substr(0, 121),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
            "  <testsuite name=\"ott.compare\" tests=\"2\" failures=\"0\">\n    <testcase");
  EXPECT_THAT(xml, testing::EndsWith("  </testsuite>\n</testsuites>\n"));
  CompareOptions refuse;
  refuse.allow_empty = false;
  EXPECT_THAT(ToJUnitXml(CompareTrees(ValueMap(), ValueMap(), refuse)),
              HasSubstr("tests=\"2\" failures=\"2\""));
}

TEST_F(CompareTest, TolerancesAreChosenByNameAndDType) {
  const float reference[1] = {1000};
  const float current[1] = {1000.5};
  const Value left =
      ValueMap{{"loose.w", TensorView(reference, {1})}, {"tight.w", TensorView(reference, {1})}};
  const Value right = ValueMap{{"loose.w", TensorView(current, {1})}, {"tight.w", TensorView(current, {1})}};
  CompareOptions options;
  PathTolerance loose;
  loose.glob = "loose.*";
  loose.tolerance.rtol = 1e-3;
  options.path_tolerances = {loose};
  EXPECT_THAT(Statuses(CompareTrees(left, right, options)),
              ElementsAre(Pair("loose.w", CompareStatus::kWithinTolerance),
                          Pair("tight.w", CompareStatus::kMismatch)));

  options.path_tolerances = {};
  options.default_tolerances = true;
  EXPECT_EQ(CompareTrees(left, right, options).verdict(), Verdict::kDifferent);
  const float close[1] = {1000.001};
  EXPECT_EQ(CompareTrees(ValueMap{{"a", TensorView(reference, {1})}}, ValueMap{{"a", TensorView(close, {1})}},
                         options)
                .verdict(),
            Verdict::kEqual);
}

TEST_F(CompareTest, JsonReportHasDistancesThatOnlyAUint64Holds) {
  const double reference[1] = {-2};
  const double current[1] = {2};
  const std::string json = ToJson(CompareTrees(TensorView(reference, {1}), TensorView(current, {1})));
  EXPECT_THAT(json, HasSubstr("\"max_ulp_distance\": 9223372036854775808"));
  EXPECT_THAT(json, HasSubstr("\"ulp_distance\": 9223372036854775808"));
}

TEST_F(CompareTest, JsonReportIsStrictJsonWhereFiguresAreNoNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double reference[3] = {1, std::nan(""), 0};
  const double current[3] = {kInfinity, -kInfinity, std::nan("")};
  const std::string json = ToJson(CompareTrees(TensorView(reference, {3}), TensorView(current, {3})));
  JsonCursor cursor(json, JsonDialect::kStrict);
  std::string_view all;
  EXPECT_TRUE(cursor.Value(&all)) << json.substr(cursor.position(), 40);
  EXPECT_THAT(json, HasSubstr("\"NaN\""));
  EXPECT_THAT(json, HasSubstr("\"Infinity\""));
}

TEST_F(CompareTest, JsonReportStandsNamesThatAreNotUtf8) {
  const std::string json = ToJson(CompareTrees(ValueMap{{"\xff", a_}}, ValueMap{{"\xff", b_}}));
  const Value report = ParseJson(json).value();
  EXPECT_EQ(report.map().Find("results")->list()[0].map().Find("path")->string_value(), "\\xff");
}

std::string Text(const TensorComparison& comparison) {
  return *ToJson(ToValue(NamedComparison{"w", comparison}));
}

TEST(CompareTensors, PartsThatLieApartAreComparedAsTheWholeThatTheyMakeUp) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 40; ++trial) {
    // Runs of columns are shorter or longer than the blocks in which elements are compared.
    const int64_t rows = 2 + random() % 5, columns = trial % 4 == 0 ? 6000 : 2 + random() % 40;
    std::vector<float> whole(static_cast<size_t>(rows * columns));
    for (float& element : whole) element = static_cast<float>(random() % 100);
    std::vector<float> other = whole;
    for (uint32_t i = random() % 4; i > 0; --i)
      other[random() % other.size()] += static_cast<float>(random() % 3);
    const std::vector<double> wider(other.begin(), other.end());
    const int64_t row = 1 + random() % (rows - 1), column = 1 + random() % (columns - 1);
    std::vector<std::vector<float>> data;
    std::vector<TensorPart> parts;
    data.reserve(4);
    for (const auto& [top, bottom] : {std::pair(int64_t{0}, row), {row, rows}}) {
      for (const auto& [left, right] : {std::pair(int64_t{0}, column), {column, columns}}) {
        std::vector<float>& part = data.emplace_back();
        for (int64_t y = top; y < bottom; ++y) {
          for (int64_t x = left; x < right; ++x) part.push_back(whole[static_cast<size_t>(y * columns + x)]);
        }
        parts.push_back(
            {Tensor{TensorView(part.data(), {bottom - top, right - left}), nullptr}, {top, left}});
      }
    }
    const Dims shape = {rows, columns};
    const absl::StatusOr<Tensor> joined = ScatteredElements::Join(DType::kFloat32, shape, shape, parts);
    ASSERT_TRUE(joined.ok()) << joined.status();
    const Tensor reference{TensorView(whole.data(), shape), nullptr};
    TensorCompareOptions options;
    options.compare_dtype = false;
    options.tolerance.atol = 1;
    for (const TensorView& current : {TensorView(other.data(), shape), TensorView(wider.data(), shape)}) {
      const Tensor tensor{current, nullptr};
      EXPECT_EQ(Text(CompareTensors(*joined, tensor, options)),
                Text(CompareTensors(reference, tensor, options)));
      EXPECT_EQ(Text(CompareTensors(tensor, *joined, options)),
                Text(CompareTensors(tensor, reference, options)));
    }
  }
}

}  // namespace
}  // namespace ott
