// NumPy and PyTorch read what WriteDump writes, and PyTorch scales images as it does.

#include <stdio.h>
#include <stdlib.h>

#include <cmath>
#include <complex>
#include <random>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/dump/dump_writer.h"

namespace ott {
namespace {

Tensor RandomTensor(DType dtype) {
  const Dims shape = {40, 33};
  const int64_t count = 40 * 33;
  const std::shared_ptr<void> memory = AllocateHost(count * SizeOf(dtype)).value();
  std::mt19937 random(static_cast<unsigned>(dtype));
  std::normal_distribution<double> normal(3, 10);
  VisitDType(dtype, [&](auto element) {
    using T = decltype(element);
    for (int64_t i = 0; i < count; ++i) {
      T& to = static_cast<T*>(memory.get())[i];
      if constexpr (kIsComplex<T>) {
        using Part = typename T::value_type;
        to = {static_cast<Part>(normal(random)), static_cast<Part>(normal(random))};
      } else if constexpr (std::is_same_v<T, bool>) {
        to = (random() & 1) != 0;
      } else if constexpr (std::is_integral_v<T>) {
        // Without overflow of the range, in which PyTorch's images are not defined.
        to = static_cast<T>(random() & 0x7f);
      } else {
        to = FromDouble<T>(normal(random));
      }
    }
  });
  return {TensorView(memory.get(), dtype, shape), memory};
}

TEST(FrameworkReader, EveryFormatIsReadAsTheSameTensor) {
  const std::pair<const char*, DumpFormat> formats[] = {{"binary", DumpFormat::kBinary},
                                                        {"json", DumpFormat::kJson},
                                                        {"npy", DumpFormat::kNpy},
                                                        {"image_i", DumpFormat::kImageI}};
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
      tensors.Insert(std::string(Name(dtype)), RandomTensor(dtype));
      num_expected += format != DumpFormat::kBinary;
    }
    tree.Insert(name, std::move(tensors));
  }
  std::string dir = testing::TempDir() + "/framework_reader_test_XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
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
