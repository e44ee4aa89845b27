// Gradients by finite differences: for tests, and for functions of few variables.

#ifndef OTT_CORE_DUMPER_FINITE_DIFFERENCES_H_
#define OTT_CORE_DUMPER_FINITE_DIFFERENCES_H_

#include <functional>

#include "ott/core/dumper/tensor_dumper.h"

namespace ott {

// Returns a provider that changes one element at a time by ±step, calls function, and puts the element back.
// Takes two calls an element, and an error of about step^2 beside that of rounding.
//
// function: reads the tensors' own memory, and always returns the same for the same values.
// The provider returns INVALID_ARGUMENT for a tensor that is not float32 or float64 in host memory. Tensors
// that the function does not depend on get zeros. REQUIRES: the memory of the tensors may be written.
GradientProvider FiniteDifferences(std::function<double()> function, double step = 1e-3);

}  // namespace ott

#endif  // OTT_CORE_DUMPER_FINITE_DIFFERENCES_H_
