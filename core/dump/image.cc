#include "ott/core/dump/image.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/element.h"

namespace ott {
namespace {

struct ImageFormat {
  DumpFormat format;
  std::string_view name;
  png_uint_32 png_format;
};

constexpr std::array<ImageFormat, 3> kImageFormats = {{
    {DumpFormat::kImageRgb, "RGB", PNG_FORMAT_RGB},
    {DumpFormat::kImageBgr, "BGR", PNG_FORMAT_BGR},
    {DumpFormat::kImageI, "Intensity", PNG_FORMAT_GRAY},
}};

const ImageFormat& EntryOf(DumpFormat format) {
  return *std::find_if(kImageFormats.begin(), kImageFormats.end(),
                       [format](const ImageFormat& entry) { return entry.format == format; });
}

// The arithmetic in which elements of T are scaled: its own for float64, float32 and float16, which is
// rounded after each step; float32 for all others.
template <typename T>
using Scaled = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
Scaled<T> Round(Scaled<T> value) {
  if constexpr (std::is_same_v<T, Float16>) {
    return FromDouble<Float16>(value);
  } else {
    return value;
  }
}

template <typename T>
Scaled<T> Difference(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<float>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  } else {
    return Round<T>(static_cast<Scaled<T>>(a) - static_cast<Scaled<T>>(b));
  }
}

template <typename T>
bool IsFinite(T value) {
  if constexpr (std::is_integral_v<T>) {
    return true;
  } else {
    return std::isfinite(static_cast<Scaled<T>>(value));
  }
}

// Finds the range of the finite elements; false if there are none.
template <typename T>
bool FindRange(const T* elements, int64_t count, T& min, T& max) {
  bool found = false;
  for (int64_t i = 0; i < count; ++i) {
    if (!IsFinite(elements[i])) continue;
    min = found ? std::min(min, elements[i]) : elements[i];
    max = found ? std::max(max, elements[i]) : elements[i];
    found = true;
  }
  return found;
}

template <typename T>
void Scale(const T* elements, int64_t count, T min, T max, uint8_t* pixels) {
  const Scaled<T> difference = Difference(max, min);
  const Scaled<T> scaling = difference > 0 ? Round<T>(Round<T>(1 / difference) * 255) : 0;
  for (int64_t i = 0; i < count; ++i) {
    const Scaled<T> scaled = Round<T>(Difference(elements[i], min) * scaling);
    if constexpr (!std::is_integral_v<T>) {
      if (std::isinf(static_cast<Scaled<T>>(elements[i]))) {
        pixels[i] = elements[i] > 0 ? 255 : 0;
        continue;
      }
    }
    // False for NaN.
    pixels[i] = scaled > 0 ? static_cast<uint8_t>(std::min<Scaled<T>>(scaled, 255)) : 0;
  }
}

template <typename T>
absl::StatusOr<Tensor> RangeTensor(T min, T max) {
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, AllocateHost(2 * sizeof(T)));
  const T range[2] = {min, max};
  std::memcpy(memory.get(), range, sizeof(range));
  return Tensor{TensorView(memory.get(), DTypeOf<T>(), {2}), std::move(memory)};
}

template <typename T>
absl::StatusOr<Image> MakeImageOf(const TensorView& view) {
  const int64_t count = view.num_elements();
  const T* const elements = static_cast<const T*>(view.data());
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, AllocateHost(count));
  T min = {};
  T max = {};
  const bool found = FindRange(elements, count, min, max);
  Scale(elements, count, min, max, static_cast<uint8_t*>(memory.get()));

  Tensor pixels{TensorView(memory.get(), DType::kUInt8, view.shape()), memory};
  absl::StatusOr<Tensor> range;
  if constexpr (!std::is_integral_v<T>) {
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    range = found ? RangeTensor<double>(min, max) : RangeTensor(kNaN, kNaN);
  } else if (std::is_unsigned_v<T> && static_cast<double>(max) >= 0x1p63) {
    range = RangeTensor<uint64_t>(min, max);
  } else {
    range = RangeTensor<int64_t>(min, max);
  }
  if (!range.ok()) return range.status();
  return Image{std::move(pixels), *std::move(range)};
}

png_image NewPng(png_uint_32 format) {
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  png.format = format;
  return png;
}

}  // namespace

bool IsImage(DumpFormat format) {
  return format == DumpFormat::kImageRgb || format == DumpFormat::kImageBgr || format == DumpFormat::kImageI;
}

int NumImageDims(DumpFormat format) { return format == DumpFormat::kImageI ? 2 : 3; }

std::string_view ImageFormatName(DumpFormat format) { return EntryOf(format).name; }

