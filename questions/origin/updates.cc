#include "ott/questions/origin/updates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/digest/digest_and_statistics.h"
#include "ott/questions/origin/differences.h"

namespace ott::origin {
namespace {

// An element that jumps does so by at most so many times what an update adds on average.
constexpr double kLargestStep = 3;
// The share of elements that pass zero, over the relative difference of the gradient: 0.8 where its elements
// are normal, 1.4 with Laplace's distribution, and more where most are small.
constexpr double kShareNearZero = 4;
// Some sums are of elements that did not jump, however many jumps there may be: in less than half of all, an
// update that is right differs by more than its inputs explain.
constexpr int kFewerThanHalf = TensorSketch::kNumSums / 2 - 1;
// More jumps than expected by so many deviations, of Poisson's distribution, have a chance below 1e-5.
constexpr double kDeviationsOfSteps = 8;

// An update may add more, or less, than the reference's in all of its elements alike. It may do so by this
// many standard errors of that scale, this many times what its inputs are scaled by, and what a scalar may be
// off by.
constexpr double kDeviationsOfScale = 16;
constexpr double kScaleOfRounding = 1e-5;

// By how much b is a multiple of a, less 1, and the standard error of that, both of the sums of sketches.
struct Scale {
  Scale(const double* a, const double* b) {
    double squares = 0;
    double products = 0;
    double largest = 0;
    for (int i = 0; i < TensorSketch::kNumSums; ++i) {
      squares += a[i] * a[i];
      products += a[i] * b[i];
      largest = std::max(largest, a[i] * a[i]);
    }
    if (squares == 0) return;
    deviation = products / squares - 1;
    double residuals = 0;
    for (int i = 0; i < TensorSketch::kNumSums; ++i) {
      const double residual = b[i] - products / squares * a[i];
      residuals += residual * residual;
    }
    // If one sum is most of all, the others say little of it.
    const double of_others = 1 - largest / squares;
    error = std::sqrt(residuals / (TensorSketch::kNumSums - 1) / squares) / of_others;
  }

  double deviation = 0;
  double error = std::numeric_limits<double>::infinity();
};

std::array<double, TensorSketch::kNumSums> Sums(const LoggedOp& op, int tensor) {
  std::array<double, TensorSketch::kNumSums> sums;
  std::copy_n(op.sketch(tensor), sums.size(), sums.begin());
  return sums;
}

// The number that an operation added to one of its inputs.
struct Increment {
  Increment(const LoggedOp& op, int input, int output) {
    for (int i = 0; i < TensorSketch::kNumSums; ++i) {
      sums[i] = static_cast<double>(op.sketch(output)[i]) - op.sketch(input)[i];
    }
  }

  double norm() const {
    double squares = 0;
    for (const double sum : sums) squares += sum * sum;
    return std::sqrt(squares);
  }
  // left_out: so many sums do not count, those that differ most. An element is part of one sum, so that as
  // many elements cannot make the distance.
  double DistanceTo(const Increment& other, int left_out = 0) const {
    std::array<double, TensorSketch::kNumSums> squares;
    for (int i = 0; i < TensorSketch::kNumSums; ++i) {
      squares[i] = (sums[i] - other.sums[i]) * (sums[i] - other.sums[i]);
    }
    std::sort(squares.begin(), squares.end());
    return std::sqrt(std::accumulate(squares.begin(), squares.end() - left_out, 0.0));
  }

