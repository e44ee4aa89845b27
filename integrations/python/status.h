// A status as an exception of Python, and the GIL.

#ifndef OTT_INTEGRATIONS_PYTHON_STATUS_H_
#define OTT_INTEGRATIONS_PYTHON_STATUS_H_

#include <cxxabi.h>
#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ott::python {

// Throws the Python exception that optim_test_tools/_errors.py has for the code. REQUIRES: the GIL,
// !status.ok()
[[noreturn]] void Throw(const absl::Status& status);

inline void Check(const absl::Status& status) {
  if (!status.ok()) Throw(status);
}

template <typename T>
T Check(absl::StatusOr<T> result) {
  if (!result.ok()) Throw(result.status());
  return *std::move(result);
}

// Returns true if Python still runs code, so that its objects can be released.
bool PythonRuns();

// A thread that wants the GIL while the interpreter ends is ended by CPython before 3.14, by unwinding its
// frames, which destructors do not survive. As from 3.14 on, it waits for the end of the process instead.
[[noreturn]] void WaitForTheEnd();
PyGILState_STATE TakeGil();
void TakeGil(PyThreadState* state);

// Lets other Python threads run while f does, which must not touch Python's objects.
template <typename F>
auto WithoutGil(F&& f) {
  struct Released {
    PyThreadState* const state;
    ~Released() { TakeGil(state); }
  };
  const Released released{PyEval_SaveThread()};
  return std::forward<F>(f)();
}

// Calls f, which does, from any thread.
template <typename F>
auto WithGil(F&& f) {
  struct Taken {
    const PyGILState_STATE state;
    ~Taken() { PyGILState_Release(state); }
  };
  const Taken taken{TakeGil()};
  try {
    return std::forward<F>(f)();
  } catch (const abi::__forced_unwind&) {
    WaitForTheEnd();
  }
}

// UTF-8, with what is none replaced.
pybind11::str ToPythonText(const std::string& text);

}  // namespace ott::python

#endif  // OTT_INTEGRATIONS_PYTHON_STATUS_H_
