#include "ott/core/kernel_timer/global_timer_kernel.h"

namespace ott {
namespace {

__global__ void ReadGlobalTimerKernel(uint64_t* nanoseconds) {
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(*nanoseconds));
}

}  // namespace

cudaError_t ReadGlobalTimer(uint64_t* nanoseconds) {
  ReadGlobalTimerKernel<<<1, 1>>>(nanoseconds);
  return cudaGetLastError();
}

}  // namespace ott
