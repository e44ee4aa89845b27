#include "ott/core/dump/dump_files.h"

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/utf8.h"

namespace ott {
namespace {

TEST(DumpFormat, IsParsedFromItsName) {
  for (int i = 0; i < 8; ++i) {
    const auto format = static_cast<DumpFormat>(i);
    EXPECT_EQ(ParseDumpFormat(Name(format)).value(), format);
    const bool has_file = format != DumpFormat::kJson && format != DumpFormat::kStatistics;
    EXPECT_EQ(Extension(format).empty(), !has_file) << Name(format);
  }
  for (const char* const name : {"", "JSON", "jso", "jsonx"}) {
    EXPECT_EQ(ParseDumpFormat(name).status(),
              absl::InvalidArgumentError(absl::StrCat("'", name, "' is not the name of a dump format")));
  }
}

TEST(TensorName, OfTheProgramIsNoGradient) {
  for (const auto& [path, with_gradients] : {std::pair("w", "w"),
                                             {"grads", "tensors.grads"},
                                             {"grads.w", "tensors.grads.w"},
                                             {"gradsx.w", "gradsx.w"},
                                             {"x.grads.w", "x.grads.w"},
                                             {"", ""}}) {
    EXPECT_EQ(TensorName(path, true), with_gradients);
    EXPECT_EQ(TensorName(path, false), path);
  }
}

TEST(BlobFileName, StaysInTheDirectoryAndIsOneForEachReference) {
  using std::string_view_literals::operator""sv;
  for (const auto& [reference, name] : {std::pair("w1.bin"sv, "w1.bin"sv),
                                        {"../a/b"sv, "..%2Fa%2Fb"sv},
                                        {"a\0b"sv, "a%00b"sv},
                                        {"100%"sv, "100%"sv},
                                        {"100%2"sv, "100%2"sv},
                                        {"%2F"sv, "%252F"sv},
                                        {"%zf%fz%a/%aB"sv, "%zf%fz%a%2F%25aB"sv}}) {
    EXPECT_EQ(BlobFileName("tensors.json", reference), absl::StrCat("[tensors.json]", std::string(name)));
  }
  std::set<std::string> names;
  // A name and that of the file that describes it have 255 bytes at most, and are UTF-8.
  const size_t longest = 255 - std::string(kMetaExtension).size() - std::string("[g]").size();
  for (const std::string letter : {"x", "\u00e9", "\u20ac", "\U0001f600"}) {
    for (size_t size = longest - 8; size < longest + 8; ++size) {
      std::string reference(size % letter.size(), 'y');
      while (reference.size() < size) reference += letter;
      const std::string name = BlobFileName("g", reference);
      EXPECT_LE(name.size() + std::string(kMetaExtension).size(), 255) << size;
      EXPECT_EQ(name == "[g]" + reference, size <= longest) << size;
      EXPECT_EQ(ValidUtf8Length(name), name.size()) << size;
      EXPECT_GE(name.size(), std::min(size, longest - 3)) << size;
      EXPECT_TRUE(names.insert(name).second) << size;
    }
  }
}

}  // namespace
}  // namespace ott
