#include "ott/core/dump/npy.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::HasSubstr;

// A whole file; header's length is filled in.
std::string NpyFileWith(const std::string& header, const std::string& data) {
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 255);
  file += static_cast<char>(header.size() >> 8);
  return file + header + data;
}

TEST(Npy, HeaderIsWhatNumPyWrites) {
  // numpy.save of numpy.zeros((2, 3), numpy.float32).
  std::string expected("\x93NUMPY\x01\x00v\x00", 10);
  expected += "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  expected.append(127 - expected.size(), ' ');
  expected += '\n';
  EXPECT_EQ(NpyHeader(DType::kFloat32, {2, 3}).value(), expected);
  EXPECT_THAT(NpyHeader(DType::kBool, {5}).value(),
              HasSubstr("'descr': '|b1', 'fortran_order': False, 'shape': (5,), }"));
  EXPECT_THAT(NpyHeader(DType::kComplex128, {}).value(), HasSubstr("'shape': (), }"));
  EXPECT_EQ(NpyHeader(DType::kBFloat16, {}).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(Npy, SingleBytesMayHaveAnyMarkOfAnOrderAndFortranOrderIsAMatterOfStrides) {
  std::string file = *NpyHeader(DType::kUInt8, {3}) + "xxx";
  file[file.find('|')] = '<';
  EXPECT_EQ(ParseNpy(file)->dtype(), DType::kUInt8);
  const std::string columns =
      NpyFileWith("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3), }\n", std::string(24, 'x'));
  EXPECT_EQ(ParseNpy(columns)->strides(), Dims({1, 2}));
}

TEST(Npy, HeadersOfAllVersionsAreRead) {
  const std::string header = "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }\n";
  for (const char version : {'\x00', '\x01', '\x02', '\x03', '\x04'}) {
    std::string file =
        std::string("\x93NUMPY") + version + '\x00' + static_cast<char>(header.size()) + '\x00';
    if (version != 1) file += std::string(2, '\x00');
    file += header + "abcd";
    const absl::StatusOr<TensorView> view = ParseNpy(file);
    EXPECT_EQ(view.ok(), version >= 1 && version <= 3) << static_cast<int>(version) << view.status();
    if (view.ok()) {
      EXPECT_EQ(static_cast<const char*>(view->data()), file.data() + file.size() - 4);
    }
  }
}

TEST(Npy, EveryCutOfAFileIsAnError) {
  const std::string file = NpyHeader(DType::kInt16, {2}).value() + "abcd";
  ASSERT_TRUE(ParseNpy(file).ok());
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_EQ(ParseNpy(file.substr(0, size)).status().code(), absl::StatusCode::kDataLoss) << size;
  EXPECT_EQ(ParseNpy(file + "e").status(),
            absl::InvalidArgumentError("the .npy file has 5 bytes of elements, but [2] int16 has 4"));
}

TEST(Npy, HeadersThatLieAreErrors) {
  for (const char* const header : {
           "",
           "{",
           "{}",
           "{'descr': '<f4'}",
           "{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }",
           "{'descr': 'O', 'fortran_order': False, 'shape': (2,), }",
           "{'descr': '', 'fortran_order': False, 'shape': (2,), }",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 9223372036854775807), }",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
           "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }",
           "{'descr': '<f4, 'fortran_order': False, 'shape': (2,), }",
       }) {
    EXPECT_EQ(ParseNpy(NpyFileWith(header, "12345678")).status().code(), absl::StatusCode::kInvalidArgument)
        << header;
  }
  EXPECT_EQ(
      ParseNpy(NpyFileWith("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }", "1234"))
          .status()
          .code(),
      absl::StatusCode::kDataLoss);
  EXPECT_EQ(ParseNpy("PK\x03\x04 a zip file").status().message(), "not a .npy file");
}

}  // namespace
}  // namespace ott
