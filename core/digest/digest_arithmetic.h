// The arithmetic of the digest (digest.h gives the construction), for the host and, compiled by nvcc, a
// device.

#ifndef OTT_CORE_DIGEST_DIGEST_ARITHMETIC_H_
#define OTT_CORE_DIGEST_DIGEST_ARITHMETIC_H_

#include <cstdint>

#ifdef __CUDACC__
#define OTT_HOST_DEVICE __host__ __device__
#else
#define OTT_HOST_DEVICE
#endif

namespace ott::internal {

inline constexpr int kDigestLanes = 32;
inline constexpr int kDigestStripeBytes = kDigestLanes * 8;

// Returns the finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection in which every bit depends on
// every bit.
OTT_HOST_DEVICE constexpr uint64_t DigestMix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

inline constexpr uint64_t kDigestGolden = 0x9e3779b97f4a7c15;

// Returns the n-th number of SplitMix64, from 1.
OTT_HOST_DEVICE constexpr uint64_t DigestKey(uint64_t n) { return DigestMix(n * kDigestGolden); }

// Primes above 2^31 whose signed-digit form has many digits, so that a flipped bit changes many. For the low
// and the high half of a lane's states a and b.
inline constexpr uint32_t kDigestALow = 0xf29a6b69;
inline constexpr uint32_t kDigestAHigh = 0xe5565d1f;
inline constexpr uint32_t kDigestBLow = 0xd4ab4d51;
inline constexpr uint32_t kDigestBHigh = 0xcaa95aad;

OTT_HOST_DEVICE constexpr uint64_t DigestMultiplyHalves(uint64_t x, uint32_t low_multiplier,
                                                        uint32_t high_multiplier) {
  return (x & 0xffffffffu) * low_multiplier + (x >> 32) * high_multiplier;
}

// One lane of a block.
struct DigestLane {
  uint64_t a;
  uint64_t b;
};

OTT_HOST_DEVICE constexpr DigestLane InitialDigestLane(int lane) {
  return {DigestKey(1 + lane), DigestKey(1 + kDigestLanes + lane)};
}

OTT_HOST_DEVICE constexpr DigestLane AbsorbWord(DigestLane state, uint64_t word) {
  return {DigestMultiplyHalves(state.a ^ word, kDigestALow, kDigestAHigh),
          DigestMultiplyHalves(state.b + word, kDigestBLow, kDigestBHigh)};
}

// Returns what a lane adds to the low (a) and high (b) half of its leaf, or a leaf to those of the root, by
// the lane's number in the leaf or the leaf's in the tensor. So they are added in any order.
OTT_HOST_DEVICE constexpr DigestLane DigestPart(DigestLane state, uint64_t number) {
  return {DigestMix(state.a + number * kDigestGolden),
          DigestMix(state.b + (kDigestLanes + number) * kDigestGolden)};
}

// Returns the halves of the leaf of a block of this many bytes, from the sums over the lanes.
OTT_HOST_DEVICE constexpr DigestLane DigestLeaf(DigestLane sums, uint64_t block_bytes) {
  return {DigestMix(sums.a ^ block_bytes), DigestMix(sums.b + block_bytes)};
}

// Returns the halves of the root with one more word each: of dtype and shape, or the sums over the leaves.
OTT_HOST_DEVICE constexpr DigestLane AbsorbIntoRoot(DigestLane root, DigestLane words) {
  return {DigestMix((root.a ^ words.a) + kDigestGolden), DigestMix((root.b + words.b) ^ kDigestGolden)};
}

// Returns up to eight bytes as a little-endian word.
OTT_HOST_DEVICE inline uint64_t DigestWordOfBytes(const unsigned char* data, int64_t num_bytes) {
  uint64_t word = 0;
  for (int i = 0; i < 8 && i < num_bytes; ++i) word |= static_cast<uint64_t>(data[i]) << 8 * i;
  return word;
}

// Absorbs one lane's share of bytes that begin a stripe: a thread of a warp, or an eighth of a vector unit.
// Bytes that end within a stripe must be the block's last. REQUIRES: data is aligned to 8 bytes where
// kAligned
template <bool kAligned>
OTT_HOST_DEVICE inline DigestLane AbsorbStripesIntoLane(DigestLane state, const unsigned char* data,
                                                        int64_t num_bytes, int lane) {
  const int64_t num_stripes = num_bytes / kDigestStripeBytes;
  const unsigned char* word = data + lane * 8;
#ifdef __CUDA_ARCH__
#pragma unroll 8
#endif
  for (int64_t stripe = 0; stripe < num_stripes; ++stripe, word += kDigestStripeBytes) {
    if constexpr (kAligned) {
      state = AbsorbWord(state, *reinterpret_cast<const uint64_t*>(word));
    } else {
      state = AbsorbWord(state, DigestWordOfBytes(word, 8));
    }
  }
  if (num_stripes * kDigestStripeBytes < num_bytes) {
    state = AbsorbWord(state, DigestWordOfBytes(word, num_bytes - (word - data)));
  }
  return state;
}

// All that one lane does for a block. REQUIRES: as of AbsorbStripesIntoLane
template <bool kAligned>
OTT_HOST_DEVICE inline DigestLane DigestOfLane(const unsigned char* data, int64_t block_bytes, int lane) {
  return DigestPart(AbsorbStripesIntoLane<kAligned>(InitialDigestLane(lane), data, block_bytes, lane), lane);
}

}  // namespace ott::internal

#endif  // OTT_CORE_DIGEST_DIGEST_ARITHMETIC_H_
