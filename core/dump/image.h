// Tensors as PNG images of 8 bits, as the Python TensorDumper makes them.

#ifndef OTT_CORE_DUMP_IMAGE_H_
#define OTT_CORE_DUMP_IMAGE_H_

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ott/core/dump/dump_files.h"
#include "ott/core/tensor/tensor.h"
#include "ott/core/tensor/value.h"

namespace ott {

// The image of a tensor.
struct Image {
  // uint8, [height, width] or [height, width, 3] with the channels in the tensor's order.
  Tensor pixels;
  // Two elements: the smallest and largest of the tensor that are finite, NaN if none is. float64, int64,
  // or uint64 where an int64 does not hold them.
  Tensor original_range;
};

bool IsImage(DumpFormat format);

// Dimensions of one image: 2 for kImageI, else 3. More, in front of these, count images.
int NumImageDims(DumpFormat format);

// Returns INVALID_ARGUMENT for a shape that is no image or images of this format, or without elements;
// UNIMPLEMENTED for complex numbers. REQUIRES: IsImage(format)
absl::Status CheckImages(const TensorView& tensor, DumpFormat format);

// The pixel of x is (x - min) * (1 / (max - min) * 255) in the tensor's own arithmetic (float32 for integers,
// bfloat16 and float8), without its fraction. It is 0 if max == min, and for NaN and -Infinity; 255 for
// Infinity.
//
// Errors: as CheckImages and CloneToHost. REQUIRES: the tensor has NumImageDims(format) dimensions
absl::StatusOr<Image> MakeImage(const TensorView& tensor, DumpFormat format);

// Returns INTERNAL with libpng's message.
absl::StatusOr<std::string> EncodePng(const TensorView& pixels, DumpFormat format);

// Returns the pixels in the channel order of the format. INVALID_ARGUMENT for what is no PNG file of 8 bits
// and the format's channels.
absl::StatusOr<Tensor> DecodePng(std::string_view file, DumpFormat format);

// Returns "RGB", "BGR" or "Intensity": image_format in the file beside an image.
std::string_view ImageFormatName(DumpFormat format);
// Returns INVALID_ARGUMENT for another name.
absl::StatusOr<DumpFormat> ParseImageFormat(std::string_view name);

// Returns what stands for a tensor that was dumped as an image in the tree that is read back: a map of one
// entry, "tensor_image", which is a map of "pixels", "original_range" and "image_format". ReadDump() adds the
// tensor's "dtype", "shape" and "digest" if the dump has a manifest.
Value ImageValue(const Image& image, DumpFormat format);

}  // namespace ott

#endif  // OTT_CORE_DUMP_IMAGE_H_
