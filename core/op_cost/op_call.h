// Access to what an op was called with, for the formulas of its cost.

#ifndef OTT_CORE_OP_COST_OP_CALL_H_
#define OTT_CORE_OP_COST_OP_CALL_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ott/core/op_cost/op_description.h"

namespace ott {

inline constexpr double kUnknownCost = std::numeric_limits<double>::quiet_NaN();

// The result of a formula. NaN, which sums carry on, is what is not known.
struct RawCost {
  double flops = kUnknownCost;
  double bytes = kUnknownCost;
  double message_bytes = kUnknownCost;
  double bus_bytes = kUnknownCost;
  std::string params;  // "": the shapes of the tensors
  std::vector<int64_t> matrix_sizes;
};

// Returns the row of a table with this name; null if there is none.
template <typename Row, size_t kRows>
const Row* FindRow(const Row (&table)[kRows], std::string_view name) {
  for (const Row& row : table) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

using Shape = std::vector<int64_t>;

double Elements(const Shape& shape);

inline double Double(int64_t value) { return static_cast<double>(value); }

// Returns the shape of an elementwise result, by NumPy's rules; absent if the shapes do not go together.
std::optional<Shape> Broadcast(const Shape& a, const Shape& b);

// Returns the dtype of PyTorch's name: "torch.float16", "float16", "half". Absent for another.
std::optional<DType> TypeOfTorchName(std::string_view name);

// The place of an argument: its name, or else its position. Of a number or a text this is its position in the
// call, of a tensor that among the tensors.
struct Parameter {
  std::string_view name;
  int position = kByNameOnly;

  static constexpr int kByNameOnly = -1;
};

// The tensors, numbers and the name of a call.
class OpCall {
 public:
  // dtype: of tensors whose own is not told.
  OpCall(const OpDescription& op, std::optional<DType> dtype);

  // Returns the name in lower case, without overload and underscores around it, and without "_backward":
  // "addmm".
  const std::string& name() const { return name_; }
  const std::string& module() const { return op_.module; }
  // Returns true if the name said "_backward": arguments are those of the backward op, its gradient among
  // them.
  bool is_backward_op() const { return is_backward_op_; }
  bool in_place() const { return in_place_; }
  bool tensors_only() const { return op_.tensors_only; }
  bool IsOneOf(std::initializer_list<std::string_view> names) const;

  size_t num_tensors() const { return tensors_.size(); }
  // REQUIRES: index < num_tensors()
  const OpArgument& tensor(size_t index) const { return *tensors_[index]; }
  const std::vector<const OpArgument*>& tensors() const { return tensors_; }
  // Finds it by name; else the one at its place, unless its name is that of another argument; else nullptr.
  const OpArgument* Tensor(Parameter parameter) const;
  // Returns the one with most elements; nullptr without tensors.
  const OpArgument* Largest() const;

  // Returns them by name, or else by the place of an argument without a name; empty if there is none.
  std::vector<double> Numbers(Parameter parameter) const;
  double Number(Parameter parameter, double otherwise) const;
  std::string Text(Parameter parameter) const;
  // Returns the dtype that is an argument: its name, as "torch.float16", or the number of PyTorch's
  // at::ScalarType.
  std::optional<DType> Type(Parameter parameter) const;
  // Returns the numbers of all arguments without a name, in order.
  std::vector<double> NumbersWithoutName() const;

  // Returns the dtype of tensors whose own is not told.
  std::optional<DType> default_type() const { return dtype_; }
  std::optional<DType> TypeOf(const OpArgument& tensor) const;
  // Bytes of one element; NaN if the type is not known.
  double ElementSize(const OpArgument& tensor) const;
  double Bytes(const OpArgument& tensor) const { return Elements(tensor.shape) * ElementSize(tensor); }
  double SumOfBytes() const;
  // Returns the bytes of indices, which are int64 where it is not told.
  double IndexBytes(const OpArgument& tensor) const;
  // Returns the type all tensors are computed in: the largest floating one, else the largest.
  std::optional<DType> CommonType() const;
  double CommonSize() const;
  bool is_complex() const;

 private:
  // Finds a number or a text.
  const OpArgument* Find(Parameter parameter) const;

  const OpDescription& op_;
  const std::optional<DType> dtype_;
  std::string name_;
  bool is_backward_op_ = false;
  bool in_place_ = false;
  std::vector<const OpArgument*> tensors_;
};

inline bool IsBackward(const OpCall& call, OpPass pass) {
  return pass != OpPass::kForward || call.is_backward_op();
}

}  // namespace ott

#endif  // OTT_CORE_OP_COST_OP_CALL_H_
