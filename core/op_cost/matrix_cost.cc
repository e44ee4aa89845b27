#include "ott/core/op_cost/matrix_cost.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/op_cost/elementwise_cost.h"

namespace ott {
namespace {

std::string TypeName(const OpCall& call, const OpArgument& tensor) {
  const std::optional<DType> dtype = call.TypeOf(tensor);
  return dtype.has_value() ? absl::StrCat(",", std::string(Name(*dtype))) : "";
}

// Returns all digits of a size, which StrCat() rounds to six.
std::string SizeText(double size) { return absl::StrFormat("%.15g", size); }

// Bytes of an element of a product's result.
double ResultSize(const OpCall& call, const OpArgument& input) {
  std::optional<DType> told = call.Type({"out_dtype"});
  // _scaled_mm(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, ...), and (self, mat2, bias,
  // out_dtype, ...) up to PyTorch 2.4, which has tensors where the other has that number.
  for (const int position : {6, 3}) {
    if (!told.has_value() && call.name() == "scaled_mm") told = call.Type({"", position});
  }
  if (told.has_value()) return static_cast<double>(SizeOf(*told));
  const std::optional<DType> dtype = call.TypeOf(input);
  if (!dtype.has_value() || *dtype == DType::kFloat8E4M3 || *dtype == DType::kFloat8E5M2) return kUnknownCost;
  return static_cast<double>(
      SizeOf(*dtype == DType::kInt8 || *dtype == DType::kUInt8 ? DType::kInt32 : *dtype));
}

struct Product {
  const OpArgument* a;
  const OpArgument* b;
  const OpArgument* added = nullptr;   // bias, or C
  const OpArgument* result = nullptr;  // where it is an argument
  double batch = 1;
  double m = 1;
  double n = 1;
  double k = 1;
  double results = 1;  // matrices of m n elements that are written for each product of a batch
};

// After the input and the weight, or else where it is named.
const OpArgument* Bias(const OpCall& call, int position) {
  const OpArgument* bias = call.Tensor({"bias", position});
  return bias != nullptr && bias->shape.size() == 1 ? bias : nullptr;
}

// a[.., m, k] b[.., k, n] with matmul's rules for vectors and batches. False if they do not go together.
bool SetMatmul(Product* product) {
  Shape a = product->a->shape;
  Shape b = product->b->shape;
  if (a.empty() || b.empty()) return false;
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  const std::optional<Shape> batch = Broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  if (!batch.has_value() || a.back() != b[b.size() - 2]) return false;
  product->batch = Elements(*batch);
  product->m = Double(a[a.size() - 2]);
  product->k = Double(a.back());
  product->n = Double(b.back());
  return true;
}

// x[.., k] w[n, k]
bool SetLinear(Product* product) {
  const Shape& x = product->a->shape;
  const Shape& w = product->b->shape;
  if (x.empty() || w.empty() || w.size() > 2 || x.back() != w.back()) return false;
  product->k = Double(x.back());
  product->m = product->k > 0 ? Elements(x) / product->k : 0;
  product->n = w.size() == 2 ? Double(w[0]) : 1;
  return true;
}

// Sets the product of groups that share k, n or m, one of which "offsets" splits: all of them together are
// one product.
bool SetGrouped(const OpArgument* offsets, Product* product) {
  const Shape& a = product->a->shape;
  const Shape& b = product->b->shape;
  if (a.size() < 2 || b.size() < 2 || a.size() > 3 || b.size() > 3) return false;
  if (a.size() == 3 && b.size() == 3) return SetMatmul(product);
  if (a.back() != b[b.size() - 2]) return false;
  product->m = Double(a[a.size() - 2]);
  product->k = Double(a.back());
  product->n = Double(b.back());
  // Split along k each group has a result of its own.
  if (a.size() == 2 && b.size() == 2)
    product->results = offsets == nullptr ? kUnknownCost : Elements(offsets->shape);
  return true;
}

// Products of other libraries, by their schemas: vLLM's, SGLang's, AITER's, TensorRT-LLM's, bitsandbytes'.
struct LibraryProduct {
  std::string_view name;  // or what it begins with
  size_t a;               // its place among the tensors; b follows
  bool is_linear;         // b is [N, K], else [K, N]
};
constexpr LibraryProduct kLibraryProducts[] = {
    {"rocm_unquantized_gemm", 0, true}, {"rocm_aiter_triton_gemm_a8w8", 0, true},
    {"gemm_a16w16", 0, true},           {"gemm_a8w8", 0, true},
    {"flatmm_a8w8", 0, true},           {"gfx950_a8w8", 0, true},
    {"int8_linear_matmul", 0, true},    {"cublas_scaled_mm", 0, false},
    {"fp8_scaled_mm", 0, false},        {"int8_scaled_mm", 0, false},
    {"cutlass_scaled_mm", 1, false},  // (out, a, b, ...)
};

const LibraryProduct* LibraryProductOf(const OpCall& call) {
  const auto begins = [&](const LibraryProduct& known) {
    return std::string_view(call.name()).substr(0, known.name.size()) == known.name;
  };
  const auto product = std::find_if(std::begin(kLibraryProducts), std::end(kLibraryProducts), begins);
  return product == std::end(kLibraryProducts) ? nullptr : &*product;
}

std::optional<Product> ToProduct(const OpCall& call) {
  Product product;
  if (call.name() == "linear") {
    product.a = call.Tensor({"input", 0});
    product.b = call.Tensor({"weight", 1});
    product.added = Bias(call, 2);
    if (product.a == nullptr || product.b == nullptr || !SetLinear(&product)) return std::nullopt;
    return product;
  }
  if (const LibraryProduct* const known = LibraryProductOf(call); known != nullptr) {
    if (call.num_tensors() < known->a + 2) return std::nullopt;
    product.a = &call.tensor(known->a);
    product.b = &call.tensor(known->a + 1);
    if (known->a > 0) product.result = &call.tensor(0);
    if (!(known->is_linear ? SetLinear(&product) : SetMatmul(&product))) return std::nullopt;
    return product;
  }
  const bool adds = call.IsOneOf({"addmm", "baddbmm", "addbmm", "addmv", "addmm_activation"});
  const size_t first = adds ? 1 : 0;
  if (call.num_tensors() < first + 2) return std::nullopt;
  if (adds) product.added = &call.tensor(0);
  product.a = &call.tensor(first);
  product.b = &call.tensor(first + 1);
  if (call.IsOneOf({"grouped_mm", "scaled_grouped_mm"})) {
    constexpr Parameter kOffsets{"offs", 2};
    constexpr Parameter kOffsetsAfterScales{"offs", 4};
    const Parameter& offsets = call.name() == "grouped_mm" ? kOffsets : kOffsetsAfterScales;
    if (!SetGrouped(call.Tensor(offsets), &product)) return std::nullopt;
    return product;
  }
  if (call.name() == "rmatmul") std::swap(product.a, product.b);
  if (!SetMatmul(&product)) return std::nullopt;
  if (call.name() == "addbmm") product.results = 1 / product.batch;  // the batch is added up
  return product;
}

// Spatial sizes of a convolution; all of them lists of one length.
struct Convolution {
  const OpArgument* x;
  const OpArgument* w;
  const OpArgument* bias = nullptr;
  Shape y;  // whole, [N, K, P..]
  double groups = 1;
  bool transposed = false;
};

// The places of a convolution's numbers, by PyTorch's native_functions.yaml.
struct ConvolutionForm {
  std::string_view name;
  int stride;
  int padding;
  int dilation;
  int groups;
  int output_padding;
  int transposed;
};
constexpr int kNone = Parameter::kByNameOnly;
constexpr ConvolutionForm kConvolutionForms[] = {
    {"conv1d", 3, 4, 5, 6, kNone, kNone},
    {"conv2d", 3, 4, 5, 6, kNone, kNone},
    {"conv3d", 3, 4, 5, 6, kNone, kNone},
    {"conv_transpose1d", 3, 4, 7, 6, 5, kNone},
    {"conv_transpose2d", 3, 4, 7, 6, 5, kNone},
    {"conv_transpose3d", 3, 4, 7, 6, 5, kNone},
    {"convolution", 3, 4, 5, 8, 7, 6},
    {"convolution_overrideable", 3, 4, 5, 8, 7, 6},
    {"cudnn_convolution", 3, 2, 4, 5, kNone, kNone},
    {"cudnn_convolution_transpose", 4, 2, 5, 6, 3, kNone},
    {"cudnn_convolution_relu", 3, 4, 5, 6, kNone, kNone},
    {"miopen_convolution", 4, 3, 5, 6, kNone, kNone},
    {"miopen_depthwise_convolution", 4, 3, 5, 6, kNone, kNone},
    {"miopen_convolution_transpose", 5, 3, 6, 7, 4, kNone},
    {"miopen_convolution_relu", 3, 4, 5, 6, kNone, kNone},
    {"mkldnn_convolution", 4, 3, 5, 6, kNone, kNone},
    {"conv_depthwise2d", 4, 5, 6, kNone, kNone, kNone},
    {"conv_depthwise3d", 4, 5, 6, kNone, kNone, kNone},
    {"thnn_conv2d", 4, 5, kNone, kNone, kNone, kNone},
    {"slow_conv2d_forward", 4, 5, kNone, kNone, kNone, kNone},
    {"slow_conv3d", 4, 5, kNone, kNone, kNone, kNone},
    {"slow_conv3d_forward", 4, 5, kNone, kNone, kNone, kNone},
    {"slow_conv_dilated2d", 4, 5, 6, kNone, kNone, kNone},
    {"slow_conv_dilated3d", 4, 5, 6, kNone, kNone, kNone},
    {"slow_conv_transpose2d", 4, 5, 7, kNone, 6, kNone},
    {"slow_conv_transpose3d", 4, 5, 7, kNone, 6, kNone},
};

struct ConvolutionParameters {
  // convolution_backward(grad_output, input, weight, bias_sizes, stride, ...)
  ConvolutionParameters(const ConvolutionForm& form, bool is_backward_op) {
    const auto at = [&](int position) {
      return position == kNone ? kNone : position + (is_backward_op ? 1 : 0);
    };
    stride.position = at(form.stride);
    padding.position = at(form.padding);
    dilation.position = at(form.dilation);
    groups.position = at(form.groups);
    output_padding.position = at(form.output_padding);
    transposed.position = at(form.transposed);
  }