absl::StatusOr<DumpFormat> ParseImageFormat(std::string_view name) {
  for (const ImageFormat& entry : kImageFormats) {
    if (entry.name == name) return entry.format;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the image format '", std::string(name), "' is none of RGB, BGR, Intensity"));
}

absl::Status CheckImages(const TensorView& tensor, DumpFormat format) {
  const Dims& shape = tensor.shape();
  const bool color = NumImageDims(format) == 3;
  if (tensor.dtype() == DType::kComplex64 || tensor.dtype() == DType::kComplex128) {
    return absl::UnimplementedError(
        absl::StrCat("there are no images of ", std::string(Name(tensor.dtype()))));
  }
  if (static_cast<int>(shape.size()) >= NumImageDims(format) && !(color && shape.back() != 3) &&
      tensor.num_elements() > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "shape ", ShapeToString(shape), " is no image ",
      color ? "[height, width, 3]; permute the axes so that the colors are last" : "[height, width]"));
}

absl::StatusOr<Image> MakeImage(const TensorView& tensor, DumpFormat format) {
  OTT_RETURN_IF_ERROR(CheckImages(tensor, format));
  OTT_CHECK(static_cast<int>(tensor.shape().size()) == NumImageDims(format)) << ShapeToString(tensor.shape());
  Tensor contiguous{tensor, nullptr};
  if (tensor.device().kind != Device::Kind::kHost || !tensor.is_contiguous()) {
    OTT_ASSIGN_OR_RETURN(contiguous, CloneToHost(tensor));
  }
  return VisitDType(tensor.dtype(), [&](auto element) -> absl::StatusOr<Image> {
    using T = decltype(element);
    if constexpr (kIsComplex<T>) {
      return CheckImages(contiguous.view, DumpFormat::kImageI);
    } else {
      // A byte that is neither 0 nor 1 is no C++ bool.
      return MakeImageOf<std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>(contiguous.view);
    }
  });
}

absl::StatusOr<std::string> EncodePng(const TensorView& pixels, DumpFormat format) {
  png_image png = NewPng(EntryOf(format).png_format);
  png.height = static_cast<png_uint_32>(pixels.shape()[0]);
  png.width = static_cast<png_uint_32>(pixels.shape()[1]);
  // Filters and the best compression take ten times as long.
  png.flags = PNG_IMAGE_FLAG_FAST;
  if (pixels.shape()[0] <= std::numeric_limits<int32_t>::max() &&
      pixels.shape()[1] <= std::numeric_limits<int32_t>::max()) {
    std::string file(PNG_IMAGE_PNG_SIZE_MAX(png), '\0');
    png_alloc_size_t size = file.size();
    if (png_image_write_to_memory(&png, file.data(), &size, /*convert_to_8_bit=*/0, pixels.data(),
                                  /*row_stride=*/0, /*colormap=*/nullptr) != 0) {
      file.resize(size);
      return file;
    }
  }
  return absl::InternalError(absl::StrCat("cannot make a PNG image of shape ", ShapeToString(pixels.shape()),
                                          png.message[0] == '\0' ? "" : ": ", png.message));
}

absl::StatusOr<Tensor> DecodePng(std::string_view file, DumpFormat format) {
  const ImageFormat& entry = EntryOf(format);
  png_image png = NewPng(0);
  const auto error = [&png](std::string_view what) {
    png_image_free(&png);
    return absl::InvalidArgumentError(absl::StrCat("is no PNG image that can be read: ", std::string(what)));
  };
  if (png_image_begin_read_from_memory(&png, file.data(), file.size()) == 0) return error(png.message);
  constexpr png_uint_32 kOtherKinds =
      PNG_FORMAT_FLAG_ALPHA | PNG_FORMAT_FLAG_LINEAR | PNG_FORMAT_FLAG_COLORMAP;
  if ((png.format & kOtherKinds) != 0 ||
      (png.format & PNG_FORMAT_FLAG_COLOR) != (entry.png_format & PNG_FORMAT_FLAG_COLOR)) {
    return error(absl::StrCat("its pixels are not ", std::string(entry.name), " of 8 bits"));
  }
  Dims shape = {png.height, png.width};
  if (NumImageDims(format) == 3) shape.push_back(3);
  const absl::StatusOr<int64_t> num_bytes = CheckedNumBytes(DType::kUInt8, shape);
  // The most that the compression of PNG achieves; more is a lie, for which no memory is taken.
  constexpr int64_t kMaxCompression = 1032;
  if (!num_bytes.ok() || *num_bytes / kMaxCompression > static_cast<int64_t>(file.size())) {
    return error(absl::StrCat("shape ", ShapeToString(shape), " in ", file.size(), " bytes"));
  }
  OTT_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, AllocateHost(*num_bytes));
  png.format = entry.png_format;
  if (png_image_finish_read(&png, /*background=*/nullptr, memory.get(), /*row_stride=*/0,
                            /*colormap=*/nullptr) == 0) {
    return error(png.message);
  }
  return Tensor{TensorView(memory.get(), DType::kUInt8, shape), std::move(memory)};
}

Value ImageValue(const Image& image, DumpFormat format) {
  return ValueMap{{kImageName, ValueMap{{"pixels", image.pixels},
                                        {"original_range", image.original_range},
                                        {"image_format", ImageFormatName(format)}}}};
}

}  // namespace ott
