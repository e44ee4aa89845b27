#include "ott/integrations/torch/emit_nvtx.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <atomic>
#include <exception>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/per_thread.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/nvtx/nvtx.h"
#include "ott/core/nvtx/op_arg.h"
#include "ott/core/nvtx/op_text.h"
#include "ott/integrations/torch/tensor.h"

namespace ott {
namespace {

using internal::TextBuffer;

// An open range, where JSON is recorded.
struct OpenRange {
  bool has_json;
  // Whether it is, or is inside of, a node of the backward pass.
  bool is_backward;
};

struct ThreadState {
  TextBuffer text;
  std::vector<absl::Span<const int64_t>> sizes;
  // Innermost last.
  std::vector<OpenRange> ranges;
};

struct Threads {
  // The kernel's ids by LibTorch's, guarded by states.mutex().
  std::unordered_map<uint64_t, int> kernel_ids;
  internal::PerThread<ThreadState> states{
      [this](ThreadState&) { kernel_ids[at::RecordFunction::currentThreadId()] = internal::ThisThreadId(); },
      [](ThreadState& state) {
        state.ranges.clear();
        return true;
      }};
};

// Never destroyed: operations run in static destructors, too.
Threads& AllThreads() {
  static Threads& threads = *new Threads;
  return threads;
}

// 0 for a thread that has run no operation under observation.
int KernelIdOf(uint64_t torch_thread) {
  Threads& threads = AllThreads();
  const std::lock_guard<std::mutex> lock(threads.states.mutex());
  const auto found = threads.kernel_ids.find(torch_thread);
  return found == threads.kernel_ids.end() ? 0 : found->second;
}

absl::Span<const int64_t> SizesOf(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.is_nested()) return {};
  try {
    const c10::IntArrayRef sizes = tensor.sizes();
    return {sizes.data(), sizes.size()};
  } catch (const std::exception&) {
    return {};  // of an extension's tensor whose sizes are not known
  }
}

// Calls f with each tensor of the argument, a tensor or a list. Whether there is one.
template <typename F>
bool ForEachTensor(const c10::IValue& argument, const F& f) {
  if (argument.isTensor()) {
    f(argument.toTensor());
    return true;
  }
  bool found = false;
  if (argument.isList()) {
    for (const c10::IValue& item : argument.toListRef()) {
      if (!item.isTensor() || !item.toTensor().defined()) continue;
      f(item.toTensor());
      found = true;
    }
  }
  return found;
}

// Adds those of each argument, and of each tensor of a list.
void AddSizes(c10::ArrayRef<const c10::IValue> inputs, std::vector<absl::Span<const int64_t>>& sizes) {
  for (const c10::IValue& input : inputs) {
    if (!ForEachTensor(input, [&](const at::Tensor& tensor) { sizes.push_back(SizesOf(tensor)); })) {
      sizes.push_back({});
    }
  }
}

// An operation's arguments, and what they refer to.
class Arguments {
 public:
  // Nodes of the backward pass have no schema.
  Arguments(c10::ArrayRef<const c10::IValue> inputs, const c10::FunctionSchema* schema) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool has_name = schema != nullptr && i < schema->arguments().size();
      Add(has_name ? schema->arguments()[i].name().c_str() : "", inputs[i]);
    }
  }

  absl::Span<const OpArg> args() const { return args_; }

 private:
  void Add(const char* name, const c10::IValue& input) {
    const auto add_tensor = [&](const at::Tensor& tensor) { args_.push_back({name, TensorArg(tensor)}); };
    if (!ForEachTensor(input, add_tensor)) args_.push_back({name, ValueArg(input)});
  }

  OpArg TensorArg(const at::Tensor& tensor) {
    absl::StatusOr<Tensor> readable = FromTorch(tensor);
    if (!readable.ok()) return nullptr;
    return tensors_.emplace_back(*std::move(readable)).view;
  }

  OpArg ValueArg(const c10::IValue& value) {
    if (value.isBool()) return value.toBool();
    if (value.isInt()) return value.toInt();
    if (value.isDouble()) return value.toDouble();
    if (value.isString()) return value.toStringRef();
    if (value.isIntList()) return lists_.emplace_back(value.toIntVector());
    return nullptr;
  }

  std::vector<OpArg> args_;
  std::list<Tensor> tensors_;
  std::list<std::vector<int64_t>> lists_;
};

