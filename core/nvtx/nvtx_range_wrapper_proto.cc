// The parts of NvtxRangeWrapper that need protobuf, apart from the rest: a program that only makes ranges
// links none of it.

#include "ott/core/base/config.pb.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"

namespace ott {

NvtxRangeWrapper::Options NvtxRangeWrapper::FromConfig(const NvtxConfig& config) {
  Options options;
  options.sync_on_push = config.sync_on_push();
  options.sync_on_pop = config.sync_on_pop();
  options.keep_track_of_range_order = config.keep_track_of_range_order();
  if (config.on_misuse() == MISUSE_POLICY_ABORT) options.on_misuse = OnMisuse::kAbort;
  return options;
}

}  // namespace ott
