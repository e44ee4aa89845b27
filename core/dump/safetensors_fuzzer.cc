// A tensor lies within its file, and its elements can be read.

#include <cstdint>
#include <string_view>
#include <vector>

#include "ott/core/dump/safetensors.h"
#include "ott/core/tensor/strided_copy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<ott::TensorView> view =
      ott::ParseSafetensors(std::string_view(reinterpret_cast<const char*>(data), size), "w");
  if (!view.ok()) return 0;
  std::vector<char> elements(view->num_bytes());
  ott::CopyElements(*view, 0, view->num_elements(), elements.data());
  return 0;
}
