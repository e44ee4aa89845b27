// Timers inside CUDA kernels.

#ifndef OTT_FACE_KERNEL_TIMER_CUH_
#define OTT_FACE_KERNEL_TIMER_CUH_

#include "ott/core/kernel_timer/kernel_timer.cuh"  // IWYU pragma: export

#endif  // OTT_FACE_KERNEL_TIMER_CUH_
