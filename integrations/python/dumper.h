// The tensor dumper of the process, comparisons and dumps on disk for Python.

#ifndef OTT_INTEGRATIONS_PYTHON_DUMPER_H_
#define OTT_INTEGRATIONS_PYTHON_DUMPER_H_

#include <pybind11/pybind11.h>

namespace ott::python {

void DefineDumper(pybind11::module_& module);

}  // namespace ott::python

#endif  // OTT_INTEGRATIONS_PYTHON_DUMPER_H_
