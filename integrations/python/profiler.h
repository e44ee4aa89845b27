// The profiler of the process for Python.

#ifndef OTT_INTEGRATIONS_PYTHON_PROFILER_H_
#define OTT_INTEGRATIONS_PYTHON_PROFILER_H_

#include <pybind11/pybind11.h>

namespace ott::python {

void DefineProfiler(pybind11::module_& module);

}  // namespace ott::python

#endif  // OTT_INTEGRATIONS_PYTHON_PROFILER_H_
