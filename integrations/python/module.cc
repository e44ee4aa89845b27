// The extension module optim_test_tools._ott, which the modules in optim_test_tools/ make a Python interface
// of.

#include <pybind11/pybind11.h>

#include "integrations/python/convert.h"
#include "integrations/python/dumper.h"
#include "integrations/python/operations.h"
#include "integrations/python/profiler.h"
#include "integrations/python/run.h"
#include "integrations/python/stopwatch.h"
#include "ott/core/base/version.h"

PYBIND11_MODULE(_ott, module) {
  module.doc() = "The C++ core of the package optim_test_tools; not to be used directly.";
  module.attr("__version__") = ott::kVersion;
  ott::python::DefineTensor(module);
  ott::python::DefineStopwatch(module);
  ott::python::DefineDumper(module);
  ott::python::DefineProfiler(module);
  ott::python::DefineRun(module);
  ott::python::DefineOperations(module);
}
