#include "ott/core/digest/digest_lanes.h"

namespace ott::internal {

std::vector<AbsorbStripes*> AbsorbStripesOfThisMachine() { return {AbsorbStripesPortable}; }

}  // namespace ott::internal