  double sums[TensorSketch::kNumSums];
};

// The operations of an iteration that correspond to none of the other run's.
std::vector<size_t> WithoutPartner(const LoggedOps& ops, const std::vector<int32_t>& partners,
                                   int64_t iteration) {
  std::vector<size_t> alone;
  for (const LoggedOps::Iteration& logged : ops.iterations) {
    for (size_t i = logged.begin; logged.number == iteration && i < logged.end; ++i) {
      if (partners[i] < 0) alone.push_back(i);
    }
  }
  return alone;
}

// Returns true if an operation may make what an update makes: it is one, or has an output of the same size.
bool MayStandFor(const OpDefinition& operation, const OpDefinition& update) {
  if (operation.role == OpRole::kUpdate) return true;
  for (const OpTensorDefinition& made : operation.tensors) {
    for (const OpTensorDefinition& updated : update.tensors) {
      if (made.is_output && updated.is_output && made.num_elements == updated.num_elements) return true;
    }
  }
  return false;
}

}  // namespace

int InputUpdated(const LoggedOp& op, int output) {
  if (op.definition().role != OpRole::kUpdate) return -1;
  const OpTensorDefinition& parameter = op.definition().tensors[output];
  for (int i = 0; i < op.num_tensors(); ++i) {
    const OpTensorDefinition& input = op.definition().tensors[i];
    if (!input.is_output && input.name == parameter.name && input.num_elements == parameter.num_elements)
      return i;
  }
  return -1;
}

double StepAllowance(const LoggedOp& a, int output, double num_steps) {
  const int before = InputUpdated(a, output);
  if (before < 0 || a.norm(output) == 0) return 0;
  const auto count = static_cast<double>(std::max<int64_t>(a.definition().tensors[output].num_elements, 1));
  return kLargestStep * std::sqrt(num_steps / count) * Increment(a, before, output).norm() / a.norm(output);
}

std::optional<IncrementExcess> ExcessOfIncrement(const LoggedOp& a, const LoggedOp& b,
                                                 const LoggedOp& perturbed, int tensor,
                                                 const RoundedOutput& output) {
  const int before = InputUpdated(a, tensor);
  if (before < 0) return std::nullopt;
  // The difference of the other inputs.
  double difference = 0;
  double amplified = 0;
  for (int i = 0; i < a.num_tensors(); ++i) {
    if (i == before || a.definition().tensors[i].is_output) continue;
    difference = std::max(difference, RelativeDifference(a, i, b, i));
    amplified = std::max(amplified, RelativeDifference(a, i, perturbed, i));
  }
  const Increment of_a(a, before, tensor);
  const double norm = of_a.norm();
  const double whole = a.norm(tensor);
  if (norm == 0 || whole == 0) return std::nullopt;
  const Increment of_b(b, before, tensor);
  const Increment of_perturbed(perturbed, before, tensor);
  // Without what jumps in so many elements. num_more: of these, those that are not left out.
  const auto times_explained = [&](int left_out, double num_more) {
    const double gain =
        amplified == 0 ? 1 : std::max(1.0, of_a.DistanceTo(of_perturbed, left_out) / norm / amplified);
    const double explained = kSafety * gain * difference * norm / whole + SummationBound(output, 1);
    double tolerance = AfterRounding(output, explained) + TensorSketch::kResolution;
    if (difference > 0) tolerance += StepAllowance(a, tensor, num_more);
    // Parameters that differ are rounded each by itself.
    if (RelativeDifference(a, before, b, before) > 0) tolerance += 2 * UnitRoundoff(output.dtype);
    return of_a.DistanceTo(of_b, left_out) / (tolerance * whole);
  };
  // Else nothing tells what the update makes of its inputs.
  const bool is_measured = difference == 0 || amplified > 0;
  double times = is_measured ? times_explained(0, kFewSteps) : 0;
  // If few elements can have jumped, these make few sums differ, and an update that is wrong all of them.
  const auto count = static_cast<double>(a.definition().tensors[tensor].num_elements);
  const double expected = count * std::min(kShareNearZero * difference, 1.0);
  const double num_more = expected + kDeviationsOfSteps * std::sqrt(expected) - kFewSteps;
  IncrementExcess excess;
  if (num_more < kFewSteps && is_measured) {
    times = std::max(times, times_explained(kFewSteps, std::max(num_more, 0.0)));
  } else {
    excess.is_doubtful = times_explained(kFewerThanHalf, 0) > 1;
  }
  excess.difference = of_a.DistanceTo(of_b) / norm;
  excess.explained = times > 0 ? excess.difference / times : std::numeric_limits<double>::infinity();
  // Differences that rounding made point in any direction, and a learning rate that is wrong makes one along
  // what is added.
  const Scale scale(of_a.sums, of_b.sums);
  double roundoff = 0;
  double of_inputs = 0;
  for (int i = 0; i < a.num_tensors(); ++i) {
    roundoff = std::max(roundoff, UnitRoundoff(a.definition().tensors[i].dtype));
    if (i == before || a.definition().tensors[i].is_output) continue;
    of_inputs = std::max(of_inputs, std::abs(Scale(Sums(a, i).data(), Sums(b, i).data()).deviation));
  }
  const double explained =
      kDeviationsOfScale * scale.error + kSafety * of_inputs + 2 * roundoff + kScaleOfRounding;
  if (std::abs(scale.deviation) > std::max(1.0, excess.times()) * explained) {
    excess.difference = std::abs(scale.deviation);
    excess.explained = explained;
    excess.scale = 1 + scale.deviation;
  }
  excess.unseen = std::min(excess.explained, explained);
  return excess;
}

std::optional<Candidate> FindLoneUpdate(const AlignedOps& aligned, std::string& first_in_last) {
  for (const AlignedOps::Iteration& iteration : aligned.iterations) {
    if (iteration.begin == iteration.end) continue;
    const bool is_last = &iteration == &aligned.iterations.back();
    const OpPair& last_pair = aligned.pairs[iteration.end - 1];
    const std::vector<size_t> alone_a = WithoutPartner(*aligned.a, aligned.partner_of_a, iteration.number);
    const std::vector<size_t> alone_b = WithoutPartner(*aligned.b, aligned.partner_of_b, iteration.number);
    for (const bool is_b : {false, true}) {
      const LoggedOps& own = is_b ? *aligned.b : *aligned.a;
      const LoggedOps& other = is_b ? *aligned.a : *aligned.b;
      const std::vector<size_t>& alone_in_other = is_b ? alone_a : alone_b;
      for (const size_t index : is_b ? alone_b : alone_a) {
        const LoggedOp& op = own.ops[index];
        if (is_b ? iteration.a_is_cut && index > last_pair.b : iteration.b_is_cut && index > last_pair.a)
          continue;
        const bool is_stood_for = std::any_of(alone_in_other.begin(), alone_in_other.end(), [&](size_t i) {
          return MayStandFor(other.ops[i].definition(), op.definition());
        });
        if (op.definition().role != OpRole::kUpdate || is_stood_for) continue;
        const auto& definitions = other.definitions;
        const bool is_in_other = std::any_of(
            definitions.begin(), definitions.end(),
            [&](const auto& definition) { return IsSameOperation(*definition, op.definition()); });
        if (!is_in_other && is_last && first_in_last.empty()) {
          first_in_last =
              absl::StrCat(DescribeOperation(op.definition()), " in iteration ", iteration.number);
        }
        if (!is_in_other) continue;
        Candidate candidate;
        candidate.kind = OriginVerdict::UPDATE;
        candidate.iteration = candidate.found_in = iteration.number;
        candidate.position = iteration.end - iteration.begin;
        candidate.pair = iteration.end - 1;
        candidate.op = &op;
        candidate.detail = is_b ? "the reference does not run it" : "only the reference runs it";
        return candidate;
      }
    }
  }
  return std::nullopt;
}

}  // namespace ott::origin
