// The extension module ott._ott_torch: what needs LibTorch itself, which must be that of the PyTorch in use.

#include <pybind11/pybind11.h>

#include <memory>

#include "integrations/python/status.h"
#include "ott/integrations/torch/emit_nvtx.h"

namespace {

// Ranges while it is open.
class Observer {
 public:
  Observer(bool record_shapes, bool record_json) {
    ott::EmitNvtx::Options options;
    options.record_shapes = record_shapes;
    options.record_json = record_json;
    emit_nvtx_ = ott::python::Check(ott::EmitNvtx::Start(options));
  }

  // Waits for no one, but observers run without the GIL.
  void Close() {
    ott::python::WithoutGil([this] { emit_nvtx_.reset(); });
  }

 private:
  std::unique_ptr<ott::EmitNvtx> emit_nvtx_;
};

}  // namespace

PYBIND11_MODULE(_ott_torch, module) {
  module.doc() = "The part of the C++ core that observes LibTorch; not to be used directly.";
  pybind11::class_<Observer>(module, "Observer")
      .def(pybind11::init<bool, bool>())
      .def("close", &Observer::Close);
}
