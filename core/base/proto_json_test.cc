#include "ott/core/base/proto_json.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/config.pb.h"

namespace ott {
namespace {

using ::testing::HasSubstr;

TEST(ProtoJson, ReadsWhatItWroteInEitherLayoutWithOneNewlineAtTheEnd) {
  Config config;
  config.set_run_dir("line\nbreak");
  config.mutable_cross_check()->mutable_iterations()->add_list(30);
  for (const JsonLayout layout : {JsonLayout::kOneLine, JsonLayout::kIndented}) {
    const std::string json = ProtoToJson(config, layout);
    Config read;
    ASSERT_TRUE(JsonToProto(json, &read).ok());
    EXPECT_EQ(read.SerializeAsString(), config.SerializeAsString());
    EXPECT_EQ(json.find('\n') == json.size() - 1, layout == JsonLayout::kOneLine);
    EXPECT_EQ(json.find_last_not_of('\n'), json.size() - 2);
  }
  EXPECT_THAT(ProtoToJson(config, JsonLayout::kOneLine), HasSubstr("\"timeout_seconds\":0"));
}

TEST(ProtoJson, FieldsOfALaterVersionAreIgnoredAndOtherTextIsRefused) {
  Config config;
  std::string unknown;
  ASSERT_TRUE(
      JsonToProto("{\"cross_check\": {\"distinct\": [\"a\"]}, \"of_tomorrow\": 1}", &config, &unknown).ok());
  EXPECT_EQ(config.cross_check().distinct_size(), 1);
  EXPECT_NE(unknown.find("of_tomorrow"), std::string::npos) << unknown;
  ASSERT_TRUE(JsonToProto("{\"run_dir\": \"out\"}", &config, &unknown).ok());
  EXPECT_EQ(unknown, "");
  EXPECT_EQ(config.run_dir(), "out");
  EXPECT_TRUE(absl::IsInvalidArgument(JsonToProto("{\"run_dir\": ", &config)));
}

}  // namespace
}  // namespace ott
