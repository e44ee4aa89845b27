// The inner loop of the digest (digest.h gives the construction), once for any machine and once for AVX2.

#ifndef OTT_CORE_DIGEST_DIGEST_LANES_H_
#define OTT_CORE_DIGEST_DIGEST_LANES_H_

#include <cstdint>

#include "ott/core/digest/digest_arithmetic.h"

namespace ott::internal {

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

#endif  // OTT_CORE_DIGEST_DIGEST_LANES_H_
