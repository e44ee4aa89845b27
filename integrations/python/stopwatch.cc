#include "integrations/python/stopwatch.h"

#include <pybind11/stl.h>

#include <array>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "integrations/python/convert.h"
#include "ott/core/base/misuse_capture.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_files.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"

// Calls of each iteration are plain C API, which costs a fraction of pybind11's calls; the rest is pybind11.

namespace ott::python {
namespace {

namespace py = pybind11;

using internal::MisuseCapture;

// The place where an interval begins is not looked up: that takes longer than the rest.
constexpr Place kPlace{"Python", 0};

int num_open_scopes = 0;

// True if intervals or ranges may wait for a device, so that other threads are to run meanwhile.
bool waits_for_device = false;

// Calls f, which does not touch Python's objects.
template <typename F>
void Measure(F f) {
  if (__builtin_expect(waits_for_device, 0)) {
    WithoutGil(f);
  } else {
    f();
  }
}

// True if Python's misuse of these raises; that of C++ in the same process is logged.
bool stopwatch_raises = false;
bool nvtx_raises = false;

bool Raises(const std::string& on_misuse) {
  if (on_misuse == "log" || on_misuse == "raise") return on_misuse == "raise";
  throw py::value_error(absl::StrCat("on_misuse is 'log' or 'raise', not '", on_misuse, "'"));
}

// Sets the exception, or prints what was captured. Null after an exception.
PyObject* RaiseOrPrint(const MisuseCapture& capture, bool raises) {
  try {
    const auto [file, line] = py::module_::import("optim_test_tools._singleton")
                                  .attr("caller")()
                                  .cast<std::pair<std::string, int>>();
    // The traceback has the place, where there is one.
    const std::string at = raises ? "" : absl::StrCat(" at ", file, ":", line);
    const std::string message = absl::StrReplaceAll(
        capture.message(), {{" at Python:0", at}, {" since Python:0", ""}, {" of Python:0", ""}});
    if (!raises) {
      if (capture.is_printed()) internal::PrintMisuse(message);
      Py_RETURN_NONE;
    }
    const py::object type = py::module_::import("optim_test_tools._errors").attr("MisuseError");
    PyErr_SetString(type.ptr(), message.c_str());
  } catch (py::error_already_set& error) {
    error.restore();
  }
  return nullptr;
}

// The only argument of a call, by position or by its name; null with a TypeError set.
PyObject* OnlyArgument(const char* parameter, PyObject* const* arguments, Py_ssize_t number,
                       PyObject* names) {
  if (__builtin_expect(number == 1 && names == nullptr, 1)) return arguments[0];
  const Py_ssize_t num_named = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  if (number + num_named != 1) {
    PyErr_Format(PyExc_TypeError, "one argument is taken, '%s', and %zd were given", parameter,
                 number + num_named);
    return nullptr;
  }
  if (num_named == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, 0), parameter) != 0) {
    PyErr_Format(PyExc_TypeError, "there is no parameter %R, but '%s'", PyTuple_GET_ITEM(names, 0),
                 parameter);
    return nullptr;
  }
  return arguments[0];
}

// A name as UTF-8. Where it is none: null, with an exception set if is_on.
const char* NameOf(PyObject* name, Py_ssize_t* size, bool is_on) {
  const char* const text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, size) : nullptr;
  if (text != nullptr) return text;
  PyErr_Clear();
  if (!is_on) return nullptr;
  if (PyUnicode_Check(name)) {
    PyErr_Format(PyExc_ValueError, "the name %A has surrogates, which are not UTF-8", name);
  } else {
    PyErr_Format(PyExc_TypeError, "a name is a str, not %.200s", Py_TYPE(name)->tp_name);
  }
  return nullptr;
}

PyObject* Result(const MisuseCapture& capture, bool raises) {
  if (__builtin_expect(!capture.message().empty(), 0))
    return RaiseOrPrint(capture, raises || capture.aborts());
  Py_RETURN_NONE;
}

