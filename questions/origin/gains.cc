#include "ott/questions/origin/gains.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ott/questions/origin/differences.h"
#include "ott/questions/origin/rounding.h"

namespace ott::origin {
namespace {

// Fewer than these say little by themselves; more add nothing.
constexpr size_t kFewGains = 4;
constexpr size_t kManyGains = 256;

std::string KeyOf(const OpDefinition& definition, int output, bool of_module) {
  const std::string separator(1, '\0');
  return absl::StrCat(definition.name, separator, definition.is_backward ? "backward" : "forward", separator,
                      output, separator, of_module ? absl::StrCat("in ", definition.module) : "");
}

double Median(std::vector<float> gains) {
  std::nth_element(gains.begin(), gains.begin() + static_cast<ptrdiff_t>(gains.size() / 2), gains.end());
  return gains[gains.size() / 2];
}

}  // namespace

void Gains::Add(const AlignedOps& perturbed, const CollectiveInputs& collectives, int world_size) {
  // The gains of each output of a definition.
  struct Pools {
    int output = 0;
    std::vector<float>* of_module = nullptr;
    std::vector<float>* of_name = nullptr;
  };
  std::vector<std::vector<Pools>> pools(perturbed.a->definitions.size());
  for (size_t i = 0; i < pools.size(); ++i) {
    const OpDefinition& definition = *perturbed.a->definitions[i];
    for (int t = 0; t < static_cast<int>(definition.tensors.size()); ++t) {
      if (!definition.tensors[t].is_output || UnitRoundoff(definition.tensors[t].dtype) == 0) continue;
      pools[i].push_back({t, &gains_[KeyOf(definition, t, /*of_module=*/true)],
                          &gains_[KeyOf(definition, t, /*of_module=*/false)]});
    }
  }
  CollectiveCounter counter;
  for (const AlignedOps::Iteration& iteration : perturbed.iterations) {
    for (size_t i = iteration.begin; i < iteration.end; ++i) {
      const OpPair& pair = perturbed.pairs[i];
      const LoggedOp& a = perturbed.op_a(pair);
      const LoggedOp& b = perturbed.op_b(pair);
      double before = 0;
      if (IsCollective(a))
        before = collectives.Find(counter.Next(iteration.number, a.definition())).perturbed;
      const std::vector<Pools>& outputs = pools[a.definition().index];
      if (!pair.same || outputs.empty() || outputs[0].of_module->size() >= kManyGains) continue;
      for (const TensorPair& tensor : PairTensors(perturbed, pair, /*outputs=*/false)) {
        before = std::max(before, RelativeDifference(a, tensor.a, b, tensor.b));
      }
      if (!(before > 0) || std::isinf(before)) continue;
      for (const Pools& of : outputs) {
        const double after = RelativeDifference(a, of.output, b, of.output);
        if (!std::isfinite(after)) continue;
        const double gain = BeforeRounding(RoundedOutputOf(a, of.output, world_size), after) / before;
        of.of_module->push_back(static_cast<float>(gain));
        if (of.of_name->size() < kManyGains) of.of_name->push_back(static_cast<float>(gain));
      }
    }
  }
}

std::optional<double> Gains::MedianOf(const OpDefinition& definition, int output) const {
  auto found = gains_.find(KeyOf(definition, output, /*of_module=*/true));
  if (found == gains_.end() || found->second.size() < kFewGains) {
    found = gains_.find(KeyOf(definition, output, /*of_module=*/false));
  }
  if (found == gains_.end() || found->second.empty()) return std::nullopt;
  return Median(found->second);
}

double Gains::LargestMedian() const {
  double largest = 0;
  for (const auto& [operation, gains] : gains_) {
    if (gains.size() >= kFewGains) largest = std::max(largest, Median(gains));
  }
  return largest;
}

}  // namespace ott::origin
