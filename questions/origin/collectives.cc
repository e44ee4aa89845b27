#include "ott/questions/origin/collectives.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "ott/core/digest/digest_arithmetic.h"
#include "ott/questions/origin/differences.h"

namespace ott::origin {
namespace {

using internal::DigestMix;

uint64_t MoveKey(int64_t iteration, const Digest& a, const Digest& b) {
  return DigestMix(DigestMix(a.low ^ static_cast<uint64_t>(iteration)) + DigestMix(b.low) + b.high);
}

}  // namespace

bool IsCollective(const LoggedOp& op) { return op.definition().role == OpRole::kCollective; }

uint64_t CollectiveCounter::Next(int64_t iteration, const OpDefinition& definition) {
  const std::hash<std::string_view> hash;
  const uint64_t key = DigestMix(static_cast<uint64_t>(iteration) + 1) ^
                       DigestMix(hash(definition.name) +
                                 DigestMix(hash(definition.module) + DigestMix(hash(definition.phase))));
  return DigestMix(key + counts_[key]++);
}

void CollectiveInputs::Add(const AlignedOps& aligned, const AlignedOps* perturbed) {
  CollectiveCounter counter;
  for (const AlignedOps::Iteration& iteration : aligned.iterations) {
    for (size_t i = iteration.begin; i < iteration.end; ++i) {
      const OpPair& pair = aligned.pairs[i];
      const LoggedOp& a = aligned.op_a(pair);
      if (!IsCollective(a)) continue;
      const LoggedOp& b = aligned.op_b(pair);
      Of& of = instances_[counter.Next(iteration.number, a.definition())];
      const int32_t other = perturbed == nullptr ? -1 : perturbed->partner_of_a[pair.a];
      for (const TensorPair& tensor : PairTensors(aligned, pair, /*outputs=*/false)) {
        if (tensor.a < 0 || tensor.b < 0) continue;
        const double difference = RelativeDifference(a, tensor.a, b, tensor.b);
        if (difference > of.difference) of.difference = difference;
        if (difference != 0) moves_[MoveKey(iteration.number, a.digest(tensor.a), b.digest(tensor.b))] = true;
        if (other < 0 || perturbed->b->ops[other].num_tensors() != a.num_tensors()) continue;
        of.perturbed =
            std::max(of.perturbed, RelativeDifference(a, tensor.a, perturbed->b->ops[other], tensor.a));
      }
    }
  }
}

CollectiveInputs::Of CollectiveInputs::Find(uint64_t instance) const {
  const auto found = instances_.find(instance);
  return found == instances_.end() ? Of() : found->second;
}

bool CollectiveInputs::Moves(int64_t iteration, const Digest& a, const Digest& b) const {
  return moves_.count(MoveKey(iteration, a, b)) > 0;
}

}  // namespace ott::origin
