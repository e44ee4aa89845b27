#include "ott/core/compare/compare.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/compare/report.h"
#include "ott/core/dump/dump_for_test.h"
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
  const float one_[2] = {1, 2};
  const float other_[2] = {1, 3};
  const TensorView a_{one_, {2}};
  const TensorView b_{other_, {2}};
};

TEST_F(CompareTest, NothingIsEqualToNothingOrCouldNotBeCompared) {
  EXPECT_EQ(TreeComparison().verdict(), Verdict::kCouldNotCompare);
  const auto summary = [](const Value& reference, const Value& current) {
    return SummaryText(CompareTrees(ValueMap{{"a", reference}}, ValueMap{{"a", current}}));
  };
  EXPECT_EQ(summary("x", "x"), "equal (bit for bit): no numbers on either side");
  EXPECT_EQ(summary(a_, a_), "equal (bit for bit): 1 bitwise equal");
  EXPECT_EQ(summary(0.0, -0.0), "equal (not bit for bit): 1 equal");
}

TEST_F(CompareTest, WhatIsNoImageOfThatSizeIsNotComparedAsOne) {
  const float data[4] = {0, 1, 2, 1000};
  const std::string image = DumpForTest(ValueMap{{"a", TensorView(data, {1, 2, 2})}}, DumpFormat::kImageI);
  EXPECT_THAT(Statuses(CompareDumps(image, DumpForTest(ValueMap{{"a", TensorView(data, {1, 4})}}))),
              ElementsAre(Pair("a.0", CompareStatus::kCouldNotCompare)));
  const std::string list = DumpForTest(ValueMap{{"a", Value::List{"text"}}});
  for (const auto& [reference, current] : {std::pair(image, list), {list, image}})
    EXPECT_EQ(CompareDumps(reference, current).verdict(), Verdict::kDifferent);
  const float halved[4] = {0, 1, 2, 500};
  const ValueMap other{{"a", TensorView(halved, {1, 2, 2})}};
  for (const DumpFormat format : {DumpFormat::kJson, DumpFormat::kImageI}) {
    EXPECT_THAT(ToText(CompareDumps(image, DumpForTest(other, format))),
                HasSubstr("current 500, dumped 1000"));
  }
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
  const ValueMap digest_alone{{"a", ValueMap{{"tensor_statistics", ValueMap{{"digest", "12"}}}}}};
  EXPECT_THAT(Statuses(CompareTrees(digest_alone, digest_alone)),
              ElementsAre(Pair("a", CompareStatus::kBitwiseEqual)));
  EXPECT_EQ(CompareTrees(statistics("max"), ValueMap{{"a", 4}}).verdict(), Verdict::kDifferent);
  EXPECT_THAT(Statuses(CompareTrees(statistics("max"), ValueMap())),
              ElementsAre(Pair("a", CompareStatus::kMissing)));
}

TEST_F(CompareTest, DumpWithoutDTypesHasTheSameNumbersWhereBitsAreAskedFor) {
  const auto python_dump = [&](float number) {
    const float data[] = {0.1f, number, std::nanf(""), -std::numeric_limits<float>::infinity()};
    std::string dir = DumpForTest(ValueMap{{"a", TensorView(data, {4})}}, DumpFormat::kJson);
    EXPECT_EQ(unlink((dir + "/manifest.json").c_str()), 0);
    return dir;
  };
  const float data[] = {0.1f, -0.0f, std::nanf(""), -std::numeric_limits<float>::infinity()};
  const std::string reference = DumpForTest(ValueMap{{"a", TensorView(data, {4})}});
  CompareOptions options;
  options.tensors.tolerance.bitwise = true;
  EXPECT_EQ(CompareDumps(reference, python_dump(-0.0f), options).verdict(), Verdict::kEqual);
  EXPECT_EQ(CompareDumps(python_dump(-0.0f), reference, options).verdict(), Verdict::kEqual);
  EXPECT_EQ(CompareDumps(reference, python_dump(0.0f), options).verdict(), Verdict::kDifferent);
  EXPECT_EQ(CompareDumps(reference, python_dump(1e-45f), options).verdict(), Verdict::kDifferent);
}

TEST_F(CompareTest, UnreadableDumpsCouldNotBeCompared) {
  const std::string good = DumpForTest(ValueMap{{"a", a_}});
  EXPECT_EQ(CompareDumps(good, "/no/such/dump").verdict(), Verdict::kCouldNotCompare);
  EXPECT_EQ(CompareDumps("/no/such/dump", "/no/such/dump").verdict(), Verdict::kCouldNotCompare);

  const std::string cut = DumpForTest(ValueMap{{"a", a_}});
  const std::string blob = cut + "/[tensors.json]a.bin";
  ASSERT_EQ(truncate(blob.c_str(), 7), 0);
  const TreeComparison comparison = CompareDumps(good, cut);
  EXPECT_EQ(comparison.verdict(), Verdict::kCouldNotCompare);
  EXPECT_THAT(comparison.results[0].comparison.detail,
              HasSubstr("the current: " + blob +
                        ": 7 bytes, but [2] float32 has 8; the program was probably killed"));
}

