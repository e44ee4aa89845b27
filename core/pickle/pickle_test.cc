#include "ott/core/pickle/pickle.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Type = PlainData::Type;

template <size_t kSize>
std::string Bytes(const char (&literal)[kSize]) {
  return std::string(literal, kSize - 1);
}

absl::Status ParseError(const std::string& pickle) { return ParsePickle(pickle).status(); }

TEST(Pickle, WhatIsUnknownIsAnErrorThatNamesIt) {
  EXPECT_THAT(ParseError("\x80\x02\x01.").message(),
              HasSubstr("opcode 0x01, which no pickler writes today, at byte 2"));
  EXPECT_THAT(ParseError("\x80\x06.").message(), HasSubstr("protocol 6"));
  EXPECT_THAT(ParseError("N.").message(), HasSubstr("no PROTO"));
}

TEST(Pickle, StacksThatDoNotFitAreErrors) {
  for (const char* const bad : {"\x80\x02.", "\x80\x02NN.", "\x80\x02(.",
                                "\x80\x02"
                                "e.",
                                "\x80\x02"
                                "Na.",
                                "\x80\x02]s.", "\x80\x02}(Nu.", "\x80\x02}(NNe.", "\x80\x02N\x87.",
                                "\x80\x02(N\x86.", "\x80\x02h\x07.", "\x80\x02q\x07."}) {
    EXPECT_EQ(ParseError(bad).code(), absl::StatusCode::kInvalidArgument) << bad + 2;
  }
}

TEST(Pickle, IntegersHaveTheirSignAndTextsAndRealsOneIfTheyAreOne) {
  const std::string bytes = Bytes(
      "\x80\x02(J\xff\xff\xff\xff\x8a\x01\x80\x8a\x02\x00\x01K\xff\x88"
      "G\x40\x04\0\0\0\0\0\0G\x43\xe1\x58\xe4\x60\x91\x3d\0X\2\0\0\0"
      "12X\1\0\0\0x]t.");
  const auto pickle = ParsePickle(bytes);
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  const PlainData& data = pickle->data;
  std::vector<int64_t> integers;
  for (const PlainData::Index item : data[pickle->root].items) integers.push_back(IntegerOr(&data[item], -7));
  EXPECT_THAT(integers, ElementsAre(-1, -128, 256, 255, 1, 2, -7, 12, -7, -7));
}

TEST(Pickle, WhatWouldBeCalledIsNamedAndNotCalled) {
  const std::string bytes = Bytes(
      "\x80\x02"
      "cos\nsystem\nX\x02\0\0\0id\x85R.");
  const auto pickle = ParsePickle(bytes);
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  const PlainData::Value& call = pickle->data[pickle->root];
  EXPECT_EQ(call.type, Type::kObject);
  EXPECT_EQ(call.text, "os.system");
  const PlainData::Value& arguments = pickle->data[call.items[PlainData::kArguments]];
  EXPECT_EQ(pickle->data[arguments.items[0]].text, "id");
}

TEST(Pickle, AnObjectHasItsStateAndItsEntries) {
  // pickle.dumps(OrderedDict(a=1), 4) with a state {"b": 2}
  const std::string bytes = Bytes(
      "\x80\x04\x95\x00\0\0\0\0\0\0\0\x8c\x0b"
      "collections\x94\x8c\x0bOrderedDict\x94\x93\x94)R\x94\x8c\x01"
      "aK\x01s}\x8c\x01"
      "bK\x02sb.");
  const auto pickle = ParsePickle(bytes);
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  const PlainData& data = pickle->data;
  const PlainData::Value& object = data[pickle->root];
  EXPECT_EQ(object.text, "collections.OrderedDict");
  EXPECT_EQ(IntegerOr(data.Find(data[object.items[PlainData::kEntries]], "a"), 0), 1);
  EXPECT_EQ(IntegerOr(data.Find(data[object.items[PlainData::kState]], "b"), 0), 2);
}

TEST(Pickle, WhatFollowsThePickleIsLeftAlone) {
  const auto pickle = ParsePickle(Bytes("\x80\x02K\x07.more"));
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  EXPECT_EQ(pickle->num_bytes, 5);
}

TEST(Pickle, BytesSetsAndLargeIntegersAreRead) {
  const std::string bytes = Bytes(
      "\x80\x04(C\x02\xff\x00\x8f(K\x01\x90\x8a\x09"
      "123456789U\x01\xffU\x01zt.");
  const auto pickle = ParsePickle(bytes);
  ASSERT_TRUE(pickle.ok()) << pickle.status();
  const PlainData& data = pickle->data;
  const PlainData::Value& tuple = data[pickle->root];
  EXPECT_EQ(data[tuple.items[0]].text, Bytes("\xff\x00"));
  const PlainData::Value& set = data[tuple.items[1]];
  EXPECT_EQ(set.text, "builtins.set");
  EXPECT_EQ(data[data[set.items[PlainData::kElements]].items[0]].integer, 1);
  EXPECT_EQ(data[tuple.items[2]].text, "123456789");
  // A text of Python 2 that is no UTF-8.
  EXPECT_EQ(data[tuple.items[3]].type, Type::kBytes);
  EXPECT_EQ(data[tuple.items[4]].type, Type::kText);
}

TEST(Pickle, ObjectsThatAreNoneAreErrorsWithTheirPlace) {
  for (const std::string& bad : {Bytes("\x80\x02R."), Bytes("\x80\x02)R."), Bytes("\x80\x02]}b."),
                                 Bytes("\x80\x04K\x01K\x02\x93."), Bytes("\x80\x02Q."),
                                 Bytes("\x80\x02"
                                       "0."),
                                 Bytes("\x80\x02\x94."), Bytes("\x80\x02(0.")}) {
    const absl::Status status = ParsePickle(bad).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << bad;
    EXPECT_THAT(status.message(), HasSubstr("at byte"));
  }
}

TEST(Pickle, AFileCutAnywhereIsAnErrorThatSaysSo) {
  // {"a": [1, -1, 0.5, (True, None)]}, and with it a class.
  const std::string plain = Bytes(
      "\x80\x02}q\x00X\x01\0\0\0a]q\x01(K\x01J\xff\xff\xff\xffG\x3f\xe0\0\0\0\0\0\0\x88N\x86"
      "es.");
  const std::string objects = Bytes(
      "\x80\x02"
      "ctorch\nfloat32\n.");
  EXPECT_TRUE(ParseError(plain).ok()) << ParseError(plain);
  for (size_t size = 0; size < plain.size(); ++size) {
    EXPECT_EQ(ParseError(plain.substr(0, size)).code(), absl::StatusCode::kDataLoss) << size;
  }
  for (size_t size = 0; size < objects.size(); ++size) {
    EXPECT_EQ(ParsePickle(objects.substr(0, size)).status().code(), absl::StatusCode::kDataLoss) << size;
  }
}

}  // namespace
}  // namespace ott
