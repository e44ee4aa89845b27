// Costs of ops that go over tensors element by element.
//
// Adding, subtracting, multiplying, dividing, comparing and choosing are 1 FLOP an element, a function such
// as exp, log, sqrt, sin, erf, tanh or pow is 20: PyProf's weight, kept so that figures can be compared. Of
// complex numbers adding is 2 FLOPs, multiplying 6, the rest is not known. Bytes are the least possible:
// inputs read once, outputs written once; |x| is the bytes of x, N its elements. Gradients of gradients are
// not known.

#ifndef OTT_CORE_OP_COST_ELEMENTWISE_COST_H_
#define OTT_CORE_OP_COST_ELEMENTWISE_COST_H_

#include <optional>
#include <string_view>
#include <vector>

#include "ott/core/op_cost/op_call.h"

namespace ott {

inline constexpr double kTranscendentalFlops = 20;

// Absent, all of these, for ops of other kinds.

// Unary, binary and ternary arithmetic, comparisons, logic, activations. Shapes are broadcast. Forward: FLOPs
// of the formula in PyTorch's documentation an element; |inputs| + |out|, out being bool for comparisons.
// Backward of activations and unary functions: the derivative's FLOPs; |dy| + |x or y| + |dx|. Of add and
// sub, and their forms as operators (__isub__): 0, each gradient is dy. Of mul: 2 N; |dy| + |inputs| read,
// |inputs| written; by a number N; |dy| + |dx|. mvlgamma is that of each of its p terms.
std::optional<RawCost> PointwiseCost(const OpCall& call, OpPass pass);

// Returns the names of the ops that PointwiseCost() knows, and of those whose backward pass it knows.
std::vector<std::string_view> PointwiseOpNames();
std::vector<std::string_view> PointwiseOpNamesWithBackward();

// foreach_add, foreach_sqrt, foreach_addcdiv, ...: the same of lists of tensors; norm 2 N and a root each;
// copy and zero 0. PyTorch's labels do not tell where one list ends: what may have one or two is not known.
std::optional<RawCost> ForeachCost(const OpCall& call, OpPass pass);

// sum, mean, prod, min, max, any, norm, var, std, cumsum, ...: FLOPs an element of x: 1; mean one more for
// each result; norm 2 (square, add) and a root; var 4 (mean, difference, square, add), std a root more. |x| +
// |out|; without a dimension ("dim") the result is one element. argmin and argmax write int64. PyTorch's
// labels do not tell dimensions: bytes are not known.
std::optional<RawCost> ReductionCost(const OpCall& call, OpPass pass);

// softmax: max, difference, exp, sum, quotient: 24 N; log_softmax: max, difference, exp, sum, difference: 24
// N, and a logarithm a row is left out; 2 |x|. Backward y (dy - sum(dy y)): 4 N; log: dy - exp(y) sum(dy): 23
// N; 3 |x|.
std::optional<RawCost> SoftmaxCost(const OpCall& call, OpPass pass);

// x of N elements in R rows (layers, groups or channels); weight and bias where they are there:
//   layer, group, instance and (training) batch norm: mean 1, variance 3, normalise 2, affine 2: 8 N, without
//   weights 6 N; |x| + |y| + |weights|, and float32 mean and 1/deviation of each row: 8 R
//   batch norm of inference ("training" is 0): 4 N (difference, scale, affine); |x| + |y| + |weights and
//   statistics| RMS norm: square and add 2, scale 1, weight 1: 4 N; as above with one statistic: 4 R
//   backward: normalised x 2, dy w 1, two sums 3, dx 4 - wait-free form (dyw - (s1 + xhat s2) / n) /
//   deviation -, dw and db 3: 13 N, without weights 9 N, RMS 9 N; |dy| + |x| + |dx| + statistics, and
//   |w| read, |dw| and |db| written
// Ba et al. (2016), Zhang and Sennrich (2019), Ioffe and Szegedy (2015), Wu and He (2018).
std::optional<RawCost> NormCost(const OpCall& call, OpPass pass);

// dropout: compare and scale, 2 N; |x| + |y| and a mask of N bytes. Backward N; |dy| + |dx| + mask. Drawing
// random numbers is not counted.
std::optional<RawCost> DropoutCost(const OpCall& call, OpPass pass);

// max and average pooling: a comparison or addition for each element of each window, average one more a
// result; adaptive: one an element of x. |x| + |out|, and 8 bytes a result for indices where the op's name
// has them. Backward: max one addition a result, average as forward; |dy| + |dx| and indices.
std::optional<RawCost> PoolingCost(const OpCall& call, OpPass pass);

// mse and l1 3 N (difference, square or abs, sum), smooth_l1 and huber 6 N, bce 45 N (two logarithms), with
// logits 46 N, kl_div 23 N, nll one FLOP a row, cross_entropy log_softmax and nll: 24 N and one a row. Inputs
// are read; the result is one element unless "reduction" is none, which spares the sum. Backward: mse and l1
// 2 N, smooth_l1, huber and bce 4 N, with logits 24 N, kl_div N, cross_entropy 22 N (softmax from its
// logarithm, less one, scaled) and one a row; inputs read, one gradient written.
std::optional<RawCost> LossCost(const OpCall& call, OpPass pass);

// Returns the names of the ops that LossCost() knows.
std::vector<std::string_view> LossOpNames();

// Parameters p of N elements, gradients g; state in float32 where a type is not told is p's:
//   sgd    2 N (scale, subtract), weight decay 2, momentum 2 (nesterov 2 more);
//          p and momentum read and written, g read
//   adam   m 3, v 4, root 20, bias correction 2, epsilon 1, quotient 1, step 2: 33 N; weight decay 2;
//          p, m, v read and written, g read: 7 N e
//   adamw  the same with decay 1 (p scaled): 34 N; a fifth list (amsgrad) 1 more, read and written
// PyTorch's labels tell no decay: FLOPs are known of AdamW alone.
// Kingma and Ba (2015); Loshchilov and Hutter (2019).
std::optional<RawCost> OptimizerCost(const OpCall& call, OpPass pass);

}  // namespace ott

#endif  // OTT_CORE_OP_COST_ELEMENTWISE_COST_H_