// Each figure is another number.
NamedComparison AllFigures() {
  TensorComparison figures;
  figures.status = CompareStatus::kMismatch;
  figures.shape = {2, 3};
  figures.num_elements = 6;
  figures.num_mismatched = 3;
  figures.num_bits_differ = 4;
  figures.max_abs_error = ErrorAt{1.5, 4, {1, 1}};
  figures.max_rel_error = ErrorAt{0.25, 2, {0, 2}};
  figures.mean_abs_error = 0.5;
  figures.root_mean_square_error = 0.75;
  figures.cosine_similarity = 0.875;
  figures.max_ulp_distance = 7;
  figures.num_nan_reference = 10;
  figures.num_nan_current = 20;
  figures.num_inf_reference = 30;
  figures.num_inf_current = 40;
  figures.passing_atol = 1.25;
  figures.passing_rtol = 0.125;
  ElementDifference worst;
  worst.position = 4;
  worst.index = {1, 1};
  worst.difference = -2;
  worst.reference_text = "3";
  worst.current_text = "1";
  figures.worst = {worst};
  BitDifference bits;
  bits.element.position = 1;
  bits.element.index = {0, 1};
  bits.element.reference_text = "5";
  bits.element.current_text = "6";
  bits.flipped_bits = {3};
  bits.ulp_distance = 9;
  figures.first_bit_difference = bits;
  return {"a", figures};
}

NamedComparison Missing(const std::string& path) {
  NamedComparison missing{path, {}};
  missing.comparison.status = CompareStatus::kMissing;
  missing.comparison.detail = "a tensor";
  return missing;
}

NamedComparison Within(const std::string& path, double error) {
  NamedComparison within{path, {}};
  within.comparison.status = CompareStatus::kWithinTolerance;
  within.comparison.max_abs_error = ErrorAt{error, 0, {}};
  return within;
}

TEST_F(CompareTest, TextReportSaysWhatAPersonNeeds) {
  const TreeComparison all = {
      {Within("x", 0.25), AllFigures(), Within("y", 0.5), Missing("c"), Within("z", 0.5)}};
  const std::string nan = "  NaN: reference 10, current 20; infinite: reference 30, current 40\n";
  const std::string passing = "  smallest tolerance that passes: atol 1.25, or rtol 0.125\n";
  const std::string a = R"(a: mismatch
  3 of 6 elements (50 %) are out of tolerance
  max abs error 1.5 at [1, 1], max rel error 0.25 at [0, 2]
  mean abs error 0.5, RMSE 0.75, cosine similarity 0.875
)" + nan + R"(  a[1,1]: current 1, dumped 3, difference (current - dumped) -2
  first difference in bits at [0, 1]: reference 5, current 6, flipped bit 3, 9 ULP apart
)" + passing;
  const std::string end =
      "largest error within tolerance: 0.5 in y\ndifferent: 3 within tolerance, 1 mismatch, 1 missing\n";
  EXPECT_EQ(ToText(all), a + "c: missing: a tensor\n" + end);
  EXPECT_EQ(ToText(all, 2), ToText(all));
  EXPECT_EQ(ToText(all, 1), a + "... and 1 more\n" + end);

  // NaN and infinities are told where there are any, and tolerances only where one passes.
  const auto changed = [&](const std::function<void(TensorComparison&)>& change) {
    NamedComparison figures = AllFigures();
    change(figures.comparison);
    return ToText({{figures}});
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (int64_t TensorComparison::*const kept :
       {&TensorComparison::num_nan_reference, &TensorComparison::num_nan_current,
        &TensorComparison::num_inf_reference, &TensorComparison::num_inf_current}) {
    const auto keep = [&](int64_t number) {
      return changed([&](TensorComparison& of) {
        of.num_nan_reference = of.num_nan_current = of.num_inf_reference = of.num_inf_current = 0;
        of.*kept = number;
      });
    };
    EXPECT_THAT(keep(5), HasSubstr("  NaN: "));
    EXPECT_THAT(keep(0), Not(HasSubstr("NaN")));
  }
  EXPECT_THAT(changed([](auto& of) { of.passing_rtol = kInfinity; }), HasSubstr("passes: atol 1.25\n"));
  EXPECT_THAT(changed([](auto& of) { of.passing_atol = kInfinity; }),
              AllOf(HasSubstr("  no tolerance passes\n"), Not(HasSubstr("smallest"))));
}

