#include "ott/questions/origin/rounding.h"

#include <algorithm>
#include <cmath>

namespace ott::origin {
namespace {

// Roundings to another number that are always possible, and by how many deviations there may be more than
// expected.
constexpr double kFewRoundings = 4;
constexpr double kDeviations = 4;

// Sums are made in no narrower type than float32.
DType SummedIn(DType dtype) {
  return dtype == DType::kFloat64 || dtype == DType::kComplex128 ? DType::kFloat64 : DType::kFloat32;
}

}  // namespace

double ReductionLength(const OpDefinition& operation, int output) {
  const auto out = static_cast<double>(std::max<int64_t>(operation.tensors[output].num_elements, 1));
  double length = 1;
  for (const OpTensorDefinition& a : operation.tensors) {
    if (a.is_output) continue;
    length = std::max(length, static_cast<double>(a.num_elements) / out);
    if (!a.shape.empty()) length = std::max(length, static_cast<double>(a.shape.back()));
    for (const OpTensorDefinition& b : operation.tensors) {
      if (&b == &a || b.is_output) continue;
      const double product = static_cast<double>(a.num_elements) * static_cast<double>(b.num_elements);
      length = std::max(length, std::sqrt(product / out));
    }
  }
  return length;
}

RoundedOutput RoundedOutputOf(const LoggedOp& op, int output, int world_size) {
  const OpDefinition& definition = op.definition();
  RoundedOutput result;
  result.reduction_length = ReductionLength(definition, output);
  if (definition.role == OpRole::kCollective) {
    result.reduction_length = std::max<double>(result.reduction_length, world_size);
  }
  result.dtype = definition.tensors[output].dtype;
  result.num_elements = definition.tensors[output].num_elements;
  if (op.norm(output) > 0) result.largest_share = op.max_abs(output) / op.norm(output);
  return result;
}

double AfterRounding(const RoundedOutput& output, double before) {
  const double apart = 2 * UnitRoundoff(output.dtype);
  if (apart == 0) return before;
  const auto count = static_cast<double>(std::max<int64_t>(output.num_elements, 1));
  const double expected = count * std::min(before / apart, 1.0);
  const double likely = std::min(expected + kDeviations * std::sqrt(expected), count);
  const double few = std::min(kFewRoundings, count) * output.largest_share * output.largest_share;
  return std::sqrt(before * before + apart * apart * (likely / count + few));
}

double BeforeRounding(const RoundedOutput& output, double after) {
  if (after == 0) return 0;
  const double apart = 2 * UnitRoundoff(output.dtype);
  // before^2 + apart before = after^2.
  return 2 * after * after / (apart + std::sqrt(apart * apart + 4 * after * after));
}

double LargestJump(double largest_share) {
  return std::sqrt(kFewRoundings) * 2 * UnitRoundoff(DType::kFloat8E5M2) * largest_share;
}

double SummationBound(const RoundedOutput& output, double gain) {
  return kLambda * std::sqrt(output.reduction_length) * UnitRoundoff(SummedIn(output.dtype)) * gain;
}

}  // namespace ott::origin
