// A status as an exception of Python, and the GIL.

#ifndef OTT_INTEGRATIONS_PYTHON_STATUS_H_
#define OTT_INTEGRATIONS_PYTHON_STATUS_H_

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ott::python {

// Throws the Python exception that ott/_errors.py has for the code. REQUIRES: the GIL, !status.ok()
[[noreturn]] void Throw(const absl::Status& status);

inline void Check(const absl::Status& status) {
  if (!status.ok()) Throw(status);
}

template <typename T>
T Check(absl::StatusOr<T> result) {
  if (!result.ok()) Throw(result.status());
  return *std::move(result);
}

// Lets other Python threads run while f does, which must not touch Python's objects.
template <typename F>
auto WithoutGil(F&& f) {
  const pybind11::gil_scoped_release release;
  return std::forward<F>(f)();
}

// Whether Python still runs code, so that its objects can be released.
bool PythonRuns();

// UTF-8, with what is none replaced.
pybind11::str ToPythonText(const std::string& text);

}  // namespace ott::python

#endif  // OTT_INTEGRATIONS_PYTHON_STATUS_H_
