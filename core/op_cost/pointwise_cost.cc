// The ops of elementwise_cost.h that do the same with each element, also with those of lists of tensors.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>

#include "ott/core/op_cost/elementwise_cost.h"
#include "ott/core/op_cost/tensor_lists.h"

namespace ott {
namespace {

constexpr double kFunction = kTranscendentalFlops;

// The arithmetic that an op does with its arguments, if a formula depends on it.
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
  // These have one list where labels do not tell; others may have one, with a number, or two.
  static constexpr std::string_view kOne[] = {"sqrt", "rsqrt", "neg",     "abs",        "exp",  "log",
                                              "sign", "tanh",  "sigmoid", "reciprocal", "norm", "zero"};
  const size_t count = IsAmong(name, kOne)                      ? 1
                       : name == "lerp" || name == "copy"       ? 2
                       : name == "addcmul" || name == "addcdiv" ? 3
                                                                : 0;
  const Pointwise* known = FindRow(kPointwise, name);
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
  const Pointwise* known = FindRow(kPointwise, call.name());
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
    const bool tanh_form = call.Text({"approximate"}) == "tanh";  // of gelu
    cost.flops = n * factor * (tanh_form ? kFunction + 8 : known->forward);
    cost.bytes = in_bytes + out_bytes;
  } else {
    // By a number: dy is scaled, and x not needed.
    const bool scales = call.num_tensors() == 1 &&
                        (known->family == Family::kMultiplies || known->family == Family::kDivides);
    cost.flops = n * factor * (scales ? 1 : known->backward);
    if (scales) {
      cost.bytes = 2 * out_bytes;
    } else if (known->family == Family::kAdds) {
      cost.bytes = out_bytes + in_bytes;
    } else if (!call.is_backward_op()) {
      cost.bytes = out_bytes + 2 * in_bytes;
    } else {
      cost.bytes = 3 * out_bytes;
    }
  }
  return cost;
}

}  // namespace ott
