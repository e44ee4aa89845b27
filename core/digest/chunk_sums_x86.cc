#include <immintrin.h>

#include <type_traits>

#include "ott/core/digest/chunk_sums.h"
#include "ott/core/tensor/element.h"

#define OTT_AVX512 __attribute__((target("avx512f,avx512dq")))
#define OTT_AVX2 __attribute__((target("avx2,fma,f16c")))

namespace ott::internal {
namespace {

// Sums side by side, as each addition waits for the one before it.
constexpr int kAtOnce = 4;

// After so many turns the sums are back where they were.
constexpr int64_t kElementsOfRound = 16 * kElementsOfTurn;
static_assert(kChunkElements == 2 * kElementsOfRound);

// Bytes so far ahead are fetched from memory while the chunk, which is in the nearest cache, is summed: some
// chunks further than the digest fetches.
constexpr int64_t kPrefetchBytes = 12288;

inline void Prefetch(const void* elements) {
  __builtin_prefetch(static_cast<const char*>(elements) + kPrefetchBytes);
}

struct Places {
  alignas(64) int of[16];
};

// Returns where each sum comes from as all of them turn so many times.
constexpr Places PlacesBefore(int turns) {
  Places before = {};
  for (int sum = 0; sum < 16; ++sum) {
    int after = sum;
    for (int turn = 0; turn < turns; ++turn) after = NextSum(after);
    before.of[after] = sum;
  }
  return before;
}
constexpr Places kBeforeFourTurns = PlacesBefore(4);
constexpr Places kBeforeTurningBack = PlacesBefore(15);

// Two vectors of 16 floats. Of BFloat16 the elements at even places and those at odd ones, which takes half
// as many instructions as those that come first and the others.
struct Vectors {
  __m512 first;
  __m512 second;
};
template <typename T>
constexpr bool kIsParted = std::is_same_v<T, BFloat16>;

OTT_AVX512 inline Vectors Load32(const float* elements) {
  return {_mm512_loadu_ps(elements), _mm512_loadu_ps(elements + 16)};
}
OTT_AVX512 inline Vectors Load32(const Float16* elements) {
  const auto* const halves = reinterpret_cast<const __m256i*>(elements);
  return {_mm512_cvtph_ps(_mm256_loadu_si256(halves)), _mm512_cvtph_ps(_mm256_loadu_si256(halves + 1))};
}
OTT_AVX512 inline Vectors Load32(const BFloat16* elements) {
  const __m512i bits = _mm512_loadu_si512(elements);
  return {_mm512_castsi512_ps(_mm512_slli_epi32(bits, 16)),
          _mm512_castsi512_ps(_mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0xffff0000))))};
}

// Sums of four turns later.
template <bool kParted>
OTT_AVX512 inline __m512 FourTurns(__m512 sums) {
  // They are two places on in each half, which is one among the even places, and the odd ones.
  static_assert(kBeforeFourTurns.of[2] == 0 && kBeforeFourTurns.of[10] == 8);
  if constexpr (kParted) return _mm512_permute_ps(sums, _MM_SHUFFLE(2, 1, 0, 3));
  return _mm512_permutexvar_ps(_mm512_load_si512(kBeforeFourTurns.of), sums);
}

// Adds up the elements of both vectors.
template <bool kParted>
OTT_AVX512 inline __m512 Joined(__m512 first, __m512 second) {
  if constexpr (!kParted) return _mm512_add_ps(first, second);
  const __m512i first_half = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i second_half = _mm512_add_epi32(first_half, _mm512_set1_epi32(8));
  return _mm512_add_ps(_mm512_permutex2var_ps(first, first_half, second),
                       _mm512_permutex2var_ps(first, second_half, second));
}

OTT_AVX512 inline __m512 Sum(const __m512 (&parts)[kAtOnce]) {
  return _mm512_add_ps(_mm512_add_ps(parts[0], parts[1]), _mm512_add_ps(parts[2], parts[3]));
}

