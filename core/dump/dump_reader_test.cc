#include "ott/core/dump/dump_reader.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/dump/dump_for_test.h"
#include "ott/core/dump/dump_writer.h"

namespace ott {
namespace {

using testing::HasSubstr;

std::string WriteTensor(const TensorView& tensor, DumpFormat format) {
  return DumpForTest(ValueMap{{"a", tensor}}, format);
}

TEST(ReadDump, AFileOfAnotherShapeOrTypeThanTheManifestSaysIsAnError) {
  const int32_t data[6] = {1, 2, 3, 4, 5, 6};
  const std::vector<TensorView> tensors = {TensorView(data, DType::kInt32, {2, 3}),
                                           TensorView(data, DType::kInt32, {3, 2}),
                                           TensorView(data, DType::kFloat32, {2, 3})};
  for (const DumpFormat format : {DumpFormat::kNpy, DumpFormat::kSafetensors}) {
    const std::string file = absl::StrCat("/[tensors.json]a", std::string(Extension(format)));
    for (size_t listed = 0; listed < tensors.size(); ++listed) {
      const std::string dir = WriteTensor(tensors[listed], format);
      for (size_t there = 0; there < tensors.size(); ++there) {
        std::filesystem::copy_file(WriteTensor(tensors[there], format) + file, dir + file,
                                   std::filesystem::copy_options::overwrite_existing);
        const absl::Status status = ReadDump(dir).status();
        EXPECT_EQ(status.ok(), there == listed) << listed << " and " << there;
        if (there == listed) continue;
        EXPECT_THAT(std::string(status.message()), HasSubstr(dir + file + ": is not the"));
      }
    }
  }
}

TEST(ReadDump, ABinaryFileOfAnotherSizeOrTypeIsAnError) {
  const int32_t data[6] = {1, 2, 3, 4, 5, 6};
  const std::string dir = WriteTensor(TensorView(data, DType::kInt32, {2, 3}), DumpFormat::kBinary);
  const std::string file = dir + "/[tensors.json]a.bin", meta_file = file + ".meta.json";
  for (const uintmax_t size : {0, 23, 25, 48}) {
    std::filesystem::resize_file(file, size);
    EXPECT_THAT(std::string(ReadDump(dir).status().message()),
                HasSubstr(absl::StrCat(file, ": ", size, " bytes, but [2, 3] int32 has 24")));
  }
  // Without a manifest it is a dump of Python's: the file beside it tells the type.
  std::filesystem::resize_file(file, 24);
  std::filesystem::remove(dir + "/manifest.json");
  EXPECT_TRUE(ReadDump(dir).ok());
  const std::string meta = *ReadFile(meta_file);
  ASSERT_TRUE(WriteFileAtomically(meta_file, absl::StrReplaceAll(meta, {{"torch.", "numpy."}})).ok());
  EXPECT_THAT(std::string(ReadDump(dir).status().message()),
              HasSubstr(meta_file + ": the dtype 'numpy.int32' is none of PyTorch's"));
}

TEST(ReadDump, AFileThatTheManifestHasAndTheFolderLacksIsAnError) {
  const Value tree = ValueMap{{"a", 1}};
  DumpContents contents;
  contents.tensors.tree = contents.grads.tree = &tree;
  for (const std::string file : {"/tensors.json", "/grads.json"}) {
    const std::string dir = MakeTestDir(), missing = dir + file + ": cannot open: No such file or directory";
    ASSERT_TRUE(WriteDump(dir, contents).ok());
    std::filesystem::remove(dir + file);
    EXPECT_EQ(ReadDump(dir).status(), absl::NotFoundError(missing));
    std::filesystem::remove(dir + "/manifest.json");
    EXPECT_EQ(ReadDump(dir).status(), file == "/grads.json"
                                          ? absl::OkStatus()
                                          : absl::NotFoundError(missing + "; is " + dir + " a dump?"));
  }
}

TEST(ReadDump, OnlyLargeFilesAreMapped) {
  const std::vector<float> numbers(1024);
  const Value tree =
      ValueMap{{"small", TensorView(numbers.data(), {500})}, {"large", TensorView(numbers.data(), {1024})}};
  for (const DumpFormat format : {DumpFormat::kBinary, DumpFormat::kNpy, DumpFormat::kSafetensors}) {
    const Dump dump = ReadDump(DumpForTest(tree, format)).value();
    for (const NamedTensor& tensor : ListTensors(dump.tensors))
      EXPECT_EQ(tensor.tensor.file_backed, tensor.path == "large") << Name(format);
  }
}

// Others' headers need not end where elements are aligned.
TEST(ReadDump, ElementsAreAlignedWhereverTheirFileHasThem) {
  for (const size_t count : {3, 600}) {
    std::vector<double> data(count);
    std::iota(data.begin(), data.end(), 1);
    const std::string dir =
        WriteTensor(TensorView(data.data(), {static_cast<int64_t>(count)}), DumpFormat::kSafetensors);
    const std::string file = dir + "/[tensors.json]a.safetensors", bytes = *ReadFile(file);
    uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes.data(), sizeof(header_bytes));
    std::string moved = bytes;
    moved.insert(8 + header_bytes, " ");
    ++header_bytes;
    std::memcpy(moved.data(), &header_bytes, sizeof(header_bytes));
    ASSERT_TRUE(WriteFileAtomically(file, moved).ok());
    const Dump dump = ReadDump(dir).value();
    const TensorView& view = dump.tensors.map().Find("a")->tensor().view;
    ASSERT_EQ(reinterpret_cast<uintptr_t>(view.data()) % sizeof(double), 0u) << count;
    EXPECT_TRUE(std::equal(data.begin(), data.end(), static_cast<const double*>(view.data())));
  }
}

// Writes ones as T in JSON, and reads them replaced by another number.
template <typename T>
bool HoldsNumber(const std::string& number) {
  const T ones[2] = {1, 1};
  const std::string dir = WriteTensor(TensorView(ones, {2}), DumpFormat::kJson);
  const std::string json = absl::StrCat("{\"a\": [", number, ", ", number, "]}");
  EXPECT_TRUE(WriteFileAtomically(dir + "/tensors.json", json).ok());
  const absl::StatusOr<Dump> dump = ReadDump(dir);
  if (!dump.ok()) {
    EXPECT_THAT(std::string(dump.status().message()), HasSubstr(dir + "/tensors.json"));
  }
  return dump.ok();
}

template <typename T>
void CheckIntegers() {
  using Wide = __int128;
  for (const int bits : {0, 7, 8, 15, 16, 31, 32, 63}) {
    const Wide border = Wide{1} << bits;
    for (const Wide value : {-border - 1, -border, border - 1, border}) {
      if (value < std::numeric_limits<int64_t>::min()) continue;
      const bool is_held = value >= std::numeric_limits<T>::min() && value <= std::numeric_limits<T>::max();
      const std::string number =
          value < 0 ? absl::StrCat(static_cast<int64_t>(value)) : absl::StrCat(static_cast<uint64_t>(value));
      EXPECT_EQ(HoldsNumber<T>(number), is_held) << number << " as " << Name(DTypeOf<T>());
    }
  }
  EXPECT_FALSE(HoldsNumber<T>("1.5"));
  EXPECT_FALSE(HoldsNumber<T>("true"));
}

TEST(ReadDump, NumbersThatTheirTypeDoesNotHoldAreErrors) {
  CheckIntegers<int8_t>();
  CheckIntegers<uint8_t>();
  CheckIntegers<int16_t>();
  CheckIntegers<int32_t>();
  CheckIntegers<int64_t>();
  CheckIntegers<uint64_t>();
  EXPECT_TRUE(HoldsNumber<float>("0.5"));
  EXPECT_FALSE(HoldsNumber<float>("0.1"));
  EXPECT_TRUE(HoldsNumber<double>("0.1"));
  for (const char* number : {"NaN", "Infinity", "-Infinity"})
    EXPECT_TRUE(HoldsNumber<float>(number)) << number;
}

TEST(ReadDump, NumbersOfAnotherShapeAreErrors) {
  const float elements[] = {1, 2, 3, 4};
  const uint64_t integers[] = {1, 2};
  const std::string dir = WriteTensor(TensorView(elements, {2, 2}), DumpFormat::kJson);
  const std::string dir_of_integers = WriteTensor(TensorView(integers, {2}), DumpFormat::kJson);
  const auto read = [](const std::string& of, const std::string& numbers) {
    EXPECT_TRUE(
        WriteFileAtomically(absl::StrCat(of, "/", kTensorsFile), absl::StrCat("{\"a\": ", numbers, "}"))
            .ok());
    return std::string(ReadDump(of).status().message());
  };
  EXPECT_EQ(read(dir, "[[1.0, 2.0], [3.0, 4.5]]"), "");
  for (const char* numbers :
       {"[[1.0, 2.0]]", "[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]", "[[1.0, 2.0], [3.0, 4.0, 5.0]]",
        "[[1.0, 2.0], [3.0, 4.0], [5, 6]]", "[[1.0, 2.0], [3.0, [4.0]]]", "[[1.0, 2.0], 3.0]",
        "[1.0, 2.0, 3.0, 4.0]", "[]", "1.0", "\"a\"", "{}", "null"}) {
    EXPECT_THAT(read(dir, numbers), HasSubstr("'a': its numbers are not of shape [2, 2]")) << numbers;
  }
  EXPECT_TRUE(WriteFileAtomically(absl::StrCat(dir, "/", kTensorsFile), "{}").ok());
  EXPECT_THAT(std::string(ReadDump(dir).status().message()),
              HasSubstr("the manifest lists the tensor 'a', which is not in the tree"));
  // Numbers of which an int64 does not hold all are read as a list, not as a tensor.
  EXPECT_EQ(read(dir_of_integers, "[1, 18446744073709551615]"), "");
  for (const char* numbers : {"[18446744073709551615]", "[1, 18446744073709551615, 2]"})
    EXPECT_THAT(read(dir_of_integers, numbers), HasSubstr("'a': its numbers are not of shape [2]"))
        << numbers;
}

TEST(ReadDump, AListOfIntegersThatNoInt64HoldsIsAListOfTensors) {
  const std::string dir = DumpForTest(ValueMap{{"a", Value::List{1, 2}}}, DumpFormat::kJson);
  const std::string file = absl::StrCat(dir, "/", kTensorsFile);
  ASSERT_TRUE(WriteFileAtomically(file, R"({"a": [18446744073709551615, 18446744073709551614]})").ok());
  const Dump dump = ReadDump(dir).value();
  const Value::List& list = dump.tensors.map().Find("a")->list();
  ASSERT_EQ(list.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(list[i].is_tensor());
    EXPECT_EQ(*static_cast<const uint64_t*>(list[i].tensor().view.data()),
              std::numeric_limits<uint64_t>::max() - i);
  }
}

}  // namespace
}  // namespace ott
