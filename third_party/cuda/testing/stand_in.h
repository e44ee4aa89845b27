// For tests: what they say to the stand-in for the CUDA runtime (libcudart.so.13 of this folder), and what it
// has counted.
//
// The stand-in is a device made of host memory. Each stream is a thread that runs late, by a seed; memory of
// the device is out of the host's reach; errors come when they are asked for. Its rules are those of the CUDA
// Runtime API documentation ("API synchronization behavior", "Stream synchronization behavior", the
// functions' own pages); where CUDA leaves something open, it does what hurts most.
//
// The environment: OTT_CUDA_DEVICES (2), OTT_CUDA_MEMORY, the bytes of each (16 GiB), OTT_CUDA_SEED (1),
// OTT_CUDA_KERNELS, the libraries with the kernels' host bodies, and OTT_CUDA_FAIL, errors from the start:
// FUNCTION:NTH:ERROR, separated by commas.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_H_

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" {

struct OttCudaCounts {
  // Counts what is allocated and not released. The default streams do not count.
  int64_t device_blocks, device_bytes, pinned_blocks, events, streams;
  // Since the last Reset.
  int64_t calls;
  int64_t bytes_to_host;
  int64_t bytes_to_device;
  int64_t kernels;
  // Async copies between a device and memory that is not pinned, which hold up the caller.
  int64_t pageable_copies;
  // Errors that were asked for and came.
  int64_t failures;
};

struct OttCuda {
  // Waits for all devices; forgets errors, injected or met, and counts. What is allocated stays.
  void (*Reset)(uint64_t seed);
  OttCudaCounts (*Counts)();
  // The nth call (from 1) of a function from here on returns `error`, a cudaError_t, and does nothing.
  // Function "*": the nth call of any function but cudaSetDevice and those that release something. Function
  // "execution": the nth operation that a stream runs. After an error that is sticky all calls for that
  // device return it.
  void (*Fail)(const char* function, int64_t nth, int error, bool is_sticky);
};

const OttCuda* ottCuda();
}

namespace ott {

// Returns null in a process that runs with the real runtime.
inline const OttCuda* FindCudaStandIn() {
  const auto get = reinterpret_cast<decltype(&ottCuda)>(dlsym(RTLD_DEFAULT, "ottCuda"));
  return get == nullptr ? nullptr : get();
}

inline const OttCuda& CudaStandIn() {
  const OttCuda* const found = FindCudaStandIn();
  if (found == nullptr) {
    std::fputs("This test needs the stand-in for the CUDA runtime: run the test NAME_on_stand_in.\n", stderr);
    std::exit(1);
  }
  return *found;
}

}  // namespace ott

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_H_
