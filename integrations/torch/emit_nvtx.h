// NVTX ranges around LibTorch's operations.

#ifndef OTT_INTEGRATIONS_TORCH_EMIT_NVTX_H_
#define OTT_INTEGRATIONS_TORCH_EMIT_NVTX_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace ott {

// While it lives, every operation of LibTorch on every thread, in the forward pass and in backward passes of
// any order, emits an NVTX range in the default domain, with the label of PyTorch's
// torch.autograd.profiler.emit_nvtx(record_shapes=True):
//
//   aten::addmm, seq = 12, sizes = [[64], [32, 128], [128, 64], [], []]
//   AddmmBackward0, seq = 12, sizes = [[32, 64]]
//
// Works in builds of LibTorch without CUDA too, where PyTorch's does not. Sequence numbers are LibTorch's:
// each thread counts the nodes of the backward pass that it creates, and a node shows the number of the
// operation that created it. Tensors of a list are listed one by one, and what is no tensor is []. op_id and
// input_op_ids, which PyTorch writes since 1.12, are left out. What LibTorch marks as asynchronous, such as a
// collective that ends on another thread, becomes a range of the process instead.
//
// In the windows of Profiler::Get() operations are recorded as well, except for asynchronous ones, with
// arrows from the forward to the backward pass.
//
// Observes nothing, and costs nothing, before and after. Thread-safe.
//
//   OTT_ASSIGN_OR_RETURN(const auto emit_nvtx, EmitNvtx::Start());
//   Train();
class EmitNvtx {
 public:
  struct Options {
    // Sizes in the label.
    bool record_shapes = true;
    // Within each operator's range a second one with its arguments in JSON, as OpRange's (op_range.h), and
    // the file and line of TorchScript that called it and the modules around that. In eager mode LibTorch
    // tells neither; then the module is that of the LayerRanges that are open, where OpRanges are on.
    bool record_json = false;
    // Whoever OpRanges::TellObserver() named, such as the log of operations (`op_log {}` in ott.Config), is
    // told of each operation, with its inputs and outputs. Of nodes of the backward pass LibTorch tells no
    // outputs; the operations inside of them have theirs. LibTorch's updates of parameters are operations
    // like others: make a range around them, OpRange op(OpRange::Update("adam"), ...).
    bool log_operations = false;
  };

  // Starts it. FAILED_PRECONDITION while another one lives; UNIMPLEMENTED in a build without NVTX.
  static absl::StatusOr<std::unique_ptr<EmitNvtx>> Start() { return Start(Options()); }
  static absl::StatusOr<std::unique_ptr<EmitNvtx>> Start(const Options& options);

  EmitNvtx(const EmitNvtx&) = delete;
  EmitNvtx& operator=(const EmitNvtx&) = delete;
  // Operations that are running still end their ranges.
  ~EmitNvtx();

 private:
  explicit EmitNvtx(uint64_t callback) : callback_(callback) {}

  const uint64_t callback_;
};

}  // namespace ott

#endif  // OTT_INTEGRATIONS_TORCH_EMIT_NVTX_H_