  Parameter stride{"stride"};
  Parameter padding{"padding"};
  Parameter dilation{"dilation"};
  Parameter groups{"groups"};
  Parameter output_padding{"output_padding"};
  Parameter transposed{"transposed"};
};

// A number for each dimension, from one or from a list.
bool Spread(const std::vector<double>& numbers, size_t dimensions, double otherwise,
            std::vector<double>* all) {
  if (numbers.empty()) {
    all->assign(dimensions, otherwise);
  } else if (numbers.size() == 1) {
    all->assign(dimensions, numbers[0]);
  } else {
    *all = numbers;
  }
  return all->size() == dimensions;
}

bool SetOutput(const OpCall& call, const ConvolutionParameters& parameters, Convolution* conv) {
  const Shape& x = conv->x->shape;
  const Shape& w = conv->w->shape;
  const size_t dimensions = w.size() - 2;
  if (const OpArgument* y = call.Tensor({"output"}); y != nullptr && y->shape.size() == x.size()) {
    conv->y = y->shape;
    return true;
  }
  // PyTorch's labels alone do not tell stride and padding.
  if (call.tensors_only()) return false;
  std::vector<double> stride, padding, dilation, output_padding;
  if (!Spread(call.Numbers(parameters.stride), dimensions, 1, &stride) ||
      !Spread(call.Numbers(parameters.padding), dimensions, 0, &padding) ||
      !Spread(call.Numbers(parameters.dilation), dimensions, 1, &dilation) ||
      !Spread(conv->transposed ? call.Numbers(parameters.output_padding) : std::vector<double>(), dimensions,
              0, &output_padding)) {
    return false;
  }
  const std::string padding_text = call.Text(parameters.padding);
  conv->y = {x[0], conv->transposed ? static_cast<int64_t>(Double(w[1]) * conv->groups) : w[0]};
  for (size_t i = 0; i < dimensions; ++i) {
    const double size = Double(x[i + 2]);
    const double reach = dilation[i] * (Double(w[i + 2]) - 1);
    double out = 0;
    if (padding_text == "same") {
      out = size;
    } else if (conv->transposed) {
      out = (size - 1) * stride[i] - 2 * padding[i] + reach + output_padding[i] + 1;
    } else {
      out = std::floor((size + 2 * padding[i] - reach - 1) / stride[i]) + 1;
    }
    if (!(out >= 0 && out < 1e15)) return false;
    conv->y.push_back(static_cast<int64_t>(out));
  }
  return true;
}

std::optional<Convolution> ToConvolution(const OpCall& call, const ConvolutionForm& form) {
  Convolution conv;
  // convolution_backward(grad_output, input, weight, ...), but, up to PyTorch 1.10,
  // cudnn_convolution_backward(input, grad_output, weight, ...).
  const bool input_is_first =
      form.name.find("dnn_") != std::string_view::npos || form.name.find("miopen_") != std::string_view::npos;
  const int grad_output = input_is_first ? 1 : 0;
  const int input = call.is_backward_op() ? 1 - grad_output : 0;
  const int weight = call.is_backward_op() ? 2 : 1;
  conv.x = call.Tensor({"input", input});
  conv.w = call.Tensor({"weight", weight});
  if (conv.x == nullptr || conv.w == nullptr) return std::nullopt;
  Shape x = conv.x->shape;
  const Shape& w = conv.w->shape;
  if (w.size() < 3 || w.size() > 5 || x.size() != w.size()) return std::nullopt;
  const ConvolutionParameters parameters(form, call.is_backward_op());
  conv.transposed =
      call.name().find("transpose") != std::string::npos || call.Number(parameters.transposed, 0) == 1;
  if (call.is_backward_op()) {
    conv.y = call.tensor(grad_output).shape;
    if (conv.y.size() != w.size()) return std::nullopt;
    // With as many channels before and after, what grows is transposed.
    const bool grows = x[1] == w[0] && Elements(conv.y) > Elements(x);
    if (call.tensors_only()) conv.transposed = conv.y[1] != w[0] || grows;
  } else {
    conv.bias = Bias(call, 2);
  }
  conv.groups = call.Number(parameters.groups, 1);
  if (!conv.transposed && w[1] > 0) conv.groups = Double(x[1]) / Double(w[1]);
  if (conv.y.empty() && !SetOutput(call, parameters, &conv)) return std::nullopt;
  return conv;
}

std::string ConvolutionParams(const OpCall& call, const Convolution& conv) {
  const auto sizes = [](const Shape& shape) { return absl::StrJoin(shape.begin() + 2, shape.end(), "x"); };
  return absl::StrCat("N=", conv.x->shape[0], ",C=", conv.x->shape[1], ",in=", sizes(conv.x->shape),
                      ",K=", conv.y[1], ",out=", sizes(conv.y), ",kernel=", sizes(conv.w->shape),
                      ",g=", SizeText(conv.groups), TypeName(call, *conv.x));
}

// Pairs of a query and a key it looks at: query i at keys 0..i, of which the last counts half. last: the last
// query looks at the last key, as the flash-attn library has it, instead of the first at the first.
double CausalPairs(double queries, double keys, bool last) {
  const double triangle = std::min(queries, keys);
  const double before = last ? (keys - triangle) * queries : (queries - triangle) * keys;
  // A single query is the newest one of a cache, and sees all of it.
  return last && queries == 1 ? keys : triangle * triangle / 2 + before;
}

// The flash-attn library's own, and AITER's after them.
bool IsOfFlashAttnLibrary(std::string_view name) {
  constexpr std::string_view kNames[] = {"flash_attn_forward", "flash_attn",    "flash_attn_varlen_forward",
                                         "flash_attn_varlen",  "flashattnfunc", "mha_fwd",
                                         "fmha_v3_fwd"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Returns the argument that says whether it is causal, by PyTorch's native_functions.yaml; -1: none. In
// "efficient" kernels it is the kind of mask, 0 for none.
int CausalPosition(std::string_view name, bool backward) {
  const bool outer = name.find("scaled_dot_product") != std::string_view::npos;
  const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  if (IsOfFlashAttnLibrary(name)) return has("varlen") ? (backward ? 15 : 9) : backward ? 11 : 5;
  if (has("flash")) return backward ? 11 : outer ? 4 : 8;
  if (has("efficient")) return outer ? (backward ? 11 : 6) : backward ? 14 : 9;
  if (has("cudnn")) return backward ? 14 : outer ? 6 : 10;
  return backward ? -1 : 5;
}

// Counts the sequences that lie one after the other in the first dimension of q and k, if all are of one
// length.
double NumEqualSequences(const OpCall& call, const OpArgument& q, const OpArgument& k) {
  // Behind q, k and v, and in the library's backward out, lse and the gradients: the sums of the lengths and
  // the longest ones. Of "efficient" kernels a bias is the first of them.
  const bool efficient = call.name().find("efficient") != std::string::npos;
  if (call.is_backward_op() && !IsOfFlashAttnLibrary(call.name())) return kUnknownCost;
  const int sums = call.is_backward_op() ? 9 : efficient ? 4 : 3;
  const auto count = [&](int position) {
    for (const OpArgument* tensor : call.tensors()) {
      if (tensor->position == position && tensor->shape.size() == 1) return Double(tensor->shape[0]) - 1;
    }
    return kUnknownCost;
  };
  const double sequences = count(sums);
  if (!(sequences >= 1) || count(sums + 1) != sequences) return kUnknownCost;
  const bool equal =
      Double(q.shape[0]) == sequences * call.Number({"max_seqlen_q", sums + 2}, kUnknownCost) &&
      Double(k.shape[0]) == sequences * call.Number({"max_seqlen_k", sums + 3}, kUnknownCost);
  return sequences == 1 || equal ? sequences : kUnknownCost;
}

// FLOPs of a state's element but for products, two biases and their sum among them; tanh for one gate.
double RecurrentPointwise(double gates) {
  constexpr double kSigmoid = 3 + kTranscendentalFlops;
  return 3 * gates + (gates == 4   ? 3 * kSigmoid + 2 * kTranscendentalFlops + 4
                      : gates == 3 ? 2 * kSigmoid + kTranscendentalFlops + 5
                                   : kTranscendentalFlops);
}

// Computes the cost from PyTorch's labels: layers and directions are those of the weights, matrices among the
// tensors. gates: 0 if the op's name does not tell, as in _cudnn_rnn(input, weights.., buffer, hx, cx).
RawCost RecurrentCostOfWeights(const OpCall& call, double gates, double pointwise, bool backward) {
  RawCost cost;
  const Shape& x = call.tensor(0).shape;
  const Shape* state = nullptr;
  double weights = 0;
  double rows = 0;  // of the first weight
  for (size_t i = 1; i < call.num_tensors(); ++i) {
    const Shape& shape = call.tensor(i).shape;
    if (shape.size() == 2) {
      if (weights == 0) rows = Double(shape[0]);
      weights += Elements(shape);
    }
    if (shape.size() == 3 && state == nullptr) state = &shape;
  }
  if (state == nullptr || weights == 0 || x.back() == 0) return cost;
  const double size = Double(state->back());
  const double steps = Elements(x) / Double(x.back());
  if (gates == 0 && (rows == 3 * size || rows == 4 * size)) pointwise = RecurrentPointwise(rows / size);
  cost.flops = steps * (backward ? 4 * weights : 2 * weights + Double((*state)[0]) * size * pointwise);
  cost.params = absl::StrCat("steps=", SizeText(steps), ",I=", x.back(), ",H=", SizeText(size),
                             TypeName(call, call.tensor(0)));
  return cost;
}

}  // namespace

std::optional<RawCost> GemmCost(const OpCall& call, OpPass pass) {
  if (!call.IsOneOf({"mm", "bmm", "matmul", "linear", "addmm", "baddbmm", "addmm_activation", "mv", "addmv",
                     "dot", "vdot", "inner", "scaled_mm", "int_mm", "rmatmul", "addbmm", "grouped_mm",
                     "scaled_grouped_mm"}) &&
      LibraryProductOf(call) == nullptr) {
    return std::nullopt;
  }
  RawCost cost;
  const std::optional<Product> product = ToProduct(call);
  if (!product.has_value()) return cost;
  const double products = (call.is_complex() ? 8 : 2) * product->batch * product->m * product->n * product->k;
  const double out = product->batch * product->results * product->m * product->n;
  const double added = product->added == nullptr ? 0 : (call.is_complex() ? 2 : 1) * out;
  const double added_bytes = product->added == nullptr ? 0 : call.Bytes(*product->added);
  const double out_bytes =
      product->result != nullptr ? call.Bytes(*product->result) : out * ResultSize(call, *product->a);
  const double one_pass = call.Bytes(*product->a) + call.Bytes(*product->b) + out_bytes;
  switch (pass) {
    case OpPass::kForward:
      cost.flops = products + added;
      cost.bytes = one_pass + added_bytes;
      break;
    case OpPass::kInputGradient:
    case OpPass::kWeightGradient:
      cost.flops = products;
      cost.bytes = one_pass;
      break;
    case OpPass::kBackward:
      cost.flops = 2 * products + added;
      cost.bytes = 2 * one_pass + added_bytes;
      break;
  }
  // The parameters are as a column-major library sees them.
  cost.params = absl::StrCat(product->batch == 1 ? "" : absl::StrCat("B=", SizeText(product->batch), ","),
                             "M=", SizeText(product->n), ",N=", SizeText(product->m),
                             ",K=", SizeText(product->k), TypeName(call, *product->a));
  for (const double size : {product->n, product->m, product->k})
    cost.matrix_sizes.push_back(static_cast<int64_t>(size));
  return cost;
}

std::optional<RawCost> ConvolutionCost(const OpCall& call, OpPass pass) {
  const ConvolutionForm* const form = FindRow(kConvolutionForms, call.name());
  if (form == nullptr) return std::nullopt;
  RawCost cost;
  const std::optional<Convolution> conv = ToConvolution(call, *form);
  if (!conv.has_value()) return cost;
  const Shape& w = conv->w->shape;
  // Each element of y (transposed: of x) with all of a filter.
  const double products = (call.is_complex() ? 8 : 2) *
                          Elements(conv->transposed ? conv->x->shape : conv->y) * Elements(w) / Double(w[0]);
  const double y_bytes = Elements(conv->y) * ResultSize(call, *conv->x);
  const double one_pass = call.Bytes(*conv->x) + call.Bytes(*conv->w) + y_bytes;
  // A bias has no FLOPs here: PyTorch adds it by an op of its own, as its flop counter has it.
  const double bias_bytes = conv->bias == nullptr ? 0 : call.Bytes(*conv->bias);
  if (pass == OpPass::kForward && !call.is_backward_op()) {
    cost.flops = products;
    cost.bytes = one_pass + bias_bytes;
  } else if (pass == OpPass::kInputGradient || pass == OpPass::kWeightGradient) {
    cost.flops = products;
    cost.bytes = one_pass;
  } else {
    // Gradients are of input and weight, unless the last argument, whether they are wanted, says otherwise.
    const std::vector<double> mask = call.Numbers({"output_mask", form->transposed == kNone ? kNone : 10});
    const double passes = mask.size() == 3 ? mask[0] + mask[1] : 2;
    cost.flops = passes * products;
    cost.bytes = passes * one_pass + bias_bytes;
  }
  cost.params = ConvolutionParams(call, *conv);
  if (conv->groups == 1) cost.matrix_sizes = {conv->x->shape[1], conv->y[1]};
  return cost;
}

std::optional<RawCost> AttentionCost(const OpCall& call, OpPass pass) {
  const std::string& name = call.name();
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  const bool outer = has("scaled_dot_product");
  // The ops that PyTorch's outer ops call have the heads after the sequence, but for cuDNN's.
  const bool of_library = IsOfFlashAttnLibrary(name);
  const bool heads_last = of_library || call.IsOneOf({"flash_attention_forward", "flash_attention",
                                                      "efficient_attention_forward", "efficient_attention"});
  if (!outer && !heads_last && !call.IsOneOf({"cudnn_attention_forward", "cudnn_attention"}))
    return std::nullopt;
  RawCost cost;
  const bool backward = call.is_backward_op() || pass == OpPass::kBackward;
  const int query = call.is_backward_op() ? 1 : 0;  // after the gradient
  const int mask_position = query + 3;
  const OpArgument* q = call.Tensor({"query", query});
  const OpArgument* k = call.Tensor({"key", query + 1});
  const OpArgument* v = call.Tensor({"value", query + 2});
  if (q == nullptr || k == nullptr || v == nullptr) return cost;
  const size_t rank = q->shape.size();
  // Sequences of several lengths lie one after the other in three dimensions, and their lengths are not told.
  const bool is_packed = heads_last && rank == 3;
  if (rank < (outer ? 2 : is_packed ? 3 : 4) || k->shape.size() != rank || v->shape.size() != rank)
    return cost;
  const double sequences = is_packed ? NumEqualSequences(call, *q, *k) : 1;
  if (std::isnan(sequences)) return cost;
  const size_t sequence = rank - (heads_last ? 3 : 2);
  const double queries = Double(q->shape[sequence]) / sequences;
  const double keys = Double(k->shape[sequence]) / sequences;
  const double e = Double(q->shape[rank - 1]);
  const double ev = Double(v->shape[rank - 1]);
  if (queries <= 0 || e <= 0) return cost;
  const double heads = Elements(q->shape) / (queries * e);
  // If a call tells its values, an argument that is left out has its default.
  const bool has_default = outer && !call.is_backward_op() && !call.tensors_only();
  const int causal_position = CausalPosition(name, call.is_backward_op());
  double causal = call.Number({"is_causal", causal_position}, has_default ? 0 : kUnknownCost);
  if (heads_last && std::isnan(causal)) causal = call.Number({"custom_mask_type"}, kUnknownCost);
  const double pairs = std::isnan(causal) ? kUnknownCost
                       : causal != 0      ? CausalPairs(queries, keys, of_library)
                                          : queries * keys;
  const double out_bytes = heads * queries * ev * call.ElementSize(*q);
  const double log_sum_exp = 4 * heads * queries;
  const double inputs = call.Bytes(*q) + call.Bytes(*k) + call.Bytes(*v);
  cost.flops = 2 * heads * pairs * (backward ? 3 * e + 2 * ev : e + ev);
  cost.bytes = backward ? 2 * inputs + 2 * out_bytes + log_sum_exp : inputs + out_bytes + log_sum_exp;
  if (!has("flash") && (!call.is_backward_op() || has("efficient"))) {
    for (const OpArgument* mask : call.tensors()) {
      const bool is_mask = mask->name.empty() || mask->name.find("mask") != std::string::npos ||
                           mask->name.find("bias") != std::string::npos;
      if (is_mask && mask->position == mask_position) cost.bytes += call.Bytes(*mask);
    }
  }
  cost.params = absl::StrCat("heads=", SizeText(heads), ",L=", SizeText(queries), ",S=", SizeText(keys),
                             ",E=", SizeText(e), std::isnan(causal) ? "" : ",causal=",
                             std::isnan(causal) ? ""
                             : causal != 0      ? "1"
                                                : "0",
                             TypeName(call, *q));
  return cost;
}

std::optional<RawCost> RecurrentCost(const OpCall& call, OpPass pass) {
  const std::string& name = call.name();
  double gates = 0;
  if (name == "lstm" || name == "lstm_cell" || name == "lstmcell") {
    gates = 4;
  } else if (name == "gru" || name == "gru_cell" || name == "grucell") {
    gates = 3;
  } else if (call.IsOneOf({"rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell", "rnncell"})) {
    gates = 1;
  } else if (name != "cudnn_rnn") {
    return std::nullopt;
  }
  const double pointwise = gates == 0                               ? kUnknownCost
                           : name.find("relu") != std::string::npos ? 3 * gates + 1
                                                                    : RecurrentPointwise(gates);
  RawCost cost;
  const OpArgument* x = call.Tensor({"input", 0});
  if (x == nullptr || x->shape.size() < 2 || x->shape.size() > 3) return cost;
  const bool backward = IsBackward(call, pass);
  const bool cell = name.find("cell") != std::string::npos;
  if (gates == 0 || (call.tensors_only() && !cell))
    return RecurrentCostOfWeights(call, gates, pointwise, backward);
  const double directions = call.Number({"bidirectional"}, 0) != 0 ? 2 : 1;
  const double layers = call.Number({"num_layers"}, 1);
  const double inputs = Double(x->shape.back());
  const double steps = inputs > 0 ? Elements(x->shape) / inputs : 0;  // T B
  double batch = 1;
  if (cell) batch = Double(x->shape[0]);
  if (x->shape.size() == 3) batch = Double(x->shape[call.Number({"batch_first"}, 0) != 0 ? 0 : 1]);
  const OpArgument* hidden = call.Tensor({"hx", 1});
  // If a weight comes second, states are not told.
  const bool has_batch = cell || x->shape.size() == 3;
  const bool is_state = hidden != nullptr && hidden->shape.size() >= 2 &&
                        (!has_batch || Double(hidden->shape[hidden->shape.size() - 2]) == batch);
  const double size = call.Number({"hidden_size"}, is_state ? Double(hidden->shape.back()) : kUnknownCost);
  double products = 0;
  double weights = 0;
  for (double layer = 0; layer < std::min(layers, 1e6); ++layer) {
    const double from = layer == 0 ? inputs : directions * size;
    products += directions * 2 * gates * size * (from + size);
    weights += directions * gates * size * (from + size + 2);
  }
  const double states = 2 * (gates == 4 ? 2 : 1) * layers * directions * batch * size;  // first and last
  // A cell's result is its last state.
  const double y = cell ? 0 : steps * directions * size;
  const double all = Elements(x->shape) + weights + states + y;
  const double e = call.ElementSize(*x);
  if (!backward) {
    cost.flops = steps * (products + layers * directions * size * pointwise);
    cost.bytes = all * e;
  } else {
    cost.flops = 2 * steps * products;
    cost.bytes = (all + y + Elements(x->shape) + weights) * e;
  }
  cost.params = absl::StrCat("steps=", SizeText(steps), ",I=", SizeText(inputs), ",H=", SizeText(size),
                             ",layers=", SizeText(layers), TypeName(call, *x));
  return cost;
}

}  // namespace ott
