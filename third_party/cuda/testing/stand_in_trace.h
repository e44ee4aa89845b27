// Carries what the stand-in for the CUDA runtime tells the one for CUPTI.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_TRACE_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_TRACE_H_

#include <cstddef>
#include <cstdint>

extern "C" {

enum OttCudaWorkKind { kOttCudaKernel, kOttCudaCopy, kOttCudaSet };

// Something that a stream ran, by the call with this correlation.
struct OttCudaWork {
  OttCudaWorkKind kind;
  uint64_t start, end;
  uint32_t device, stream, correlation;
  // For a kernel: its mangled name, and its launch.
  const char* name;
  uint32_t grid[3], block[3];
  uint64_t graph_node;  // 0: of no graph
  // For a copy or set.
  uint64_t bytes;
  bool is_from_device, is_to_device;
  uint32_t from_device, to_device;
  // For the host's memory.
  bool is_pinned;
  int value;
};

// Called from any thread.
struct OttCudaTracer {
  uint64_t (*now)();
  void (*call)(const char* function, uint32_t correlation, uint64_t start, uint64_t end);
  void (*work)(const OttCudaWork* work);
  // A node of a graph was made; original: what it is a copy of, or 0.
  void (*graph_node)(uint64_t node, uint64_t original);
};

// Never destroyed. Null: nobody.
void ottCudaSetTracer(const OttCudaTracer* tracer);
int ottCudaNumDevices();
}

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_TRACE_H_
