#include "ott/core/op_cost/elementwise_cost.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "ott/core/op_cost/tensor_lists.h"

namespace ott {
namespace {

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
    {"binary_cross_entropy", 2 * kTranscendentalFlops + 5, 4},
    {"binary_cross_entropy_with_logits", 2 * kTranscendentalFlops + 6, kTranscendentalFlops + 4},
    {"kl_div", kTranscendentalFlops + 3, 1},
    {"cross_entropy", kTranscendentalFlops + 4, kTranscendentalFlops + 2},
    {"cross_entropy_loss", kTranscendentalFlops + 4, kTranscendentalFlops + 2},
    {"nll_loss", 0, 0},
    {"nll_loss_forward", 0, 0},
    {"nll_loss2d", 0, 0},
    {"nll_loss2d_forward", 0, 0},
};

}  // namespace

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
  if (name.find("norm") != std::string::npos) cost.flops = 2 * n + kTranscendentalFlops * out;
  if (name.substr(0, 3) == "var") cost.flops = 4 * n + out;
  if (name.substr(0, 3) == "std") cost.flops = 4 * n + (1 + kTranscendentalFlops) * out;
  if (name == "logsumexp") cost.flops = (kTranscendentalFlops + 3) * n + kTranscendentalFlops * out;
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
  cost.flops = n * (backward ? (logarithm ? kTranscendentalFlops + 3 : 4) : kTranscendentalFlops + 4);
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
  const Parameter groups_of_native{"group", call.is_backward_op() ? 8 : 6};
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
           call.Number(call.name() == "group_norm" ? kGroups : groups_of_native, kUnknownCost);
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
  const auto dimensions = static_cast<size_t>(name[name.find("_pool") + 5] - '0');  // of "max_pool2d"
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
      if ((length - 1) * stride >= size + padding) length -= 1;
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
  const Loss* const loss = FindRow(kLosses, call.name());
  if (loss == nullptr) return std::nullopt;
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
  const bool amsgrad = lists.size() > 4 && ElementsOf(lists[4]) == n;
  const size_t num_lists = sgd ? 3 : amsgrad ? 5 : 4;  // what follows are steps
  for (size_t i = 2; i < std::min(lists.size(), num_lists); ++i) states += BytesOf(call, lists[i]);
  const bool decays = call.Number({"weight_decay"}, 0) != 0;
  if (sgd) {
    const double nesterov = call.Number({"nesterov"}, 0) != 0 ? 2 : 0;
    cost.flops = n * (2 + (decays ? 2 : 0) + momentum * (2 + nesterov));
  } else {
    cost.flops = n * (13 + kTranscendentalFlops + (amsgrad ? 1 : 0) + (adamw ? 1 : decays ? 2 : 0));
  }
  // PyTorch's labels do not tell whether weights decay, as they always do with AdamW.
  if (call.tensors_only() && !adamw) cost.flops = kUnknownCost;
  cost.bytes = 2 * parameters + gradients + 2 * states;
  return cost;
}

}  // namespace ott
