// The device's part of MeasureGlobalTimer().

#ifndef OTT_CORE_KERNEL_TIMER_GLOBAL_TIMER_KERNEL_H_
#define OTT_CORE_KERNEL_TIMER_GLOBAL_TIMER_KERNEL_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace ott {

// Launches, on the default stream, a kernel that writes what globaltimer shows into device memory.
cudaError_t ReadGlobalTimer(uint64_t* nanoseconds);

}  // namespace ott

#endif  // OTT_CORE_KERNEL_TIMER_GLOBAL_TIMER_KERNEL_H_
