#include "ott/core/digest/chunk_sums.h"
#include "ott/core/digest/digest_arithmetic.h"
#include "ott/core/digest/statistics_kernel.h"
#include "ott/core/tensor/device_number.h"

namespace ott::internal {
namespace {

constexpr int kWarp = kDigestLanes;
constexpr int kWarpsAtOnce = 8;
constexpr int kThreads = kWarpsAtOnce * kWarp;
constexpr int64_t kMaxThreadBlocks = 1 << 16;
constexpr unsigned kAll = 0xffffffffu;

constexpr int kSums = 16;
constexpr int kTurns = static_cast<int>(kChunkElements / kElementsOfTurn);
// Each lane has one sum, and half of the elements that are part of it.
static_assert(kWarp == 2 * kSums && kElementsOfTurn % kWarp == 0);

// Returns which of 16 elements in a row, in this turn of a chunk, is part of `sum`: NextSum() goes through
// the sums as 0, 8, 1, 9, ... 7, 15, and a turn that comes later makes one step less.
__host__ __device__ constexpr int PlaceOf(int sum, int turn) {
  const int step = (sum < 8 ? 2 * sum : 2 * sum - 15) + turn;
  return step % kSums / 2 + step % 2 * 8;
}

constexpr bool PlacesAreThoseOfTheHost() {
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int sum = 0; sum < kSums; ++sum) {
      if (SumOf(turn * kElementsOfTurn + PlaceOf(sum, turn)) != sum) return false;
    }
  }
  return true;
}
static_assert(PlacesAreThoseOfTheHost());

// The totals of the elements that one lane has read.
struct LaneTotals {
  double squares = 0;
  double max_abs = 0;
  int64_t num_nan = 0;
  int64_t num_infinite = 0;
  double sum = 0;
};

__device__ bool IsFinite(double value) { return value - value == 0; }

template <typename Number>
__device__ Number Magnitude(Number value) {
  return value < 0 ? -value : value;
}

// Calls visit(element, sign) for this lane's elements of a chunk of `count`.
template <int kElement, typename Visit>
__device__ void VisitElements(const ElementBits<kElement>* elements, int64_t count, const uint64_t* signs,
                              int lane, Visit visit) {
  for (int turn = 0; turn < kTurns; ++turn) {
    const int place = PlaceOf(lane % kSums, turn) + lane / kSums * kSums;
    for (int in_turn = place; in_turn < kElementsOfTurn; in_turn += kWarp) {
      const int64_t i = turn * kElementsOfTurn + in_turn;
      if (i < count) visit(NumberOf<kElement>(elements[i]), (signs[turn] >> in_turn & 1) != 0);
    }
  }
}

// With doubles; returns what these elements add to their sum.
template <int kElement>
__device__ double AddExactly(const ElementBits<kElement>* elements, int64_t count, const uint64_t* signs,
                             int lane, LaneTotals& totals) {
  double sum = 0;
  VisitElements<kElement>(elements, count, signs, lane, [&](double value, bool is_negative) {
    if (!(Magnitude(value) <= kLargestToSum)) {
      ++(value != value ? totals.num_nan : totals.num_infinite);
      return;
    }
    totals.squares += value * value;
    if (Magnitude(value) > totals.max_abs) totals.max_abs = Magnitude(value);
    sum += is_negative ? -value : value;
  });
  return sum;
}

template <int kElement>
__device__ double AddElements(const ElementBits<kElement>* elements, int64_t count, const uint64_t* signs,
                              int lane, LaneTotals& totals) {
  if constexpr (sizeof(NumberOf<kElement>(0)) == sizeof(double)) {
    return AddExactly<kElement>(elements, count, signs, lane, totals);
  } else {
    float squares = 0, max_abs = 0, sum = 0;
    VisitElements<kElement>(elements, count, signs, lane, [&](float value, bool is_negative) {
      squares += value * value;
      if (Magnitude(value) > max_abs) max_abs = Magnitude(value);
      sum += is_negative ? -value : value;
    });
    // Reads again if an element is not finite, or if squares overflow or lose digits.
    if (!IsFinite(squares) || (max_abs > 0 && max_abs < kSmallestToSquare)) {
      return AddExactly<kElement>(elements, count, signs, lane, totals);
    }
    totals.squares += squares;
    if (max_abs > totals.max_abs) totals.max_abs = max_abs;
    return sum;
  }
}