void FormatJson(const at::RecordFunction& function, const c10::FunctionSchema* schema, bool is_backward,
                TextBuffer& text) {
  const Arguments arguments(function.inputs(), schema);
  internal::OpDescription op;
  op.name = function.name();
  op.args = arguments.args();
  op.backward = is_backward;
  op.seq = function.seqNr();
  if (function.forwardThreadId() != 0) op.forward_thread = KernelIdOf(function.forwardThreadId());
  internal::FormatOpJson(op, {}, text);
}

void PushJson(const at::RecordFunction& function, ThreadState& thread) {
  const bool is_node = function.scope() == at::RecordScope::BACKWARD_FUNCTION;
  OpenRange range;
  range.is_backward = is_node || (!thread.ranges.empty() && thread.ranges.back().is_backward);
  c10::Dispatcher& dispatcher = c10::Dispatcher::singleton();
  const auto name = function.operator_name();
  const auto op = name.has_value() ? dispatcher.findSchema(*name) : decltype(dispatcher.findSchema(*name))();
  range.has_json = is_node || op.has_value();
  if (range.has_json) {
    FormatJson(function, op.has_value() ? &op->schema() : nullptr, range.is_backward, thread.text);
    internal::NvtxPush(thread.text.c_str());
  }
  thread.ranges.push_back(range);
}

void PopJson(ThreadState& thread) {
  if (thread.ranges.empty()) return;
  if (thread.ranges.back().has_json) internal::NvtxPop();
  thread.ranges.pop_back();
}

struct AsyncRange : at::ObserverContext {
  explicit AsyncRange(uint64_t id) : id(id) {}
  const uint64_t id;
};

template <bool kShapes, bool kJson>
std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& function) {
  ThreadState& thread = AllThreads().states.Get();
  thread.sizes.clear();
  if constexpr (kShapes) AddSizes(function.inputs(), thread.sizes);
  internal::FormatOpLabel(function.name(), function.seqNr(), thread.sizes, thread.text);
  if (function.isAsync()) {
    return std::make_unique<AsyncRange>(internal::NvtxStartRange(thread.text.c_str()));
  }
  internal::NvtxPush(thread.text.c_str());
  if constexpr (kJson) PushJson(function, thread);
  return nullptr;
}

template <bool kJson>
void End(const at::RecordFunction&, at::ObserverContext* context) {
  if (context != nullptr) return internal::NvtxEndRange(static_cast<AsyncRange*>(context)->id);
  if constexpr (kJson) PopJson(AllThreads().states.Get());
  internal::NvtxPop();
}

at::RecordFunctionCallback CallbackFor(const EmitNvtx::Options& options) {
  if (options.record_json) {
    return at::RecordFunctionCallback(options.record_shapes ? &Begin<true, true> : &Begin<false, true>,
                                      &End<true>);
  }
  return at::RecordFunctionCallback(options.record_shapes ? &Begin<true, false> : &Begin<false, false>,
                                    &End<false>);
}

std::atomic<bool> is_emitting{false};

}  // namespace

absl::StatusOr<std::unique_ptr<EmitNvtx>> EmitNvtx::Start(const Options& options) {
  OTT_RETURN_IF_ERROR(internal::NvtxStatus());
  if (is_emitting.exchange(true)) {
    return absl::FailedPreconditionError(
        "LibTorch's operations emit NVTX ranges already; end that EmitNvtx first");
  }
  at::RecordFunctionCallback callback = CallbackFor(options);
  callback.needsInputs(options.record_shapes || options.record_json);
  // The others are of mobile builds. Each scope costs a little in every node of the backward pass.
  using Scope = at::RecordScope;
  callback.scopes({Scope::FUNCTION, Scope::BACKWARD_FUNCTION, Scope::TORCHSCRIPT_FUNCTION,
                   Scope::CUSTOM_CLASS, Scope::USER_SCOPE});
  return std::unique_ptr<EmitNvtx>(new EmitNvtx(at::addGlobalCallback(callback)));
}

EmitNvtx::~EmitNvtx() {
  at::removeCallback(callback_);
  is_emitting.store(false);
}

}  // namespace ott
