// Describes ops in few words.

#ifndef OTT_CORE_OP_COST_OP_COST_FOR_TEST_H_
#define OTT_CORE_OP_COST_OP_COST_FOR_TEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ott/core/op_cost/op_cost.h"

namespace ott::op_cost_for_test {

inline constexpr DType kF32 = DType::kFloat32;
inline constexpr DType kF16 = DType::kFloat16;
inline constexpr DType kBF16 = DType::kBFloat16;
inline constexpr DType kI64 = DType::kInt64;
inline constexpr OpPass kForward = OpPass::kForward;
inline constexpr OpPass kBackward = OpPass::kBackward;

using Shape = std::vector<int64_t>;

inline OpArgument T(Shape shape, std::optional<DType> dtype = kF32, std::string name = "") {
  OpArgument argument;
  argument.is_tensor = true;
  argument.shape = std::move(shape);
  argument.dtype = dtype;
  argument.name = std::move(name);
  return argument;
}

inline OpArgument N(std::string name, std::vector<double> numbers) {
  OpArgument argument;
  argument.name = std::move(name);
  argument.numbers = std::move(numbers);
  return argument;
}

inline OpArgument Text(std::string name, std::string text) {
  OpArgument argument;
  argument.name = std::move(name);
  argument.text = std::move(text);
  return argument;
}

inline OpDescription Op(const std::string& op, std::vector<OpArgument> arguments) {
  OpDescription description;
  description.op = op;
  int position = 0;
  for (OpArgument& argument : arguments) argument.position = position++;
  description.arguments = std::move(arguments);
  return description;
}

}  // namespace ott::op_cost_for_test

#endif  // OTT_CORE_OP_COST_OP_COST_FOR_TEST_H_
