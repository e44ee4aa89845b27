#include "ott/integrations/torch/emit_nvtx.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <atomic>
#include <exception>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/per_thread.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/nvtx/nvtx.h"
#include "ott/core/nvtx/op_arg.h"
#include "ott/core/nvtx/op_observer.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/nvtx/op_text.h"
#include "ott/core/trace/profiler.h"
#include "ott/integrations/torch/tensor.h"

namespace ott {
namespace {

using internal::TextBuffer;

// An open range, where JSON is recorded.
struct OpenRange {
  bool has_json;
  // True if it is, or is inside of, a node of the backward pass.
  bool is_backward;
};

// An open operation that is logged; without an observer it is not.
struct ObservedRange {
  OpObserver* observer;
  void* op;
  bool is_backward;
};

struct ThreadState {
  int kernel_id = 0;
  TextBuffer label;
  TextBuffer json;
  std::vector<absl::Span<const int64_t>> sizes;
  // Innermost last.
  std::vector<OpenRange> ranges;
  // The open operations, innermost last, while operations are logged.
  std::vector<ObservedRange> observed;
};

struct Threads {
  // The kernel's ids by LibTorch's, guarded by states.mutex().
  std::unordered_map<uint64_t, int> kernel_ids;
  internal::PerThread<ThreadState> states{[this](ThreadState& state) {
                                            state.kernel_id = internal::ThisThreadId();
                                            kernel_ids[at::RecordFunction::currentThreadId()] =
                                                state.kernel_id;
                                          },
                                          [](ThreadState& state) {
                                            state.ranges.clear();
                                            state.observed.clear();
                                            return true;
                                          }};
};

// Never destroyed: operations run in static destructors, too.
Threads& AllThreads() {
  static Threads& threads = *new Threads;
  return threads;
}

// The thread that counted the sequence number. 0 if it has run no operation under observation.
int ForwardThreadOf(const at::RecordFunction& function, const ThreadState& thread) {
  const uint64_t forward_thread = function.forwardThreadId();
  if (forward_thread == 0 || forward_thread == function.threadId()) return thread.kernel_id;
  Threads& threads = AllThreads();
  const std::lock_guard<std::mutex> lock(threads.states.mutex());
  const auto found = threads.kernel_ids.find(forward_thread);
  return found == threads.kernel_ids.end() ? 0 : found->second;
}

bool IsNode(const at::RecordFunction& function) {
  return function.scope() == at::RecordScope::BACKWARD_FUNCTION;
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

// Returns the path of TorchScript's names for the modules around a call, innermost last, each with its type
// and function: "encoder.0" of "TOP(Net)::forward.encoder(Encoder)::forward.0(Linear)::forward".
std::string ModulePath(std::string_view hierarchy) {
  std::string path;
  std::string name;
  int depth = 0;
  bool in_name = true;
  const auto take = [&] {
    if (!name.empty() && name != "TOP" && name != "SELF") {
      if (!path.empty()) path += '.';
      path += name;
    }
    name.clear();
    in_name = true;
  };
  for (const char c : hierarchy) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (depth > 0 || c == ')') continue;
    if (c == '.') {
      take();
    } else if (c == ':') {
      in_name = false;
    } else if (in_name) {
      name += c;
    }
  }
  take();
  return path;
}

// The place from which an operation was called. TorchScript's interpreter knows line and modules; in eager
// mode LibTorch knows neither, and the module is that of the layers that are open.
struct CallSite {
  CallSite() {
    const std::vector<torch::jit::StackEntry> stack = torch::jit::currentCallstack();
    if (stack.empty()) {
      module = OpRanges::Get().module_path();
      return;
    }
    if (const auto place = stack.front().range.file_line_col(); place.has_value()) {
      file = std::get<0>(*place);
      line = static_cast<int>(std::get<1>(*place));
    }
    const std::vector<std::string> modules = torch::jit::currentModuleHierarchy();
    if (!modules.empty()) module = ModulePath(modules.back());
  }

