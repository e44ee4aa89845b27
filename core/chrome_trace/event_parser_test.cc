#include "ott/core/chrome_trace/event_parser.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/chrome_trace/read_events.h"

namespace ott::chrome_trace {
namespace {

using ::testing::ElementsAre;

TEST(ReadEvents, ArgumentsAndMembersAreGivenAsTheyStand) {
  const std::string text =
      R"({"otherData": {"a":[1]}, "traceEvents": [{"args" : {"b": "}\"", "c": {"d":[ 2 ]} } , "ph":"X"},)"
      R"({"ph":"i"},{"ph":"X","args":{}},{"ph":"X","args":3}], "last": 4})";
  std::vector<std::string> args, members;
  const Reading reading =
      ReadEvents(*ByteSource::OfText(text), {[&](const Event& event) { args.emplace_back(event.all); },
                                             [&](std::string_view name, std::string_view json) {
                                               members.push_back(std::string(name).append(json));
                                             }});
  EXPECT_EQ(reading.num_events, 4);
  EXPECT_EQ(reading.cut, "");
  EXPECT_THAT(args, ElementsAre(R"({"b": "}\"", "c": {"d":[ 2 ]} })", "", "{}", ""));
  EXPECT_THAT(members, ElementsAre(R"(otherData{"a":[1]})", "last4"));
}

TEST(ReadEvents, IdsAreDecimalOrHexadecimal) {
  std::vector<int64_t> ids;
  ReadEvents(*ByteSource::OfText(R"([{"id":7},{"id":"0xabcdef0123456789"},{"id":"0x"},{"id":"x"}])"),
             {[&](const Event& event) { ids.push_back(event.flow_id); }});
  EXPECT_THAT(ids, ElementsAre(7, static_cast<int64_t>(0xabcdef0123456789), kNoNumber, kNoNumber));
}

TEST(ParseMicroseconds, IsExactToTheNanosecond) {
  EXPECT_EQ(ParseMicroseconds("1428625731896.179"), 1428625731896179);
  EXPECT_EQ(ParseMicroseconds("-1.5"), -1500);
  EXPECT_EQ(ParseMicroseconds("0.0005"), 0);
  EXPECT_EQ(ParseMicroseconds("1.7e6"), 1'700'000'000);
  EXPECT_EQ(ParseMicroseconds("1751410836000000000"), kNoNumber);
  for (const char* none : {"", "-", "NaN", "Infinity", "1x", "1e400"})
    EXPECT_EQ(ParseMicroseconds(none), kNoNumber) << none;
}

}  // namespace
}  // namespace ott::chrome_trace
