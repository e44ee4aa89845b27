// Whatever ranges are called, a line each: the table of labels says of them what splitting says, and what a
// label costs is a number or not known.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "ott/core/kernel_profile/label_table.h"
#include "ott/core/kernel_profile/op_label.h"
#include "ott/core/op_cost/op_cost.h"

namespace ott::kernels {
namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

void CheckCost(const OpLabel& label) {
  Require(!label.description.op.empty() || label.kind != OpLabel::Kind::kMarker);
  for (const OpPass pass : {OpPass::kForward, OpPass::kBackward, OpPass::kInputGradient}) {
    const OpCost cost = CostOf(label.description, pass, DType::kFloat16);
    Require(!cost.flops.has_value() || *cost.flops >= 0);
    Require(cost.params.find(' ') == std::string::npos);
  }
}

void CheckLines(std::string_view text) {
  LabelTable table;
  std::map<std::pair<std::string, std::string>, uint32_t> numbers;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const LabelParts parts = SplitLabel(line);
    CheckCost(ParseLabel(parts));
    const auto [number, sequence_number] = table.Find(line);
    Require(sequence_number == parts.sequence_number);
    const auto next = static_cast<uint32_t>(numbers.size());
    Require(numbers.try_emplace({std::string(parts.head), std::string(parts.tail)}, next).first->second ==
            number);
  }
}

}  // namespace
}  // namespace ott::kernels

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ott::kernels::CheckLines({reinterpret_cast<const char*>(data), size});
  return 0;
}
