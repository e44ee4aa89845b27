#include <immintrin.h>

#include "ott/core/digest/chunk_sums.h"
#include "ott/core/tensor/element.h"

#define OTT_AVX512 __attribute__((target("avx512f,avx512dq")))
#define OTT_AVX2 __attribute__((target("avx2,fma,f16c")))

namespace ott::internal {
namespace {

// Sums side by side, as each addition waits for the one before it.
constexpr int kAtOnce = 4;

// Has the next chunk fetched, while this one, which is in the nearest cache, is summed.
template <typename T>
inline void Prefetch(const T* elements) {
  __builtin_prefetch(reinterpret_cast<const char*>(elements) + kChunkElements * sizeof(T));
}

OTT_AVX512 inline __m512 Load16(const float* elements) { return _mm512_loadu_ps(elements); }
OTT_AVX512 inline __m512 Load16(const Float16* elements) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(elements)));
}
OTT_AVX512 inline __m512 Load16(const BFloat16* elements) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(elements));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

template <typename T>
OTT_AVX512 void SumChunkAvx512(const void* data, const float* signs, ChunkSums& result) {
  constexpr int kAbsoluteMaximum = 0b1011;
  static_assert(16 * kAtOnce == kElementsOfTurn);
  const T* const elements = static_cast<const T*>(data);
  // Where each sum comes from as they turn (NextSum): 8 to 15 from 0 to 7, 0 from 15, 1 to 7 from 8 to 14.
  const __m512i turn = _mm512_setr_epi32(15, 8, 9, 10, 11, 12, 13, 14, 0, 1, 2, 3, 4, 5, 6, 7);
  __m512 squares[kAtOnce];
  __m512 largest[kAtOnce];
  __m512 sums[kAtOnce];
  for (int i = 0; i < kAtOnce; ++i) squares[i] = largest[i] = sums[i] = _mm512_setzero_ps();
  for (int64_t begin = 0; begin < kChunkElements; begin += 16 * kAtOnce) {
    for (int i = 0; i < kAtOnce; i += 4 / static_cast<int>(sizeof(T))) Prefetch(elements + begin + 16 * i);
    for (int i = 0; i < kAtOnce; ++i) {
      const __m512 x = Load16(elements + begin + 16 * i);
      squares[i] = _mm512_fmadd_ps(x, x, squares[i]);
      sums[i] =
          _mm512_permutexvar_ps(turn, _mm512_fmadd_ps(x, _mm512_load_ps(signs + begin + 16 * i), sums[i]));
      largest[i] = _mm512_range_ps(largest[i], x, kAbsoluteMaximum);
    }
  }
  result.squares = _mm512_reduce_add_ps(
      _mm512_add_ps(_mm512_add_ps(squares[0], squares[1]), _mm512_add_ps(squares[2], squares[3])));
  result.max_abs = _mm512_reduce_max_ps(
      _mm512_max_ps(_mm512_max_ps(largest[0], largest[1]), _mm512_max_ps(largest[2], largest[3])));
  _mm512_store_ps(result.sums,
                  _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

OTT_AVX2 inline __m256 Load8(const float* elements) { return _mm256_loadu_ps(elements); }
OTT_AVX2 inline __m256 Load8(const Float16* elements) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(elements)));
}
OTT_AVX2 inline __m256 Load8(const BFloat16* elements) {
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(elements));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}

template <typename T>
OTT_AVX2 void SumChunkAvx2(const void* data, const float* signs, ChunkSums& result) {
  const T* const elements = static_cast<const T*>(data);
  const __m256 without_sign = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
  const __m256i last_first = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
  __m256 squares[kAtOnce];
  __m256 largest[kAtOnce];
  __m256 sums[kAtOnce];
  for (int i = 0; i < kAtOnce; ++i) squares[i] = largest[i] = sums[i] = _mm256_setzero_ps();
  for (int64_t turn = 0; turn < kChunkElements; turn += kElementsOfTurn) {
    for (int64_t begin = turn; begin < turn + kElementsOfTurn; begin += 8 * kAtOnce) {
      for (int i = 0; i < kAtOnce; i += 8 / static_cast<int>(sizeof(T))) Prefetch(elements + begin + 8 * i);
      for (int i = 0; i < kAtOnce; ++i) {
        const __m256 x = Load8(elements + begin + 8 * i);
        squares[i] = _mm256_fmadd_ps(x, x, squares[i]);
        sums[i] = _mm256_fmadd_ps(x, _mm256_load_ps(signs + begin + 8 * i), sums[i]);
        largest[i] = _mm256_max_ps(largest[i], _mm256_and_ps(x, without_sign));
      }
    }
    for (int i = 0; i < kAtOnce; i += 2) {
      const __m256 first = sums[i];
      sums[i] = _mm256_permutevar8x32_ps(sums[i + 1], last_first);
      sums[i + 1] = first;
    }
  }
  alignas(32) float lanes[8];
  _mm256_store_ps(
      lanes, _mm256_add_ps(_mm256_add_ps(squares[0], squares[1]), _mm256_add_ps(squares[2], squares[3])));
  result.squares = 0;
  for (const float lane : lanes) result.squares += lane;
  _mm256_store_ps(
      lanes, _mm256_max_ps(_mm256_max_ps(largest[0], largest[1]), _mm256_max_ps(largest[2], largest[3])));
  result.max_abs = 0;
  for (const float lane : lanes) result.max_abs = lane > result.max_abs ? lane : result.max_abs;
  _mm256_store_ps(result.sums, _mm256_add_ps(sums[0], sums[2]));
  _mm256_store_ps(result.sums + 8, _mm256_add_ps(sums[1], sums[3]));
}

}  // namespace

template <typename T>
SumChunk* FastestSumChunk() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) return SumChunkAvx512<T>;
  // A processor with AVX2 and FMA has F16C.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return SumChunkAvx2<T>;
  return SumChunkPortable<T>;
}

template SumChunk* FastestSumChunk<float>();
template SumChunk* FastestSumChunk<Float16>();
template SumChunk* FastestSumChunk<BFloat16>();

}  // namespace ott::internal
