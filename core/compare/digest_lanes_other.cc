#include "ott/core/compare/digest_lanes.h"

namespace ott::internal {

AbsorbStripes* FastestAbsorbStripes() { return AbsorbStripesPortable; }

}  // namespace ott::internal
