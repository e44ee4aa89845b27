// Kernels of the tests of KernelTimer.

#ifndef OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_KERNELS_FOR_TEST_H_
#define OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_KERNELS_FOR_TEST_H_

#include <cuda_runtime_api.h>

#include "ott/core/kernel_timer/kernel_timer_view.h"

namespace ott {

enum class WorkSection { kLoad, kSearch, kStore };

// Steps of equal length in each section, kSearch having them in each of its iterations.
struct WorkSteps {
  int load;
  int search;
  int iterations;
  int store;
};

// Launches TimedKernel on the default stream. x: device memory, a value for each block.
cudaError_t LaunchTimedKernel(int blocks, int threads, float* x, const WorkSteps& steps,
                              const KernelTimerView& times);

}  // namespace ott

#endif  // OTT_CORE_KERNEL_TIMER_KERNEL_TIMER_KERNELS_FOR_TEST_H_
