// Kernels as their host bodies, run with the rules of a device.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_KERNELS_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_KERNELS_H_

#include <cuda_runtime_api.h>

#include <string>

#include "third_party/cuda/testing/host_body.h"

#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

namespace ott::cuda_stand_in {

using CaptureBody = OttCudaBody (*)(void** arguments);

// For the kernel that nvcc registers under this mangled name; null if no library of host bodies has it.
// Kernels are told apart by their name and template arguments, whatever their namespace.
CaptureBody FindKernel(const std::string& mangled_name);

// Runs all blocks, each thread as a fiber that goes on at barriers and shuffles only. The order of the
// threads depends on `seed`. cudaErrorIllegalAddress where a thread touched what it must not,
// cudaErrorLaunchTimeout where all wait for each other.
cudaError_t RunKernel(const OttCudaBody& body, dim3 grid, dim3 block, uint64_t seed);

// For the handler of SIGSEGV: if this thread is in a kernel, ends that one and does not return.
void LeaveKernelAfterFault();

}  // namespace ott::cuda_stand_in

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_KERNELS_H_
