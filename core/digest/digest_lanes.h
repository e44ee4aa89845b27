// The inner loop of the digest (digest.h gives the construction), once for any machine, for AVX2 and for
// AVX-512.

#ifndef OTT_CORE_DIGEST_DIGEST_LANES_H_
#define OTT_CORE_DIGEST_DIGEST_LANES_H_

#include <cstdint>
#include <vector>

#include "ott/core/digest/digest_arithmetic.h"

namespace ott::internal {

struct DigestLanes {
  alignas(64) uint64_t a[kDigestLanes];
  alignas(64) uint64_t b[kDigestLanes];
};

// Feeds num_stripes stripes of kDigestStripeBytes to the lanes.
using AbsorbStripes = void(DigestLanes& lanes, const char* data, int64_t num_stripes);

AbsorbStripes AbsorbStripesPortable;

// Returns the functions that this machine can run, the fastest first.
std::vector<AbsorbStripes*> AbsorbStripesOfThisMachine();

}  // namespace ott::internal

#endif  // OTT_CORE_DIGEST_DIGEST_LANES_H_
