// Bounds how far rounding alone takes an operation's output from what the same operation computes elsewhere.
//
// All differences are relative: the Euclidean norm of the difference over that of the tensor.
//
// The model: sums are made in float32 or wider, in any order and grouping, with or without fused
// multiply-add, and the result is rounded once to the output's dtype. The error of a sum of K terms is at
// most lambda sqrt(K) u of the terms' magnitudes with a probability of 1 - 2 exp(-lambda^2 / 2) (Higham and
// Mary, "A new approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019), u being
// the unit roundoff of what is summed in; how much larger than the result the terms are (cancellation) is
// what the operation also makes of differences in its inputs: its gain. A result that is d from another
// before it is rounded to numbers q apart is rounded to another number with a probability of d / q, so
// rounding makes the square root of q d of it.

#ifndef OTT_QUESTIONS_ORIGIN_ROUNDING_H_
#define OTT_QUESTIONS_ORIGIN_ROUNDING_H_

#include <cstdint>

#include "ott/core/op_log/op_log_reader.h"
#include "ott/core/tensor/dtype.h"

namespace ott::origin {

// Scales the bound of a sum: a chance of 3e-8 to be exceeded.
inline constexpr double kLambda = 6;

// An output may differ by so many times what the perturbed run shows that differences of its inputs make:
// that run perturbs in one direction of many, and is itself known from sketches.
inline constexpr double kSafety = 8;

// Returns the longest sum that an operation of these shapes can contain: elements of an input for each
// element of the output, or the last dimension of an input, over which softmax and norms go. Where two inputs
// are multiplied and a dimension vanishes, that dimension counts, too. At least 1.
double ReductionLength(const OpDefinition& operation, int output);

// Holds what matters here of an operation's output.
struct RoundedOutput {
  double reduction_length = 1;
  DType dtype = DType::kFloat32;
  int64_t num_elements = 1;
  // Its largest magnitude over its norm.
  double largest_share = 0;
};

// Describes an output of an operation of a run of world_size ranks.
RoundedOutput RoundedOutputOf(const LoggedOp& op, int output, int world_size);

// Returns the largest difference of an output that a difference `before` of what is rounded to it explains.
double AfterRounding(const RoundedOutput& output, double before);

// Returns the difference before rounding to the output's dtype that most likely makes a difference `after`.
double BeforeRounding(const RoundedOutput& output, double after);

// Returns what an operation that rounds inside, to the coarsest dtype there is, may make of any difference of
// an input at a gain of 1. A few of its elements are rounded the other way. largest_share: the input's
// largest magnitude over its norm.
double LargestJump(double largest_share);

// Returns what the operation's own sums explain, before the result is rounded to its dtype. gain: at least 1.
double SummationBound(const RoundedOutput& output, double gain);

}  // namespace ott::origin

#endif  // OTT_QUESTIONS_ORIGIN_ROUNDING_H_
