#include "ott/questions/origin/spread.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "ott/questions/origin/differences.h"

namespace ott::origin {
namespace {

// A tree that one reads at a glance.
constexpr int kMaxListed = 10;
constexpr int kMaxDepth = 6;
constexpr size_t kParts = 200;

double LargestDifference(const AlignedOps& aligned, const OpPair& pair, bool outputs) {
  double largest = 0;
  const LoggedOp& a = aligned.op_a(pair);
  const LoggedOp& b = aligned.op_b(pair);
  for (const TensorPair& tensor : PairTensors(aligned, pair, outputs)) {
    if (tensor.a < 0 || tensor.b < 0) continue;
    const double difference = RelativeDifference(a, tensor.a, b, tensor.b);
    if (difference > largest) largest = difference;
  }
  return largest;
}

void DrawDifferences(const AlignedOps& aligned, size_t origin, OriginVerdict* verdict) {
  const size_t num_parts = std::min(kParts, aligned.pairs.size());
  std::vector<double> parts(num_parts, 0);
  for (size_t i = 0; i < aligned.pairs.size(); ++i) {
    double& part = parts[i * num_parts / aligned.pairs.size()];
    part = std::max(part, LargestDifference(aligned, aligned.pairs[i], /*outputs=*/true));
  }
  // JSON has no infinity.
  for (const double part : parts) verdict->add_differences(std::isfinite(part) ? part : 1e30);
  verdict->set_origin_part(static_cast<int>(origin * num_parts / aligned.pairs.size()));
}

}  // namespace

void DescribeSpread(const AlignedOps& aligned, size_t origin, OriginVerdict* verdict) {
  // The maker of a value of b that differs for that reason: steps from the origin, and which of `spread` made
  // it.
  struct Maker {
    int depth = -1;
    int index = -1;
  };
  std::unordered_map<Digest, Maker, DigestHash> reached;
  const auto add_outputs = [&](const OpPair& pair, const Maker& maker) {
    const LoggedOp& a = aligned.op_a(pair);
    const LoggedOp& b = aligned.op_b(pair);
    bool any = false;
    for (const TensorPair& tensor : PairTensors(aligned, pair, /*outputs=*/true)) {
      if (tensor.b < 0 || (tensor.a >= 0 && a.digest(tensor.a) == b.digest(tensor.b))) continue;
      reached.try_emplace(b.digest(tensor.b), maker);
      any = true;
    }
    return any;
  };
  DrawDifferences(aligned, origin, verdict);
  add_outputs(aligned.pairs[origin], {0, -1});
  for (const AlignedOps::Iteration& iteration : aligned.iterations) {
    for (size_t i = std::max(iteration.begin, origin + 1); i < iteration.end; ++i) {
      const OpPair& pair = aligned.pairs[i];
      const LoggedOp& b = aligned.op_b(pair);
      Maker parent;
      for (int t = 0; t < b.num_tensors(); ++t) {
        if (b.definition().tensors[t].is_output) continue;
        const auto found = reached.find(b.digest(t));
        if (found == reached.end()) continue;
        if (parent.depth < 0 || found->second.depth < parent.depth) parent = found->second;
      }
      if (parent.depth < 0) continue;
      const bool is_listed = verdict->spread_size() < kMaxListed && parent.depth < kMaxDepth;
      const bool differs = add_outputs(pair, {parent.depth + 1, is_listed ? verdict->spread_size() : -1});
      if (differs) {
        verdict->set_num_differ_after(verdict->num_differ_after() + 1);
      } else {
        verdict->set_num_swallow_after(verdict->num_swallow_after() + 1);
      }
      // Its parent is: that one is nearer to the origin, and earlier.
      if (!is_listed) continue;
      OriginSpread& spread = *verdict->add_spread();
      spread.set_iteration(iteration.number);
      spread.set_operation(b.definition().name);
      spread.set_module(b.definition().module);
      spread.set_depth(parent.depth + 1);
      spread.set_parent(parent.index);
      spread.set_relative_difference(differs ? LargestDifference(aligned, pair, /*outputs=*/true) : 0);
      spread.set_input_difference(LargestDifference(aligned, pair, /*outputs=*/false));
    }
  }
}

}  // namespace ott::origin
