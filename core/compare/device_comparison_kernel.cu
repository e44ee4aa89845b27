#include "ott/core/compare/device_comparison_kernel.h"
#include "ott/core/tensor/device_number.h"

namespace ott::internal {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsAtOnce = 8;
constexpr int kThreads = kWarpsAtOnce * kWarp;
constexpr int64_t kMaxThreadBlocks = 1 << 16;

// A warp takes a block.
template <int kElement>
__global__ void CompareBlocksKernel(const void* reference_data, const void* current_data, int64_t size,
                                    int64_t block_elements, uint64_t* blocks) {
  using Bits = ElementBits<kElement>;
  const Bits* const reference = static_cast<const Bits*>(reference_data);
  const Bits* const current = static_cast<const Bits*>(current_data);
  const int64_t num_blocks = (size + block_elements - 1) / block_elements;
  const int lane = threadIdx.x % kWarp;
  const int64_t first = int64_t{blockIdx.x} * kWarpsAtOnce + threadIdx.x / kWarp;
  for (int64_t block = first; block < num_blocks; block += int64_t{gridDim.x} * kWarpsAtOnce) {
    const int64_t end = (block + 1) * block_elements < size ? (block + 1) * block_elements : size;
    double norm = 0;
    unsigned int differs = 0;
    for (int64_t i = block * block_elements + lane; i < end; i += kWarp) {
      const Bits bits = reference[i];
      differs |= bits != current[i];
      const double value = NumberOf<kElement>(bits);
      norm += value * value;
    }
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      norm += __shfl_xor_sync(0xffffffffu, norm, offset);
      differs |= __shfl_xor_sync(0xffffffffu, differs, offset);
    }
    if (lane == 0) {
      blocks[2 * block] = CastBits<uint64_t>(norm);
      // Also of a sum that is too large.
      blocks[2 * block + 1] = differs != 0 || !(norm <= 1.7976931348623157e308);
    }
  }
}

template <int kElement>
void Launch(const void* reference, const void* current, int64_t size, int64_t block_elements,
            uint64_t* blocks, cudaStream_t stream) {
  const int64_t num_blocks = (size + block_elements - 1) / block_elements;
  const int64_t wanted = (num_blocks + kWarpsAtOnce - 1) / kWarpsAtOnce;
  const unsigned int grid = static_cast<unsigned int>(wanted < kMaxThreadBlocks ? wanted : kMaxThreadBlocks);
  CompareBlocksKernel<kElement>
      <<<grid, kThreads, 0, stream>>>(reference, current, size, block_elements, blocks);
}

}  // namespace

cudaError_t LaunchCompareBlocks(DeviceElement element, const void* reference, const void* current,
                                int64_t size, int64_t block_elements, uint64_t* blocks, cudaStream_t stream) {
  using Launcher = void (*)(const void*, const void*, int64_t, int64_t, uint64_t*, cudaStream_t);
  // In the order of DeviceElement.
  constexpr Launcher kLaunchers[] = {Launch<0>,  Launch<1>,  Launch<2>,  Launch<3>, Launch<4>,
                                     Launch<5>,  Launch<6>,  Launch<7>,  Launch<8>, Launch<9>,
                                     Launch<10>, Launch<11>, Launch<12>, Launch<13>};
  kLaunchers[static_cast<int>(element)](reference, current, size, block_elements, blocks, stream);
  return cudaGetLastError();
}

}  // namespace ott::internal
