#include "integrations/python/dumper.h"

#include <pybind11/stl.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "integrations/python/convert.h"
#include "ott/core/base/config.h"
#include "ott/core/compare/compare.h"
#include "ott/core/compare/report.h"
#include "ott/core/dump/dump_reader.h"
#include "ott/core/dumper/tensor_dumper.h"
#include "ott/questions/right/compare/compare_runs.h"
#include "ott/questions/right/compare/runs_report.h"
#include "ott/questions/right/show/show.h"

namespace ott::python {
namespace {

namespace py = pybind11;

// The process that loaded the module, or one that it forked and that first enables the dumper. Others that
// are forked, as workers of a DataLoader, are no ranks: the dumper is off there, since its locks may have
// been held by threads that they do not have.
std::atomic<pid_t> process = getpid();
std::atomic<bool> was_enabled = false;

bool IsForked() { return getpid() != process; }

DumpFormat FormatOf(const std::string& name) { return Check(ParseDumpFormat(name)); }

bool IsActive() { return !IsForked() && TensorDumper::Get().active(); }

// Calls f(dumper) without the GIL, and throws its error. Whoever waits for the dumper's lock must not hold
// the GIL: the thread that has the lock may be letting go of Python's objects. Nothing in a forked process.
template <typename F>
void OnDumper(F f) {
  if (IsForked()) return;
  const absl::Status status = WithoutGil([&]() -> absl::Status {
    if constexpr (std::is_void_v<std::invoke_result_t<F, TensorDumper&>>) {
      f(TensorDumper::Get());
      return absl::OkStatus();
    } else {
      return f(TensorDumper::Get());
    }
  });
  Check(status);
}

bool IsEnabled() {
  bool enabled = false;
  OnDumper([&](const TensorDumper& dumper) { enabled = dumper.enabled(); });
  return enabled;
}

void Enable(const std::string& dir, int rank, int world_size, bool sync, int num_writer_threads,
            int num_json_threads, int64_t max_bytes_per_dump, const std::string& reference_dir,
            bool drop_when_full) {
  TensorDumperOptions options;
  options.dir = dir;
  options.rank = rank;
  options.world_size = world_size;
  options.sync = sync;
  options.num_writer_threads = num_writer_threads;
  options.num_json_threads = num_json_threads;
  if (max_bytes_per_dump >= 0) options.max_bytes_per_dump = max_bytes_per_dump;
  options.reference_dir = reference_dir;
  options.drop_when_full = drop_when_full;
  // Memory for the first dump costs a moment at once, which a small one does not make up for.
  options.reserved_bytes = 0;
  UseDumper();
  OnDumper([&](TensorDumper& dumper) { return dumper.Enable(std::move(options)); });
}

void Add(const py::object& path, const py::object& data, const std::string& format,
         const std::map<std::string, std::string>& format_overrides, std::vector<int> permute_axes,
         std::map<std::string, std::vector<int>> permute_axes_overrides, std::vector<std::string> exclude,
         bool as_gradient) {
  if (!IsActive()) return;
  const std::string path_text = Text(path, "the path");
  AddOptions options(FormatOf(format));
  for (const auto& [name, override] : format_overrides) options.format_overrides[name] = FormatOf(override);
  options.permute_axes = std::move(permute_axes);
  options.permute_axes_overrides = std::move(permute_axes_overrides);
  options.exclude = std::move(exclude);
  const Value value = FromPython(data, path_text);
  OnDumper([&](TensorDumper& dumper) {
    return as_gradient ? dumper.AddGradData(path_text, value, options)
                       : dumper.AddTensorData(path_text, value, options);
  });
}

// Takes what optim_test_tools/_dumper.py returns for each tensor: a tensor, a str if it requires no gradient,
// or None.
Gradient GradientFrom(py::handle found, const std::string& path) {
  Gradient gradient;
  if (found.is_none()) return gradient;
  if (py::isinstance<py::str>(found)) {
    gradient.kind = Gradient::Kind::kRequiresNoGrad;
    return gradient;
  }
  gradient.kind = Gradient::Kind::kComputed;
  gradient.gradient = FromPython(found, path).tensor();
  return gradient;
}

void SetGradients(const py::function& compute) {
  if (!IsActive()) return;
  // No exception passes through the dumper.
  std::exception_ptr error;
  using Gradients = absl::StatusOr<std::vector<Gradient>>;
  const auto compute_for = [&](absl::Span<const NamedTensor> tensors) -> Gradients {
    try {
      py::list sources;
      for (const NamedTensor& tensor : tensors) sources.append(SourceOf(tensor.tensor));
      const py::list found = compute(sources);
      std::vector<Gradient> gradients;
      for (size_t i = 0; i < found.size() && i < tensors.size(); ++i) {
        gradients.push_back(GradientFrom(found[i], tensors[i].path));
      }
      return gradients;
    } catch (const std::exception&) {
      error = std::current_exception();
      return absl::AbortedError("an exception of Python");
    }
  };
  const auto provide = [&](absl::Span<const NamedTensor> tensors) {
    return WithGil([&] { return compute_for(tensors); });
  };
  const absl::Status status = WithoutGil([&] { return TensorDumper::Get().SetGradients(provide); });
  if (error != nullptr) std::rethrow_exception(error);
  Check(status);
}

void CheckTolerance(const Tolerance& tolerance) {
  if (IsTolerance(tolerance.atol) && IsTolerance(tolerance.rtol)) return;
  throw py::value_error("atol and rtol are finite numbers from 0 on");
}

CompareOptions OptionsFrom(const py::dict& from) {
  CompareOptions options;
  Tolerance& tolerance = options.tensors.tolerance;
  for (const auto& [key, value] : from) {
    const std::string name = key.cast<std::string>();
    if (name == "atol") {
      tolerance.atol = value.cast<double>();
    } else if (name == "rtol") {
      tolerance.rtol = value.cast<double>();
    } else if (name == "nan_equal") {
      tolerance.nan_equal = value.cast<bool>();
    } else if (name == "bitwise") {
      tolerance.bitwise = value.cast<bool>();
    } else if (name == "num_worst") {
      options.tensors.num_worst = value.cast<int>();
    } else if (name == "compare_dtype") {
      options.tensors.compare_dtype = value.cast<bool>();
    } else if (name == "num_threads") {
      options.tensors.num_threads = value.cast<int>();
    } else if (name == "default_tolerances") {
      options.default_tolerances = value.cast<bool>();
    } else if (name == "allow_extra") {
      options.allow_extra = value.cast<bool>();
    } else if (name == "allow_missing") {
      options.allow_missing = value.cast<bool>();
    } else if (name == "compare_order") {
      options.compare_order = value.cast<bool>();
    } else if (name == "allow_empty") {
      options.allow_empty = value.cast<bool>();
    } else if (name != "tolerances") {
      throw py::type_error(absl::StrCat("compare() has no parameter '", name, "'"));
    }
  }
  if (from.contains("tolerances")) {
    for (const auto& [glob, pair] : from["tolerances"].cast<py::dict>()) {
      PathTolerance& path = options.path_tolerances.emplace_back();
      path.glob = Text(glob, "a glob of tolerances");
      path.tolerance = tolerance;
      std::tie(path.tolerance.atol, path.tolerance.rtol) = pair.cast<std::pair<double, double>>();
      CheckTolerance(path.tolerance);
    }
  }
  CheckTolerance(tolerance);
  return options;
}

TreeComparison CompareToDumpedData(const py::dict& options, bool compare_if_empty) {
  const CompareOptions compare_options = OptionsFrom(options);
  return Check(
      WithoutGil([&] { return TensorDumper::Get().CompareToDumpedData(compare_options, compare_if_empty); }));
}

// A str is a dump's directory on disk.
TreeComparison Compare(const py::object& reference, const py::object& current, const py::dict& options) {
  const CompareOptions compare_options = OptionsFrom(options);
  const auto dir_of = [](const py::object& side) -> std::optional<std::string> {
    if (!py::isinstance<py::str>(side)) return std::nullopt;
    return Text(side, "a dump's directory");
  };
  const std::optional<std::string> reference_dir = dir_of(reference);
  const std::optional<std::string> current_dir = dir_of(current);
  if (reference_dir.has_value() && current_dir.has_value()) {
    return WithoutGil([&] { return CompareDumps(*reference_dir, *current_dir, compare_options); });
  }
  if (current_dir.has_value()) {
    throw py::type_error("the dump on disk is the reference, and so the first argument");
  }
  const Value current_tree = FromPython(current, "");
  if (reference_dir.has_value()) {
    return WithoutGil([&] { return CompareToDump(*reference_dir, current_tree, nullptr, compare_options); });
  }
  const Value reference_tree = FromPython(reference, "");
  return WithoutGil([&] { return CompareTrees(reference_tree, current_tree, compare_options); });
}

// The verdict, the text and JSON.
py::tuple CompareRunsOnDisk(const std::string& reference, const std::string& current,
                            const std::optional<std::string>& names, const py::dict& options) {
  compare::CompareRunsOptions run_options;
  run_options.compare = OptionsFrom(options);
  run_options.allow_empty = run_options.compare.allow_empty;
  if (names.has_value()) Check(ReadTextProto(*names, &run_options.names.emplace()));
  const compare::RunsComparison comparison =
      Check(WithoutGil([&] { return compare::CompareRuns(reference, current, run_options); }));
  return py::make_tuple(static_cast<int>(comparison.verdict()), py::str(ToText(comparison)),
                        py::str(ToJson(comparison)));
}

std::string ShowAsJson(const std::string& path) {
  return ToJson(Check(WithoutGil([&] { return show::Show(path); })));
}

py::dict LoadDump(const std::string& dir) {
  const Dump dump = Check(WithoutGil([&] { return ReadDump(dir); }));
  py::dict result;
  result["tensors"] = ToPython(dump.tensors);
  result["grads"] = dump.grads.has_value() ? ToPython(*dump.grads) : py::none();
  for (const char* name : {"iteration", "rank", "world_size"}) result[name] = py::none();
  if (dump.manifest.has_value()) {
    result["iteration"] = dump.manifest->iteration;
    result["rank"] = dump.manifest->rank;
    result["world_size"] = dump.manifest->world_size;
  }
  return result;
}

void DefineComparison(py::module_& module) {
  py::class_<TreeComparison>(module, "Comparison")
      .def_property_readonly("verdict", [](const TreeComparison& c) { return static_cast<int>(c.verdict()); })
      .def_property_readonly("bitwise_equal", &TreeComparison::bitwise_equal)
      .def("text", [](const TreeComparison& c, int max_failures) { return py::str(ToText(c, max_failures)); })
      .def("summary", [](const TreeComparison& c) { return SummaryText(c); })
      .def("json", [](const TreeComparison& c) { return ToJson(c); })
      .def("csv", [](const TreeComparison& c) { return ToCsv(c); })
      .def("junit_xml", [](const TreeComparison& c) { return ToJUnitXml(c); });
}

}  // namespace

void UseDumper() {
  if (!was_enabled.exchange(true)) process = getpid();
}

void DefineDumper(py::module_& module) {
  DefineComparison(module);
  module.def("compare", &Compare);
  module.def("compare_runs", &CompareRunsOnDisk);
  module.def("show", &ShowAsJson);
  module.def("load_dump", &LoadDump);
  module.def("dumper_enable", &Enable, py::kw_only(), py::arg("dir"), py::arg("rank"), py::arg("world_size"),
             py::arg("sync"), py::arg("num_writer_threads"), py::arg("num_json_threads"),
             py::arg("max_bytes_per_dump"), py::arg("reference_dir"), py::arg("drop_when_full"));
  module.def("dumper_disable", [] { OnDumper([](TensorDumper& dumper) { return dumper.Disable(); }); });
  module.def("dumper_enabled", &IsEnabled);
  module.def("dumper_active", &IsActive);
  module.def("dumper_add", &Add, py::kw_only(), py::arg("path"), py::arg("data"), py::arg("format"),
             py::arg("format_overrides"), py::arg("permute_axes"), py::arg("permute_axes_overrides"),
             py::arg("exclude"), py::arg("as_gradient"));
  module.def("dumper_set_gradients", &SetGradients);
  module.def("dumper_push_range", [](const py::object& name) {
    if (!IsActive()) return;
    const std::string text = Text(name, "a range");
    OnDumper([&](TensorDumper& dumper) { return dumper.PushRange(text); });
  });
  module.def("dumper_pop_range", [] { OnDumper([](TensorDumper& dumper) { return dumper.PopRange(); }); });
  module.def("dumper_set_format_for_all", [](const std::string& name, bool tensors, bool grads) {
    const DumpFormat format = FormatOf(name);
    OnDumper([&](TensorDumper& dumper) { dumper.SetDumpTypeForAll(format, tensors, grads); });
  });
  module.def("dumper_set_count",
             [](int64_t count) { OnDumper([&](TensorDumper& dumper) { dumper.SetDumpCount(count); }); });
  module.def("dumper_count", [] {
    int64_t count = 0;
    OnDumper([&](const TensorDumper& dumper) { count = dumper.dump_count(); });
    return count;
  });
  module.def("dumper_pause", [] { OnDumper([](TensorDumper& dumper) { dumper.Pause(); }); });
  module.def("dumper_resume", [] { OnDumper([](TensorDumper& dumper) { dumper.Resume(); }); });
  module.def("dumper_discard", [] { OnDumper([](TensorDumper& dumper) { dumper.Discard(); }); });
  module.def("dumper_dump", [](bool dump_if_empty) {
    OnDumper([&](TensorDumper& dumper) { return dumper.Dump(dump_if_empty); });
  });
  module.def("dumper_flush", [] { OnDumper([](TensorDumper& dumper) { return dumper.Flush(); }); });
  module.def("dumper_num_dropped", [] { return TensorDumper::Get().num_dropped_dumps(); });
  module.def("dumper_compare", &CompareToDumpedData);
}

}  // namespace ott::python
