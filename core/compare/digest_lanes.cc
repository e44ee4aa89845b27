#include "ott/core/compare/digest_lanes.h"

#include <cstring>

namespace ott::internal {
namespace {

uint64_t MultiplyHalves(uint64_t x, uint32_t low_multiplier, uint32_t high_multiplier) {
  return (x & 0xffffffffu) * low_multiplier + (x >> 32) * high_multiplier;
}

}  // namespace

void AbsorbStripesPortable(DigestLanes& lanes, const char* data, int64_t num_stripes) {
  for (int64_t stripe = 0; stripe < num_stripes; ++stripe) {
    for (int lane = 0; lane < kDigestLanes; ++lane) {
      uint64_t word;
      std::memcpy(&word, data, sizeof(word));
      data += sizeof(word);
      lanes.a[lane] = MultiplyHalves(lanes.a[lane] ^ word, kDigestMultipliers[0], kDigestMultipliers[1]);
      lanes.b[lane] = MultiplyHalves(lanes.b[lane] + word, kDigestMultipliers[2], kDigestMultipliers[3]);
    }
  }
}

}  // namespace ott::internal