// Turns 0, 4, 8... are summed in sums[0], turns 1, 5, 9... in sums[1] and so on, so that four turns are made
// at once, and for both rounds. In the end they are turned back to where sums[0] is.
template <typename T>
OTT_AVX512 void SumChunkAvx512(const void* data, const ChunkPattern& pattern, ChunkSums& result) {
  constexpr int kAbsoluteMaximum = 0b1011;
  const T* const elements = static_cast<const T*>(data);
  const float* const signs = kIsParted<T> ? pattern.parted_signs : pattern.signs;
  __m512 squares[kAtOnce];
  __m512 largest[kAtOnce];
  Vectors sums[kAtOnce];
  for (int i = 0; i < kAtOnce; ++i) {
    squares[i] = largest[i] = sums[i].first = sums[i].second = _mm512_setzero_ps();
  }
  for (int64_t turn = 0; turn < kElementsOfRound; turn += kAtOnce * kElementsOfTurn) {
    for (int64_t begin = turn; begin < kChunkElements; begin += kElementsOfRound) {
      for (int64_t of_turn = 0; of_turn < kElementsOfTurn; of_turn += 32) {
        for (int i = 0; i < kAtOnce; ++i) {
          const int64_t at = begin + of_turn + i * kElementsOfTurn;
          for (size_t line = 0; line < 32 * sizeof(T) / 64; ++line) Prefetch(elements + at + 16 * line);
          const auto [x, y] = Load32(elements + at);
          squares[i] = _mm512_fmadd_ps(x, x, squares[i]);
          squares[i] = _mm512_fmadd_ps(y, y, squares[i]);
          sums[i].first = _mm512_fmadd_ps(x, _mm512_load_ps(signs + at), sums[i].first);
          sums[i].second = _mm512_fmadd_ps(y, _mm512_load_ps(signs + at + 16), sums[i].second);
          largest[i] = _mm512_range_ps(largest[i], x, kAbsoluteMaximum);
          largest[i] = _mm512_range_ps(largest[i], y, kAbsoluteMaximum);
        }
      }
    }
    for (auto& [first, second] : sums) {
      first = FourTurns<kIsParted<T>>(first);
      second = FourTurns<kIsParted<T>>(second);
    }
  }
  result.squares = _mm512_reduce_add_ps(Sum(squares));
  result.max_abs = _mm512_reduce_max_ps(
      _mm512_max_ps(_mm512_max_ps(largest[0], largest[1]), _mm512_max_ps(largest[2], largest[3])));
  const __m512i back = _mm512_load_si512(kBeforeTurningBack.of);
  __m512 all = _mm512_setzero_ps();
  for (int i = kAtOnce - 1; i >= 0; --i) {
    all =
        _mm512_add_ps(_mm512_permutexvar_ps(back, all), Joined<kIsParted<T>>(sums[i].first, sums[i].second));
  }
  _mm512_store_ps(result.sums, all);
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
OTT_AVX2 void SumChunkAvx2(const void* data, const ChunkPattern& pattern, ChunkSums& result) {
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
        sums[i] = _mm256_fmadd_ps(x, _mm256_load_ps(pattern.signs + begin + 8 * i), sums[i]);
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
std::vector<SumChunk*> SumChunksOfThisMachine() {
  std::vector<SumChunk*> result;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
    result.push_back(SumChunkAvx512<T>);
  }
  // A processor with AVX2 and FMA has F16C.
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) result.push_back(SumChunkAvx2<T>);
  result.push_back(SumChunkPortable<T>);
  return result;
}

template std::vector<SumChunk*> SumChunksOfThisMachine<float>();
template std::vector<SumChunk*> SumChunksOfThisMachine<Float16>();
template std::vector<SumChunk*> SumChunksOfThisMachine<BFloat16>();

}  // namespace ott::internal
