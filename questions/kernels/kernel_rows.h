// Holds what is known about each kernel, as one row of a table.

#ifndef OTT_QUESTIONS_KERNELS_KERNEL_ROWS_H_
#define OTT_QUESTIONS_KERNELS_KERNEL_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace ott::kernels {

inline constexpr int64_t kNoInteger = std::numeric_limits<int64_t>::min();

// Times are nanoseconds. Texts live as long as the rows' source; an empty one, kNoInteger, or NaN is what is
// not known or not there.
struct KernelRow {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int64_t idx = 0;  // from 1, by start
  int64_t seq = kNoInteger;
  int64_t altseq = kNoInteger;
  int64_t pid = kNoInteger;
  int64_t tid = kNoInteger;
  int64_t rank = kNoInteger;
  int64_t sub = kNoInteger;
  int64_t device = kNoInteger;
  int64_t stream = kNoInteger;
  int64_t start = 0;  // since the first event of the capture
  int64_t sil = 0;    // duration
  int64_t latency = kNoInteger;
  int64_t gap = kNoInteger;
  int64_t blocks = kNoInteger;  // of the grid
  int64_t odd = kNoInteger;     // 1 if a size of the op is no multiple of a Tensor Core's step, else 0
  int64_t call = kNoInteger;    // duration of all that shares this row's FLOPs and bytes
  std::string_view layer, trace, dir, mod, op, kernel, name, params, dtype, tc, grid, block, phase, join,
      roof, calls, shapes, types, strides, inputs;
  // Another kernel of the same call of the op has its FLOPs and bytes.
  bool counted_elsewhere = false;
  double flops = kUnknown;
  double bytes = kUnknown;
  double message_bytes = kUnknown;
  double bus_bytes = kUnknown;
  double share = kUnknown;         // percent of all rows shown
  double percent_peak = kUnknown;  // of the roof that limits
};

// A list of kernels, memory copies and memsets, in the order of their starts.
class KernelRows {
 public:
  virtual ~KernelRows() = default;
  virtual size_t size() const = 0;
  virtual void Get(size_t index, KernelRow* row) const = 0;
};

}  // namespace ott::kernels

#endif  // OTT_QUESTIONS_KERNELS_KERNEL_ROWS_H_
