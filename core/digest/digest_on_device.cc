#include "ott/core/digest/digest_on_device.h"

#include <utility>

namespace ott {
namespace {

// Identifies such an owner.
struct KeepDigest {
  void operator()(const DigestOnDevice*) const {}

  std::shared_ptr<const DigestOnDevice> digest;
};

}  // namespace

Tensor WithDigest(std::shared_ptr<const DigestOnDevice> digest) {
  const DigestOnDevice* const pointer = digest.get();
  return {pointer->tensor(), std::shared_ptr<const DigestOnDevice>(pointer, KeepDigest{std::move(digest)})};
}

const DigestOnDevice* FindDigest(const Tensor& tensor) {
  const auto* const keep = std::get_deleter<KeepDigest>(tensor.owner);
  return keep == nullptr ? nullptr : keep->digest.get();
}

}  // namespace ott
