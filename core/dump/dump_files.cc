#include "ott/core/dump/dump_files.h"

#include <array>
#include <cctype>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/digest/digest.h"

namespace ott {
namespace {

// NAME_MAX of Linux file systems.
constexpr size_t kMaxFileName = 255;

struct FormatEntry {
  std::string_view name;
  std::string_view extension;
};

// In the order of the enumeration.
constexpr std::array<FormatEntry, 8> kFormats = {{
    {"json", ""},
    {"binary", ".bin"},
    {"npy", ".npy"},
    {"safetensors", ".safetensors"},
    {"statistics", ""},
    {"image_rgb", ".png"},
    {"image_bgr", ".png"},
    {"image_i", ".png"},
}};

bool IsHex(std::string_view text, size_t i) {
  return i < text.size() && std::isxdigit(static_cast<unsigned char>(text[i]));
}

std::string Escape(std::string_view text) {
  std::string escaped;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '/') {
      escaped += "%2F";
    } else if (c == '\0') {
      escaped += "%00";
    } else if (c == '%' && IsHex(text, i + 1) && IsHex(text, i + 2)) {
      escaped += "%25";
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string_view Name(DumpFormat format) { return kFormats[static_cast<size_t>(format)].name; }

std::string_view Extension(DumpFormat format) { return kFormats[static_cast<size_t>(format)].extension; }

absl::StatusOr<DumpFormat> ParseDumpFormat(std::string_view name) {
  for (size_t i = 0; i < kFormats.size(); ++i) {
    if (kFormats[i].name == name) return static_cast<DumpFormat>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", std::string(name), "' is not the name of a dump format"));
}

std::string TensorName(std::string_view path, bool has_gradients) {
  const bool is_taken = has_gradients && (path == "grads" || path.rfind("grads.", 0) == 0);
  return std::string(is_taken ? "tensors." : "").append(path);
}

std::string BlobFileName(std::string_view group_file, std::string_view reference) {
  std::string name = absl::StrCat("[", std::string(group_file), "]", Escape(reference));
  constexpr size_t kMaxName = kMaxFileName - (sizeof(kMetaExtension) - 1);
  if (name.size() <= kMaxName) return name;
  const TensorDigest digest =
      ComputeDigest(TensorView(reference.data(), DType::kUInt8, {static_cast<int64_t>(reference.size())}))
          .value();
  const std::string suffix = absl::StrCat("%~", digest.root.ToString());
  size_t end = kMaxName - suffix.size();
  // Not within a character of UTF-8: the manifest names the file.
  while ((static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
  return name.substr(0, end) + suffix;
}

}  // namespace ott
