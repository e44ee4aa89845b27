// Operations and collectives that Python observes, told to the flight recorder and the op log.

#ifndef OTT_INTEGRATIONS_PYTHON_OPERATIONS_H_
#define OTT_INTEGRATIONS_PYTHON_OPERATIONS_H_

#include <pybind11/pybind11.h>

namespace ott::python {

void DefineOperations(pybind11::module_& module);

}  // namespace ott::python

#endif  // OTT_INTEGRATIONS_PYTHON_OPERATIONS_H_
