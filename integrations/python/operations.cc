#include "integrations/python/operations.h"

#include <pybind11/stl.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "integrations/python/convert.h"
#include "ott/core/flight/flight_recorder.h"
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

// An operation that the op log is told of, from its construction to close().
class Operation {
 public:
  Operation(const std::string& name, const std::string& role, const std::string& module,
            const std::string& phase, const std::string& file, int line, const py::list& inputs) {
    const Place place{Kept(file), line};
    const std::vector<Value> values = Tensors(inputs);
    WithoutGil([&] {
      if (!phase.empty()) phase_.emplace(phase, place);
      if (!module.empty()) layer_.emplace(module, place);
      const OpRange::Op op = role == "update"       ? OpRange::Update(name)
                             : role == "load"       ? OpRange::Load(name)
                             : role == "collective" ? OpRange::Collective(name)
                                                    : OpRange::Op(name);
      range_.emplace(
          op, [&](const internal::OpArgsTaker& take) { TakeInputs(values, take); }, place);
    });
  }

  void SetOutputs(const py::list& outputs) {
    const std::vector<Value> values = Tensors(outputs);
    WithoutGil([&] {
      for (const Value& value : values) {
        if (range_.has_value() && value.is_tensor()) range_->Outputs(value.tensor().view);
      }
    });
  }

  void Close() {
    WithoutGil([&] {
      range_.reset();
      layer_.reset();
      phase_.reset();
    });
  }

 private:
  // An operation is expected to have so many; further ones are left out.
  static constexpr size_t kMaxInputs = 8;

  static void TakeInputs(const std::vector<Value>& values, const internal::OpArgsTaker& take) {
    OpArg args[kMaxInputs] = {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
    size_t count = 0;
    for (const Value& value : values) {
      if (count < kMaxInputs && value.is_tensor()) args[count++] = OpArg(value.tensor().view);
    }
    take(args);
  }

  std::optional<PhaseRange> phase_;
  std::optional<LayerRange> layer_;
  std::optional<OpRange> range_;
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
