// NumPy and PyTorch read what WriteDump writes, and PyTorch scales images as it does.

#include <stdio.h>

#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/dump/dump_for_test.h"
#include "ott/core/dump/dump_writer.h"

namespace ott {
namespace {

TEST(FrameworkReader, EveryFormatIsReadAsTheSameTensor) {
  const std::pair<const char*, DumpFormat> formats[] = {{"binary", DumpFormat::kBinary},
                                                        {"json", DumpFormat::kJson},
                                                        {"npy", DumpFormat::kNpy},
                                                        {"image_i", DumpFormat::kImageI},
                                                        {"image_rgb", DumpFormat::kImageRgb},
                                                        {"image_bgr", DumpFormat::kImageBgr}};
  const auto knows = [](DumpFormat format, DType dtype) {
    const bool complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
    const bool beyond_numpy = dtype == DType::kBFloat16;
    // PyTorch has no arithmetic of these.
    const bool beyond_torch = dtype == DType::kBool || dtype == DType::kUInt16 || dtype == DType::kUInt32 ||
                              dtype == DType::kUInt64;
    if (format == DumpFormat::kJson) return !complex;
    if (format == DumpFormat::kNpy) return !beyond_numpy;
    return format == DumpFormat::kBinary || !(complex || beyond_numpy || beyond_torch);
  };
  ValueMap tree;
  int num_expected = 0;
  for (const auto& [name, format] : formats) {
    ValueMap tensors;
    for (int i = 0; i < kNumDTypes; ++i) {
      const DType dtype = static_cast<DType>(i);
      // PyTorch 1.13 has no float8.
      if (dtype == DType::kFloat8E4M3 || dtype == DType::kFloat8E5M2 || !knows(format, dtype)) continue;
      // The same in all formats; the first dimension is the densest, but not in Python.
      std::mt19937 random(static_cast<uint32_t>(dtype));
      const Tensor drawn = RandomTensor(dtype, {20, 11, 3}, random);
      const bool is_flat = format == DumpFormat::kImageI;
      const TensorView turned(drawn.view.data(), dtype, is_flat ? Dims{20, 11} : Dims{20, 11, 3},
                              is_flat ? Dims{1, 20} : Dims{1, 20, 220});
      tensors.Insert(std::string(Name(dtype)), Tensor{turned, drawn.owner});
      num_expected += format != DumpFormat::kBinary;
    }
    tree.Insert(name, std::move(tensors));
  }
  const std::string dir = MakeTestDir();
  const Value value = std::move(tree);
  DumpContents contents;
  contents.tensors = {&value, [&](std::string_view path) {
                        const std::string_view name = path.substr(0, path.find('.'));
                        for (const auto& [known, format] : formats) {
                          if (name == known) return format;
                        }
                        return DumpFormat::kJson;
                      }};
  ASSERT_EQ(WriteDump(dir, contents), absl::OkStatus());

  const std::string command =
      absl::StrCat("PYTHONPATH=. python3 core/dump/framework_reader_for_test.py '", dir, "'");
  FILE* const pipe = popen(command.c_str(), "r");
  char line[100] = {};
  EXPECT_NE(fgets(line, sizeof(line), pipe), nullptr) << command;
  EXPECT_EQ(pclose(pipe), 0) << command;
  EXPECT_EQ(std::string(line), absl::StrCat(num_expected, " tensors are what they were\n"));
}

}  // namespace
}  // namespace ott
