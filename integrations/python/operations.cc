#include "integrations/python/operations.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "integrations/python/convert.h"
#include "ott/core/base/misuse.h"
#include "ott/core/flight/flight_recorder.h"
#include "ott/core/nvtx/op_observer.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/op_log/perturbation.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace ott::python {
namespace {

namespace py = pybind11;

// Says what ranks wait for in a measurement; role: "collective", "work", "send" or "receive", with the peer.
void SetOperation(const std::string& name, const std::string& role, const std::string& group,
                  std::vector<int> ranks, int64_t size, int peer, bool synchronizes) {
  FlightOperation operation = FlightOperation::Collective(group, std::move(ranks), "", size);
  if (role == "send") {
    operation = FlightOperation::Send(peer);
  } else if (role == "receive") {
    operation = FlightOperation::Receive(peer);
  } else if (role == "work") {
    operation = FlightOperation();
  } else if (role != "collective") {
    throw py::value_error(
        absl::StrCat("a role is 'collective', 'work', 'send' or 'receive', not '", role, "'"));
  }
  operation.synchronizes = synchronizes;
  WithoutGil([&] { Stopwatch::Get().SetOperation(name, operation); });
}

// Moves a tensor by rounding where the configuration asks for it. It has no gaps and lies in host memory.
void Offer(const std::string& path, const py::object& tensor) {
  const Value value = FromPython(tensor, path);
  if (!value.is_tensor()) throw py::type_error("offer() takes a tensor");
  const TensorView& view = value.tensor().view;
  if (!view.is_contiguous()) throw py::value_error("offer() takes a tensor without gaps");
  Check(WithoutGil([&] { return Perturbation::OfferView(path, view, const_cast<void*>(view.data())); }));
}

// Text that lives as long as the process, as places refer to it.
const char* Kept(const std::string& text) {
  static auto* const kept = new std::unordered_set<std::string>();
  return kept->insert(text).first->c_str();
}

std::vector<Value> Tensors(const py::list& list) {
  std::vector<Value> tensors;
  for (const py::handle item : list) tensors.push_back(FromPython(item, "tensor"));
  return tensors;
}

// An operation that the op log is told of, from its construction to close(). It is no OpRange, as updates of
// several parameters are open at once, and some operations have hundreds of inputs.
class Operation {
 public:
  Operation(const std::string& name, const std::string& role, const std::string& module,
            const std::string& phase, const std::string& file, int line, const py::list& inputs)
      : observer_(OpRanges::Get().observer()) {
    if (observer_ == nullptr) return;
    const std::vector<Value> values = Tensors(inputs);
    ObservedOp op;
    op.name = name;
    op.role = role == "update"       ? OpRole::kUpdate
              : role == "load"       ? OpRole::kLoad
              : role == "collective" ? OpRole::kCollective
                                     : OpRole::kOperation;
    op.module = module;
    op.phase = phase;
    op.source = Place{Kept(file), line};
    op.thread = internal::ThisThreadId();
    WithoutGil([&] {
      const std::vector<OpArg> args = Args(values);
      op.args = args;
      op_ = observer_->Begin(op);
    });
  }

  void SetOutputs(const py::list& outputs) {
    if (op_ == nullptr) return;
    const std::vector<Value> values = Tensors(outputs);
    WithoutGil([&] { observer_->AddOutputs(op_, Args(values)); });
  }

  void Close() {
    if (void* const op = std::exchange(op_, nullptr); op != nullptr) WithoutGil([&] { observer_->End(op); });
  }

 private:
  static std::vector<OpArg> Args(const std::vector<Value>& values) {
    std::vector<OpArg> args;
    for (const Value& value : values) {
      if (value.is_tensor()) args.emplace_back(value.tensor().view);
    }
    return args;
  }

  OpObserver* const observer_;
  void* op_ = nullptr;
};

}  // namespace

void DefineOperations(py::module_& module) {
  module.def("set_operation", &SetOperation, py::arg("name"), py::arg("role"), py::arg("group"),
             py::arg("ranks"), py::arg("size"), py::arg("peer"), py::arg("synchronizes"));
  module.def("offer", &Offer, py::arg("path"), py::arg("tensor"));
  module.def("logs_operations", [] { return OpRanges::Get().observer() != nullptr; });
  py::class_<Operation>(module, "Operation")
      .def(py::init<std::string, std::string, std::string, std::string, std::string, int, py::list>(),
           py::arg("name"), py::arg("role"), py::arg("module"), py::arg("phase"), py::arg("file"),
           py::arg("line"), py::arg("inputs"))
      .def("set_outputs", &Operation::SetOutputs)
      .def("close", &Operation::Close);
}

}  // namespace ott::python
