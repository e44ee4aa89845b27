// Included before a CUDA source that is compiled for the host: gives it the names that nvcc does, and hands
// its kernels to the stand-in for the CUDA runtime. What a kernel may use is what stands here.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_HOST_BODY_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_HOST_BODY_H_

#include <cuda_runtime_api.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// A launch: the kernel with copies of its arguments, to be called once for each thread.
struct OttCudaBody {
  std::function<void()> run;
  std::vector<const void*> pointers;  // among the arguments
};

struct OttCudaThread {
  uint3 thread, block;
  dim3 block_size, grid_size;
};

extern "C" {
// `name` is __PRETTY_FUNCTION__ of something whose last template argument is the kernel.
void ottCudaAddKernel(const char* name, OttCudaBody (*capture)(void** arguments));

// For the thread of the device that runs now.
const OttCudaThread* ottCudaThread();
void ottCudaSyncThreads();
// Hands 8 bytes to the other lanes of the warp that are in `mask`, and returns those of lane `from`.
uint64_t ottCudaShuffle(uint32_t mask, uint64_t bits, int from);
int ottCudaLane();
uint64_t ottCudaRegister_clock64();
uint64_t ottCudaRegister_globaltimer();
uint32_t ottCudaRegister_smid();
}

namespace ott_host_body {

template <auto kKernel>
struct Kernel;

template <typename... T, void (*kKernel)(T...)>
struct Kernel<kKernel> {
  // Takes the place of a launch; what counts is that the kernel is named here.
  static void Launch(T...) { (void)kIsAdded; }

 private:
  static const char* Name() { return __PRETTY_FUNCTION__; }

  static OttCudaBody Capture(void** arguments) { return Capture(arguments, std::index_sequence_for<T...>()); }

  template <size_t... kIndex>
  static OttCudaBody Capture([[maybe_unused]] void** arguments, std::index_sequence<kIndex...>) {
    OttCudaBody body;
    (AddPointer(*static_cast<T*>(arguments[kIndex]), &body), ...);
    body.run = [values = std::tuple<T...>(*static_cast<T*>(arguments[kIndex])...)] {
      std::apply(kKernel, values);
    };
    return body;
  }

  template <typename V>
  static void AddPointer([[maybe_unused]] const V& value, [[maybe_unused]] OttCudaBody* body) {
    if constexpr (std::is_pointer_v<V>) body->pointers.push_back(value);
  }

  static inline const bool kIsAdded = (ottCudaAddKernel(Name(), Capture), true);
};

template <typename T>
T Shuffle(uint32_t mask, T value, int from) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof(T));
  bits = ottCudaShuffle(mask, bits, from);
  __builtin_memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace ott_host_body

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __forceinline__
#define __global__
#define __device__
#define __host__
// The blocks of a launch run one after the other on the stream's thread.
#define __shared__ static thread_local
#define __forceinline__ inline

#define threadIdx (ottCudaThread()->thread)
#define blockIdx (ottCudaThread()->block)
#define blockDim (ottCudaThread()->block_size)
#define gridDim (ottCudaThread()->grid_size)

inline void __syncthreads() { ottCudaSyncThreads(); }

template <typename T>
T __shfl_sync(uint32_t mask, T value, int from) {
  return ott_host_body::Shuffle(mask, value, from % 32);
}

template <typename T>
T __shfl_xor_sync(uint32_t mask, T value, int lanes) {
  return ott_host_body::Shuffle(mask, value, ottCudaLane() ^ lanes);
}

template <typename T>
T __shfl_down_sync(uint32_t mask, T value, int lanes) {
  const int from = ottCudaLane() + lanes;
  return ott_host_body::Shuffle(mask, value, from < 32 ? from : ottCudaLane());
}

inline unsigned long long atomicAdd(unsigned long long* to, unsigned long long value) {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

inline unsigned int atomicAdd(unsigned int* to, unsigned int value) {
  return __atomic_fetch_add(to, value, __ATOMIC_RELAXED);
}

inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t selector) {
  const uint64_t bytes = static_cast<uint64_t>(high) << 32 | low;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= static_cast<uint32_t>(bytes >> (8 * (selector >> (4 * i) & 7)) & 0xff) << (8 * i);
  }
  return result;
}

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_HOST_BODY_H_
