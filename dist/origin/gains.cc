#include "ott/dist/origin/gains.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ott/dist/origin/differences.h"
#include "ott/dist/origin/rounding.h"

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

}  // namespace

void Gains::Add(const AlignedOps& perturbed, const CollectiveInputs& collectives, int world_size) {
  // By definition and tensor; the strings are looked up once.
  struct Pools {
    std::vector<float>* of_module = nullptr;
    std::vector<float>* of_name = nullptr;
  };
  std::vector<std::vector<Pools>> pools(perturbed.a->definitions.size());
  CollectiveCounter counter;
  for (const AlignedOps::Iteration& iteration : perturbed.iterations) {
    for (size_t i = iteration.begin; i < iteration.end; ++i) {
      const OpPair& pair = perturbed.pairs[i];
      const LoggedOp& a = perturbed.op_a(pair);
      const LoggedOp& b = perturbed.op_b(pair);
      const OpDefinition& definition = a.definition();
      double before = 0;
      if (IsCollective(a)) before = collectives.Find(counter.Next(iteration.number, definition)).perturbed;
      if (!pair.same) continue;
      std::vector<Pools>& of_tensors = pools[definition.index];
      of_tensors.resize(definition.tensors.size());
      for (const TensorPair& tensor : PairTensors(a, b, /*outputs=*/false)) {
        before = std::max(before, RelativeDifference(a, tensor.a, b, tensor.b));
      }
      if (!(before > 0) || std::isinf(before)) continue;
      for (const TensorPair& tensor : PairTensors(a, b, /*outputs=*/true)) {
        Pools& of_tensor = of_tensors[tensor.a];
        if (of_tensor.of_name == nullptr) {
          of_tensor.of_module = &gains_[KeyOf(definition, tensor.a, /*of_module=*/true)];
          of_tensor.of_name = &gains_[KeyOf(definition, tensor.a, /*of_module=*/false)];
        }
        if (of_tensor.of_module->size() >= kManyGains) continue;
        const RoundedOutput output = RoundedOutputOf(a, tensor.a, world_size);
        if (UnitRoundoff(output.dtype) == 0) continue;
        const double after = RelativeDifference(a, tensor.a, b, tensor.b);
        if (!std::isfinite(after)) continue;
        const auto gain = static_cast<float>(BeforeRounding(output, after) / before);
        of_tensor.of_module->push_back(gain);
        if (of_tensor.of_name->size() < kManyGains) of_tensor.of_name->push_back(gain);
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
  std::vector<float> gains = found->second;
  std::nth_element(gains.begin(), gains.begin() + static_cast<ptrdiff_t>(gains.size() / 2), gains.end());
  return gains[gains.size() / 2];
}

}  // namespace ott::origin