TEST_F(CompareTest, ARoundedTensorWithoutFiniteNumbersHasNoErrorToTell) {
  const float wide[] = {NAN, 0.1f};
  const BFloat16 narrow[] = {FromDouble<BFloat16>(NAN), FromDouble<BFloat16>(0.1f)};
  CompareOptions options;
  options.tensors.accept_rounded = options.tensors.tolerance.nan_equal = true;
  const auto text = [&](int64_t size) {
    return ToText(CompareTrees(ValueMap{{"a", TensorView(wide, {size})}, {"b", TensorView(wide, {2})}},
                               ValueMap{{"a", TensorView(narrow, {size})}, {"b", TensorView(narrow, {2})}},
                               options));
  };
  for (const int64_t size : {0, 1}) {
    EXPECT_EQ(text(size),
              "largest error within tolerance: 0 in b\nequal (not bit for bit): 2 within tolerance\n");
  }
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

TEST_F(CompareTest, JsonReportHasAllFigures) {
  // A name that is not UTF-8 is escaped.
  std::string json = ToJson({{AllFigures(), Missing("\xff")}});
  json.erase(std::remove_if(json.begin(), json.end(), [](char c) { return c == ' ' || c == '\n'; }),
             json.end());
  EXPECT_EQ(
      json,
      R"({"verdict":"different","bitwise_equal":false,"results":[)"
      R"({"path":"a","status":"mismatch","dtype":"float32","shape":[2,3],"num_elements":6,"num_mismatched":3,)"
      R"("num_bits_differ":4,"max_abs_error":{"error":1.5,"index":[1,1]},"max_rel_error":{"error":0.25,"index":[0,2]},)"
      R"("mean_abs_error":0.5,"root_mean_square_error":0.75,"cosine_similarity":0.875,)"
      R"("max_ulp_distance":7,"num_nan_reference":10,"num_nan_current":20,"num_inf_reference":30,)"
      R"("num_inf_current":40,"passing_atol":1.25,"passing_rtol":0.125,"worst":[{"position":4,"index":[1,1],)"
      R"("reference":"3","current":"1","difference":-2.0}],"first_bit_difference":{"position":1,"index":[0,1],)"
      R"("reference":"5","current":"6","flipped_bits":[3],"ulp_distance":9}},)"
      R"({"path":"\\xff","status":"missing","detail":"atensor"}]})");
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
  NamedComparison figures = AllFigures();
  figures.comparison.detail = "why, then";
  NamedComparison without = AllFigures();
  without.comparison.max_ulp_distance = std::nullopt;
  without.comparison.max_rel_error = std::nullopt;
  EXPECT_EQ(ToCsv({{figures, without, Missing("c,\"d")}}),
            std::string(kCsvColumns) +
                "\na,mismatch,float32,\"[2, "
                "3]\",6,3,4,1.5,0.25,0.5,0.75,0.875,7,10,20,30,40,1.25,0.125,\"why, then\"\n"
                "a,mismatch,float32,\"[2, 3]\",6,3,4,1.5,,0.5,0.75,0.875,,10,20,30,40,1.25,0.125,\n"
                "\"c,\"\"d\",missing,,,,,,,,,,,,,,,,,,a tensor\n");
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

TEST(DefaultTolerance, IsThatOfTorchTesting) {
  for (const auto& [dtype, rtol, atol] : {std::tuple(DType::kFloat32, 1.3e-6, 1e-5),
                                          {DType::kBFloat16, 1.6e-2, 1e-5},
                                          {DType::kFloat16, 1e-3, 1e-5},
                                          {DType::kFloat64, 1e-7, 1e-7},
                                          {DType::kComplex64, 1.3e-6, 1e-5},
                                          {DType::kInt32, 0., 0.}}) {
    EXPECT_EQ(DefaultTolerance(dtype).rtol, rtol) << Name(dtype);
    EXPECT_EQ(DefaultTolerance(dtype).atol, atol) << Name(dtype);
  }
}

TEST_F(CompareTest, JsonReportIsStrictJsonWhereFiguresAreNoNumbers) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  NamedComparison figures = AllFigures();
  figures.comparison.mean_abs_error = std::nan("");
  figures.comparison.max_rel_error->error = kInfinity;
  figures.comparison.worst[0].difference = -kInfinity;
  figures.comparison.max_ulp_distance = std::nullopt;
  figures.comparison.first_bit_difference->ulp_distance = uint64_t{1} << 63;
  const std::string json = ToJson({{figures}});
  JsonCursor cursor(json, JsonDialect::kStrict);
  std::string_view all;
  EXPECT_TRUE(cursor.Value(&all)) << json.substr(cursor.position(), 40);
  for (const char* const figure :
       {"\"mean_abs_error\": \"NaN\"", "\"error\": \"Infinity\"", "\"difference\": \"-Infinity\"",
        "\"max_ulp_distance\": null", "\"ulp_distance\": 9223372036854775808"}) {
    EXPECT_THAT(json, HasSubstr(figure));
  }
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
    const Tensor joined = ScatteredElements::Join(DType::kFloat32, shape, shape, parts).value();
    const Tensor reference{TensorView(whole.data(), shape), nullptr};
    TensorCompareOptions options;
    options.compare_dtype = false;
    options.tolerance.atol = 1;
    for (const TensorView& current : {TensorView(other.data(), shape), TensorView(wider.data(), shape)}) {
      const Tensor tensor{current, nullptr};
      EXPECT_EQ(Text(CompareTensors(joined, tensor, options)),
                Text(CompareTensors(reference, tensor, options)));
      EXPECT_EQ(Text(CompareTensors(tensor, joined, options)),
                Text(CompareTensors(tensor, reference, options)));
    }
  }
}

}  // namespace
}  // namespace ott
