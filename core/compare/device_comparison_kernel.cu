#include <cmath>
#include <cstring>
#include <type_traits>

#include "ott/core/compare/device_comparison_kernel.h"

namespace ott::internal {
namespace {

constexpr int kWarp = 32;
constexpr int kWarpsAtOnce = 8;
constexpr int kThreads = kWarpsAtOnce * kWarp;
constexpr int64_t kMaxThreadBlocks = 1 << 16;

__host__ __device__ constexpr int SizeOfElement(DeviceElement element) {
  switch (element) {
    case DeviceElement::kFloat64:
    case DeviceElement::kInt64:
    case DeviceElement::kUInt64:
      return 8;
    case DeviceElement::kFloat32:
    case DeviceElement::kInt32:
    case DeviceElement::kUInt32:
      return 4;
    case DeviceElement::kFloat16:
    case DeviceElement::kBFloat16:
    case DeviceElement::kInt16:
    case DeviceElement::kUInt16:
      return 2;
    default:
      return 1;
  }
}

template <int kSize>
using BitsOfSize = std::conditional_t<
    kSize == 8, uint64_t,
    std::conditional_t<kSize == 4, uint32_t, std::conditional_t<kSize == 2, uint16_t, uint8_t>>>;

template <typename To, typename From>
__device__ To CastBits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof(to));
  return to;
}

// Of a sign, exponent bits and mantissa bits.
__device__ double Small(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const int lowest = 2 - (1 << (exponent_bits - 1)) - mantissa_bits;
  if (exponent == 0) return ldexp(static_cast<double>(mantissa), lowest);
  return ldexp(static_cast<double>(mantissa + (1 << mantissa_bits)), lowest + exponent - 1);
}

// |value|, or for integers the value; infinite or NaN where the element is not finite.
template <int kElement, typename Bits>
__device__ double Value(Bits bits) {
  constexpr DeviceElement kKind = static_cast<DeviceElement>(kElement);
  if constexpr (kKind == DeviceElement::kFloat64) {
    return CastBits<double>(bits);
  } else if constexpr (kKind == DeviceElement::kFloat32) {
    return CastBits<float>(bits);
  } else if constexpr (kKind == DeviceElement::kBFloat16) {
    return CastBits<float>(static_cast<uint32_t>(bits) << 16);
  } else if constexpr (kKind == DeviceElement::kFloat16) {
    return (bits & 0x7c00) == 0x7c00 ? INFINITY : Small(bits, 5, 10);
  } else if constexpr (kKind == DeviceElement::kFloat8E5M2) {
    return (bits & 0x7c) == 0x7c ? INFINITY : Small(bits, 5, 2);
  } else if constexpr (kKind == DeviceElement::kFloat8E4M3) {
    return (bits & 0x7f) == 0x7f ? INFINITY : Small(bits, 4, 3);
  } else if constexpr (kKind >= DeviceElement::kUInt8) {
    return static_cast<double>(bits);
  } else {
    return static_cast<double>(CastBits<std::make_signed_t<Bits>>(bits));
  }
}

// A warp takes a block.
template <int kElement>
__global__ void CompareBlocksKernel(const void* reference_data, const void* current_data, int64_t size,
                                    int64_t block_elements, uint64_t* blocks) {
  using Bits = BitsOfSize<SizeOfElement(static_cast<DeviceElement>(kElement))>;
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
      const double value = Value<kElement>(bits);
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
