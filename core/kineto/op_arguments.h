// Reads what the arguments of an event in PyTorch's traces say.

#ifndef OTT_CORE_KINETO_OP_ARGUMENTS_H_
#define OTT_CORE_KINETO_OP_ARGUMENTS_H_

#include <cstdint>
#include <optional>
#include <string>
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

// Returns "float", "c10::BFloat16", "long int"; also "Float" and "BFloat16", as collectives have it.
std::optional<DType> ToDType(std::string_view name);

// Three of them, as "[17888, 1, 1]" of a kernel's grid. False for less.
bool ParseSizes(std::string_view list, int64_t* sizes);

// Returns the number of a collective, which is the second of "Concrete Inputs" of "record_param_comms"; -1
// without.
int64_t SequenceNumberIn(std::string_view inputs);

// Without the white space between values.
std::string Compact(std::string_view json);

}  // namespace ott::kineto

#endif  // OTT_CORE_KINETO_OP_ARGUMENTS_H_
