// Python's objects as ott's, and back.

#ifndef OTT_INTEGRATIONS_PYTHON_CONVERT_H_
#define OTT_INTEGRATIONS_PYTHON_CONVERT_H_

#include <pybind11/pybind11.h>

#include <string>

#include "integrations/python/status.h"
#include "ott/core/tensor/tensor.h"
#include "ott/core/tensor/value.h"

namespace ott::python {

// Returns a str as UTF-8. Throws TypeError for another type, ValueError for surrogates, naming what it is.
std::string Text(pybind11::handle object, const char* what);

// None, bool, int, float, str, list, tuple, dict, and tensors: what optim_test_tools/_tensors.py exports,
// whose memory is referred to and not copied. Throws TypeError, ValueError or OverflowError that name the
// place in the tree below `path`.
Value FromPython(pybind11::handle object, const std::string& path);

// Tensors as _ott.Tensor, which share the memory.
pybind11::object ToPython(const Value& value);

// Returns the object that FromPython() was given for this tensor; None for others.
pybind11::object SourceOf(const Tensor& tensor);

// Defines _ott.Tensor.
void DefineTensor(pybind11::module_& module);

}  // namespace ott::python

#endif  // OTT_INTEGRATIONS_PYTHON_CONVERT_H_
