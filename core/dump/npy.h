// NumPy's .npy files, as NEP 1 defines them.

#ifndef OTT_CORE_DUMP_NPY_H_
#define OTT_CORE_DUMP_NPY_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/core/tensor/tensor_view.h"

namespace ott {

// Returns what precedes the elements of a row-major array. UNIMPLEMENTED for bfloat16 and float8, which NumPy
// lacks.
absl::StatusOr<std::string> NpyHeader(DType dtype, absl::Span<const int64_t> shape);

// Returns the array in the bytes of a whole file, without a copy: the view refers to them. Versions 1 to 3,
// little-endian. DATA_LOSS if the file is shorter than its header says; INVALID_ARGUMENT if it is longer, or
// is no such file.
absl::StatusOr<TensorView> ParseNpy(std::string_view file);

}  // namespace ott

#endif  // OTT_CORE_DUMP_NPY_H_
