#include "integrations/python/status.h"

#include <unistd.h>

namespace ott::python {

namespace py = pybind11;

void Throw(const absl::Status& status) {
  const py::object error = py::module_::import("optim_test_tools._errors")
                               .attr("from_status")(absl::StatusCodeToString(status.code()),
                                                    ToPythonText(std::string(status.message())));
  PyErr_SetObject(py::type::handle_of(error).ptr(), error.ptr());
  throw py::error_already_set();
}

bool PythonRuns() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsInitialized() != 0 && Py_IsFinalizing() == 0;
#else
  return Py_IsInitialized() != 0 && _Py_IsFinalizing() == 0;
#endif
}

void WaitForTheEnd() {
  while (true) pause();
}

// The end of a thread is caught as an exception without an object, to which the reference is null.
__attribute__((no_sanitize("null"))) PyGILState_STATE TakeGil() {
  try {
    return PyGILState_Ensure();
  } catch (const abi::__forced_unwind&) {
    WaitForTheEnd();
  }
}

__attribute__((no_sanitize("null"))) void TakeGil(PyThreadState* state) {
  try {
    PyEval_RestoreThread(state);
  } catch (const abi::__forced_unwind&) {
    WaitForTheEnd();
  }
}

py::str ToPythonText(const std::string& text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

}  // namespace ott::python
