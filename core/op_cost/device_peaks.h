// The peak rates of GPUs.

#ifndef OTT_CORE_OP_COST_DEVICE_PEAKS_H_
#define OTT_CORE_OP_COST_DEVICE_PEAKS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ott/core/tensor/dtype.h"

namespace ott {

// FLOP/s without sparsity and bytes/s, at the boost clock; 0 if the device has no such units, or its
// figure could not be confirmed.
struct DevicePeaks {
  std::string name;
  double fp64 = 0;
  double fp32 = 0;
  double fp64_tensor = 0;
  double tf32_tensor = 0;
  double fp16_tensor = 0;  // and bfloat16, with float32 accumulation
  double fp8_tensor = 0;
  double int8_tensor = 0;
  double memory = 0;

  // Returns the peak of multiplying matrices or computing in dtype; absent if it is not known.
  std::optional<double> Flops(DType dtype, bool tensor_cores) const;
};

// Returns the peaks by product name as drivers tell it, or a part of it: "NVIDIA H100 80GB HBM3",
// "A100-SXM4-40GB", "h100". Sources: NVIDIA's and AMD's data sheets and architecture white papers. Absent for
// devices that are not listed, and for parts of one ("A100-SXM4-40GB MIG 1g.5gb").
std::optional<DevicePeaks> PeaksByName(std::string_view name);

// Returns the names PeaksByName knows.
std::vector<std::string> KnownGpus();

// Computes the peaks from what CUDA tells of a device: multiprocessors x operations a clock of the compute
// capability (CUDA C++ Programming Guide, arithmetic instructions; architecture white papers) x clock. Absent
// for architectures that are not listed, and if multiprocessors or clock are not told. name: the product's; a
// GeForce's Tensor Cores add up in float32 at half the rate (GA102 and AD102 white papers). memory: bytes/s.
std::optional<DevicePeaks> PeaksOf(std::string_view name, int compute_major, int compute_minor, int sm_count,
                                   double clock_hz, double memory);

}  // namespace ott

#endif  // OTT_CORE_OP_COST_DEVICE_PEAKS_H_
