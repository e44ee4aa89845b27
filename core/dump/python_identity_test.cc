// Dumps the same data through a Python script and through WriteDump, and compares all files byte for byte.

#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_for_test.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/dump/insert.h"
#include "ott/core/dump/json_reader.h"

namespace ott {
namespace {

class PythonIdentityTest : public testing::Test {
 protected:
  void AddTensor(const std::string& path, DumpFormat format, DType dtype, const Dims& shape,
                 const std::string& bytes) {
    absl::StrAppend(&lines_, path, "\t", std::string(Name(format)), "\t", std::string(Name(dtype)), "\t",
                    ShapeToString(shape), "\t", absl::BytesToHexString(bytes), "\n");
    formats_[path] = format;
    const Tensor tensor = CloneToHost(TensorView(bytes.data(), dtype, shape)).value();
    ASSERT_TRUE(InsertAt(path, tensor, tree_).ok()) << path;
  }

  void AddValue(const std::string& path, const std::string& json) {
    absl::StrAppend(&lines_, path, "\tvalue\t", json, "\n");
    ASSERT_TRUE(InsertAt(path, ParseJson(json).value(), tree_).ok()) << path;
  }

  // Has Python dump all that was added.
  void RunPython() {
    ASSERT_TRUE(WriteFileAtomically(python_ + ".in", lines_).ok());
    const std::string command =
        absl::StrCat("python3 core/dump/python_dump_for_test.py '", python_, "' < '", python_, ".in'");
    ASSERT_EQ(system(command.c_str()), 0) << command;
  }

  void ExpectIdentical() {
    DumpContents contents;
    contents.tensors.tree = &tree_;
    contents.tensors.format = [this](std::string_view path) { return formats_.at(std::string(path)); };
    ASSERT_EQ(WriteDump(ours_, contents), absl::OkStatus());
    RunPython();
    std::set<std::string> files = NamesIn(ours_);
    EXPECT_EQ(files.erase("manifest.json"), 1u);
    EXPECT_EQ(files, NamesIn(python_));
    for (const std::string& file : files) {
      EXPECT_TRUE(ReadFile(ours_ + "/" + file).value() == ReadFile(python_ + "/" + file).value())
          << ours_ << "/" << file << " and " << python_ << "/" << file << " differ";
    }
  }

  const std::string ours_ = MakeTestDir();
  const std::string python_ = MakeTestDir();
  Value tree_ = ValueMap();
  std::map<std::string, DumpFormat> formats_;
  std::string lines_;
};

template <typename T>
std::string BytesOf(const std::vector<T>& elements) {
  return std::string(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T));
}

// Random bits are every kind of number: NaN, infinities, denormals, extremes.
std::string RandomBytes(DType dtype, int64_t count) {
  std::mt19937 random(static_cast<unsigned>(dtype));
  std::string bytes(count * SizeOf(dtype), '\0');
  for (char& byte : bytes) byte = static_cast<char>(dtype == DType::kBool ? random() & 1 : random());
  return bytes;
}

TEST_F(PythonIdentityTest, EveryDTypeInBothFormatsAndEverySmallFloat) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const DType dtype = static_cast<DType>(i);
    for (const DumpFormat format : {DumpFormat::kJson, DumpFormat::kBinary}) {
      const std::string path = absl::StrCat(std::string(Name(format)), ".", std::string(Name(dtype)));
      AddTensor(path + ".random", format, dtype, {7, 40, 3}, RandomBytes(dtype, 840));
      AddTensor(path + ".scalar", format, dtype, {}, RandomBytes(dtype, 1));
      AddTensor(path + ".empty", format, dtype, {2, 0, 3}, "");
    }
  }
  std::vector<uint8_t> bytes(256);
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  AddTensor("e4m3", DumpFormat::kJson, DType::kFloat8E4M3, {256}, BytesOf(bytes));
  AddTensor("e5m2", DumpFormat::kJson, DType::kFloat8E5M2, {256}, BytesOf(bytes));
  AddTensor("half", DumpFormat::kJson, DType::kFloat16, {65536}, BytesOf(halves));
  AddTensor("bfloat", DumpFormat::kJson, DType::kBFloat16, {65536}, BytesOf(halves));
  ExpectIdentical();
}

TEST_F(PythonIdentityTest, DoublesOfEveryMagnitude) {
  std::vector<double> doubles = {0.0, -0.0, 5e-324, 0x1p-1022, 1.7976931348623157e308, 9007199254740993.0};
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> exponent(-30, 30);
  for (int i = 0; i < 20000; ++i) doubles.push_back(std::pow(10, exponent(random)));
  // Numbers of few digits may be shorter with an exponent.
  for (int exponent_of_ten = -20; exponent_of_ten < 25; ++exponent_of_ten) {
    for (const int digits : {1, -2, 12, -105, 1234, 98765})
      doubles.push_back(std::strtod(absl::StrCat(digits, "e", exponent_of_ten).c_str(), nullptr));
  }
  AddTensor("doubles", DumpFormat::kJson, DType::kFloat64, {static_cast<int64_t>(doubles.size())},
            BytesOf(doubles));
  ExpectIdentical();
}

TEST_F(PythonIdentityTest, ValuesNamesAndEscapes) {
  AddValue("none", "null");
  AddValue("flags.yes", "true");
  AddValue("flags.no", "false");
  AddValue("numbers", "[1, -2.5, 1e300, NaN, Infinity, -Infinity, \"mixed\", [], {}, [[]]]");
  AddValue("gr\u00fc\u00dfe \u20ac \U0001f600", "\"gr\u00fc\u00dfe \\u20ac \U0001f600\"");
  AddValue("escapes \"\\", "\"\\\" \\\\ \\/ \\b \\f \\n \\r \\u0000 \\u001f \\u007f \\u2028\"");
  AddTensor("gr\u00fc\u00dfe.\U0001f600 'x' \"y\"", DumpFormat::kBinary, DType::kInt8, {2}, "ab");
  AddTensor("percent 100%", DumpFormat::kBinary, DType::kInt8, {2}, "ab");
  ExpectIdentical();
}

TEST_F(PythonIdentityTest, PythonsDumpReadsBackAndIsKnownAsPythons) {
  AddTensor("w", DumpFormat::kBinary, DType::kBFloat16, {2, 2}, "abcdefgh");
  AddTensor("list", DumpFormat::kJson, DType::kFloat32, {2, 1}, std::string("\0\0\x80\x3f\0\0\0\x40", 8));
  RunPython();
  const Dump dump = ReadDump(python_).value();
  EXPECT_FALSE(dump.manifest.has_value());
  const TensorView& w = dump.tensors.map().Find("w")->tensor().view;
  EXPECT_EQ(w.dtype(), DType::kBFloat16);
  EXPECT_EQ(w.shape(), Dims({2, 2}));
  EXPECT_EQ(std::memcmp(w.data(), "abcdefgh", 8), 0);
  const TensorView& list = dump.tensors.map().Find("list")->tensor().view;
  EXPECT_EQ(list.dtype(), DType::kFloat64);
  EXPECT_EQ(list.shape(), Dims({2, 1}));
  EXPECT_EQ(static_cast<const double*>(list.data())[1], 2.0);
}

}  // namespace
}  // namespace ott