// Each sum of a chunk has a further sign, and is added to another one.
__device__ void AddToSums(double of_lane, int64_t chunk, int lane, LaneTotals& totals) {
  double sum = of_lane + __shfl_xor_sync(kAll, of_lane, kSums);
  const uint64_t key = DigestKey(kFirstChunkKey + chunk);
  if (key >> lane % kSums & 1) sum = -sum;
  const int from = (lane % kSums + kSums - static_cast<int>((key >> 32) % kSums)) % kSums;
  totals.sum += __shfl_sync(kAll, sum, from);
}

template <bool kAligned, int kElement>
__device__ DigestLane AddBlock(const unsigned char* data, int64_t num_bytes, int64_t first_chunk,
                               const uint64_t* signs, int lane, LaneTotals& totals) {
  using Bits = ElementBits<kElement>;
  constexpr int64_t kChunkBytes = kChunkElements * static_cast<int64_t>(sizeof(Bits));
  DigestLane digest = InitialDigestLane(lane);
  for (int64_t begin = 0; begin < num_bytes; begin += kChunkBytes) {
    const int64_t size = num_bytes - begin < kChunkBytes ? num_bytes - begin : kChunkBytes;
    digest = AbsorbStripesIntoLane<kAligned>(digest, data + begin, size, lane);
    const double sum = AddElements<kElement>(reinterpret_cast<const Bits*>(data + begin),
                                             size / static_cast<int64_t>(sizeof(Bits)), signs, lane, totals);
    AddToSums(sum, first_chunk + begin / kChunkBytes, lane, totals);
  }
  return DigestPart(digest, lane);
}

template <bool kAligned, int kElement>
__global__ void StatisticsKernel(const unsigned char* data, int64_t num_bytes, int64_t block_bytes,
                                 int64_t num_blocks, DeviceStatistics* blocks) {
  __shared__ uint64_t signs[kTurns];
  if (threadIdx.x < kTurns) signs[threadIdx.x] = DigestKey(kFirstSignKey + threadIdx.x);
  __syncthreads();
  const int lane = threadIdx.x % kWarp;
  const int64_t chunks_of_block =
      block_bytes / (kChunkElements * static_cast<int64_t>(sizeof(ElementBits<kElement>)));
  const int64_t first = int64_t{blockIdx.x} * kWarpsAtOnce + threadIdx.x / kWarp;
  for (int64_t block = first; block < num_blocks; block += int64_t{gridDim.x} * kWarpsAtOnce) {
    const int64_t begin = block * block_bytes;
    const int64_t size = num_bytes - begin < block_bytes ? num_bytes - begin : block_bytes;
    LaneTotals totals;
    DigestLane digest =
        AddBlock<kAligned, kElement>(data + begin, size, block * chunks_of_block, signs, lane, totals);
    for (int offset = kWarp / 2; offset > 0; offset /= 2) {
      digest.a += __shfl_xor_sync(kAll, digest.a, offset);
      digest.b += __shfl_xor_sync(kAll, digest.b, offset);
      totals.squares += __shfl_xor_sync(kAll, totals.squares, offset);
      const double max_abs = __shfl_xor_sync(kAll, totals.max_abs, offset);
      if (max_abs > totals.max_abs) totals.max_abs = max_abs;
      totals.num_nan += __shfl_xor_sync(kAll, totals.num_nan, offset);
      totals.num_infinite += __shfl_xor_sync(kAll, totals.num_infinite, offset);
    }
    DeviceStatistics& result = blocks[block];
    if (lane < kSums) result.sums[lane] = totals.sum;
    if (lane == 0) {
      const DigestLane leaf = DigestLeaf(digest, size);
      result.digest[0] = leaf.a;
      result.digest[1] = leaf.b;
      result.squares = totals.squares;
      result.max_abs = totals.max_abs;
      result.num_nan = totals.num_nan;
      result.num_infinite = totals.num_infinite;
    }
  }
}