// The names that are strings of the program's text are looked up once: a table by address of as many names as
// the first ones that come, whose objects are kept. What finds its place taken is looked up by its text each
// time. REQUIRES: the GIL
class KnownNames {
 public:
  // Null if the name is not known.
  Stopwatch::Measurement* Find(PyObject* name) {
    if (!PyUnicode_CheckExact(name)) return nullptr;
    Slot& slot = slots_[(reinterpret_cast<uintptr_t>(name) >> 4) % kNumSlots];
    if (__builtin_expect(slot.name == name, 1)) return &*slot.measurement;
    if (slot.name != nullptr || PyUnicode_CHECK_INTERNED(name) == 0) return nullptr;
    const char* const text = PyUnicode_AsUTF8(name);
    if (text == nullptr) {
      PyErr_Clear();
      return nullptr;
    }
    Py_INCREF(name);
    slot.name = name;
    return &slot.measurement.emplace(text);
  }

 private:
  struct Slot {
    PyObject* name = nullptr;
    std::optional<Stopwatch::Measurement> measurement;
  };

  static constexpr size_t kNumSlots = 512;

  std::array<Slot, kNumSlots> slots_;
};

KnownNames known_names;

// The calls by Name, a std::string_view or a Stopwatch::Measurement&.
template <typename Name>
using StopwatchMethod = void (Stopwatch::*)(Name, Place);

// kByHandle: none or one.
template <StopwatchMethod<std::string_view> kByText, StopwatchMethod<Stopwatch::Measurement&>... kByHandle>
PyObject* CallStopwatch(PyObject*, PyObject* const* arguments, Py_ssize_t number, PyObject* names) {
  PyObject* const argument = OnlyArgument("name", arguments, number, names);
  if (argument == nullptr) return nullptr;
  Stopwatch& stopwatch = Stopwatch::Get();
  const bool is_on = stopwatch.enabled();
  if constexpr (sizeof...(kByHandle) > 0) {
    if (is_on) {
      if (Stopwatch::Measurement* const measurement = known_names.Find(argument)) {
        const MisuseCapture capture;
        Measure([&] { ((stopwatch.*kByHandle)(*measurement, kPlace), ...); });
        return Result(capture, stopwatch_raises);
      }
    }
  }
  Py_ssize_t size = 0;
  const char* const name = NameOf(argument, &size, is_on);
  if (name == nullptr) {
    if (PyErr_Occurred() != nullptr) return nullptr;
    Py_RETURN_NONE;
  }
  const std::string_view text(name, static_cast<size_t>(size));
  if (!is_on) {  // a profiler may record all the same
    (stopwatch.*kByText)(text, kPlace);
    Py_RETURN_NONE;
  }
  const MisuseCapture capture;
  Measure([&] { (stopwatch.*kByText)(text, kPlace); });
  return Result(capture, stopwatch_raises);
}

PyObject* NvtxPush(PyObject*, PyObject* const* arguments, Py_ssize_t number, PyObject* names) {
  PyObject* const argument = OnlyArgument("range_name", arguments, number, names);
  if (argument == nullptr) return nullptr;
  NvtxRangeWrapper& wrapper = NvtxRangeWrapper::Get();
  Py_ssize_t size = 0;
  const char* const name = NameOf(argument, &size, wrapper.enabled());
  if (name != nullptr) {
    const MisuseCapture capture;
    Measure([&] { wrapper.Push(std::string(name, static_cast<size_t>(size)), kPlace); });
    return Result(capture, nvtx_raises);
  }
  if (PyErr_Occurred() != nullptr) return nullptr;
  Py_RETURN_NONE;
}

