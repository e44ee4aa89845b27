// Whatever a range is called, it is read, its key reads as the same, and what it costs is a number or not
// known.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "ott/core/op_cost/op_cost.h"
#include "tools/prof/op_label.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ott::OpLabel label = ott::ParseLabel(ott::SplitLabel({reinterpret_cast<const char*>(data), size}));
  if (label.description.op.empty() && label.kind == ott::OpLabel::Kind::kMarker) std::abort();
  for (const ott::OpPass pass :
       {ott::OpPass::kForward, ott::OpPass::kBackward, ott::OpPass::kInputGradient}) {
    const ott::OpCost cost = ott::CostOf(label.description, pass, ott::DType::kFloat16);
    if (cost.flops.has_value() && !(*cost.flops >= 0)) std::abort();
    if (cost.params.find(' ') != std::string::npos) std::abort();
  }
  return 0;
}
