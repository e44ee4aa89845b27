#include "ott/questions/right/show/show.h"

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::show {
namespace {

using testing::HasSubstr;

Contents Shown(const std::string& name) {
  absl::StatusOr<Contents> contents = Show("core/checkpoint/testdata/" + name);
  EXPECT_TRUE(contents.ok()) << contents.status();
  return contents.ok() ? *std::move(contents) : Contents();
}

TEST(Show, EachTensorHasItsFigures) {
  const Contents contents = Shown("values.pt");
  const ShownTensor& slice = contents.tensors[1];
  EXPECT_EQ(slice.path, "slice");
  EXPECT_EQ(slice.shape, Dims({3}));
  EXPECT_EQ(slice.num_bytes, 12);
  EXPECT_DOUBLE_EQ(slice.statistics.l2_norm * slice.statistics.l2_norm, 4 + 9 + 16);
  EXPECT_EQ(slice.statistics.max, 4);
  // It is the first elements of what "transposed" is laid over.
  EXPECT_EQ(contents.tensors[2].shares_with, "transposed");
}

TEST(Show, TheReportNamesFormatStateAndParts) {
  EXPECT_THAT(ToText(Shown("dcp_2")), HasSubstr("a distributed checkpoint"));
  EXPECT_THAT(ToText(Shown("dcp_2")), HasSubstr("weights, in 2 parts"));
  EXPECT_THAT(ToText(Shown("whole.pt")), HasSubstr("optimizer moments: "));
  EXPECT_THAT(ToCsv(Shown("whole.pt")), HasSubstr("\nepoch,data position,int64,[],8,2,2,2,"));
  EXPECT_THAT(ToCsv(Shown("weights.safetensors")), HasSubstr("0.weight,weights,float32,\"[3, 4]\",48,"));
  EXPECT_THAT(ToJson(Shown("weights.npz")), HasSubstr("\"format\": \"NumPy .npz\""));
}

TEST(Show, ReportsStandNamesOfFoldersThatAreNotUtf8) {
  const std::string dir = testing::TempDir() + "/latest";
  std::filesystem::create_directories(dir + "/step\xff");
  std::filesystem::copy_file("core/checkpoint/testdata/weights.pt", dir + "/step\xff/weights.pt");
  std::ofstream(dir + "/latest") << "step\xff";
  const auto contents = Show(dir);
  ASSERT_TRUE(contents.ok()) << contents.status();
  EXPECT_THAT(ToJson(*contents), HasSubstr("of step"));
}

TEST(Show, TheProgramThatWroteItIsNamedWhereItLeftItsVersion) {
  EXPECT_THAT(ToText(Shown("zero_3")),
              HasSubstr("DeepSpeed ZeRO of global_step2, written by DeepSpeed 0.19."));
  EXPECT_EQ(Shown("weights.pt").written_by, "");
}

}  // namespace
}  // namespace ott::show
