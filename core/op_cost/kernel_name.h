// Reads what the name of a CUDA kernel tells.

#ifndef OTT_CORE_OP_COST_KERNEL_NAME_H_
#define OTT_CORE_OP_COST_KERNEL_NAME_H_

#include <optional>
#include <string>
#include <string_view>

#include "ott/core/tensor/dtype.h"

namespace ott {

enum class TensorCoreUse { kNo, kYes, kUnknown };

// By the naming of cuBLAS, cuDNN, CUTLASS and attention kernels from Volta to Blackwell: MMA shapes (h884,
// s1688, tensor16x8x16), instructions (hmma, imma, wgmma) and CUTLASS's operator classes say yes; ffma, simt
// and kernels that multiply no matrices say no. kUnknown where the name tells neither, as with Triton's.
// name: the whole demangled name, for what tells may lie in template arguments.
TensorCoreUse TensorCoreUseOf(std::string_view name);

enum class KernelKind {
  kOther,
  kGemm,
  kConvolution,
  kConvolutionInputGradient,   // dgrad
  kConvolutionWeightGradient,  // wgrad
  kAttention,
  kCollective,
};

KernelKind KernelKindOf(std::string_view name);

// Returns the element type of what the kernel reads, where the name tells just one.
std::optional<DType> KernelDType(std::string_view name);

// Returns the dtype that a kernel that multiplies matrices writes, where the name tells it: "nvjet_qqtst" is
// float8 to bfloat16.
std::optional<DType> KernelResultDType(std::string_view name);

// Returns true if FlashAttention 2's kernels look at earlier keys alone; absent for others, and where a
// window limits the keys.
std::optional<bool> KernelIsCausal(std::string_view name);

// Returns the name without return type, parameters, namespaces and template arguments, but with the functor
// that tells generic kernels apart: "vectorized_elementwise_kernel<MulFunctor>". Has no spaces and is never
// empty.
std::string BriefKernelName(std::string_view name);

// Returns the C++ name; the name itself if it is not mangled.
std::string DemangledKernelName(const std::string& name);

// Returns the name without return type, namespaces, template arguments and parameters: Nsight Systems'
// shortName. A part of the name; all of it if it has no such part.
std::string_view ShortKernelName(std::string_view demangled);

}  // namespace ott

#endif  // OTT_CORE_OP_COST_KERNEL_NAME_H_
