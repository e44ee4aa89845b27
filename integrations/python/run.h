// Ranks and training runs for Python.

#ifndef OTT_INTEGRATIONS_PYTHON_RUN_H_
#define OTT_INTEGRATIONS_PYTHON_RUN_H_

#include <pybind11/pybind11.h>

namespace ott::python {

void DefineRun(pybind11::module_& module);

}  // namespace ott::python

#endif  // OTT_INTEGRATIONS_PYTHON_RUN_H_
