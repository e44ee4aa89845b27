#include <immintrin.h>

#include <algorithm>

#include "ott/core/digest/digest_lanes.h"

namespace ott::internal {
namespace {

// Half of the lanes keep their states in 8 of AVX2's 16 registers; the other half follows while the data is
// in the cache. All of them are in 8 of AVX-512's 32.
constexpr int kRegisters = 4;
constexpr int kLanesAtOnce = kRegisters * 4;
constexpr int64_t kStripesAtOnce = 16;

// Bytes so far ahead are fetched from memory meanwhile.
constexpr int64_t kPrefetchBytes = 4096;

__attribute__((target("avx2"))) inline __m256i MultiplyHalves(__m256i x, __m256i low_multiplier,
                                                              __m256i high_multiplier) {
  return _mm256_add_epi64(_mm256_mul_epu32(x, low_multiplier),
                          _mm256_mul_epu32(_mm256_srli_epi64(x, 32), high_multiplier));
}

__attribute__((target("avx2"))) void AbsorbHalfStripes(uint64_t* a_states, uint64_t* b_states,
                                                       const char* data, int64_t num_stripes) {
  const __m256i m0 = _mm256_set1_epi64x(kDigestALow);
  const __m256i m1 = _mm256_set1_epi64x(kDigestAHigh);
  const __m256i m2 = _mm256_set1_epi64x(kDigestBLow);
  const __m256i m3 = _mm256_set1_epi64x(kDigestBHigh);
  __m256i a[kRegisters];
  __m256i b[kRegisters];
  for (int i = 0; i < kRegisters; ++i) {
    a[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(a_states) + i);
    b[i] = _mm256_load_si256(reinterpret_cast<const __m256i*>(b_states) + i);
  }
  for (int64_t stripe = 0; stripe < num_stripes; ++stripe, data += kDigestStripeBytes) {
    for (int i = 0; i < kRegisters; ++i) {
      if (i % 2 == 0) __builtin_prefetch(data + kPrefetchBytes + 32 * i);
      const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data) + i);
      a[i] = MultiplyHalves(_mm256_xor_si256(a[i], words), m0, m1);
      b[i] = MultiplyHalves(_mm256_add_epi64(b[i], words), m2, m3);
    }
  }
  for (int i = 0; i < kRegisters; ++i) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(a_states) + i, a[i]);
    _mm256_store_si256(reinterpret_cast<__m256i*>(b_states) + i, b[i]);
  }
}

void AbsorbStripesAvx2(DigestLanes& lanes, const char* data, int64_t num_stripes) {
  while (num_stripes > 0) {
    const int64_t count = std::min(num_stripes, kStripesAtOnce);
    for (int lane = 0; lane < kDigestLanes; lane += kLanesAtOnce) {
      AbsorbHalfStripes(lanes.a + lane, lanes.b + lane, data + lane * 8, count);
    }
    data += count * kDigestStripeBytes;
    num_stripes -= count;
  }
}

// GCC 12 warns of what the intrinsics without a mask leave undefined (GCC bug 105593).
constexpr __mmask8 kAll = 0xff;

__attribute__((target("avx512f"))) inline __m512i MultiplyHalves(__m512i x, __m512i low_multiplier,
                                                                 __m512i high_multiplier) {
  const __m512i high = _mm512_maskz_srli_epi64(kAll, x, 32);
  return _mm512_add_epi64(_mm512_maskz_mul_epu32(kAll, x, low_multiplier),
                          _mm512_maskz_mul_epu32(kAll, high, high_multiplier));
}

__attribute__((target("avx512f"))) void AbsorbStripesAvx512(DigestLanes& lanes, const char* data,
                                                            int64_t num_stripes) {
  const __m512i m0 = _mm512_set1_epi64(kDigestALow);
  const __m512i m1 = _mm512_set1_epi64(kDigestAHigh);
  const __m512i m2 = _mm512_set1_epi64(kDigestBLow);
  const __m512i m3 = _mm512_set1_epi64(kDigestBHigh);
  __m512i a[kRegisters];
  __m512i b[kRegisters];
  for (int i = 0; i < kRegisters; ++i) {
    a[i] = _mm512_load_si512(lanes.a + 8 * i);
    b[i] = _mm512_load_si512(lanes.b + 8 * i);
  }
  for (int64_t stripe = 0; stripe < num_stripes; ++stripe, data += kDigestStripeBytes) {
    for (int i = 0; i < kRegisters; ++i) {
      __builtin_prefetch(data + kPrefetchBytes + 64 * i);
      const __m512i words = _mm512_loadu_si512(data + 64 * i);
      a[i] = MultiplyHalves(_mm512_xor_si512(a[i], words), m0, m1);
      b[i] = MultiplyHalves(_mm512_add_epi64(b[i], words), m2, m3);
    }
  }
  for (int i = 0; i < kRegisters; ++i) {
    _mm512_store_si512(lanes.a + 8 * i, a[i]);
    _mm512_store_si512(lanes.b + 8 * i, b[i]);
  }
}

}  // namespace

std::vector<AbsorbStripes*> AbsorbStripesOfThisMachine() {
  std::vector<AbsorbStripes*> result;
  if (__builtin_cpu_supports("avx512f")) result.push_back(AbsorbStripesAvx512);
  if (__builtin_cpu_supports("avx2")) result.push_back(AbsorbStripesAvx2);
  result.push_back(AbsorbStripesPortable);
  return result;
}

}  // namespace ott::internal
