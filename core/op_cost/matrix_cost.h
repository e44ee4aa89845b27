// Costs of ops that multiply matrices.
//
// A multiply-add is 2 FLOPs, of complex numbers 8. Bytes are the least possible: each tensor that is needed
// is read once and each result written once; |x| is the bytes of x.

#ifndef OTT_CORE_OP_COST_MATRIX_COST_H_
#define OTT_CORE_OP_COST_MATRIX_COST_H_

#include <optional>

#include "ott/core/op_cost/op_call.h"

namespace ott {

// mm, addmm, bmm, baddbmm, matmul, linear, mv, dot, scaled_mm, grouped_mm and the like, and products of vLLM,
// SGLang, AITER, TensorRT-LLM and bitsandbytes (scales are not counted in bytes). C[m,n] = A[m,k]
// B[k,n], B batches:
//   forward                      2 B m n k FLOPs, |A| + |B| + |C|, and what is added (bias): its elements
//                                once in bytes, B m n FLOPs
//   gradient of A (of the input) 2 B m n k, |dC| + |B| + |dA|
//   gradient of B (the weight)   2 B m n k, |dC| + |A| + |dB|
//   backward                     both, and the bias's: B m n, |d bias|
// Batches of matmul are broadcast, and an operand that is repeated is read once. Groups share one product,
// a dimension of which is split between them; split along k each writes a C of its own. Source: the
// definition of the product (Golub, Van Loan: Matrix Computations, 1.1), counted as in NVIDIA's Matrix
// Multiplication Background User's Guide. C has the inputs' type; for int8 int32, for float8 what "out_dtype"
// says. Absent for other ops.
std::optional<RawCost> GemmCost(const OpCall& call, OpPass pass);

// conv1d/2d/3d, their transposed forms, convolution_backward. x[N,C,H..], w[K,C/g,R..], y[N,K,P..] with
//   P = (H + 2 padding - dilation (R - 1) - 1) / stride + 1, rounded down
//   forward          2 N K P.. (C/g) R.. FLOPs, |x| + |w| + |y|; a bias adds |y| elements and is read
//   input gradient   the same products: 2 N K P.. (C/g) R.., |dy| + |w| + |dx|
//   weight gradient  the same products: 2 N K P.. (C/g) R.., |dy| + |x| + |dw|
// Transposed, w[C,K/g,R..], P = (H - 1) stride - 2 padding + dilation (R - 1) + output_padding + 1:
//   2 N C H.. (K/g) R.. each.
// Products with padding are counted, as NVIDIA's Convolutional Layers User's Guide and Dumoulin, Visin
// (2016), "A guide to convolution arithmetic", have it.
std::optional<RawCost> ConvolutionCost(const OpCall& call, OpPass pass);

// scaled_dot_product_attention and its flash, efficient and cuDNN forms, and what these call
// (flash_attention_forward, with the heads after the sequence), flash-attn's own and AITER's. q[B,Hq,L,E],
// k[B,Hk,S,E], v[B,Hk,S,Ev]; Hk may be fewer (grouped queries). pairs = L S, causal: those of query i with
// keys 0..i, the last counting half; in the flash-attn library the last query goes with the last key, and a
// single one with all:
//   forward   2 B Hq pairs (E + Ev), |q| + |k| + |v| + |mask| + |o| + 4 B Hq L (log-sum-exp)
//   backward  2 B Hq pairs (3 E + 2 Ev): S again, dV, dP, dQ, dK; all of the above, |do|, |dq|, |dk| and |dv|
// Softmax is not counted. Source: Dao (2023), "FlashAttention-2", 4.1, which halves for causal. FLOPs are not
// known where the label does not tell whether it is causal. Of sequences that lie one after the other,
// q[T,Hq,E], nothing is known but where there is a single one, or the longest times their number says that
// all are alike.
std::optional<RawCost> AttentionCost(const OpCall& call, OpPass pass);

// lstm, gru, rnn_tanh, rnn_relu and their cells. x[T,B,I], hidden size H, G gates (4, 3, 1), each layer and
// direction:
//   forward   T B (2 G H (I + H) + H p) FLOPs; p, pointwise an element: 3 G for two biases and the sum, and
//             LSTM 3 sigmoid + 2 tanh + 4, GRU 2 sigmoid + tanh + 5, RNN tanh or relu
//   backward  twice the products; pointwise is left out
// Bytes: x, weights G H (I + H + 2), states and y once; backward reads these and dy, writes dx and dw.
// Source: the equations in PyTorch's documentation of LSTM, GRU and RNN. Of PyTorch's labels, cudnn_rnn among
// them, FLOPs are told by the weights' shapes, and bytes are not known.
std::optional<RawCost> RecurrentCost(const OpCall& call, OpPass pass);

}  // namespace ott

#endif  // OTT_CORE_OP_COST_MATRIX_COST_H_
