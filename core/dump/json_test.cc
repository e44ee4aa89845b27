#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/no_threads_for_test.h"
#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/json_writer.h"

namespace ott {
namespace {

using testing::HasSubstr;

// python_identity_test.cc compares trees and numbers with what Python writes.
TEST(JsonWriter, TensorsOfAnyStridesAreNestedLists) {
  const float data[2] = {0.5, -1};
  EXPECT_EQ(ToJson(TensorView(data, {0, 3})).value(), "[]");
  EXPECT_EQ(ToJson(TensorView(data, {2, 0})).value(), "[\n  [],\n  []\n]");
  EXPECT_EQ(ToJson(TensorView(data + 1, DType::kFloat32, {2}, {-1})).value(), "[\n  -1.0,\n  0.5\n]");
}

TEST(JsonWriter, NamesThatAreNotUtf8AreErrors) {
  for (const char* const text : {"\xff", "\xc0\x80", "\xe2\x82", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    EXPECT_THAT(std::string(ToJson(ValueMap{{text, 1}}).status().message()),
                HasSubstr("is not UTF-8 from byte 0"));
  }
}

TEST(JsonWriter, TextIsHandedOnInPieces) {
  const std::vector<double> data(200000, 1.0 / 3);
  size_t largest = 0;
  size_t total = 0;
  ASSERT_TRUE(WriteJson(TensorView(data.data(), {200000}), [&](std::string_view piece) {
                largest = std::max(largest, piece.size());
                total += piece.size();
                return absl::OkStatus();
              }).ok());
  EXPECT_GT(total, 4u << 20);
  EXPECT_LT(largest, 2u << 20);
}

TEST(JsonReader, MoreValuesThanATreeMayHaveAreAnError) {
  const auto many = [](std::string_view item, int64_t count) {
    std::string text = "[";
    for (int64_t i = 0; i < count; ++i) text.append(item).push_back(',');
    return text.append("{}]");
  };
  EXPECT_EQ(ParseJson(many("{}", kMaxJsonValues - 2))->list().size(),
            static_cast<size_t>(kMaxJsonValues - 1));
  for (const char* const item : {"{}", "[[]]", "[0],[0.5]"}) {
    const absl::Status status = ParseJson(many(item, kMaxJsonValues - 1)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << item;
    EXPECT_THAT(std::string(status.message()), HasSubstr("line 1 column")) << item;
  }
  // A tensor is one, however many elements it has.
  EXPECT_EQ(ParseJson(many("0", 2 * kMaxJsonValues).replace(4 * kMaxJsonValues + 1, 2, "0"))
                ->tensor()
                .view.num_elements(),
            2 * kMaxJsonValues + 1);
}

// A text as it is written.
struct Drawn {
  std::string text;
  bool is_list = false;
  std::vector<Drawn> items = {};

  bool has_large() const { return text.find("18446744073709551615") != std::string::npos; }
};

// Draws lists of these sizes, mostly of numbers of one type.
Drawn Draw(std::mt19937& random, size_t type, Dims sizes, const std::string& line = "\n") {
  static const std::vector<std::string> scalars[] = {{"1", "-2", "-9223372036854775808"},
                                                     {"7", "18446744073709551615"},
                                                     {"0.5", "NaN", "Infinity", "-Infinity", "-0.0"},
                                                     {"true", "false"},
                                                     {"null", R"("\ud83d\ude00\u00e9\n")", "[]", "{}"}};
  if (random() % 16 == 0) type = random() % 5;
  if (random() % 16 == 0) sizes.assign(random() % 3, static_cast<int64_t>(random() % 3));
  if (sizes.empty()) return {scalars[type][random() % scalars[type].size()]};
  Drawn list = {"[", true};
  for (int64_t i = 0; i < sizes[0]; ++i) {
    list.items.push_back(Draw(random, type, Dims(sizes.begin() + 1, sizes.end()), line + "  "));
    absl::StrAppend(&list.text, i == 0 ? "" : ",", line, "  ", list.items.back().text);
  }
  absl::StrAppend(&list.text, list.items.empty() ? "" : line, "]");
  return list;
}

// Returns the shape of numbers of one type, in lists of one shape; nullopt if it is no such number or list.
std::optional<std::pair<DType, Dims>> ShapeOf(const Drawn& drawn) {
  const std::string& text = drawn.text;
  if (!drawn.is_list) {
    if (text.find_first_of("n\"[{") == 0) return std::nullopt;
    const bool is_float = text.find_first_of(".NI") != std::string::npos;
    return std::pair(text[0] == 't' || text[0] == 'f' ? DType::kBool
                     : is_float                       ? DType::kFloat64
                                                      : DType::kInt64,
                     Dims());
  }
  std::optional<std::pair<DType, Dims>> all;
  for (const Drawn& item : drawn.items) {
    const auto shape = ShapeOf(item);
    if (!shape || (all && *all != *shape)) return std::nullopt;
    all = shape;
  }
  if (!all || (drawn.has_large() && text.find('-') != std::string::npos)) return std::nullopt;
  all->second.insert(all->second.begin(), static_cast<int64_t>(drawn.items.size()));
  return all;
}

void ExpectRead(const Value& value, const Drawn& drawn) {
  const auto shape = ShapeOf(drawn);
  if (shape && (drawn.is_list || drawn.has_large())) {
    ASSERT_TRUE(value.is_tensor()) << drawn.text;
    EXPECT_EQ(value.tensor().view.shape(), shape->second) << drawn.text;
    EXPECT_EQ(value.tensor().view.dtype(), drawn.has_large() ? DType::kUInt64 : shape->first) << drawn.text;
  } else if (drawn.is_list) {
    ASSERT_TRUE(value.is_list()) << drawn.text;
    ASSERT_EQ(value.list().size(), drawn.items.size()) << drawn.text;
    for (size_t i = 0; i < drawn.items.size(); ++i) ExpectRead(value.list()[i], drawn.items[i]);
  }
}

TEST(JsonReader, ListsOfNumbersOfOneTypeAndShapeAreTensorsAndAllIsWrittenAsItWasRead) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    Dims sizes(random() % 4);
    for (int64_t& size : sizes) size = 1 + static_cast<int64_t>(random() % 3);
    const Drawn drawn = Draw(random, random() % 5, sizes);
    const Value value = ParseJson(drawn.text).value();
    ExpectRead(value, drawn);
    EXPECT_EQ(ToJson(value).value(), drawn.text);
  }
  // Zero is never negative.
  EXPECT_TRUE(ParseJson("[-0, 18446744073709551615]")->is_tensor());
}

TEST(JsonReader, WhatIsNotJsonIsAnErrorWithItsPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{\"a\": 1,\n  b}", "line 2 column 3: expected a name in quotes, found 'b'"},
      {"[1 2]", "line 1 column 4: expected ',' or ']', found '2'"},
      {"[1,]", "line 1 column 4: expected a value, found ']'"},
      {"{\"a\" 1}", "line 1 column 6: expected ':', found '1'"},
      {"{\"a\": 1, \"a\": 2}", "line 1 column 10: the name \"a\" is used twice"},
      {"1e400", "line 1 column 1: the number 1e400 is out of range"},
      {"[36893488147419103232]", "line 1 column 2: the number 36893488147419103232 is out of range"},
      {"01", "line 1 column 2: something follows the end"},
      {"1.", "truncated at byte 2"},
      {"[-x]", "line 1 column 3: expected a digit, found 'x'"},
      {"\"a\\x\"", "line 1 column 4: unknown escape"},
      {"[\"\xff\"", "line 1 column 2: \"\\xff\" is not UTF-8"},
  };
  for (const auto& [text, message] : cases)
    EXPECT_THAT(std::string(ParseJson(text).status().message()), HasSubstr(message)) << text;
}

TEST(JsonReader, EveryCutOfATextIsTruncation) {
  const std::string text =
      R"({"a": [1, -2.5e+3, NaN, -Infinity], "b": {"c\u00e9\ud83d\ude00": "x\n"}, "d": null})";
  ASSERT_TRUE(ParseJson(text).ok());
  for (size_t size = 0; size < text.size(); ++size) {
    const absl::Status status = ParseJson(text.substr(0, size)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text.substr(0, size) << ": " << status;
  }
}

TEST(JsonReader, DeepNestingIsAnErrorAndNotACrash) {
  EXPECT_TRUE(ParseJson(std::string(512, '[') + std::string(512, ']')).ok());
  EXPECT_THAT(std::string(ParseJson(std::string(10000, '[')).status().message()),
              HasSubstr("line 1 column 513: nested deeper than 512 levels"));
}

// Numbers one by one, as lists.
Value ListsOf(const Tensor& tensor) {
  if (tensor.view.shape().empty()) return *static_cast<const double*>(tensor.view.data());
  Value::List items;
  for (int64_t i = 0; i < tensor.view.shape()[0]; ++i) items.push_back(ListsOf(ItemOf(tensor, i)));
  return items;
}

TEST(WriteJson, ThreadsChangeNoTextAndAreNotNeeded) {
  std::vector<double> numbers(300 * 7 * 41);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = 1.0 / static_cast<double>(i + 1);
  const TensorView cube(numbers.data(), {300, 7, 41});
  const TensorView columns(numbers.data(), DType::kFloat64, {41, 2100}, {1, 41});
  const Value value = ValueMap{{"cube", cube}, {"columns", columns}, {"end", 1}};
  const std::string expected =
      ToJson(
          ValueMap{{"cube", ListsOf({cube, nullptr})}, {"columns", ListsOf({columns, nullptr})}, {"end", 1}})
          .value();
  const auto expect_text = [&](int num_threads) {
    std::string actual;
    const auto append = [&](std::string_view piece) {
      actual += piece;
      return absl::OkStatus();
    };
    EXPECT_TRUE(WriteJson(value, append, num_threads).ok());
    EXPECT_TRUE(actual == expected) << num_threads;
  };
  for (const int num_threads : {0, 1, 2, 5}) expect_text(num_threads);
  const NoThreads no_threads;
  expect_text(3);
}

TEST(WriteJson, TheSinksErrorEndsAllThreads) {
  const std::vector<double> numbers(200000);
  for (const int num_threads : {1, 3}) {
    int num_calls = 0;
    const auto full = [&](std::string_view) {
      return ++num_calls == 3 ? absl::ResourceExhaustedError("full") : absl::OkStatus();
    };
    EXPECT_EQ(WriteJson(TensorView(numbers.data(), {200000}), full, num_threads),
              absl::ResourceExhaustedError("full"));
    EXPECT_EQ(num_calls, 3);
  }
}

}  // namespace
}  // namespace ott
