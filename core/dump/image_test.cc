#include "ott/core/dump/image.h"

#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/dump/dump_for_test.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dump/stand_in.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename T>
std::vector<T> ElementsOf(const Tensor& tensor) {
  const T* const first = static_cast<const T*>(tensor.view.data());
  return std::vector<T>(first, first + tensor.view.num_elements());
}

std::vector<uint8_t> PixelsOf(const Image& image) { return ElementsOf<uint8_t>(image.pixels); }

template <typename T, typename Range = double>
void ExpectImage(const std::vector<T>& row, const std::vector<uint8_t>& pixels, Range least, Range most) {
  const auto columns = static_cast<int64_t>(row.size());
  const Image image = MakeImage(TensorView(row.data(), {1, columns}), DumpFormat::kImageI).value();
  EXPECT_EQ(PixelsOf(image), pixels);
  ASSERT_EQ(image.original_range.view.dtype(), DTypeOf<Range>());
  const std::vector<Range> range = ElementsOf<Range>(image.original_range);
  EXPECT_TRUE(range == std::vector<Range>({least, most}) || (std::isnan(least) && std::isnan(range[0])));
}

TEST(Image, WhatIsNotFiniteDoesNotVaryOrOverflowsHasPixelsToo) {
  ExpectImage<float>({NAN, INFINITY, -INFINITY, 1, 3}, {0, 255, 0, 0, 255}, 1., 3.);
  ExpectImage<float>({7, 7}, {0, 0}, 7., 7.);
  ExpectImage<float>({-3, -1}, {0, 255}, -3., -1.);
  ExpectImage<float>({NAN, INFINITY}, {0, 255}, std::nan(""), std::nan(""));
  ExpectImage<double>({-1e308, 0, 1e308}, {0, 0, 0}, -1e308, 1e308);
  ExpectImage<double>({0, 5e-324, 1e-323}, {0, 255, 255}, 0., 1e-323);
  // 255 times a quotient that is rounded is less than the whole.
  ExpectImage<float>({0, 47, 141}, {0, 84, 254}, 0., 141.);
  ExpectImage<double>({0, 11, 55}, {0, 50, 254}, 0., 55.);
  using Limits = std::numeric_limits<int64_t>;
  ExpectImage<int64_t>({Limits::min(), 0, Limits::max()}, {0, 127, 255}, Limits::min(), Limits::max());
  for (const uint64_t most : {uint64_t{1} << 63, std::numeric_limits<uint64_t>::max()})
    ExpectImage<uint64_t>({1, most}, {0, 255}, uint64_t{1}, most);
}

