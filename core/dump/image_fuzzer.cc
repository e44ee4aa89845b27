// A PNG file is decoded or refused.

#include <cstdint>
#include <string_view>

#include "ott/core/dump/image.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  for (const ott::DumpFormat format :
       {ott::DumpFormat::kImageRgb, ott::DumpFormat::kImageBgr, ott::DumpFormat::kImageI}) {
    const absl::StatusOr<ott::Tensor> pixels = ott::DecodePng(file, format);
    if (pixels.ok() && !ott::EncodePng(pixels->view, format).ok()) __builtin_trap();
  }
  return 0;
}
