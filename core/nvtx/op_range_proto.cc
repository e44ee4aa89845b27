// The parts of OpRanges that need protobuf, apart from the rest: a program that only makes ranges links none
// of it.

#include "ott/core/base/config.pb.h"
#include "ott/core/nvtx/op_range.h"

namespace ott {

OpRanges::Options OpRanges::FromConfig(const OpRangeConfig& config) {
  Options options;
  if (config.has_record_shapes()) options.record_shapes = config.record_shapes();
  if (config.has_record_dtypes()) options.record_dtypes = config.record_dtypes();
  if (config.has_record_layouts()) options.record_layouts = config.record_layouts();
  if (config.has_record_module()) options.record_module = config.record_module();
  if (config.has_record_source()) options.record_source = config.record_source();
  if (config.has_record_json()) options.record_json = config.record_json();
  if (config.on_misuse() == MISUSE_POLICY_ABORT) options.on_misuse = OnMisuse::kAbort;
  return options;
}

}  // namespace ott
