// What PyTorch's traces tell of an op's arguments.

#ifndef OTT_TOOLS_KINETO_OP_ARGUMENTS_H_
#define OTT_TOOLS_KINETO_OP_ARGUMENTS_H_

#include <optional>
#include <string_view>
#include <vector>

#include "ott/core/op_cost/op_description.h"

namespace ott::kineto {

// From the JSON lists "Input Dims", "Input type" and "Concrete Inputs", which have an element an argument;
// empty ones are not told.
std::vector<OpArgument> ParseArguments(std::string_view shapes, std::string_view types,
                                       std::string_view inputs);

// An attribute that is a number; nothing for a text that is none.
void AddNumber(std::string_view name, std::string_view number, std::vector<OpArgument>* arguments);

// "float", "c10::BFloat16", "long int"; also "Float" and "BFloat16", as collectives have it.
std::optional<DType> ToDType(std::string_view name);

}  // namespace ott::kineto

#endif  // OTT_TOOLS_KINETO_OP_ARGUMENTS_H_
