// The inner loop of the digest (digest.h gives the construction), once for any machine and once for AVX2.

#ifndef OTT_CORE_COMPARE_DIGEST_LANES_H_
#define OTT_CORE_COMPARE_DIGEST_LANES_H_

#include <cstdint>

namespace ott::internal {

inline constexpr int kDigestLanes = 32;
inline constexpr int kDigestStripeBytes = kDigestLanes * 8;

// Primes above 2^31 whose signed-digit form has many digits, so that a flipped bit changes many.
inline constexpr uint32_t kDigestMultipliers[4] = {0xf29a6b69, 0xe5565d1f, 0xd4ab4d51, 0xcaa95aad};

struct DigestLanes {
  alignas(64) uint64_t a[kDigestLanes];
  alignas(64) uint64_t b[kDigestLanes];
};

// Feeds num_stripes stripes of kDigestStripeBytes to the lanes.
using AbsorbStripes = void(DigestLanes& lanes, const char* data, int64_t num_stripes);

AbsorbStripes AbsorbStripesPortable;

// The fastest one this machine can run.
AbsorbStripes* FastestAbsorbStripes();

}  // namespace ott::internal

#endif  // OTT_CORE_COMPARE_DIGEST_LANES_H_