  std::string file;
  int line = 0;
  std::string module;
};

// Null for what is no operator.
const c10::FunctionSchema* SchemaOf(const at::RecordFunction& function) {
  const auto name = function.operator_name();
  if (!name.has_value()) return nullptr;
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  return op.has_value() ? &op->schema() : nullptr;
}

// Returns true if the operation has JSON, which is then in thread.json.
bool FormatJson(const at::RecordFunction& function, bool is_backward, ThreadState& thread) {
  const c10::FunctionSchema* const schema = SchemaOf(function);
  if (!IsNode(function) && schema == nullptr) return false;

  const Arguments arguments(function.inputs(), schema);
  const CallSite site;
  internal::LabelledOp description;
  description.name = function.name();
  description.args = arguments.args();
  description.backward = is_backward;
  description.seq = function.seqNr();
  description.module = site.module;
  if (!site.file.empty()) description.source = {site.file.c_str(), site.line};
  if (IsNode(function) && function.seqNr() >= 0) {
    description.forward_thread = ForwardThreadOf(function, thread);
  }
  internal::FormatOpJson(description, {}, thread.json);
  return true;
}

// The JSON; empty for what has none, such as a user's own scope.
std::string_view PushJson(const at::RecordFunction& function, ThreadState& thread) {
  OpenRange range;
  range.is_backward = IsNode(function) || (!thread.ranges.empty() && thread.ranges.back().is_backward);
  range.has_json = FormatJson(function, range.is_backward, thread);
  thread.ranges.push_back(range);
  if (!range.has_json) return {};
  internal::NvtxPush(thread.json.c_str());
  return thread.json.view();
}

void PopJson(ThreadState& thread) {
  if (thread.ranges.empty()) return;
  if (thread.ranges.back().has_json) internal::NvtxPop();
  thread.ranges.pop_back();
}

// Tells the observer, if there is one, of the operation's begin.
void Observe(const at::RecordFunction& function, ThreadState& thread) {
  ObservedRange range = {OpRanges::Get().observer(), nullptr, IsNode(function)};
  range.is_backward = range.is_backward || (!thread.observed.empty() && thread.observed.back().is_backward);
  if (range.observer != nullptr) {
    const Arguments arguments(function.inputs(), SchemaOf(function));
    const CallSite site;
    ObservedOp observed;
    observed.name = function.name();
    observed.module = site.module;
    observed.is_backward = range.is_backward;
    observed.seq = function.seqNr();
    if (!site.file.empty()) observed.source = {site.file.c_str(), site.line};
    observed.thread = thread.kernel_id;
    observed.args = arguments.args();
    range.op = range.observer->Begin(observed);
  }
  thread.observed.push_back(range);
}

void EndObserved(const at::RecordFunction& function, ThreadState& thread) {
  if (thread.observed.empty()) return;
  const ObservedRange range = thread.observed.back();
  thread.observed.pop_back();
  if (range.observer == nullptr) return;
  const std::vector<c10::IValue>& outputs = function.outputs();
  const Arguments arguments(c10::ArrayRef<const c10::IValue>(outputs.data(), outputs.size()), nullptr);
  range.observer->AddOutputs(range.op, arguments.args());
  range.observer->End(range.op);
}

EventFlow Flow(const at::RecordFunction& function, const ThreadState& thread) {
  if (function.seqNr() < 0) return {};
  if (!IsNode(function)) return {EventFlow::End::kStart, FlowId(thread.kernel_id, function.seqNr())};
  return {EventFlow::End::kFinish, FlowId(ForwardThreadOf(function, thread), function.seqNr())};
}

struct AsyncRange : at::ObserverContext {
  explicit AsyncRange(uint64_t id) : id(id) {}
  const uint64_t id;
};

template <bool kShapes, bool kJson, bool kLog>
std::unique_ptr<at::ObserverContext> Begin(const at::RecordFunction& function) {
  ThreadState& thread = AllThreads().states.Get();
  thread.sizes.clear();
  if constexpr (kShapes) AddSizes(function.inputs(), thread.sizes);
  internal::FormatOpLabel(function.name(), function.seqNr(), thread.sizes, thread.label);
  if (function.isAsync()) {
    return std::make_unique<AsyncRange>(internal::NvtxStartRange(thread.label.c_str()));
  }
  internal::NvtxPush(thread.label.c_str());
  std::string_view json;
  if constexpr (kJson) json = PushJson(function, thread);
  if (EventRecorder* const recorder = Profiler::Get().IfRecording(); recorder != nullptr) {
    recorder->BeginRange(EventCategory::kOp, thread.label.view(), recorder->Now(), json,
                         Flow(function, thread));
  }
  if constexpr (kLog) Observe(function, thread);
  return nullptr;
}

template <bool kJson, bool kLog>
void End(const at::RecordFunction& function, at::ObserverContext* context) {
  if (context != nullptr) return internal::NvtxEndRange(static_cast<AsyncRange*>(context)->id);
  if constexpr (kLog) EndObserved(function, AllThreads().states.Get());
  if constexpr (kJson) PopJson(AllThreads().states.Get());
  internal::NvtxPop();
  if (EventRecorder* const recorder = Profiler::Get().IfRecording(); recorder != nullptr) {
    recorder->EndRange(EventCategory::kOp, recorder->Now());
  }
}

template <bool kLog>
at::RecordFunctionCallback CallbackFor(const EmitNvtx::Options& options) {
  if (options.record_json) {
    return at::RecordFunctionCallback(
        options.record_shapes ? &Begin<true, true, kLog> : &Begin<false, true, kLog>, &End<true, kLog>);
  }
  return at::RecordFunctionCallback(
      options.record_shapes ? &Begin<true, false, kLog> : &Begin<false, false, kLog>, &End<false, kLog>);
}

std::atomic<bool> is_emitting{false};

}  // namespace

absl::StatusOr<std::unique_ptr<EmitNvtx>> EmitNvtx::Start(const Options& options) {
  OTT_RETURN_IF_ERROR(internal::NvtxStatus());
  if (is_emitting.exchange(true)) {
    return absl::FailedPreconditionError(
        "LibTorch's operations emit NVTX ranges already; end that EmitNvtx first");
  }
  at::RecordFunctionCallback callback =
      options.log_operations ? CallbackFor<true>(options) : CallbackFor<false>(options);
  callback.needsInputs(options.record_shapes || options.record_json || options.log_operations);
  callback.needsOutputs(options.log_operations);
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
