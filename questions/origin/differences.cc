#include "ott/questions/origin/differences.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ott/core/digest/digest_and_statistics.h"
#include "ott/core/tensor/dtype.h"
#include "ott/questions/origin/rounding.h"

namespace ott::origin {

double RelativeDifference(const LoggedOp& a, int tensor_a, const LoggedOp& b, int tensor_b) {
  if (!a.is_known(tensor_a) || !b.is_known(tensor_b)) return std::nan("");
  if (a.digest(tensor_a) == b.digest(tensor_b)) return 0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (a.definition().tensors[tensor_a].num_elements != b.definition().tensors[tensor_b].num_elements) {
    return kInfinity;
  }
  const auto non_finite_a = a.non_finite(tensor_a);
  const auto non_finite_b = b.non_finite(tensor_b);
  if (non_finite_a.num_nan != non_finite_b.num_nan ||
      non_finite_a.num_infinite != non_finite_b.num_infinite) {
    return kInfinity;
  }
  const double scale = std::max(a.norm(tensor_a), b.norm(tensor_b));
  double squares = 0;
  for (int i = 0; i < TensorSketch::kNumSums; ++i) {
    const double difference = static_cast<double>(a.sketch(tensor_a)[i]) - b.sketch(tensor_b)[i];
    squares += difference * difference;
  }
  if (squares > 0) return std::sqrt(squares) / scale;
  if (non_finite_a.num_nan + non_finite_a.num_infinite > 0) return std::nan("");
  if (scale == 0) return 0;
  // A difference that hides from all sums, such as two numbers rounded in opposite directions, is no
  // equality.
  const DType dtype = a.definition().tensors[tensor_a].dtype;
  const double apart = 2 * UnitRoundoff(dtype) * std::max(a.max_abs(tensor_a), b.max_abs(tensor_b));
  return (apart > 0 ? apart : 1) / scale;
}

TensorPairs PairTensors(const AlignedOps& aligned, const OpPair& pair, bool outputs) {
  TensorPairs pairs;
  const std::vector<OpTensorDefinition>& of_a = aligned.op_a(pair).definition().tensors;
  for (int i = 0; i < static_cast<int>(of_a.size()); ++i) {
    if (of_a[i].is_output == outputs) pairs.push_back({i, pair.same ? i : -1});
  }
  if (pair.same) return pairs;
  const std::vector<OpTensorDefinition>& of_b = aligned.op_b(pair).definition().tensors;
  size_t next = 0;
  for (int i = 0; i < static_cast<int>(of_b.size()); ++i) {
    if (of_b[i].is_output != outputs) continue;
    if (next == pairs.size()) pairs.emplace_back();
    pairs[next++].b = i;
  }
  return pairs;
}

int64_t Writers::Search(const Digest& digest, bool outputs_only) const {
  for (size_t op = end_; op-- > 0;) {
    for (int i = 0; i < ops_.ops[op].num_tensors(); ++i) {
      if (ops_.ops[op].digest(i) != digest) continue;
      if (!outputs_only || ops_.ops[op].definition().tensors[i].is_output) return static_cast<int64_t>(op);
    }
  }
  return -1;
}

int64_t Writers::WriterOf(const Digest& digest) {
  if (!indexed_) return Search(digest, /*outputs_only=*/true);
  // Most values are written once.
  if (writers_.empty()) writers_.reserve(ops_.ops.size());
  for (; next_ < end_; ++next_) {
    const LoggedOp& writer = ops_.ops[next_];
    for (int i = 0; i < writer.num_tensors(); ++i) {
      if (writer.definition().tensors[i].is_output) {
        writers_[writer.digest(i)] = static_cast<uint32_t>(next_);
      }
    }
  }
  const auto found = writers_.find(digest);
  return found == writers_.end() ? -1 : static_cast<int64_t>(found->second);
}

}  // namespace ott::origin
