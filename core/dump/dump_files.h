// Names the files of a dump.
//
//   DIR/manifest.json                          ours alone, written last (see dump_writer.h)
//   DIR/tensors.json, DIR/grads.json           a group each: the tree of values
//   DIR/[tensors.json]weights.w1.bin           a tensor's elements
//   DIR/[tensors.json]weights.w1.bin.meta.json their shape and dtype

#ifndef OTT_CORE_DUMP_DUMP_FILES_H_
#define OTT_CORE_DUMP_DUMP_FILES_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace ott {

// The format in which a tensor is stored.
enum class DumpFormat : uint8_t {
  kJson,         // as numbers in the tree
  kBinary,       // raw little-endian elements in row-major order in a file of its own, described by another
  kNpy,          // a .npy file of NumPy
  kSafetensors,  // a .safetensors file
  kStatistics,   // no data: a map of dtype, shape, min, max, mean, L2 norm, counts of NaN and infinities, and
                 // digest
  kImageRgb,     // PNG images of 8 bits, scaled from their range (image.h); the last dimension is red, green,
                 // blue, or the reverse
  kImageBgr,
  kImageI,  // gray
};

// Returns "json", "binary", "npy", "safetensors", "statistics", "image_rgb", "image_bgr", "image_i"
std::string_view Name(DumpFormat format);

// Returns the inverse of Name. INVALID_ARGUMENT for another name.
absl::StatusOr<DumpFormat> ParseDumpFormat(std::string_view name);

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kTensorsFile[] = "tensors.json";
inline constexpr char kGradsFile[] = "grads.json";

// Returns the name of the tensor that is at `path` in the tree of a dump's tensors. A tensor has the name
// that the program gave it, and its gradient that name below "grads.": "weights.w1" and "grads.weights.w1".
// If the dump has gradients, a tensor that the program itself put below "grads" is called "tensors.grads.w".
std::string TensorName(std::string_view path, bool has_gradients);

// Returns the part that follows a tensor's path in the tree and in its file's name; empty for formats without
// a file.
std::string_view Extension(DumpFormat format);

// The one entry of the map that stands for a tensor dumped as statistics.
inline constexpr char kStatisticsName[] = "tensor_statistics";
// The same for an image that was read back.
inline constexpr char kImageName[] = "tensor_image";

// Follows the name of a tensor's file in the name of the file that describes it.
inline constexpr char kMetaExtension[] = ".meta.json";

// The name of the file to which a tree refers as `reference` ("weights.w1.bin"); group_file is the file of
// the tree.
//
// The name is Python's, "[tensors.json]weights.w1.bin", and never leaves the directory: '/' and NUL, which no
// file name can have and which Python cannot dump, become %2F and %00. A '%' that would read as such an
// escape becomes %25. What is too long for a file name is cut, and a digest of the whole appended after "%~".
std::string BlobFileName(std::string_view group_file, std::string_view reference);

}  // namespace ott

#endif  // OTT_CORE_DUMP_DUMP_FILES_H_
