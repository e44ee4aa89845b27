#include "integrations/python/run.h"

#include <google/protobuf/util/json_util.h>
#include <pybind11/stl.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "integrations/python/convert.h"
#include "integrations/python/dumper.h"
#include "integrations/python/stopwatch.h"
#include "ott/core/base/config.h"
#include "ott/core/base/misuse_capture.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/text_sink.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/local_communicator.h"
#include "ott/dist/comm/mpi_communicator.h"
#include "ott/dist/comm/tcp_communicator.h"
#include "ott/questions/hang/hang.pb.h"
#include "ott/questions/sound/sound.h"
#include "ott/questions/sound/sound_answer.h"
#include "ott/run/training/training_run.h"

namespace ott::python {
namespace {

namespace py = pybind11;

std::chrono::nanoseconds Duration(double seconds) {
  if (!(seconds > 0) || seconds > 1e9) throw py::value_error("a timeout is a number of seconds above 0");
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

// A Communicator for Python. The process that was forked from the one that made it leaves it alone.
// To be copied and let go without the GIL.
std::shared_ptr<py::function> Shared(py::function f) {
  return std::shared_ptr<py::function>(new py::function(std::move(f)), [](py::function* function) {
    if (!PythonRuns()) return;
    WithGil([function] { delete function; });
  });
}

// f(lines), or None for stdout.
void SetPythonTextSink(const std::optional<py::function>& f) {
  if (!f.has_value()) return SetTextSink({});
  SetTextSink([f = Shared(*f)](std::string_view lines) {
    if (!PythonRuns()) return;
    WithGil([&] {
      try {
        (*f)(ToPythonText(std::string(lines)));
      } catch (py::error_already_set& error) {
        error.discard_as_unraisable("the function that was given to set_text_sink()");
      }
    });
  });
}

class Ranks {
 public:
  explicit Ranks(std::unique_ptr<Communicator> communicator) : communicator_(std::move(communicator)) {}
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks() {
    if (getpid() != process_ || !PythonRuns()) {
      communicator_.release();
      return;
    }
    Close();
  }

  void Close() {
    WithoutGil([&] { communicator_.reset(); });
  }

  Communicator& Get() const {
    if (communicator_ == nullptr) throw std::runtime_error("these ranks were closed");
    if (getpid() != process_) throw std::runtime_error("this process was forked and is no rank");
    return *communicator_;
  }

 private:
  std::unique_ptr<Communicator> communicator_;
  const pid_t process_ = getpid();
};

std::shared_ptr<Ranks> MakeRanks(absl::StatusOr<std::unique_ptr<Communicator>> communicator) {
  return std::make_shared<Ranks>(Check(std::move(communicator)));
}

std::shared_ptr<Ranks> MpiRanks(std::optional<int> communicator, double timeout) {
  MpiOptions options;
  options.communicator = communicator;
  options.timeout = Duration(timeout);
  return MakeRanks(WithoutGil([&] { return CreateMpiCommunicator(options); }));
}

// None: by what torchrun sets.
std::shared_ptr<Ranks> TcpRanks(std::optional<std::string> address, std::optional<int> port,
                                std::optional<int> rank, std::optional<int> world_size, double timeout,
                                const std::string& job) {
  TcpOptions options;
  if (!address.has_value() || !port.has_value() || !rank.has_value() || !world_size.has_value()) {
    options = Check(TcpOptionsFromEnvironment());
  }
  options.address = address.value_or(options.address);
  options.port = port.value_or(options.port);
  options.rank = rank.value_or(options.rank);
  options.world_size = world_size.value_or(options.world_size);
  options.timeout = Duration(timeout);
  if (!job.empty()) options.job = job;
  return MakeRanks(WithoutGil([&] { return CreateTcpCommunicator(options); }));
}

Reduction ReductionOf(const std::string& name) {
  if (name == "sum") return Reduction::kSum;
  if (name == "min") return Reduction::kMin;
  if (name == "max") return Reduction::kMax;
  throw py::value_error(absl::StrCat("an operation is 'sum', 'min' or 'max', not '", name, "'"));
}

template <typename T>
absl::Status Reduce(const Ranks& ranks, Reduction reduction, const TensorView& view, Deadline deadline) {
  T* const data = static_cast<T*>(const_cast<void*>(view.data()));
  const absl::Span<T> values(data, static_cast<size_t>(view.num_elements()));
  Communicator& communicator = ranks.Get();
  return WithoutGil([&] { return communicator.AllReduce(reduction, values, deadline); });
}

void AllReduce(const Ranks& ranks, const py::object& tensor, const std::string& operation, double timeout) {
  const Reduction reduction = ReductionOf(operation);
  const Deadline deadline = Deadline::After(Duration(timeout));
  const Value value = FromPython(tensor, "tensor");
  if (!value.is_tensor()) throw py::type_error("all_reduce() takes a tensor");
  const TensorView& view = value.tensor().view;
  if (!view.is_contiguous() || view.device().kind != Device::Kind::kHost) {
    throw py::value_error("all_reduce() takes a tensor without gaps in host memory");
  }
  switch (view.dtype()) {
    case DType::kFloat32:
      return Check(Reduce<float>(ranks, reduction, view, deadline));
    case DType::kFloat64:
      return Check(Reduce<double>(ranks, reduction, view, deadline));
    case DType::kInt64:
      return Check(Reduce<int64_t>(ranks, reduction, view, deadline));
    default:
      throw py::type_error("all_reduce() takes float32, float64 or int64");
  }
}

// The text of a file, or JSON of the same fields; neither: what OTT_CONFIG names.
Config ConfigFrom(const std::optional<std::string>& path, const std::optional<std::string>& json) {
  if (path.has_value()) return Check(LoadConfig(*path));
  if (!json.has_value()) return Check(LoadConfigFromEnvironment());
  Config config;
  const auto status = google::protobuf::util::JsonStringToMessage(*json, &config);
  if (!status.ok()) {
    // A view of Protocol Buffers' own up to version 21, and Abseil's from 22 on.
    const auto message = status.message();
    Throw(absl::InvalidArgumentError(
        absl::StrCat("ott.Config: ", absl::string_view(message.data(), message.size()))));
  }
  return config;
}

// A TrainingRun for Python.
class Run {
 public:
  Run(std::shared_ptr<Ranks> ranks, const Config& config, const std::string& directory)
      : ranks_(std::move(ranks)) {
    Communicator& communicator = ranks_->Get();
    UseDumper();
    if (config.stopwatch().device_sync() != DEVICE_SYNC_NONE || config.nvtx().sync_on_push() ||
        config.nvtx().sync_on_pop()) {
      LetOthersRunWhileMeasuring();
    }
    run_ = Check(WithoutGil([&] { return TrainingRun::Start(communicator, config, directory); }));
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run() {
    // While scopes are open, what they write into must stay.
    if (getpid() != process_ || !PythonRuns() || NumOpenScopes() > 0) {
      run_.release();
      return;
    }
    WithoutGil([&] { run_.reset(); });
  }

  void FinishIter() {
    TrainingRun& run = Get();
    const internal::MisuseCapture capture;
    const absl::Status status = WithoutGil([&] { return run.FinishIter(); });
    if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
    Check(capture);
    Check(status);
  }

  void Finish() {
    TrainingRun& run = Get();
    const internal::MisuseCapture capture;
    const absl::Status status = WithoutGil([&] { return run.Finish(); });
    Check(capture);
    Check(status);
  }

  void Close() {
    if (getpid() != process_) return;
    if (NumOpenScopes() > 0) {
      throw std::runtime_error(
          absl::StrCat(NumOpenScopes(), " scopes of the stopwatch are open; leave their with blocks first"));
    }
    WithoutGil([&] { run_.reset(); });
  }

  void SetInterrupted() {
    if (run_ != nullptr) run_->SetInterrupted();
  }

  void Metric(const std::string& name, double value) { Get().Metric(name, value); }
  int64_t iteration() const { return Get().iteration(); }
  bool diverged() const { return Get().diverged(); }
  std::string run_dir() const { return Get().run_dir(); }

  // f(verdict as JSON, as text)
  void SetOnDivergence(py::function f) {
    Get().SetOnDivergence([this, f = Shared(std::move(f))](const CrossCheckVerdict& verdict) {
      return WithGil([&] {
        try {
          (*f)(VerdictToJsonLine(verdict), FormatVerdict(verdict));
          return absl::OkStatus();
        } catch (const std::exception&) {
          error_ = std::current_exception();
          return absl::AbortedError("the function that is told of divergences raised an exception");
        }
      });
    });
  }

  // f(verdict as JSON), on a thread of its own
  void SetOnHang(py::function f) {
    Get().SetOnHang([f = Shared(std::move(f))](const HangVerdict& verdict) {
      if (!PythonRuns()) return;
      WithGil([&] {
        try {
          (*f)(ProtoToJson(verdict, JsonLayout::kOneLine));
        } catch (py::error_already_set& error) {
          error.discard_as_unraisable("the function that is told of hangs");
        }
      });
    });
  }

 private:
  TrainingRun& Get() const {
    if (run_ == nullptr) throw std::runtime_error("this training run was closed");
    if (getpid() != process_) throw std::runtime_error("this process was forked and is no rank");
    return *run_;
  }

  // Outlives the run.
  const std::shared_ptr<Ranks> ranks_;
  std::unique_ptr<TrainingRun> run_;
  std::exception_ptr error_;
  const pid_t process_ = getpid();
};

}  // namespace

void DefineRun(py::module_& module) {
  module.def("set_text_sink", &SetPythonTextSink, py::arg("function"));
  py::class_<Ranks, std::shared_ptr<Ranks>>(module, "Ranks", "The ranks of a job; see ott.ranks().")
      .def_property_readonly("rank", [](const Ranks& ranks) { return ranks.Get().rank(); })
      .def_property_readonly("size", [](const Ranks& ranks) { return ranks.Get().size(); })
      .def(
          "host",
          [](const Ranks& ranks, int rank) {
            if (rank < 0 || rank >= ranks.Get().size()) throw py::index_error("no such rank");
            return ranks.Get().host(rank);
          },
          py::arg("rank"), "The name of the machine that a rank runs on.")
      .def(
          "barrier",
          [](const Ranks& ranks, double timeout) {
            const Deadline deadline = Deadline::After(Duration(timeout));
            Communicator& communicator = ranks.Get();
            Check(WithoutGil([&] { return communicator.Barrier(deadline); }));
          },
          py::arg("timeout") = 60.0, "Returns once every rank has called it. Seconds.")
      .def("all_reduce", &AllReduce, py::arg("tensor"), py::arg("operation") = "sum",
           py::arg("timeout") = 60.0,
           "Sets each element to its 'sum', 'min' or 'max' over all ranks, in place: float32, float64 or "
           "int64, without gaps, in host memory. The same bits on every rank.")
      .def("close", &Ranks::Close, "Lets go of the connections; nothing can be said afterwards.");
  module.def("local_ranks", [] { return std::make_shared<Ranks>(CreateLocalCommunicator()); });
  module.def("mpi_ranks", &MpiRanks, py::arg("communicator"), py::arg("timeout"));
  module.def("tcp_ranks", &TcpRanks, py::arg("address"), py::arg("port"), py::arg("rank"),
             py::arg("world_size"), py::arg("timeout"), py::arg("job") = "");
  // The fields of a configuration, in JSON: of a file, or of what OTT_CONFIG and OTT_RUN_DIR say.
  module.def("load_config", [](const std::optional<std::string>& path) {
    return ProtoToJson(ConfigFrom(path, std::nullopt), JsonLayout::kOneLine);
  });
  // Returns as text what the records of all ranks add up to; empty: nothing is wrong.
  module.def("describe_unsound", [](const std::string& run_dir) {
    std::vector<std::string> problems;
    const SoundVerdict verdict = sound::JudgeSoundOf(run_dir, &problems);
    return verdict.kind() == SoundVerdict::UNSOUND ? sound::ToText(verdict) : std::string();
  });
  py::class_<Run>(module, "TrainingRun")
      .def(py::init([](std::shared_ptr<Ranks> ranks, const std::optional<std::string>& path,
                       const std::optional<std::string>& json, const std::string& directory) {
        return std::make_unique<Run>(std::move(ranks), ConfigFrom(path, json), directory);
      }))
      .def("metric", &Run::Metric)
      .def("finish_iter", &Run::FinishIter)
      .def("finish", &Run::Finish)
      .def("set_interrupted", &Run::SetInterrupted)
      .def("close", &Run::Close)
      .def_property_readonly("iteration", &Run::iteration)
      .def_property_readonly("diverged", &Run::diverged)
      .def_property_readonly("run_dir", &Run::run_dir)
      .def("set_on_divergence", &Run::SetOnDivergence)
      .def("set_on_hang", &Run::SetOnHang);
}

}  // namespace ott::python
