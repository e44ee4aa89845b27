#include "ott/core/op_cost/op_call.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace ott {
namespace {

// c10/core/ScalarType.h.
std::optional<DType> TypeOfScalarType(double number) {
  struct ScalarType {
    int number;
    DType dtype;
  };
  static constexpr ScalarType kScalarTypes[] = {
      {0, DType::kUInt8},       {1, DType::kInt8},        {2, DType::kInt16},   {3, DType::kInt32},
      {4, DType::kInt64},       {5, DType::kFloat16},     {6, DType::kFloat32}, {7, DType::kFloat64},
      {9, DType::kComplex64},   {10, DType::kComplex128}, {11, DType::kBool},   {15, DType::kBFloat16},
      {23, DType::kFloat8E5M2}, {24, DType::kFloat8E4M3}, {27, DType::kUInt16}, {28, DType::kUInt32},
      {29, DType::kUInt64},
  };
  for (const ScalarType& type : kScalarTypes) {
    if (type.number == number) return type.dtype;
  }
  return std::nullopt;
}

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

std::optional<DType> TypeOfTorchName(std::string_view name) {
  struct OtherName {
    std::string_view name;
    DType dtype;
  };
  static constexpr OtherName kOtherNames[] = {
      {"half", DType::kFloat16}, {"float", DType::kFloat32}, {"double", DType::kFloat64},
      {"int", DType::kInt32},    {"long", DType::kInt64},    {"short", DType::kInt16},
  };
  constexpr std::string_view kPrefix = "torch.";
  if (name.substr(0, kPrefix.size()) == kPrefix) name.remove_prefix(kPrefix.size());
  for (const OtherName& other : kOtherNames) {
    if (other.name == name) return other.dtype;
  }
  const auto dtype = ParseDType(name);
  return dtype.ok() ? std::optional<DType>(*dtype) : std::nullopt;
}

OpCall::OpCall(const OpDescription& op, std::optional<DType> dtype) : op_(op), dtype_(dtype) {
  // PyProf has it so for cells: mod LSTMCell, op forward.
  std::string_view name = op.op == "forward" ? op.module : op.op;
  name = name.substr(0, name.find_first_of(". "));  // "add.Tensor", "send 0->1"
  while (!name.empty() && name.front() == '_') name.remove_prefix(1);
  // __iadd__ is written so on both sides, _index_put_impl_ is in place.
  in_place_ = !name.empty() && name.back() == '_' && op.op.substr(0, 2) != "__";
  while (!name.empty() && name.back() == '_') name.remove_suffix(1);
  for (const std::string_view suffix : {"_data", "_backward"}) {
    if (name.size() <= suffix.size() || name.substr(name.size() - suffix.size()) != suffix) continue;
    if (name.find("_backward") == std::string_view::npos) continue;
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

const OpArgument* OpCall::Tensor(Parameter parameter) const {
  static constexpr std::string_view kNames[] = {"input", "weight", "bias",   "query",  "key",
                                                "value", "target", "output", "indices"};
  for (const OpArgument* tensor : tensors_) {
    if (tensor->name == parameter.name) return tensor;
  }
  const auto index = static_cast<size_t>(parameter.position);
  if (index >= tensors_.size()) return nullptr;  // such as kByNameOnly
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

const OpArgument* OpCall::Find(Parameter parameter) const {
  for (const OpArgument& argument : op_.arguments) {
    if (!argument.is_tensor && argument.name == parameter.name) return &argument;
  }
  if (parameter.position == Parameter::kByNameOnly) return nullptr;
  for (const OpArgument& argument : op_.arguments) {
    if (!argument.is_tensor && argument.name.empty() && argument.position == parameter.position)
      return &argument;
  }
  return nullptr;
}

std::vector<double> OpCall::Numbers(Parameter parameter) const {
  const OpArgument* const found = Find(parameter);
  return found == nullptr ? std::vector<double>() : found->numbers;
}

double OpCall::Number(Parameter parameter, double otherwise) const {
  const std::vector<double> numbers = Numbers(parameter);
  return numbers.empty() ? otherwise : numbers[0];
}

std::string OpCall::Text(Parameter parameter) const {
  const OpArgument* const found = Find(parameter);
  return found == nullptr ? "" : found->text;
}

std::optional<DType> OpCall::Type(Parameter parameter) const {
  const OpArgument* const found = Find(parameter);
  if (found == nullptr) return std::nullopt;
  if (found->numbers.size() == 1) return TypeOfScalarType(found->numbers[0]);
  return TypeOfTorchName(found->text);
}

std::vector<double> OpCall::NumbersWithoutName() const {
  std::vector<double> numbers;
  for (const OpArgument& argument : op_.arguments) {
    if (!argument.name.empty()) continue;
    numbers.insert(numbers.end(), argument.numbers.begin(), argument.numbers.end());
  }
  return numbers;
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
      return SizeOf(type) + (IsComplex(type) ? 200 : IsFloatingPoint(type) ? 100 : 0);
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
