#include "ott/core/op_cost/op_call.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace ott {
namespace {

bool IsComplex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

}  // namespace

double Elements(const Shape& shape) {
  double elements = 1;
  for (const int64_t size : shape) elements *= static_cast<double>(size);
  return elements;
}

std::optional<Shape> Broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < result.size(); ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

OpCall::OpCall(const OpDescription& op, std::optional<DType> dtype) : op_(op), dtype_(dtype) {
  // PyProf has it so for cells: mod LSTMCell, op forward.
  std::string_view name = op.op == "forward" ? op.module : op.op;
  name = name.substr(0, name.find_first_of(". "));  // "add.Tensor", "send 0->1"
  while (!name.empty() && name.front() == '_') name.remove_prefix(1);
  in_place_ = !name.empty() && name.back() == '_' && op.op.front() != '_';
  while (!name.empty() && name.back() == '_') name.remove_suffix(1);
  for (const std::string_view suffix : {"_data", "_backward"}) {
    if (name.size() <= suffix.size() || name.substr(name.size() - suffix.size()) != suffix) continue;
    if (suffix == "_data" && name.find("_backward") == std::string_view::npos) continue;
    is_backward_op_ = suffix == "_backward";
    name.remove_suffix(suffix.size());
  }
  std::transform(name.begin(), name.end(), std::back_inserter(name_),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const OpArgument& argument : op.arguments) {
    if (argument.is_tensor) tensors_.push_back(&argument);
  }
}

bool OpCall::IsOneOf(std::initializer_list<std::string_view> names) const {
  return std::find(names.begin(), names.end(), name_) != names.end();
}

const OpArgument* OpCall::Tensor(std::string_view name, size_t index) const {
  static constexpr std::string_view kNames[] = {"input", "weight", "bias",   "query",  "key",
                                                "value", "target", "output", "indices"};
  for (const OpArgument* tensor : tensors_) {
    if (tensor->name == name) return tensor;
  }
  if (index >= tensors_.size()) return nullptr;
  const bool is_another =
      std::find(std::begin(kNames), std::end(kNames), tensors_[index]->name) != std::end(kNames);
  return is_another ? nullptr : tensors_[index];
}

const OpArgument* OpCall::Largest() const {
  const OpArgument* largest = nullptr;
  for (const OpArgument* tensor : tensors_) {
    if (largest == nullptr || Elements(tensor->shape) > Elements(largest->shape)) largest = tensor;
  }
  return largest;
}

std::vector<double> OpCall::Numbers(std::string_view name, int position) const {
  for (const OpArgument& argument : op_.arguments) {
    if (!argument.is_tensor && argument.name == name) return argument.numbers;
  }
  for (const OpArgument& argument : op_.arguments) {
    if (!argument.is_tensor && argument.name.empty() && argument.position == position)
      return argument.numbers;
  }
  return {};
}

double OpCall::Number(std::string_view name, int position, double otherwise) const {
  const std::vector<double> numbers = Numbers(name, position);
  return numbers.empty() ? otherwise : numbers[0];
}

std::string OpCall::Text(std::string_view name) const {
  for (const OpArgument& argument : op_.arguments) {
    if (!argument.is_tensor && argument.name == name) return argument.text;
  }
  return "";
}

std::optional<DType> OpCall::TypeOf(const OpArgument& tensor) const {
  return tensor.dtype.has_value() ? tensor.dtype : dtype_;
}

double OpCall::ElementSize(const OpArgument& tensor) const {
  const std::optional<DType> dtype = TypeOf(tensor);
  return dtype.has_value() ? static_cast<double>(SizeOf(*dtype)) : kUnknownCost;
}

double OpCall::SumOfBytes() const {
  double sum = 0;
  for (const OpArgument* tensor : tensors_) sum += Bytes(*tensor);
  return sum;
}

double OpCall::IndexBytes(const OpArgument& tensor) const {
  return Elements(tensor.shape) * static_cast<double>(SizeOf(tensor.dtype.value_or(DType::kInt64)));
}

std::optional<DType> OpCall::CommonType() const {
  std::optional<DType> common;
  // By PyTorch's type promotion a tensor of no dimension adapts to the others.
  const bool has_dimensions = std::any_of(tensors_.begin(), tensors_.end(),
                                          [](const OpArgument* tensor) { return !tensor->shape.empty(); });
  for (const OpArgument* tensor : tensors_) {
    if (has_dimensions && tensor->shape.empty()) continue;
    const std::optional<DType> dtype = TypeOf(*tensor);
    if (!dtype.has_value()) return std::nullopt;
    const auto rank = [](DType type) {
      return SizeOf(type) + (IsComplex(type)         ? 200
                             : IsFloatingPoint(type) ? 100
                             : type == DType::kBool  ? -1
                                                     : 0);
    };
    if (!common.has_value() || rank(*dtype) > rank(*common)) common = dtype;
  }
  return common;
}

double OpCall::CommonSize() const {
  const std::optional<DType> dtype = CommonType();
  return dtype.has_value() ? static_cast<double>(SizeOf(*dtype)) : kUnknownCost;
}

bool OpCall::is_complex() const {
  return std::any_of(tensors_.begin(), tensors_.end(), [&](const OpArgument* tensor) {
    const std::optional<DType> dtype = TypeOf(*tensor);
    return dtype.has_value() && IsComplex(*dtype);
  });
}

}  // namespace ott
