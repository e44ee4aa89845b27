#include "ott/core/dump/stand_in.h"

#include <stdlib.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/dump_writer.h"

namespace ott {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> PathsOf(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> paths;
  for (const NamedTensor& tensor : tensors) paths.push_back(tensor.path);
  return paths;
}

TEST(ListComparable, WhatStandsForATensorHasItsDigestDTypeAndShape) {
  const float data[6] = {1, 2, 3, 4, 5, 7};
  const std::vector<TensorView> views = {TensorView(data, {2, 3}), TensorView(data, {3, 2})};
  const Value tree = ValueMap{{"a", Value::List{views[0], views[1]}}, {"n", 3}, {"t", "text"}};
  for (const DumpFormat format : {DumpFormat::kBinary, DumpFormat::kStatistics, DumpFormat::kImageI}) {
    std::string dir = testing::TempDir() + "/stand_in_test_XXXXXX";
    ASSERT_NE(mkdtemp(dir.data()), nullptr);
    DumpContents contents;
    contents.tensors = {&tree, [format](std::string_view) { return format; }};
    ASSERT_EQ(WriteDump(dir, contents), absl::OkStatus());
    const Dump dump = ReadDump(dir).value();
    const std::vector<NamedTensor> all = ListComparable(dump.tensors);
    ASSERT_THAT(PathsOf(all), ElementsAre("a.0", "a.1", "n", "t"));
    for (size_t i = 0; i < views.size(); ++i) {
      EXPECT_EQ(all[i].tensor.view.dtype(), DType::kFloat32) << Name(format);
      EXPECT_EQ(all[i].tensor.view.shape(), views[i].shape()) << Name(format);
      const Value& value = dump.tensors.map().Find("a")->list()[i];
      const bool stands_in = format != DumpFormat::kBinary;
      EXPECT_EQ(all[i].content, stands_in ? NamedTensor::Content::kDigest : NamedTensor::Content::kElements);
      EXPECT_EQ(DigestOfStandIn(value).has_value(), stands_in);
      if (stands_in) {
        EXPECT_EQ(*DigestOfStandIn(value), dump.manifest->tensors[i].digest.ToString()) << Name(format);
      }
      EXPECT_EQ(StatisticsOf(value) != nullptr, format == DumpFormat::kStatistics);
      EXPECT_EQ(ImageOf(value) != nullptr, format == DumpFormat::kImageI);
    }
  }
}

TEST(ListComparable, OfAStandInWithoutADigestTheNumbersAreListed) {
  const ValueMap figures = {{"mean", 1.5}, {"norm", 2.0}};
  const std::string name(kStatisticsName);
  EXPECT_THAT(PathsOf(ListComparable(ValueMap{{"a", ValueMap{{name, figures}}}})),
              ElementsAre("a." + name + ".mean", "a." + name + ".norm"));
  // A map that holds more than the figures is one of the program's own.
  const Value more = ValueMap{{name, figures}, {"x", 1}};
  EXPECT_EQ(StatisticsOf(more), nullptr);
  EXPECT_THAT(PathsOf(ListComparable(ValueMap())), IsEmpty());
}

}  // namespace
}  // namespace ott
