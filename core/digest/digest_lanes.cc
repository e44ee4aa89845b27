#include "ott/core/digest/digest_lanes.h"

#include <cstring>

namespace ott::internal {
void AbsorbStripesPortable(DigestLanes& lanes, const char* data, int64_t num_stripes) {
  for (int64_t stripe = 0; stripe < num_stripes; ++stripe) {
    for (int lane = 0; lane < kDigestLanes; ++lane) {
      uint64_t word;
      std::memcpy(&word, data, sizeof(word));
      data += sizeof(word);
      const DigestLane state = AbsorbWord({lanes.a[lane], lanes.b[lane]}, word);
      lanes.a[lane] = state.a;
      lanes.b[lane] = state.b;
    }
  }
}

}  // namespace ott::internal
