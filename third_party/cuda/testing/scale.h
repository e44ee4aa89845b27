// A kernel for the tests of cuda_library.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_SCALE_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_SCALE_H_

#include <cuda_runtime_api.h>

namespace ott {

// values[i] *= factor for i < count, on the current device's default stream. values: device memory.
cudaError_t Scale(float* values, int count, float factor);

}  // namespace ott

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_SCALE_H_