PyObject* NvtxPop(PyObject*, PyObject* const* arguments, Py_ssize_t number, PyObject* names) {
  NvtxRangeWrapper& wrapper = NvtxRangeWrapper::Get();
  const MisuseCapture capture;
  if (number == 0 && names == nullptr) {
    Measure([&] { wrapper.Pop(kPlace); });
    return Result(capture, nvtx_raises);
  }
  PyObject* const argument = OnlyArgument("range_name", arguments, number, names);
  if (argument == nullptr) return nullptr;
  Py_ssize_t size = 0;
  if (argument == Py_None) {
    Measure([&] { wrapper.Pop(kPlace); });
  } else if (const char* const name = NameOf(argument, &size, wrapper.enabled()); name != nullptr) {
    Measure([&] { wrapper.Pop(std::string_view(name, static_cast<size_t>(size)), kPlace); });
  } else if (PyErr_Occurred() != nullptr) {
    return nullptr;
  }
  return Result(capture, nvtx_raises);
}

// _ott.Scope(name): a context manager, once at a time.
struct ScopeObject {
  PyObject_HEAD;
  PyObject* name;
  // Not ended where the object goes while it is open: that may happen on any thread.
  std::optional<Stopwatch::Scope> scope;
  bool entered;
  bool counted;
};

PyObject* ScopeNew(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = type->tp_alloc(type, 0);
  if (self != nullptr) new (&reinterpret_cast<ScopeObject*>(self)->scope) std::optional<Stopwatch::Scope>();
  return self;
}

int ScopeInit(PyObject* self, PyObject* arguments, PyObject* names) {
  static const char* parameters[] = {"name", nullptr};
  PyObject* name = nullptr;
  if (PyTuple_GET_SIZE(arguments) == 1 && names == nullptr) {
    name = PyTuple_GET_ITEM(arguments, 0);
  } else if (!PyArg_ParseTupleAndKeywords(arguments, names, "O:Scope", const_cast<char**>(parameters),
                                          &name)) {
    return -1;
  }
  Py_INCREF(name);
  Py_XSETREF(reinterpret_cast<ScopeObject*>(self)->name, name);
  return 0;
}

PyObject* ScopeEnter(PyObject* self, PyObject*) {
  auto* const scope = reinterpret_cast<ScopeObject*>(self);
  if (scope->entered) {
    PyErr_SetString(PyExc_RuntimeError, "this scope is open already; make another one, by stopwatch(name)");
    return nullptr;
  }
  const bool is_on = Stopwatch::Get().enabled();
  Py_ssize_t size = 0;
  const char* const name = scope->name == nullptr ? nullptr : NameOf(scope->name, &size, is_on);
  if (name != nullptr) {
    Measure([&] { scope->scope.emplace(std::string_view(name, static_cast<size_t>(size)), kPlace); });
    scope->counted = is_on;
    num_open_scopes += is_on ? 1 : 0;
  } else if (PyErr_Occurred() != nullptr) {
    return nullptr;
  }
  scope->entered = true;
  Py_INCREF(self);
  return self;
}

PyObject* ScopeExit(PyObject* self, PyObject* const*, Py_ssize_t) {
  auto* const scope = reinterpret_cast<ScopeObject*>(self);
  if (std::exchange(scope->counted, false)) --num_open_scopes;
  scope->entered = false;
  const MisuseCapture capture;
  Measure([&] { scope->scope.reset(); });
  return Result(capture, stopwatch_raises);
}

// Makes a scope a decorator.
PyObject* ScopeCall(PyObject* self, PyObject* arguments, PyObject* names) {
  try {
    const py::object decorate =
        py::module_::import("optim_test_tools._stopwatch").attr("decorate_with_scope");
    const auto of_names = names == nullptr ? py::dict() : py::reinterpret_borrow<py::dict>(names);
    return decorate(py::handle(reinterpret_cast<ScopeObject*>(self)->name),
                    *py::reinterpret_borrow<py::tuple>(arguments), **of_names)
        .release()
        .ptr();
  } catch (py::error_already_set& error) {
    error.restore();
    return nullptr;
  }
}

void ScopeDelete(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_CLEAR(reinterpret_cast<ScopeObject*>(self)->name);
  type->tp_free(self);
  Py_DECREF(type);
}

int ScopeTraverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(reinterpret_cast<ScopeObject*>(self)->name);
  return 0;
}

