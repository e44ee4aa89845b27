// Files of the safetensors format: ours have one tensor each, checkpoints many.

#ifndef OTT_CORE_DUMP_SAFETENSORS_H_
#define OTT_CORE_DUMP_SAFETENSORS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/core/tensor/value.h"

namespace ott {

// Returns what precedes the elements of the one tensor of a file. UNIMPLEMENTED for complex dtypes, which the
// format lacks; INVALID_ARGUMENT for a name that is not UTF-8.
absl::StatusOr<std::string> SafetensorsHeader(std::string_view name, DType dtype,
                                              absl::Span<const int64_t> shape);

// Returns the tensor of this name in the bytes of a whole file, without a copy: the view refers to them.
// NOT_FOUND where there is none; DATA_LOSS if the file is shorter than its header says; INVALID_ARGUMENT if
// it is no such file, or its tensors overlap or leave bytes that are of none.
absl::StatusOr<TensorView> ParseSafetensors(std::string_view file, std::string_view name);

struct SafetensorsFile {
  struct Entry {
    std::string name;
    DType dtype = DType::kFloat32;
    Dims shape;
    std::string_view bytes;  // may have any alignment
  };
  std::vector<Entry> tensors;  // in the header's order
  Value metadata;              // texts that the writer added; null if there are none
};

// Lists all tensors in the bytes of a whole file. Errors as above.
absl::StatusOr<SafetensorsFile> ListSafetensors(std::string_view file);

}  // namespace ott

#endif  // OTT_CORE_DUMP_SAFETENSORS_H_
