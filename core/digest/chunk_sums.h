// The inner loop of statistics, once for any machine, and for AVX2 and AVX-512.

#ifndef OTT_CORE_DIGEST_CHUNK_SUMS_H_
#define OTT_CORE_DIGEST_CHUNK_SUMS_H_

#include <cstdint>
#include <vector>

namespace ott::internal {

// Elements that are summed as floats, before the sums are added to those of the tensor as doubles.
inline constexpr int64_t kChunkElements = 2048;

struct ChunkSums {
  // The sum over all elements. Not finite where an element is not, and where a square overflows.
  float squares;
  // Anything where squares is not finite.
  float max_abs;
  // Sums of the elements, each times its sign: element i is part of sums[SumOf(i)].
  alignas(64) float sums[16];
};

// After so many elements the sums change places, so that a column of a matrix, whose elements are a multiple
// of 16 apart, is spread over all of them.
inline constexpr int64_t kElementsOfTurn = 64;

// Returns the place that follows the place of a sum: a round trip through all 16, made of what vector
// instructions do at once: 0 to 7 move to 8 to 15, and 8 to 15 to 1 to 7 and 0.
constexpr int NextSum(int sum) { return sum < 8 ? sum + 8 : (sum - 8 + 1) % 8; }

// Returns the sum that an element of the chunk is part of in the end.
constexpr int SumOf(int64_t element) {
  int sum = static_cast<int>(element % 16);
  for (int64_t turn = element / kElementsOfTurn; turn < kChunkElements / kElementsOfTurn; ++turn) {
    sum = NextSum(sum);
  }
  return sum;
}

// Keys of the random parts of the statistics: DigestKey() of these, and of the numbers after them. A bit of
// the first ones is the sign of each element of a chunk, by its place; the second ones turn the sums of each
// chunk of a tensor.
inline constexpr uint64_t kFirstSignKey = 1000;
inline constexpr uint64_t kFirstChunkKey = 2000;

// Squares of smaller floats lose digits, or vanish.
inline constexpr float kSmallestToSquare = 1e-14f;
// Larger numbers, such as the least number of a dtype where attention is masked, stand for infinity: in sums
// with them nothing is left of the others, and as floats these overflow.
inline constexpr double kLargestToSum = 1e35;

// Says which sums each element of a chunk is part of.
struct ChunkPattern {
  ChunkPattern();

  // Random, 1 or -1.
  alignas(64) float signs[kChunkElements];
  // The same; of each 32, those at even places come first, then those at odd ones.
  alignas(64) float parted_signs[kChunkElements];
  // SumOf().
  uint8_t sums[kChunkElements];
};
const ChunkPattern& PatternOfChunk();

// elements: kChunkElements of them.
using SumChunk = void(const void* elements, const ChunkPattern& pattern, ChunkSums& result);

// T is float, Float16 or BFloat16.
template <typename T>
SumChunk SumChunkPortable;

// Returns the kernels that this machine can run, the fastest first.
template <typename T>
std::vector<SumChunk*> SumChunksOfThisMachine();

}  // namespace ott::internal

#endif  // OTT_CORE_DIGEST_CHUNK_SUMS_H_
