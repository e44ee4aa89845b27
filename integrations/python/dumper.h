// The tensor dumper of the process, comparisons and dumps on disk for Python.

#ifndef OTT_INTEGRATIONS_PYTHON_DUMPER_H_
#define OTT_INTEGRATIONS_PYTHON_DUMPER_H_

#include <pybind11/pybind11.h>

namespace ott::python {

// To be called before the dumper is enabled: it works in this process from now on, unless another one enabled
// it first that forked this one.
void UseDumper();

void DefineDumper(pybind11::module_& module);

}  // namespace ott::python

#endif  // OTT_INTEGRATIONS_PYTHON_DUMPER_H_