// One warp: floating-point numbers are added in order of the blocks. Unrolled, so that loads do not wait for
// sums.
__global__ void TotalStatisticsKernel(DigestLane header, const DeviceStatistics* __restrict__ blocks,
                                      int64_t num_blocks, DeviceStatistics* __restrict__ total) {
  const int lane = threadIdx.x;
  if (lane < kSums) {
    double sum = 0;
#pragma unroll 32
    for (int64_t block = 0; block < num_blocks; ++block) sum += blocks[block].sums[lane];
    total->sums[lane] = sum;
  } else if (lane == kSums) {
    DigestLane sums{};
#pragma unroll 16
    for (int64_t block = 0; block < num_blocks; ++block) {
      const DigestLane part = DigestPart({blocks[block].digest[0], blocks[block].digest[1]}, block);
      sums.a += part.a;
      sums.b += part.b;
    }
    const DigestLane root = AbsorbIntoRoot(header, sums);
    total->digest[0] = root.a;
    total->digest[1] = root.b;
  } else if (lane == kSums + 1) {
    LaneTotals totals;
#pragma unroll 16
    for (int64_t block = 0; block < num_blocks; ++block) {
      totals.squares += blocks[block].squares;
      if (blocks[block].max_abs > totals.max_abs) totals.max_abs = blocks[block].max_abs;
      totals.num_nan += blocks[block].num_nan;
      totals.num_infinite += blocks[block].num_infinite;
    }
    total->squares = totals.squares;
    total->max_abs = totals.max_abs;
    total->num_nan = totals.num_nan;
    total->num_infinite = totals.num_infinite;
  }
}

__global__ void GatherKernel(const unsigned char* data, StridedElements layout, int64_t num_elements,
                             unsigned char* gathered) {
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  for (int64_t i = first; i < num_elements; i += int64_t{gridDim.x} * kThreads) {
    int64_t rest = i;
    const unsigned char* from = data;
    for (int dimension = layout.num_dimensions - 1; dimension >= 0; --dimension) {
      from += rest % layout.shape[dimension] * layout.strides[dimension];
      rest /= layout.shape[dimension];
    }
    for (int byte = 0; byte < layout.element_bytes; ++byte) {
      gathered[i * layout.element_bytes + byte] = from[byte];
    }
  }
}

unsigned int GridFor(int64_t wanted) {
  return static_cast<unsigned int>(wanted < kMaxThreadBlocks ? wanted : kMaxThreadBlocks);
}

template <int kElement>
void Launch(const unsigned char* data, int64_t num_bytes, int64_t block_bytes, DeviceStatistics* blocks,
            cudaStream_t stream) {
  const int64_t num_blocks = (num_bytes + block_bytes - 1) / block_bytes;
  const unsigned int grid = GridFor((num_blocks + kWarpsAtOnce - 1) / kWarpsAtOnce);
  if (reinterpret_cast<uintptr_t>(data) % sizeof(uint64_t) == 0) {
    StatisticsKernel<true, kElement>
        <<<grid, kThreads, 0, stream>>>(data, num_bytes, block_bytes, num_blocks, blocks);
  } else {
    StatisticsKernel<false, kElement>
        <<<grid, kThreads, 0, stream>>>(data, num_bytes, block_bytes, num_blocks, blocks);
  }
}

}  // namespace

cudaError_t LaunchStatisticsKernel(DeviceElement element, const void* data, int64_t num_bytes,
                                   int64_t block_bytes, DeviceStatistics* blocks, cudaStream_t stream) {
  using Launcher = void (*)(const unsigned char*, int64_t, int64_t, DeviceStatistics*, cudaStream_t);
  // In the order of DeviceElement.
  constexpr Launcher kLaunchers[] = {Launch<0>,  Launch<1>,  Launch<2>,  Launch<3>, Launch<4>,
                                     Launch<5>,  Launch<6>,  Launch<7>,  Launch<8>, Launch<9>,
                                     Launch<10>, Launch<11>, Launch<12>, Launch<13>};
  kLaunchers[static_cast<int>(element)](static_cast<const unsigned char*>(data), num_bytes, block_bytes,
                                        blocks, stream);
  return cudaGetLastError();
}

cudaError_t LaunchTotalStatisticsKernel(uint64_t low, uint64_t high, const DeviceStatistics* blocks,
                                        int64_t num_blocks, DeviceStatistics* total, cudaStream_t stream) {
  TotalStatisticsKernel<<<1, kWarp, 0, stream>>>(DigestLane{low, high}, blocks, num_blocks, total);
  return cudaGetLastError();
}

cudaError_t LaunchGatherKernel(const void* data, const StridedElements& layout, int64_t num_elements,
                               void* gathered, cudaStream_t stream) {
  const unsigned int grid = GridFor((num_elements + kThreads - 1) / kThreads);
  GatherKernel<<<grid, kThreads, 0, stream>>>(static_cast<const unsigned char*>(data), layout, num_elements,
                                              static_cast<unsigned char*>(gathered));
  return cudaGetLastError();
}

}  // namespace ott::internal
