#include "ott/core/digest/digest_lanes.h"

namespace ott::internal {

AbsorbStripes* FastestAbsorbStripes() { return AbsorbStripesPortable; }

}  // namespace ott::internal
