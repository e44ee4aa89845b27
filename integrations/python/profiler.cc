#include "integrations/python/profiler.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "integrations/python/status.h"
#include "ott/core/trace/profiler.h"
#include "ott/core/trace/write_trace.h"

namespace ott::python {
namespace {

namespace py = pybind11;

// The function that a window is handed to. Used with the GIL.
struct Told {
  // While the function runs: the window that it is told of.
  const Profiler::Window* window = nullptr;
  // The exception that it raised.
  std::exception_ptr error;
};

Told& TheTold() {
  static auto* const told = new Told;
  return *told;
}

// Throws what the function raised, or the status.
void CheckTold(const absl::Status& status) {
  if (const std::exception_ptr error = std::exchange(TheTold().error, nullptr)) std::rethrow_exception(error);
  Check(status);
}

// f() is called when a window has closed.
absl::Status TellOfWindow(const py::function& f, const Profiler::Window& window) {
  if (!PythonRuns()) return absl::OkStatus();
  return WithGil([&] {
    Told& told = TheTold();
    told.window = &window;
    absl::Status status;
    try {
      f();
    } catch (const std::exception&) {
      told.error = std::current_exception();
      status = absl::AbortedError("the function that is told of windows raised an exception");
    }
    told.window = nullptr;
    return status;
  });
}

void EnableProfiler(int64_t skip_first, int64_t wait, int64_t warmup, int64_t active, int64_t repeat,
                    bool skip_first_wait, bool synchronize_device, py::function on_window,
                    const std::pair<std::string, int>& place) {
  Profiler::Options options;
  options.schedule.skip_first = skip_first;
  options.schedule.wait = wait;
  options.schedule.warmup = warmup;
  options.schedule.active = active;
  options.schedule.repeat = repeat;
  options.schedule.skip_first_wait = skip_first_wait;
  options.synchronize_device = synchronize_device;
  // To be let go without the GIL.
  const std::shared_ptr<py::function> shared(new py::function(std::move(on_window)),
                                             [](py::function* function) {
                                               if (!PythonRuns()) return;
                                               WithGil([function] { delete function; });
                                             });
  options.on_window = [shared](const Profiler::Window& window) { return TellOfWindow(*shared, window); };
  // Never freed, as the profiler keeps it.
  const Place at = {(new std::string(place.first))->c_str(), place.second};
  CheckTold(WithoutGil([&] { return Profiler::Get().Enable(options, at); }));
}

void WriteWindow(const std::string& path, const std::optional<int>& rank) {
  TraceInfo info;
  if (rank.has_value()) info.set_rank(*rank);
  const auto write = [&](const Profiler::Window& window) { return WriteTrace(window, path, info); };
  // The profiler waits for the function that is told of a window, and for no other caller.
  if (const Profiler::Window* const window = TheTold().window) return Check(write(*window));
  Check(WithoutGil([&] { return Profiler::Get().VisitLastWindow(write); }));
}

}  // namespace

void DefineProfiler(py::module_& module) {
  module.def("profiler_enable", &EnableProfiler, py::arg("skip_first"), py::arg("wait"), py::arg("warmup"),
             py::arg("active"), py::arg("repeat"), py::arg("skip_first_wait"), py::arg("synchronize_device"),
             py::arg("on_window"), py::arg("place"));
  module.def("profiler_step", [] { CheckTold(WithoutGil([] { return Profiler::Get().Step(); })); });
  module.def("profiler_stop", [] { CheckTold(WithoutGil([] { return Profiler::Get().Stop(); })); });
  module.def("profiler_write", &WriteWindow, py::arg("path"), py::arg("rank"));
  module.def(
      "profiler_mark", [](const std::string& name) { Profiler::Get().Mark(name); }, py::arg("name"));
  module.def(
      "profiler_counter", [](const std::string& name, double value) { Profiler::Get().Counter(name, value); },
      py::arg("name"), py::arg("value"));
}

}  // namespace ott::python