TEST(Image, ShapesAndDTypesThatAreNoImagesAreErrors) {
  const float data[12] = {};
  EXPECT_THAT(std::string(MakeImage(TensorView(data, {3, 2, 2}), DumpFormat::kImageRgb).status().message()),
              HasSubstr("shape [3, 2, 2] is no image [height, width, 3]; permute the axes"));
  EXPECT_FALSE(MakeImage(TensorView(data, {12}), DumpFormat::kImageI).ok());
  EXPECT_FALSE(MakeImage(TensorView(data, {0, 2}), DumpFormat::kImageI).ok());
  const std::complex<float> complex = 1;
  EXPECT_EQ(MakeImage(TensorView(&complex, {1, 1}), DumpFormat::kImageI).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(Image, PixelsAreInTheOrderOfTheShapeHoweverTheTensorLies) {
  const float columns[] = {0, 2, 1, 3};
  const TensorView view(columns, DType::kFloat32, {2, 2}, {1, 2});
  EXPECT_THAT(PixelsOf(MakeImage(view, DumpFormat::kImageI).value()), ElementsAre(0, 85, 170, 255));
}

TEST(Image, PngReadsBackInTheTensorsChannelOrder) {
  std::vector<uint8_t> pixels(5 * 7 * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
  for (const DumpFormat format : {DumpFormat::kImageRgb, DumpFormat::kImageBgr}) {
    const std::string png = EncodePng(TensorView(pixels.data(), {5, 7, 3}), format).value();
    EXPECT_EQ(ElementsOf<uint8_t>(DecodePng(png, format).value()), pixels);
    const std::vector<uint8_t> other = ElementsOf<uint8_t>(
        DecodePng(png, format == DumpFormat::kImageRgb ? DumpFormat::kImageBgr : DumpFormat::kImageRgb)
            .value());
    EXPECT_THAT(std::vector<uint8_t>(other.begin(), other.begin() + 3), ElementsAre(74, 37, 0));
  }
  EXPECT_THAT(
      std::string(DecodePng(EncodePng(TensorView(pixels.data(), {5, 21}), DumpFormat::kImageI).value(),
                            DumpFormat::kImageRgb)
                      .status()
                      .message()),
      HasSubstr("its pixels are not RGB of 8 bits"));
}

TEST(Image, FilesThatAreNoPngAreErrors) {
  const uint8_t pixels[64] = {};
  std::string png = EncodePng(TensorView(pixels, {8, 8}), DumpFormat::kImageI).value();
  EXPECT_FALSE(DecodePng("", DumpFormat::kImageI).ok());
  EXPECT_FALSE(DecodePng("GIF89a", DumpFormat::kImageI).ok());
  for (size_t size = 0; size + 12 < png.size(); ++size)
    EXPECT_FALSE(DecodePng(png.substr(0, size), DumpFormat::kImageI).ok()) << size;
  // A header that claims 500,000 x 500,000 pixels, with its CRC.
  const std::string size("\0\x07\xa1\x20", 4);
  png.replace(16, 8, size + size);
  const auto crc = static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(&png[12]), 17));
  for (int i = 0; i < 4; ++i) png[29 + i] = static_cast<char>(crc >> (24 - 8 * i));
  EXPECT_THAT(std::string(DecodePng(png, DumpFormat::kImageI).status().message()),
              HasSubstr("shape [500000, 500000] in"));
}

TEST(Image, LeadingDimensionsCountImages) {
  const float data[2 * 1 * 2 * 2] = {0, 1, 2, 3, 0, 10, 20, 30};
  const std::string dir = DumpForTest(ValueMap{{"a", TensorView(data, {2, 1, 2, 2})}}, DumpFormat::kImageI);
  EXPECT_EQ(access((dir + "/[tensors.json]a.0.0.png").c_str(), F_OK), 0);
  EXPECT_EQ(ReadFile(dir + "/tensors.json").value(),
            "{\n  \"a\": [\n    [\n      \"a.0.0.png\"\n    ],\n    [\n      \"a.1.0.png\"\n    ]\n  ]\n}");
  for (const bool manifest : {true, false}) {
    ASSERT_TRUE(manifest || unlink((dir + "/manifest.json").c_str()) == 0);
    const Value tree = ReadDump(dir).value().tensors;
    const Value& second = tree.map().Find("a")->list()[1].list()[0];
    const ValueMap& image = *ImageOf(second);
    EXPECT_THAT(ElementsOf<uint8_t>(image.Find("pixels")->tensor()), ElementsAre(0, 85, 170, 255));
    EXPECT_THAT(ElementsOf<double>(image.Find("original_range")->tensor()), ElementsAre(0, 30));
    EXPECT_EQ(image.Find("image_format")->string_value(), "Intensity");
    EXPECT_EQ(DigestOfStandIn(second).has_value(), manifest);
  }
}

TEST(Image, DamagedFilesOfAnImageAreNamed) {
  const float data[4] = {0, 1, 2, 3};
  const std::string dir = DumpForTest(ValueMap{{"a", TensorView(data, {2, 2})}}, DumpFormat::kImageI);
  const std::string png = dir + "/[tensors.json]a.png";
  const std::string meta = ReadFile(png + ".meta.json").value();
  for (const char* const wrong :
       {"[]", "{}", R"({"original_range": [0.0, 1.0]})", R"({"image_format": "RGB"})",
        R"({"original_range": [0.0, 1.0], "image_format": 1})",
        R"({"original_range": "", "image_format": "RGB"})",
        R"({"original_range": [1], "image_format": "RGB"})",
        R"({"original_range": [0.0, 1.0], "image_format": "CMYK"})"}) {
    ASSERT_TRUE(WriteFileAtomically(png + ".meta.json", wrong).ok());
    EXPECT_THAT(std::string(ReadDump(dir).status().message()), HasSubstr(png + ".meta.json: ")) << wrong;
  }
  ASSERT_TRUE(WriteFileAtomically(png + ".meta.json", meta).ok());
  // Another image is no image of the tensor whose digest the manifest has.
  const uint8_t pixels[4] = {255, 170, 85, 0};
  ASSERT_TRUE(
      WriteFileAtomically(png, EncodePng(TensorView(pixels, {2, 2}), DumpFormat::kImageI).value()).ok());
  EXPECT_THAT(std::string(ReadDump(dir).status().message()),
              HasSubstr(png + ": is not the image that was dumped"));
  // Earlier manifests have no digests of files, and Python writes none.
  const std::string manifest = dir + "/manifest.json";
  const std::string earlier = absl::StrReplaceAll(*ReadFile(manifest), {{"file_digest", "none"}});
  ASSERT_TRUE(WriteFileAtomically(manifest, earlier).ok());
  EXPECT_TRUE(ReadDump(dir).ok());
  ASSERT_EQ(unlink(manifest.c_str()), 0);
  EXPECT_TRUE(ReadDump(dir).ok());
  ASSERT_EQ(truncate(png.c_str(), 50), 0);
  EXPECT_THAT(std::string(ReadDump(dir).status().message()), HasSubstr(png + ": is no PNG image"));
}

}  // namespace
}  // namespace ott