template <typename F>
PyCFunction AsPyCFunction(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyObject* MakeScopeType() {
  static PyMethodDef methods[] = {
      {"__enter__", &ScopeEnter, METH_NOARGS, "Starts the interval."},
      {"__exit__", AsPyCFunction(&ScopeExit), METH_FASTCALL, "Ends the interval, and lets exceptions pass."},
      {nullptr, nullptr, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_doc,
       const_cast<char*>(
           "Scope(name)\n--\n\n"
           "An interval of a measurement: a with block, or each call of a function that it decorates.\n\n"
           "Scopes nest, and end on the thread where they began: what is suspended in between, as a "
           "generator,\nuses Stopwatch.start() and end() instead.")},
      {Py_tp_new, reinterpret_cast<void*>(&ScopeNew)},
      {Py_tp_init, reinterpret_cast<void*>(&ScopeInit)},
      {Py_tp_call, reinterpret_cast<void*>(&ScopeCall)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&ScopeDelete)},
      {Py_tp_traverse, reinterpret_cast<void*>(&ScopeTraverse)},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  static PyType_Spec spec = {"optim_test_tools._ott.Scope", sizeof(ScopeObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  return PyType_FromSpec(&spec);
}

using Method = PyObject*(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

PyMethodDef Named(const char* name, Method* method, const char* doc) {
  return {name, AsPyCFunction(method), METH_FASTCALL | METH_KEYWORDS, doc};
}

// A base class of these methods, which the interpreter calls without anything in between. The methods, with
// an empty one at the end, must live on.
py::object MakeBase(const char* name, PyMethodDef* methods) {
  PyType_Slot slots[] = {{Py_tp_methods, methods}, {0, nullptr}};
  PyType_Spec spec = {name, sizeof(PyObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  PyObject* const type = PyType_FromSpec(&spec);
  if (type == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(type);
}

void AddBases(py::module_& module) {
  constexpr auto start = &CallStopwatch<&Stopwatch::Start, &Stopwatch::Start>;
  constexpr auto end = &CallStopwatch<&Stopwatch::End, &Stopwatch::End>;
  constexpr auto start_one_time = &CallStopwatch<&Stopwatch::StartOneTime>;
  constexpr auto end_one_time = &CallStopwatch<&Stopwatch::EndOneTime>;
  static PyMethodDef stopwatch[] = {
      Named("start", start,
            "start($self, name)\n--\n\nStarts the measurement `name`, which must not run. It runs at most "
            "once at a time in the whole process."),
      Named("end", end,
            "end($self, name)\n--\n\nEnds the measurement `name`, which must run, on any thread."),
      Named("start_one_time", start_one_time,
            "start_one_time($self, name)\n--\n\nStarts what is measured once, and in warm-up too, such as "
            "loading the data."),
      Named("end_one_time", end_one_time, "end_one_time($self, name)\n--\n\nEnds what is measured once."),
      {nullptr, nullptr, 0, nullptr},
  };
  static PyMethodDef accvlab_stopwatch[] = {
      Named("start_meas", start,
            "start_meas($self, name)\n--\n\nStarts the measurement `name`; AssertionError if it runs."),
      Named("end_meas", end,
            "end_meas($self, name)\n--\n\nEnds the measurement `name`; AssertionError if it does not run."),
      Named("start_one_time_measurement", start_one_time,
            "start_one_time_measurement($self, name)\n--\n\nStarts what is measured once, in warm-up too; "
            "AssertionError if it was started before."),
      Named("end_one_time_measurement", end_one_time,
            "end_one_time_measurement($self, name)\n--\n\nEnds what is measured once; AssertionError if it "
            "was not started."),
      {nullptr, nullptr, 0, nullptr},
  };
  static PyMethodDef nvtx[] = {
      Named("push", &NvtxPush, "push($self, range_name)\n--\n\nBegins a range on this thread."),
      Named("pop", &NvtxPop,
            "pop($self, range_name=None)\n--\n\nEnds this thread's last range. Where the order is tracked "
            "and it has another name: ott.MisuseError."),
      {nullptr, nullptr, 0, nullptr},
  };
  static PyMethodDef accvlab_nvtx[] = {
      Named("range_push", &NvtxPush, "range_push($self, range_name)\n--\n\nBegins a range on this thread."),
      Named("range_pop", &NvtxPop,
            "range_pop($self, range_name=None)\n--\n\nEnds the thread's last range; AssertionError where the "
            "order is tracked and there is none or another one."),
      {nullptr, nullptr, 0, nullptr},
  };
  module.add_object("StopwatchBase", MakeBase("optim_test_tools._ott.StopwatchBase", stopwatch));
  module.add_object("AccvlabStopwatchBase",
                    MakeBase("optim_test_tools._ott.AccvlabStopwatchBase", accvlab_stopwatch));
  module.add_object("NvtxBase", MakeBase("optim_test_tools._ott.NvtxBase", nvtx));
  module.add_object("AccvlabNvtxBase", MakeBase("optim_test_tools._ott.AccvlabNvtxBase", accvlab_nvtx));
}

// Prints by a Python function, whose exceptions Python shows but which end here.
std::function<void(const Stopwatch&)> PrintingBy(py::object print) {
  if (print.is_none()) return nullptr;
  // Kept to the end of the process, as the stopwatch is.
  PyObject* const function = print.release().ptr();
  return [function](const Stopwatch&) {
    if (!PythonRuns()) return;
    WithGil([function] {
      PyObject* const result = PyObject_CallNoArgs(function);
      if (result == nullptr) PyErr_WriteUnraisable(function);
      Py_XDECREF(result);
    });
  };
}

// Strings that a place refers to are never freed, as the stopwatch keeps it.
Place PlaceOf(const std::pair<std::string, int>& place) {
  return {(new std::string(place.first))->c_str(), place.second};
}

Stopwatch::DeviceSync DeviceSyncOf(const std::string& name) {
  if (name == "none") return Stopwatch::DeviceSync::kNone;
  if (name == "device") return Stopwatch::DeviceSync::kDevice;
  if (name == "events") return Stopwatch::DeviceSync::kEvents;
  throw py::value_error(absl::StrCat("device_sync is 'none', 'device' or 'events', not '", name, "'"));
}

void EnableStopwatch(int64_t num_warmup_iters, int64_t print_every_n_iters, const std::string& device_sync,
                     std::vector<std::string> collective_measurements,
                     const std::string& cpu_usage_measurement, bool emit_nvtx, const std::string& on_misuse,
                     py::object print, const std::pair<std::string, int>& place) {
  Stopwatch::Options options;
  options.num_warmup_iters = num_warmup_iters;
  options.print_every_n_iters = print_every_n_iters;
  options.device_sync = DeviceSyncOf(device_sync);
  if (options.device_sync != Stopwatch::DeviceSync::kNone) LetOthersRunWhileMeasuring();
  options.collective_measurements = std::move(collective_measurements);
  options.cpu_usage_measurement = cpu_usage_measurement;
  options.emit_nvtx = emit_nvtx;
  const bool raises = Raises(on_misuse);
  options.print = PrintingBy(std::move(print));
  const absl::Status status = WithoutGil([&] { return Stopwatch::Get().Enable(options, PlaceOf(place)); });
  Check(status);
  stopwatch_raises = raises;
}

void DisableStopwatch() {
  if (num_open_scopes > 0) {
    throw std::runtime_error(
        absl::StrCat(num_open_scopes, " scopes of the stopwatch are open; leave their with blocks first"));
  }
  WithoutGil([] { Stopwatch::Get().Disable(); });
  stopwatch_raises = false;
}

void FinishIter() {
  const MisuseCapture capture;
  WithoutGil([] { Stopwatch::Get().FinishIter(kPlace); });
  Check(capture);
}

py::dict Snapshot() {
  const StopwatchSnapshot snapshot = WithoutGil([] { return Stopwatch::Get().Snapshot(); });
  py::list measurements;
  for (const StopwatchSnapshot::Measurement& measurement : snapshot.measurements) {
    measurements.append(
        py::make_tuple(measurement.name, measurement.per_interval.count(), measurement.per_interval.total()));
  }
  py::list one_time;
  for (const StopwatchSnapshot::OneTime& measurement : snapshot.one_time) {
    one_time.append(py::make_tuple(measurement.name, measurement.seconds, measurement.running));
  }
  py::dict result;
  result["num_warmup_iters"] = snapshot.num_warmup_iters;
  result["num_warmup_iters_done"] = snapshot.num_warmup_iters_done;
  result["num_measured_iters"] = snapshot.num_measured_iters;
  result["measurements"] = measurements;
  result["one_time"] = one_time;
  result["cpu_usage_measurement"] = snapshot.cpu_usage_measurement;
  result["cpu_usage_percent"] = snapshot.cpu_usage.all_percent();
  return result;
}

}  // namespace

void Check(const MisuseCapture& capture) {
  PyObject* const result = Result(capture, stopwatch_raises || nvtx_raises);
  if (result == nullptr) throw py::error_already_set();
  Py_DECREF(result);
}

int NumOpenScopes() { return num_open_scopes; }

void LetOthersRunWhileMeasuring() { waits_for_device = true; }

void DefineStopwatch(py::module_& module) {
  AddBases(module);
  module.add_object("Scope", py::reinterpret_steal<py::object>(MakeScopeType()));
  module.def("stopwatch_enable", &EnableStopwatch, py::kw_only(), py::arg("num_warmup_iters"),
             py::arg("print_every_n_iters"), py::arg("device_sync"), py::arg("collective_measurements"),
             py::arg("cpu_usage_measurement"), py::arg("emit_nvtx"), py::arg("on_misuse"), py::arg("print"),
             py::arg("place"));
  module.def("stopwatch_enabled", [] { return Stopwatch::Get().enabled(); });
  module.def("stopwatch_disable", &DisableStopwatch);
  module.def("stopwatch_finish_iter", &FinishIter);
  module.def("stopwatch_set_cpu_usage_measurement",
             [](const std::string& name) { Check(Stopwatch::Get().SetCpuUsageMeasurement(name)); });
  module.def("stopwatch_snapshot", &Snapshot);
  module.def("stopwatch_table", [] { return WithoutGil([] { return Stopwatch::Get().Table(); }); });
  module.def("stopwatch_csv", [] { return WithoutGil([] { return Stopwatch::Get().Csv(); }); });
  module.def("stopwatch_json", [] { return WithoutGil([] { return Stopwatch::Get().Json(); }); });
  module.def("stopwatch_mean_seconds_per_interval",
             [](const std::string& name) { return Stopwatch::Get().MeanSecondsPerInterval(name); });
  module.def("stopwatch_mean_seconds_per_iteration",
             [](const std::string& name) { return Stopwatch::Get().MeanSecondsPerIteration(name); });
  module.def("stopwatch_write", [](const std::string& dir) {
    const absl::Status status = WithoutGil([&] {
      return WriteStopwatchFiles(Stopwatch::Get(), {dir, "", 0, 1});
    });
    Check(status);
  });
  module.def("nvtx_enable", [](bool sync_on_push, bool sync_on_pop, bool keep_track_of_range_order,
                               const std::string& on_misuse, const std::pair<std::string, int>& place) {
    NvtxRangeWrapper::Options options;
    options.sync_on_push = sync_on_push;
    options.sync_on_pop = sync_on_pop;
    options.keep_track_of_range_order = keep_track_of_range_order;
    const bool raises = Raises(on_misuse);
    if (sync_on_push || sync_on_pop) LetOthersRunWhileMeasuring();
    Check(NvtxRangeWrapper::Get().Enable(options, PlaceOf(place)));
    nvtx_raises = raises;
  });
  module.def("nvtx_enabled", [] { return NvtxRangeWrapper::Get().enabled(); });
  module.def("nvtx_disable", [] {
    NvtxRangeWrapper::Get().Disable();
    nvtx_raises = false;
  });
}

}  // namespace ott::python
