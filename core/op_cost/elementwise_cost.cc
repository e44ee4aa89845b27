#include "ott/core/op_cost/elementwise_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>

namespace ott {
namespace {

constexpr double kFunction = kTranscendentalFlops;

// Of what an op does with its arguments, where a formula depends on it.
enum class Family : uint8_t { kOther, kAdds, kNegates, kMultiplies, kDivides };

struct Pointwise {
  std::string_view name;
  double forward;  // FLOPs an element of the result
  double backward = kUnknownCost;
  Family family = Family::kOther;
};

// FLOPs of a complex number for each of a real one.
double ComplexFactor(Family family) {
  switch (family) {
    case Family::kAdds:
    case Family::kNegates:
      return 2;
    case Family::kMultiplies:
      return 6;
    case Family::kDivides:
    case Family::kOther:
      break;
  }
  return kUnknownCost;
}

constexpr Pointwise kPointwise[] = {
    // Arithmetic.
    {"add", 1, 0, Family::kAdds},
    {"iadd", 1, 0, Family::kAdds},
    {"radd", 1, 0, Family::kAdds},
    {"sub", 1, 0, Family::kAdds},
    {"isub", 1, 0, Family::kAdds},
    {"rsub", 1, 0, Family::kAdds},
    {"subtract", 1, 0, Family::kAdds},
    {"mul", 1, 2, Family::kMultiplies},
    {"imul", 1, 2, Family::kMultiplies},
    {"rmul", 1, 2, Family::kMultiplies},
    {"multiply", 1, 2, Family::kMultiplies},
    {"div", 1, 4, Family::kDivides},
    {"divide", 1, 4, Family::kDivides},
    {"true_divide", 1, 4, Family::kDivides},
    {"truediv", 1, 4, Family::kDivides},
    {"itruediv", 1, 4, Family::kDivides},
    {"rtruediv", 1},
    {"rdiv", 1},
    {"floor_divide", 2},
    {"floordiv", 2},
    {"remainder", 4},
    {"mod", 4},
    {"fmod", 4},
    {"maximum", 1, 2},
    {"minimum", 1, 2},
    {"fmax", 1, 2},
    {"fmin", 1, 2},
    {"copysign", 1},
    {"pow", kFunction, kFunction + 2},
    {"ipow", kFunction, kFunction + 2},
    {"rpow", kFunction},
    {"atan2", kFunction},
    {"hypot", kFunction + 3},
    {"xlogy", kFunction + 1},
    {"logaddexp", 2 * kFunction + 4},
    {"addcmul", 3},
    {"addcdiv", 3},
    {"lerp", 3},
    {"neg", 1, 1, Family::kNegates},
    {"negative", 1, 1, Family::kNegates},
    {"abs", 1, 1},
    {"absolute", 1, 1},
    {"reciprocal", 1, 3},
    {"square", 1, 2},
    {"sign", 1},
    {"sgn", 1},
    {"floor", 1},
    {"ceil", 1},
    {"round", 1},
    {"trunc", 1},
    {"frac", 2},
    {"clamp", 2, 1},
    {"clip", 2, 1},
    {"clamp_min", 1, 1},
    {"clamp_max", 1, 1},
    {"where", 1, 1},
    {"masked_fill", 1, 1},
    {"nan_to_num", 3},
    {"bitwise_and", 1},
    {"bitwise_or", 1},
    {"bitwise_xor", 1},
    {"bitwise_not", 1},
    {"bitwise_left_shift", 1},
    {"bitwise_right_shift", 1},
    {"lshift", 1},
    {"ilshift", 1},
    {"rshift", 1},
    {"irshift", 1},
    {"invert", 1},
    {"and", 1},
    {"iand", 1},
    {"or", 1},
    {"ior", 1},
    {"xor", 1},
    {"ixor", 1},
    // Functions.
    {"exp", kFunction, 1},
    {"exp2", kFunction, 2},
    {"expm1", kFunction, 2},
    {"log", kFunction, 1},
    {"log2", kFunction, 2},
    {"log10", kFunction, 2},
    {"log1p", kFunction, 2},
    {"sqrt", kFunction, 2},
    {"rsqrt", kFunction, 4},
    {"sin", kFunction, kFunction + 1},
    {"cos", kFunction, kFunction + 2},
    {"tan", kFunction},
    {"asin", kFunction},
    {"acos", kFunction},
    {"atan", kFunction},
    {"sinh", kFunction, kFunction + 1},
    {"cosh", kFunction, kFunction + 1},
    {"tanh", kFunction, 3},
    {"asinh", kFunction},
    {"acosh", kFunction},
    {"atanh", kFunction},
    {"logit", kFunction + 2},
    {"erf", kFunction, kFunction + 4},
    {"erfc", kFunction},
    {"erfinv", kFunction},
    {"lgamma", kFunction},
    // For each of its p: an offset, a function, and adding up.
    {"mvlgamma", kFunction + 2, kFunction + 2},
    {"digamma", kFunction},
    // Activations.
    {"relu", 1, 1},
    {"threshold", 1, 1},
    {"relu6", 2, 2},
    {"hardtanh", 2, 2},
    {"leaky_relu", 2, 2},
    {"rrelu", 2, 2},
    {"rrelu_with_noise", 2, 2},
    {"prelu", 2},
    {"sigmoid", kFunction + 3, 3},
    {"hardsigmoid", 4, 2},
    {"hardswish", 5, 4},
    {"silu", kFunction + 4, kFunction + 8},
    {"gelu", kFunction + 4, 2 * kFunction + 9},
    {"elu", kFunction + 3, kFunction + 3},
    {"selu", kFunction + 4, kFunction + 4},
    {"celu", kFunction + 4, kFunction + 3},
    {"softplus", 2 * kFunction + 1, kFunction + 4},
    {"logsigmoid", 2 * kFunction + 3},
    {"log_sigmoid", 2 * kFunction + 3},
    {"mish", 3 * kFunction + 2},
    {"softsign", 3, 4},
    {"tanhshrink", kFunction + 1},
    {"hardshrink", 2, 1},
    {"softshrink", 3, 1},
};

struct Loss {
  std::string_view name;
  double forward;  // FLOPs an element of the input
  double backward;
};

constexpr Loss kLosses[] = {
    {"mse_loss", 3, 2},
    {"l1_loss", 3, 2},
    {"smooth_l1_loss", 6, 4},
    {"huber_loss", 6, 4},
    {"binary_cross_entropy", 2 * kFunction + 5, 4},
    {"binary_cross_entropy_with_logits", 2 * kFunction + 6, kFunction + 4},
    {"kl_div", kFunction + 3, 1},
    {"cross_entropy", kFunction + 4, kFunction + 2},
    {"cross_entropy_loss", kFunction + 4, kFunction + 2},
    {"nll_loss", 0, 0},
    {"nll_loss_forward", 0, 0},
    {"nll_loss2d", 0, 0},
    {"nll_loss2d_forward", 0, 0},
};

// 1 FLOP an element, a bool each.
constexpr std::string_view kComparisons[] = {
    "eq",          "ne",         "lt",          "le",          "gt",
    "ge",          "isnan",      "isinf",       "isfinite",    "isclose",
    "logical_and", "logical_or", "logical_xor", "logical_not", "equal",
    "not_equal",   "less",       "less_equal",  "greater",     "greater_equal",
    "signbit",     "isneginf",   "isposinf",
};

template <size_t n>
bool IsAmong(std::string_view name, const std::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

const Pointwise* FindPointwise(std::string_view name) {
  const auto known = std::find_if(std::begin(kPointwise), std::end(kPointwise),
                                  [&](const Pointwise& pointwise) { return pointwise.name == name; });
  return known == std::end(kPointwise) ? nullptr : known;
}

using TensorList = std::vector<const OpArgument*>;

bool AreOfOneList(const OpArgument& a, const OpArgument& b) {
  return a.position == b.position || (!a.name.empty() && a.name == b.name);
}

// The lists of tensors that an op was called with. PyTorch's labels have all tensors one after the other:
// then the lists are equal shapes over and over, as many times as just one of counts says. Empty where that
// does not tell. Without tensors of no dimension, which count steps.
std::vector<TensorList> ListsOf(const OpCall& call, std::initializer_list<size_t> counts) {
  TensorList tensors;
  bool told = !call.tensors_only();
  for (const OpArgument* tensor : call.tensors()) {
    if (tensor->shape.empty()) continue;
    told = told || (!tensors.empty() && AreOfOneList(*tensors.back(), *tensor));
    tensors.push_back(tensor);
  }
  std::vector<TensorList> lists;
  if (told) {
    for (const OpArgument* tensor : tensors) {
      if (lists.empty() || !AreOfOneList(*lists.back().back(), *tensor)) lists.emplace_back();
      lists.back().push_back(tensor);
    }
    return lists;
  }
  for (const size_t count : counts) {
    const size_t length = tensors.size() / count;
    bool repeats = length > 0 && length * count == tensors.size();
    for (size_t i = length; repeats && i < tensors.size(); ++i)
      repeats = tensors[i]->shape == tensors[i - length]->shape;
    if (!repeats) continue;
    if (!lists.empty()) return {};
    for (size_t i = 0; i < tensors.size(); i += length)
      lists.emplace_back(tensors.begin() + static_cast<std::ptrdiff_t>(i),
                         tensors.begin() + static_cast<std::ptrdiff_t>(i + length));
  }
  return lists;
}

double ElementsOf(const TensorList& list) {
  double sum = 0;
  for (const OpArgument* tensor : list) sum += Elements(tensor->shape);
  return sum;
}

double BytesOf(const OpCall& call, const TensorList& list) {
  double sum = 0;
  for (const OpArgument* tensor : list) sum += call.Bytes(*tensor);
  return sum;
}

}  // namespace

std::vector<std::string_view> PointwiseOpNames() {
  std::vector<std::string_view> names(std::begin(kComparisons), std::end(kComparisons));
  for (const Pointwise& op : kPointwise) names.push_back(op.name);
  return names;
}

std::vector<std::string_view> PointwiseOpNamesWithBackward() {
  std::vector<std::string_view> names;
  for (const Pointwise& op : kPointwise) {
    if (!std::isnan(op.backward)) names.push_back(op.name);
  }
  return names;
}

std::optional<RawCost> ForeachCost(const OpCall& call, OpPass pass) {
  constexpr std::string_view kPrefix = "foreach_";
  if (call.name().substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const std::string_view name = std::string_view(call.name()).substr(kPrefix.size());
  // How many lists there are, where labels do not tell; of others it may be one, with a number, or two.
  static constexpr std::string_view kOne[] = {"sqrt", "rsqrt", "neg",     "abs",        "exp",  "log",
                                              "sign", "tanh",  "sigmoid", "reciprocal", "norm", "zero"};
  const size_t count = IsAmong(name, kOne)                      ? 1
                       : name == "lerp" || name == "copy"       ? 2
                       : name == "addcmul" || name == "addcdiv" ? 3
                                                                : 0;
  const Pointwise* known = FindPointwise(name);
  RawCost cost;
  if (pass != OpPass::kForward) return cost;
  const std::vector<TensorList> lists = count > 0 ? ListsOf(call, {count}) : ListsOf(call, {});
  if (lists.empty()) return cost;
  const double n = ElementsOf(lists[0]);
  const double first = BytesOf(call, lists[0]);
  if (name == "norm") {
    const auto results = static_cast<double>(lists[0].size());
    cost.flops = 2 * n + kFunction * results;
    cost.bytes = first + results * call.ElementSize(*lists[0][0]);
  } else if (name == "zero") {
    cost.flops = 0;
    cost.bytes = first;
  } else if (name == "copy") {
    cost.flops = 0;
    cost.bytes = call.SumOfBytes();
  } else if (known != nullptr) {
    cost.flops = call.is_complex() ? kUnknownCost : n * known->forward;
    cost.bytes = call.SumOfBytes() + first;
  }
  return cost;
}

std::optional<RawCost> PointwiseCost(const OpCall& call, OpPass pass) {
  const Pointwise* known = FindPointwise(call.name());
  const bool compares = IsAmong(call.name(), kComparisons);
  if (known == nullptr && !compares) return std::nullopt;
  RawCost cost;
  Shape out;
  for (const OpArgument* tensor : call.tensors()) {
    const std::optional<Shape> together = Broadcast(out, tensor->shape);
    if (!together.has_value()) return cost;
    out = *together;
  }
  if (call.num_tensors() == 0) return cost;
  const double n = Elements(out);
  const double out_bytes = n * (compares ? 1 : call.CommonSize());
  double in_bytes = call.SumOfBytes();
  // A condition is bool where it is not told.
  const size_t condition = call.name() == "where" ? 0 : call.name() == "masked_fill" ? 1 : call.num_tensors();
  if (condition < call.num_tensors() && !call.tensor(condition).dtype.has_value())
    in_bytes += Elements(call.tensor(condition).shape) - call.Bytes(call.tensor(condition));
  if (compares) {
    cost.flops = n;
    cost.bytes = in_bytes + out_bytes;
    return cost;
  }
  constexpr Parameter kDegree{"p", 1};
  const double factor = (call.is_complex() ? ComplexFactor(known->family) : 1) *
                        (known->name == "mvlgamma" ? call.Number(kDegree, kUnknownCost) : 1);
  if (!IsBackward(call, pass)) {
    const bool tanh_form = known->name == "gelu" && call.Text({"approximate"}) == "tanh";
    cost.flops = n * factor * (tanh_form ? kFunction + 8 : known->forward);
    cost.bytes = in_bytes + out_bytes;
  } else {
    // By a number: dy is scaled, and x not needed.
    const bool scales = call.num_tensors() == 1 && !call.is_backward_op() && known->backward > 0 &&
                        (known->family == Family::kMultiplies || known->family == Family::kDivides);
    cost.flops = n * factor * (scales ? 1 : known->backward);
    if (scales) {
      cost.bytes = 2 * out_bytes;
    } else if (known->family == Family::kAdds) {
      cost.bytes = out_bytes + in_bytes;
    } else if (call.num_tensors() > 1 && !call.is_backward_op()) {
      cost.bytes = out_bytes + 2 * in_bytes;
    } else {
      cost.bytes = 3 * out_bytes;
    }
  }
  return cost;
}

std::optional<RawCost> ReductionCost(const OpCall& call, OpPass pass) {
  if (!call.IsOneOf({"sum",           "nansum",  "mean",        "nanmean",
                     "prod",          "max",     "min",         "amax",
                     "amin",          "argmax",  "argmin",      "any",
                     "all",           "norm",    "vector_norm", "linalg_vector_norm",
                     "var",           "std",     "var_mean",    "std_mean",
                     "cumsum",        "cumprod", "cummax",      "logsumexp",
                     "count_nonzero", "trace"})) {
    return std::nullopt;
  }
  RawCost cost;
  const OpArgument* x = call.Tensor({"input", 0});
  if (x == nullptr) return cost;
  // max and min of two tensors are not reductions.
  if (call.num_tensors() > 1 && call.IsOneOf({"max", "min"})) {
    cost.flops = Elements(x->shape);
    cost.bytes = call.SumOfBytes() + call.Bytes(*x);
    return cost;
  }
  const std::string& name = call.name();
  const double n = Elements(x->shape);
  double out = 1;
  const bool scans = name.substr(0, 3) == "cum";
  constexpr Parameter kDimensions{"dim", 1};
  constexpr Parameter kDimensionsOfNorm{"dim", 2};  // after its order
  const std::vector<double> dims =
      call.Numbers(name.find("norm") != std::string::npos ? kDimensionsOfNorm : kDimensions);
  if (scans) {
    out = n;
  } else if (call.tensors_only()) {
    out = kUnknownCost;
  } else if (!dims.empty()) {
    Shape kept = x->shape;
    for (const double dim : dims) {
      const double index = dim < 0 ? dim + Double(static_cast<int64_t>(kept.size())) : dim;
      if (!(index >= 0 && index < Double(static_cast<int64_t>(kept.size())))) return cost;
      kept[static_cast<size_t>(index)] = 1;
    }
    out = Elements(kept);
  }
  double element_size = call.ElementSize(*x);
  double out_size = element_size;
  if (call.IsOneOf({"argmax", "argmin", "count_nonzero"})) out_size = 8;
  if (call.IsOneOf({"any", "all"})) out_size = 1;
  if (call.IsOneOf({"max", "min"}) && !dims.empty()) out_size = element_size + 8;  // values and indices
  if (call.IsOneOf({"var_mean", "std_mean"})) out_size = 2 * element_size;
  if (IsBackward(call, pass)) {
    // The gradient is spread over x, and scaled.
    if (call.IsOneOf({"sum", "mean"})) {
      cost.flops = name == "mean" ? n : 0;
      cost.bytes = out * element_size + n * element_size;
    }
    return cost;
  }
  cost.flops = n;
  if (name == "mean" || name == "nanmean") cost.flops = n + out;
  if (name.find("norm") != std::string::npos) cost.flops = 2 * n + kFunction * out;
  if (name.substr(0, 3) == "var") cost.flops = 4 * n + out;
  if (name.substr(0, 3) == "std") cost.flops = 4 * n + (1 + kFunction) * out;
  if (name == "logsumexp") cost.flops = (kFunction + 3) * n + kFunction * out;
  if (call.is_complex()) cost.flops = name == "sum" ? 2 * n : kUnknownCost;
  cost.bytes = n * element_size + out * out_size;
  return cost;
}

std::optional<RawCost> SoftmaxCost(const OpCall& call, OpPass pass) {
  if (!call.IsOneOf({"softmax", "log_softmax", "softmin"})) return std::nullopt;
  RawCost cost;
  if (call.num_tensors() == 0) return cost;
  const OpArgument& x = call.tensor(0);
  const double n = Elements(x.shape);
  const bool logarithm = call.name() == "log_softmax";
  const bool backward = IsBackward(call, pass);
  cost.flops = n * (backward ? (logarithm ? kFunction + 3 : 4) : kFunction + 4);
  cost.bytes = (backward ? 3 : 2) * call.Bytes(x);
  return cost;
}

std::optional<RawCost> NormCost(const OpCall& call, OpPass pass) {
  std::string_view name = call.name();
  for (const std::string_view prefix : {"native_", "cudnn_", "miopen_", "fused_"}) {
    if (name.substr(0, prefix.size()) == prefix) name.remove_prefix(prefix.size());
  }
  const bool batch = name == "batch_norm";
  const bool rms = name.substr(0, 8) == "rms_norm";
  if (!batch && !rms && name.substr(0, 10) != "layer_norm" && name != "group_norm" &&
      name != "instance_norm") {
    return std::nullopt;
  }
  constexpr Parameter kNormalizedShape{"normalized_shape", 1};
  constexpr Parameter kTraining{"training", 5};
  constexpr Parameter kGroups{"num_groups", 1};
  constexpr Parameter kGroupsOfNative{"group", 6};
  constexpr int kWeightOfBatchNormBackward = 2;
  RawCost cost;
  if (call.num_tensors() == 0 || call.tensor(0).shape.empty()) return cost;
  const OpArgument& x = call.tensor(0);
  const double n = Elements(x.shape);
  // Backward ops have the gradient before, or after, a tensor of the same shape; then come statistics, but
  // for batch norm, which has the weight first.
  TensorList weights;
  for (const OpArgument* tensor : call.tensors()) {
    if (tensor->shape != x.shape) weights.push_back(tensor);
  }
  if (call.is_backward_op() && batch) {
    weights.resize(!weights.empty() && weights[0]->position == kWeightOfBatchNormBackward ? 1 : 0);
  } else if (call.is_backward_op()) {
    const std::ptrdiff_t statistics =
        std::min<std::ptrdiff_t>(rms ? 1 : 2, static_cast<std::ptrdiff_t>(weights.size()));
    weights.erase(weights.begin(), weights.begin() + statistics);
  }
  const bool affine = !weights.empty();
  const double normalized = affine ? Elements(weights.back()->shape) : 0;
  const std::vector<double> shape = call.Numbers(kNormalizedShape);
  double rows = 0;
  if (batch) {
    rows = x.shape.size() > 1 ? Double(x.shape[1]) : 1;
  } else if (name == "group_norm") {
    rows = Double(x.shape[0]) *
           call.Number(call.name() == "group_norm" ? kGroups : kGroupsOfNative, kUnknownCost);
  } else if (name == "instance_norm") {
    rows = x.shape.size() > 1 ? Double(x.shape[0]) * Double(x.shape[1]) : 1;
  } else if (!shape.empty()) {
    double size = 1;
    for (const double length : shape) size *= length;
    rows = size > 0 ? n / size : 0;
  } else {
    rows = affine && normalized > 0 ? n / normalized : n / std::max(1.0, Double(x.shape.back()));
  }
  const double statistics = (rms ? 4 : 8) * rows;
  const double e = call.ElementSize(x);
  const double weight_bytes = BytesOf(call, weights);
  if (IsBackward(call, pass)) {
    cost.flops = n * (rms || !affine ? 9 : 13);
    // The bias is not read; backward ops but for layer norm's do not name it.
    const bool one_gradient =
        rms || (weights.size() == 1 && !(call.is_backward_op() && name != "layer_norm"));
    cost.bytes = 3 * n * e + statistics;
    if (affine) cost.bytes += (one_gradient ? 2 : 3) * call.Bytes(*weights.back());
  } else if (batch && call.Number(kTraining, 1) == 0) {
    cost.flops = 4 * n;
    cost.bytes = 2 * n * e + weight_bytes;
  } else {
    cost.flops = n * (rms ? (affine ? 4 : 3) : affine ? 8 : 6);
    cost.bytes = 2 * n * e + weight_bytes + statistics;
  }
  return cost;
}

std::optional<RawCost> DropoutCost(const OpCall& call, OpPass pass) {
  if (!call.IsOneOf({"dropout", "native_dropout", "fused_dropout", "alpha_dropout", "feature_dropout"})) {
    return std::nullopt;
  }
  RawCost cost;
  if (call.num_tensors() == 0) return cost;
  const double n = Elements(call.tensor(0).shape);
  cost.flops = IsBackward(call, pass) ? n : 2 * n;
  cost.bytes = 2 * call.Bytes(call.tensor(0)) + n;
  return cost;
}

std::optional<RawCost> PoolingCost(const OpCall& call, OpPass pass) {
  const std::string& name = call.name();
  const size_t at = name.find("_pool");
  if (at == std::string::npos) return std::nullopt;
  const bool maximum = name.find("max_pool") != std::string::npos;
  const bool adaptive = name.find("adaptive") != std::string::npos;
  if (!maximum && name.find("avg_pool") == std::string::npos) return std::nullopt;
  RawCost cost;
  const bool backward_op = call.is_backward_op();
  // (input, kernel_size, stride, padding, dilation of max, ceil_mode); backward ops have the gradient first.
  constexpr Parameter kInput{"input", 0};
  constexpr Parameter kInputAfterGradient{"input", 1};
  constexpr Parameter kStride{"stride", 2};
  constexpr Parameter kPadding{"padding", 3};
  constexpr Parameter kDilation{"dilation", 4};
  constexpr Parameter kCeilMode{"ceil_mode", 4};
  constexpr Parameter kCeilModeAfterDilation{"ceil_mode", 5};
  const Parameter window_size{adaptive ? "output_size" : "kernel_size", backward_op ? 2 : 1};
  const OpArgument* x = call.Tensor(backward_op ? kInputAfterGradient : kInput);
  const size_t dimensions = at + 5 < name.size() ? static_cast<size_t>(name[at + 5] - '0') : 0;
  if (x == nullptr || dimensions < 1 || dimensions > 3 || x->shape.size() < dimensions) return cost;
  Shape out = x->shape;
  double window = 1;
  const size_t first = out.size() - dimensions;
  if (backward_op) out = call.tensor(0).shape;
  if (!backward_op && call.tensors_only()) return cost;
  const auto number = [&](const std::vector<double>& numbers, size_t i, double otherwise) {
    return numbers.empty() ? otherwise : numbers[std::min(i, numbers.size() - 1)];
  };
  const std::vector<double> sizes = call.Numbers(window_size);
  const std::vector<double> strides = call.Numbers(kStride);
  const std::vector<double> paddings = call.Numbers(kPadding);
  const std::vector<double> dilations = maximum ? call.Numbers(kDilation) : std::vector<double>();
  const bool round_up = call.Number(maximum ? kCeilModeAfterDilation : kCeilMode, 0) != 0;
  for (size_t i = 0; i < dimensions; ++i) {
    const double size = Double(x->shape[first + i]);
    const double asked = number(sizes, i, kUnknownCost);
    const double stride = number(strides, i, asked);
    const double padding = number(paddings, i, 0);
    double length = asked;
    if (!adaptive) {
      window *= asked;
      const double steps = (size + 2 * padding - number(dilations, i, 1) * (asked - 1) - 1) / stride;
      length = (round_up ? std::ceil(steps) : std::floor(steps)) + 1;
      // A window that would begin in the padding on the right is left out.
      if (round_up && (length - 1) * stride >= size + padding) length -= 1;
    }
    if (backward_op) continue;
    if (!(length >= 0 && length < 1e15)) return cost;
    out[first + i] = static_cast<int64_t>(length);
  }
  const double n = Elements(x->shape);
  const double results = Elements(out);
  const double e = call.ElementSize(*x);
  const double indices = name.find("with_indices") != std::string::npos ? 8 * results : 0;
  const double touched = adaptive ? n : results * window;
  if (IsBackward(call, pass)) {
    cost.flops = maximum ? results : touched;
    cost.bytes = (results + n) * e + indices;
  } else {
    cost.flops = touched + (maximum ? 0 : results);
    cost.bytes = (n + results) * e + indices;
  }
  return cost;
}

std::vector<std::string_view> LossOpNames() {
  std::vector<std::string_view> names;
  for (const Loss& loss : kLosses) names.push_back(loss.name);
  return names;
}

std::optional<RawCost> LossCost(const OpCall& call, OpPass pass) {
  const auto loss = std::find_if(std::begin(kLosses), std::end(kLosses),
                                 [&](const Loss& known) { return known.name == call.name(); });
  if (loss == std::end(kLosses)) return std::nullopt;
  RawCost cost;
  const OpArgument* x = call.is_backward_op() ? call.Largest() : call.Tensor({"input", 0});
  if (x == nullptr || x->shape.empty()) return cost;
  const double n = Elements(x->shape);
  const double e = call.ElementSize(*x);
  const bool by_class = loss->name.find("nll") == 0 || loss->name.find("cross_entropy") == 0;
  // A gradient that is one number has no sizes, so that places do not tell; the target follows x.
  const auto after_x = std::find(call.tensors().begin(), call.tensors().end(), x) + 1;
  const OpArgument* target = call.Tensor({"target"});
  if (target == nullptr && after_x != call.tensors().end()) target = *after_x;
  const bool class_indices = by_class && target != nullptr && target->shape.size() < x->shape.size();
  // Classes are the second dimension, or the only one.
  const double rows = x->shape.size() > 1 && x->shape[1] > 0 ? n / Double(x->shape[1]) : 1;
  const double target_bytes = target == nullptr ? kUnknownCost
                              : class_indices   ? call.IndexBytes(*target)
                                                : call.Bytes(*target);
  const bool picks = loss->name.find("nll") == 0;
  const bool backward = IsBackward(call, pass);
  // ATen's ops sum single losses by another op.
  const bool reduces = call.Text({"reduction"}) != "none" && call.Number({"reduction"}, 1) != 0 &&
                       (by_class || backward || call.module() != "aten");
  cost.flops = n * (backward ? loss->backward : loss->forward) + (by_class ? rows : 0);
  if (!reduces && !by_class && !backward) cost.flops -= n;
  const double out = reduces ? 1 : by_class ? rows : n;
  if (backward) {
    cost.bytes = (picks ? 0 : n * e) + target_bytes + n * e + out * e;
  } else {
    cost.bytes = (picks ? rows : n) * e + target_bytes + out * e;
  }
  return cost;
}

std::optional<RawCost> OptimizerCost(const OpCall& call, OpPass pass) {
  std::string_view name = call.name();
  for (const std::string_view prefix : {"fused_", "foreach_"}) {
    if (name.substr(0, prefix.size()) == prefix) name.remove_prefix(prefix.size());
  }
  const bool sgd = name == "sgd";
  const bool adamw = name == "adamw";
  if (!sgd && !adamw && name != "adam") return std::nullopt;
  RawCost cost;
  if (pass != OpPass::kForward || call.num_tensors() == 0) return cost;
  const std::vector<TensorList> lists = sgd ? ListsOf(call, {2, 3}) : ListsOf(call, {4, 5});
  if (lists.empty()) return cost;
  const double n = ElementsOf(lists[0]);
  const double parameters = BytesOf(call, lists[0]);
  const double gradients = lists.size() > 1 ? BytesOf(call, lists[1]) : parameters;
  const double momentum = call.Number({"momentum"}, lists.size() > 2 ? 1 : 0) != 0 ? 1 : 0;
  double states = lists.size() > 2 ? 0 : parameters * (sgd ? momentum : 2);
  const bool amsgrad = !sgd && lists.size() > 4 && ElementsOf(lists[4]) == n;
  const size_t num_lists = sgd ? 3 : amsgrad ? 5 : 4;  // what follows are steps
  for (size_t i = 2; i < std::min(lists.size(), num_lists); ++i) states += BytesOf(call, lists[i]);
  const bool decays = call.Number({"weight_decay"}, 0) != 0;
  if (sgd) {
    const double nesterov = call.Number({"nesterov"}, 0) != 0 ? 2 : 0;
    cost.flops = n * (2 + (decays ? 2 : 0) + momentum * (2 + nesterov));
  } else {
    cost.flops = n * (13 + kFunction + (amsgrad ? 1 : 0) + (adamw ? 1 : decays ? 2 : 0));
  }
  // PyTorch's labels do not tell whether weights decay, as they always do with AdamW.
  if (call.tensors_only() && !adamw) cost.flops = kUnknownCost;
  cost.bytes = 2 * parameters + gradients + 2 * states;
  return cost;
}

}  // namespace ott
