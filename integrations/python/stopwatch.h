// The stopwatch and NVTX ranges of the process for Python.

#ifndef OTT_INTEGRATIONS_PYTHON_STOPWATCH_H_
#define OTT_INTEGRATIONS_PYTHON_STOPWATCH_H_

#include <pybind11/pybind11.h>

#include "ott/core/base/misuse_capture.h"

namespace ott::python {

// Throws ott.MisuseError if a rule was broken and that was asked for, and else prints it.
void Check(const internal::MisuseCapture& capture);

// Python's scopes that are open, on all threads. What switches the stopwatch off asks first. REQUIRES: the
// GIL
int NumOpenScopes();

// From now on the GIL is released at the ends of intervals and ranges, as these may wait for a device.
// REQUIRES: the GIL
void LetOthersRunWhileMeasuring();

void DefineStopwatch(pybind11::module_& module);

}  // namespace ott::python

#endif  // OTT_INTEGRATIONS_PYTHON_STOPWATCH_H_
