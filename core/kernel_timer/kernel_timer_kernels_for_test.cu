// Kernels of the tests of KernelTimer.

#include "ott/core/kernel_timer/kernel_timer.cuh"
#include "ott/core/kernel_timer/kernel_timer_kernels_for_test.h"

namespace ott {
namespace {

// A chain of dependent multiply-adds: as much time as steps, whatever the machine.
__device__ float Work(float x, int steps) {
#pragma unroll 1
  for (int i = 0; i < steps; ++i) x = fmaf(x, 0.999f, 0.001f);
  return x;
}

}  // namespace

// The machine code of these is looked at by name.
extern "C" {

__global__ void PlainKernel(float* x, WorkSteps steps, KernelTimerView) {
  float value = Work(x[blockIdx.x], steps.load);
  for (int i = 0; i < steps.iterations; ++i) value = Work(value, steps.search);
  x[blockIdx.x] = Work(value, steps.store);
}
}

template <bool kTimed>
__device__ void TimedWork(float* x, WorkSteps steps, KernelTimerView times) {
  KernelTimer<WorkSection, kTimed> timer(times);
  float value = Work(x[blockIdx.x], steps.load);
  timer.Lap(WorkSection::kLoad);
  for (int i = 0; i < steps.iterations; ++i) {
    value = Work(value, steps.search);
    timer.Lap(WorkSection::kSearch);
  }
  x[blockIdx.x] = Work(value, steps.store);
  timer.Lap(WorkSection::kStore);
}

extern "C" {

__global__ void UntimedKernel(float* x, WorkSteps steps, KernelTimerView times) {
  TimedWork<false>(x, steps, times);
}

__global__ void TimedKernel(float* x, WorkSteps steps, KernelTimerView times) {
  TimedWork<true>(x, steps, times);
}

// The difference of these kernels is what 16 laps add.
__global__ void OneLapKernel(KernelTimerView times) {
  KernelTimer<WorkSection, true> timer(times);
  timer.Lap(WorkSection::kLoad);
}

__global__ void SeventeenLapsKernel(KernelTimerView times) {
  KernelTimer<WorkSection, true> timer(times);
#pragma unroll
  for (int i = 0; i < 17; ++i) timer.Lap(static_cast<WorkSection>(i));
}
}

cudaError_t LaunchTimedKernel(int blocks, int threads, float* x, const WorkSteps& steps,
                              const KernelTimerView& times) {
  TimedKernel<<<blocks, threads>>>(x, steps, times);
  return cudaGetLastError();
}

}  // namespace ott
