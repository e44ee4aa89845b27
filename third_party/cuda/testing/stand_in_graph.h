// Graphs of the stand-in for the CUDA runtime.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_GRAPH_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_GRAPH_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "third_party/cuda/testing/stand_in_kernels.h"

namespace ott::cuda_stand_in {

struct KernelLaunch {
  const char* name;  // mangled
  dim3 grid, block;
  OttCudaBody body;
  uint64_t node = 0;  // of a graph, from 1 on
};

// Launches, one after the other. Guarded by Machine's mutex, as streams are.
struct Graph {
  std::vector<KernelLaunch> launches;
  bool is_valid = true;
};

}  // namespace ott::cuda_stand_in

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_GRAPH_H_
