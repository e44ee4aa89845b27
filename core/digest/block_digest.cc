#include "ott/core/digest/block_digest.h"

#include <cstring>

namespace ott::internal {
namespace {

DigestLanes InitialLanes() {
  DigestLanes lanes;
  for (int lane = 0; lane < kDigestLanes; ++lane) {
    const DigestLane state = InitialDigestLane(lane);
    lanes.a[lane] = state.a;
    lanes.b[lane] = state.b;
  }
  return lanes;
}

}  // namespace

BlockDigest::BlockDigest() {
  static const DigestLanes initial = InitialLanes();
  lanes_ = initial;
}

void BlockDigest::Add(const char* data, int64_t num_bytes) {
  static AbsorbStripes* const absorb = AbsorbStripesOfThisMachine().front();
  const int64_t num_stripes = num_bytes / kDigestStripeBytes;
  absorb(lanes_, data, num_stripes);
  const int64_t rest = num_bytes % kDigestStripeBytes;
  if (rest > 0) {
    char stripe[kDigestStripeBytes] = {};
    std::memcpy(stripe, data + num_stripes * kDigestStripeBytes, rest);
    absorb(lanes_, stripe, 1);
  }
  num_bytes_ += num_bytes;
}

Digest BlockDigest::Finish() const {
  DigestLane sums = {};
  for (int lane = 0; lane < kDigestLanes; ++lane) {
    const DigestLane part = DigestPart({lanes_.a[lane], lanes_.b[lane]}, lane);
    sums.a += part.a;
    sums.b += part.b;
  }
  const DigestLane leaf = DigestLeaf(sums, num_bytes_);
  return {leaf.a, leaf.b};
}

}  // namespace ott::internal
