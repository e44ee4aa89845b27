// Work for a GPU, for captures.

#ifndef OTT_TOOLS_PROFILE_CUDA_WORK_FOR_TEST_H_
#define OTT_TOOLS_PROFILE_CUDA_WORK_FOR_TEST_H_

namespace ott::profile {

// A memset, a copy, where there are two devices one between them, kNumLaunches kernels and a graph of one
// kernel, launched once; all done when it returns.
// Returns whether CUDA had no error.
bool WorkOnGpu();

inline constexpr int kNumLaunches = 5;

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_CUDA_WORK_FOR_TEST_H_
