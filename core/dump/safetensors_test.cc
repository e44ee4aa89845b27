#include "ott/core/dump/safetensors.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

std::string FileWith(uint64_t header_size, const std::string& header, const std::string& data) {
  return std::string(reinterpret_cast<const char*>(&header_size), 8) + header + data;
}

std::string FileWith(const std::string& header, const std::string& data) {
  return FileWith(header.size(), header, data);
}

TEST(Safetensors, HeaderIsWhatTheFormatSays) {
  const std::string header = SafetensorsHeader("a.\"b\"", DType::kBFloat16, {2, 3}).value();
  EXPECT_EQ(header.substr(8),
            "{\"a.\\\"b\\\"\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[0,12]}}");
  EXPECT_EQ(header.size() % 8, 0u);
  EXPECT_EQ(SafetensorsHeader("w", DType::kComplex64, {}).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(Safetensors, OneOfSeveralTensorsIsFound) {
  const std::string file = FileWith(
      "{\"a\":{\"dtype\":\"I8\",\"shape\":[2],\"data_offsets\":[0,2]},\"__metadata__\":{\"x\":\"y\"},"
      "\"b\":{\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[2,4]}}",
      "abcd");
  EXPECT_EQ(std::memcmp(ParseSafetensors(file, "b")->data(), "cd", 2), 0);
  const SafetensorsFile all = ListSafetensors(file).value();
  EXPECT_EQ(all.tensors[1].bytes, "cd");
  EXPECT_EQ(all.metadata.map().Find("x")->string_value(), "y");
  EXPECT_EQ(ParseSafetensors(file, "c").status().code(), absl::StatusCode::kNotFound);
}

TEST(Safetensors, TensorsThatOverlapOrLeaveGapsOrTrailingBytesAreErrors) {
  const auto entry = [](const char* name, int begin, int end) {
    return absl::StrCat("\"", name, "\":{\"dtype\":\"U8\",\"shape\":[", end - begin, "],\"data_offsets\":[",
                        begin, ",", end, "]}");
  };
  const auto parse = [&](int b_begin, int b_end, const std::string& data) {
    return ParseSafetensors(
               FileWith(absl::StrCat("{", entry("b", b_begin, b_end), ",", entry("a", 0, 2), "}"), data), "a")
        .status();
  };
  EXPECT_EQ(parse(2, 4, "abcd"), absl::OkStatus());
  EXPECT_EQ(parse(1, 4, "abcd").message(), "the safetensors header's tensors overlap at byte 1");
  EXPECT_EQ(parse(3, 4, "abcd").message(), "the safetensors header's tensors leave a gap at byte 2");
  EXPECT_EQ(parse(2, 4, "abcde"),
            absl::InvalidArgumentError("the safetensors file has 1 bytes that are of no tensor"));
  EXPECT_EQ(parse(2, 5, "abcd").code(), absl::StatusCode::kDataLoss);
}

TEST(Safetensors, EveryCutOfAFileIsAnError) {
  const std::string file = SafetensorsHeader("w", DType::kInt16, {2}).value() + "abcd";
  ASSERT_TRUE(ParseSafetensors(file, "w").ok());
  for (size_t size = 0; size < file.size(); ++size) {
    EXPECT_EQ(ParseSafetensors(file.substr(0, size), "w").status().code(), absl::StatusCode::kDataLoss)
        << size;
  }
}

TEST(Safetensors, HeadersThatLieAreErrors) {
  EXPECT_EQ(ParseSafetensors(FileWith(uint64_t{1} << 63, "{}", ""), "w").status().message(),
            "the safetensors header claims 9223372036854775808 bytes");
  for (const char* const entry : {
           "1",
           "{}",
           "{\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]}",
           "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}",
           "{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,4]}",
           "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}",
           "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}",
           "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0]}",
           "{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}",
           "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}",
           "{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}",
           "{\"dtype\":\"F32\",\"shape\":\"x\",\"data_offsets\":[0,4]}",
           "{\"dtype\":\"F32\",\"shape\":[1]}",
       }) {
    EXPECT_EQ(ParseSafetensors(FileWith(std::string("{\"w\":") + entry + "}", "1234"), "w").status().code(),
              absl::StatusCode::kInvalidArgument)
        << entry;
  }
}

}  // namespace
}  // namespace ott
