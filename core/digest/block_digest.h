// The digest of one block, fed piece by piece (digest.h gives the construction).

#ifndef OTT_CORE_DIGEST_BLOCK_DIGEST_H_
#define OTT_CORE_DIGEST_BLOCK_DIGEST_H_

#include <cstdint>

#include "ott/core/digest/digest.h"
#include "ott/core/digest/digest_lanes.h"

namespace ott::internal {

class BlockDigest {
 public:
  BlockDigest();

  // REQUIRES: only the last piece is no multiple of kDigestStripeBytes; at most kDigestBlockBytes in all
  void Add(const char* data, int64_t num_bytes);
  Digest Finish() const;

 private:
  DigestLanes lanes_;
  int64_t num_bytes_ = 0;
};

}  // namespace ott::internal

#endif  // OTT_CORE_DIGEST_BLOCK_DIGEST_H_
