// Makes up tensors, directories and dumps for tests.

#ifndef OTT_CORE_DUMP_DUMP_FOR_TEST_H_
#define OTT_CORE_DUMP_DUMP_FOR_TEST_H_

#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/tensor/element.h"
#include "ott/core/tensor/tensor.h"

namespace ott {

// Returns the path of a new directory.
inline std::string MakeTestDir() {
  std::string dir = testing::TempDir() + "/dump_test_XXXXXX";
  EXPECT_NE(mkdtemp(dir.data()), nullptr);
  return dir;
}

inline std::set<std::string> NamesIn(const std::string& dir) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) names.insert(entry.path().filename());
  return names;
}

// Dumps `tree`, all of it in one format, into a new directory, and returns its path.
inline std::string DumpForTest(const Value& tree, DumpFormat format = DumpFormat::kBinary) {
  std::string dir = MakeTestDir();
  DumpContents contents;
  contents.tensors = {&tree, [format](std::string_view) { return format; }};
  EXPECT_EQ(WriteDump(dir, contents), absl::OkStatus());
  return dir;
}

// Writes a dump as Python does, whose one tensor "w" is of int64 zeros in a sparse file.
inline void WriteSparseDump(const std::string& dir, const Dims& shape) {
  const std::string blob = dir + "/[tensors.json]w.bin";
  const std::string meta =
      absl::StrCat("{\"file_data_shape\": ", ShapeToString(shape), ", \"file_data_dtype\": \"torch.int64\"}");
  for (const auto& [path, text] : {std::pair(dir + "/tensors.json", std::string("{\"w\": \"w.bin\"}")),
                                   {blob, ""},
                                   {blob + ".meta.json", meta}}) {
    EXPECT_EQ(WriteFileAtomically(path, text), absl::OkStatus());
  }
  std::filesystem::resize_file(blob, *CheckedNumBytes(DType::kInt64, shape));
}

// Draws integers from 0 to 127, as PyTorch's images are not defined if a range overflows, and other numbers
// around 3.
inline Tensor RandomTensor(DType dtype, const Dims& shape, std::mt19937& random) {
  const int64_t count = *CheckedNumBytes(DType::kInt8, shape);
  const std::shared_ptr<void> memory = AllocateHost(count * SizeOf(dtype)).value();
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
        to = static_cast<T>(random() & 0x7f);
      } else {
        to = FromDouble<T>(normal(random));
      }
    }
  });
  return {TensorView(memory.get(), dtype, shape), memory};
}

}  // namespace ott

#endif  // OTT_CORE_DUMP_DUMP_FOR_TEST_H_
