// NVTX ranges around the operations of a training program: labelled as PyTorch labels its own, so that tools
// which read those read these too, and with a description in JSON.

#ifndef OTT_CORE_NVTX_OP_RANGE_H_
#define OTT_CORE_NVTX_OP_RANGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "ott/core/base/helper.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/place.h"
#include "ott/core/nvtx/op_arg.h"
#include "ott/core/nvtx/op_observer.h"

namespace ott {

class EventRecorder;  // core/events/event_recorder.h
class OpRangeConfig;  // config.proto

namespace internal {

class OpRangeCore;
class OpArgsTaker;
struct OpRangeThread;

struct OpNode {
  std::string_view name;
  OpRole role = OpRole::kOperation;
  // True if it is a node of the backward pass; only then the others mean something.
  bool is_backward = false;
  bool creates_graph = false;
  int forward_thread = 0;
  int64_t seq = -1;
};

// An open range; thread is null if nothing is recorded.
struct OpenRange {
  OpRangeThread* thread;
  uint64_t id;
};

}  // namespace internal

// The switch of OpRange and LayerRange. Off until Enable(), and free of cost until then. The instance of a
// process is OpRanges::Get(), for all its shared objects.
//
// Thread-safe; ranges, layers and sequence numbers belong to their thread.
class OpRanges {
 public:
  struct Options {
    // Sizes in the label; shapes in the JSON.
    bool record_shapes = true;
    // These in the JSON. Layouts are strides and device.
    bool record_dtypes = true;
    bool record_layouts = true;
    bool record_module = true;
    bool record_source = true;
    // Off: labels only.
    bool record_json = true;
    OnMisuse on_misuse = OnMisuse::kLogAndCount;
    // Receives each operation like the observer of TellObserver(), but its begin last and its end first, so
    // that it measures the operation alone; MeasureOps() of core/stopwatch/op_measurements.h sets it. Null:
    // none.
    OpObserver* observer = nullptr;
  };

  static OpRanges& Get();

  // Returns the options that an ott.Config asks for.
  static Options FromConfig(const OpRangeConfig& config);

  // Makes a switch of the caller's own.
  OpRanges();
  OpRanges(const OpRanges&) = delete;
  OpRanges& operator=(const OpRanges&) = delete;
  // REQUIRES: no other thread uses it any more.
  ~OpRanges();

  // Switches ranges on. FAILED_PRECONDITION if that was done before, naming where, if another
  // version of this library is in use in the process, or if a profiler's window is open; UNIMPLEMENTED in a
  // build without NVTX.
  absl::Status Enable(const Options& options, Place place = Place::Current());
  bool enabled() const;
  // Switches them off; they may be enabled again. No effect while they are off. REQUIRES: no range is open,
  // on any thread, and no profiler's window.
  void Disable();

  // Sends ranges also to `recorder` until the next call; while they are off, to it alone and not to NVTX. The
  // profiler calls this. Null ends it.
  void RecordInto(EventRecorder* recorder);

  // Tells `observer` of each operation until the next call; also while ranges are off, when NVTX gets
  // nothing. The log of operations calls this (core/op_log/op_log.h). An observer that received the begin of
  // an operation also receives its end, so it must live until these operations have ended. Null ends it.
  void TellObserver(OpObserver* observer);
  // Returns null if there is none.
  OpObserver* observer() const;

  // Returns the layers open on this thread, joined by dots: "encoder.0". Empty while off. Valid until a layer
  // begins or ends on this thread.
  std::string_view module_path() const;

  // Counts the ranges that ended in another order or on another thread than they began, or did not end.
  int64_t num_misuses() const;

 private:
  friend class LayerRange;
  friend class OpRange;
  friend class PhaseRange;
  friend struct OpRangesOfThisProcess;

  constexpr explicit OpRanges(const char* process_wide_name);
  explicit OpRanges(internal::OpRangeCore* own_core);

  internal::HelperCore<internal::OpRangeCore> core_;
};

// Holds what a node of the backward pass keeps of the operation that created it.
struct OpStash {
  // Below 0: nothing was recorded.
  int64_t seq = -1;
  // The kernel's id of the thread that counted seq.
  int thread = 0;
};

// The tensors that an operation reads: Inputs(q, k, v). Each is what an OpArg is made from; OpArg("q", q) has
// a name.
template <size_t kInputs>
struct OpInputs {
  OpArg args[kInputs];
};
template <typename... Tensors>
[[gnu::always_inline]] inline OpInputs<sizeof...(Tensors)> Inputs(const Tensors&... tensors) {
  static_assert(sizeof...(Tensors) > 0, "an operation without inputs needs no Inputs()");
  return {{OpArg(tensors)...}};
}

// A range around an operation, from construction to destruction; two nested ranges in NVTX, the label and the
// JSON. While ranges are off, that is one load and a branch; arguments are not looked at.
//
// Sequence numbers are PyTorch's: each thread counts the nodes of the backward pass that its operations
// create. An operation shows the number of the node that it would create next; Stash() creates it and returns
// the number, which the node shows when it runs. Operations inside of such a node show 0, unless the backward
// pass creates a graph of its own (double backward); then they have numbers as in the forward pass.
//
//   Tensor Linear(const Tensor& input) {
//     OTT_OP_RANGE(op, "linear", {input.view(), weight_.view(), bias_.view()});
//     ...
//     node->stash = op.Stash();
//   }
//   void LinearNode::Run(const Tensor& grad) {
//     OTT_OP_RANGE(op, ott::OpRange::Backward("LinearBackward0", stash), {grad.view()});
//     ...
//   }
//
// Tensors among the arguments are the operation's inputs, and what Outputs() gets are its outputs; a log of
// operations (core/op_log/op_log.h) records both:
//
//   ott::OpRange op("attention", ott::Inputs(q, k, v));
//   ...
//   op.Outputs(out);
class OpRange {
 public:
  // An operation. Made from a name, which must outlive it, or by Backward().
  struct Op {
    template <typename Name,
              typename = std::enable_if_t<std::is_convertible_v<const Name&, std::string_view>>>
    Op(const Name& name) : node_{name} {}

    // Uses a switch of the caller's own instead of OpRanges::Get().
    Op In(OpRanges& own) const {
      Op result = *this;
      result.ranges_ = &own;
      return result;
    }

   private:
    friend class OpRange;

    internal::OpNode node_;
    OpRanges* ranges_ = &OpRanges::Get();
  };

  // Makes a node of the backward pass. create_graph: the operations inside of it create nodes for a further
  // one.
  static Op Backward(std::string_view name, const OpStash& stash, bool create_graph = false) {
    Op op(name);
    op.node_.is_backward = true;
    op.node_.creates_graph = create_graph;
    op.node_.seq = stash.seq;
    op.node_.forward_thread = stash.thread;
    return op;
  }

  // Makes an operation that changes parameters or an optimizer's state, which are its outputs.
  static Op Update(std::string_view name) { return WithRole(name, OpRole::kUpdate); }
  // Makes one that brings what no operation made: a batch, parameters from a checkpoint, a random state.
  static Op Load(std::string_view name) { return WithRole(name, OpRole::kLoad); }
  // Makes one whose outputs depend on the inputs of other ranks: an all-reduce, a receive.
  static Op Collective(std::string_view name) { return WithRole(name, OpRole::kCollective); }

  explicit OpRange(const Op& op, Place place = Place::Current());
  // inputs: by Inputs().
  template <size_t kInputs>
  [[gnu::always_inline]] OpRange(const Op& op, const OpInputs<kInputs>& inputs,
                                 Place place = Place::Current())
      : OpRange(op, inputs.args, place) {}
  template <size_t kInputs, size_t kAttributes>
  [[gnu::always_inline]] OpRange(const Op& op, const OpInputs<kInputs>& inputs,
                                 const OpArg (&attributes)[kAttributes], Place place = Place::Current())
      : OpRange(op, inputs.args, attributes, place) {}
  // args: in braces, in the operation's order: {input, {"weight", weight}, {"eps", 1e-5}}.
  template <size_t kArgs>
  OpRange(const Op& op, const OpArg (&args)[kArgs], Place place = Place::Current());
  // attributes: in braces, each with its name: {{"stride", {1, 1}}, {"groups", 1}}.
  template <size_t kArgs, size_t kAttributes>
  OpRange(const Op& op, const OpArg (&args)[kArgs], const OpArg (&attributes)[kAttributes],
          Place place = Place::Current());
  // Calls with_args, except while ranges are off, with what takes args and attributes as above; for
  // OTT_OP_RANGE.
  template <typename WithArgs,
            typename = std::enable_if_t<std::is_invocable_v<const WithArgs&, const internal::OpArgsTaker&>>>
  OpRange(const Op& op, const WithArgs& with_args, Place place = Place::Current());

  OpRange(const OpRange&) = delete;
  OpRange& operator=(const OpRange&) = delete;
  ~OpRange();

  // Counts a node of the backward pass that this operation creates. While ranges are off, a stash that holds
  // nothing.
  // REQUIRES: the operation is not part of a backward pass that creates no graph.
  OpStash Stash();

  // The operation's outputs, once they are computed; takes what Inputs() takes. May be called several times;
  // arguments that are no tensors are ignored.
  template <typename... Tensors>
  void Outputs(const Tensors&... tensors);
  template <size_t kOutputs>
  void Outputs(const OpArg (&outputs)[kOutputs]);
  // Returns true if anybody receives outputs; to be asked where it costs something to make them.
  bool wants_outputs() const { return __builtin_expect(open_.thread != nullptr, 0); }

 private:
  static Op WithRole(std::string_view name, OpRole role) {
    Op op(name);
    op.node_.role = role;
    return op;
  }
  template <typename Begin>
  static internal::OpenRange IfOn(const Op& op, const Begin& begin);
  template <size_t kArgs, size_t... kIndices>
  static std::array<OpArg, kArgs> Copy(const OpArg (&args)[kArgs], std::index_sequence<kIndices...>);

  internal::OpenRange open_;
};

// A range `layer:NAME` from construction to destruction. The layers open on a thread are the module path of
// its operations: "encoder.0".
class LayerRange {
 public:
  explicit LayerRange(std::string_view name, Place place = Place::Current())
      : LayerRange(OpRanges::Get(), name, place) {}
  LayerRange(OpRanges& ranges, std::string_view name, Place place = Place::Current());

  LayerRange(const LayerRange&) = delete;
  LayerRange& operator=(const LayerRange&) = delete;
  ~LayerRange();

 private:
  internal::OpenRange open_;
};

// The phase of the training, from construction to destruction: "forward", "backward", "update". Operations
// are logged with it; a profiler and NVTX do not see it.
class PhaseRange {
 public:
  explicit PhaseRange(std::string_view name, Place place = Place::Current())
      : PhaseRange(OpRanges::Get(), name, place) {}
  PhaseRange(OpRanges& ranges, std::string_view name, Place place = Place::Current());

  PhaseRange(const PhaseRange&) = delete;
  PhaseRange& operator=(const PhaseRange&) = delete;
  ~PhaseRange();

 private:
  internal::OpenRange open_;
};

// Opens an OpRange over the rest of the enclosing block: OTT_OP_RANGE(variable, "linear", {input, weight}).
// Arguments are not evaluated while ranges are off.
#define OTT_OP_RANGE(variable, op, ...) \
  ::ott::OpRange variable(              \
      op, [&](const ::ott::internal::OpArgsTaker& ott_op_args) { ott_op_args(__VA_ARGS__); })

// Opens a LayerRange over the rest of the enclosing block.
#define OTT_LAYER(name) OTT_NVTX_INTERNAL_LAYER(name, __LINE__)

// Opens a PhaseRange over the rest of the enclosing block.
#define OTT_PHASE(name) OTT_NVTX_INTERNAL_PHASE(name, __LINE__)

#define OTT_NVTX_INTERNAL_PHASE(name, line) OTT_NVTX_INTERNAL_PHASE_AT(name, line)
#define OTT_NVTX_INTERNAL_PHASE_AT(name, line) const ::ott::PhaseRange ott_phase_##line(name)
#define OTT_NVTX_INTERNAL_LAYER(name, line) OTT_NVTX_INTERNAL_LAYER_AT(name, line)
#define OTT_NVTX_INTERNAL_LAYER_AT(name, line) const ::ott::LayerRange ott_layer_##line(name)

// Implementation of the inline calls.

namespace internal {

[[gnu::cold]] OpenRange BeginOp(OpRangeCore& core, const OpNode& op, absl::Span<const OpArg> args,
                                absl::Span<const OpArg> attributes, const char* file, int line);
[[gnu::cold]] OpenRange BeginLayer(OpRangeCore& core, const char* name, size_t size, const char* file,
                                   int line);
[[gnu::cold]] OpenRange BeginPhase(OpRangeCore& core, const char* name, size_t size, const char* file,
                                   int line);
[[gnu::cold]] void AddOutputs(OpenRange open, absl::Span<const OpArg> outputs);
[[gnu::cold]] void EndRange(OpenRange open);
[[gnu::cold]] OpStash StashOp(OpenRange open);

class OpArgsTaker {
 public:
  OpArgsTaker(OpRangeCore& core, const OpNode& op, Place place) : core_(core), op_(op), place_(place) {}
  OpArgsTaker(const OpArgsTaker&) = delete;
  OpArgsTaker& operator=(const OpArgsTaker&) = delete;

  void operator()() const { open_ = BeginOp(core_, op_, {}, {}, place_.file, place_.line); }
  template <size_t kInputs>
  void operator()(const OpInputs<kInputs>& inputs) const {
    (*this)(inputs.args);
  }
  template <size_t kInputs, size_t kAttributes>
  void operator()(const OpInputs<kInputs>& inputs, const OpArg (&attributes)[kAttributes]) const {
    (*this)(inputs.args, attributes);
  }
  template <size_t kArgs>
  void operator()(const OpArg (&args)[kArgs]) const {
    open_ = BeginOp(core_, op_, args, {}, place_.file, place_.line);
  }
  template <size_t kArgs, size_t kAttributes>
  void operator()(const OpArg (&args)[kArgs], const OpArg (&attributes)[kAttributes]) const {
    open_ = BeginOp(core_, op_, args, attributes, place_.file, place_.line);
  }

  OpenRange open() const { return open_; }

 private:
  OpRangeCore& core_;
  const OpNode& op_;
  const Place place_;
  mutable OpenRange open_{};
};

}  // namespace internal

// Never destroyed, so that static destructors can use it.
struct OpRangesOfThisProcess {
  union Immortal {
    constexpr Immortal();
    ~Immortal() {}
    OpRanges ranges;
  };
  static Immortal instance;
  static const ProcessWide<internal::OpRangeCore>::JoinAtLoad join_at_load;
};

inline OpRanges& OpRanges::Get() { return OpRangesOfThisProcess::instance.ranges; }

// Everything is inlined, and what is passed on is copied behind the branch, so that nothing of it is left
// before it.

template <typename Begin>
[[gnu::always_inline]] inline internal::OpenRange OpRange::IfOn(const Op& op, const Begin& begin) {
  auto* core = op.ranges_->core_.IfEnabled();
  if (__builtin_expect(core == nullptr, 1)) return {};
  const internal::OpNode copy = op.node_;
  return begin(*core, copy);
}

template <size_t kArgs, size_t... kIndices>
[[gnu::always_inline]] inline std::array<OpArg, kArgs> OpRange::Copy(const OpArg (&args)[kArgs],
                                                                     std::index_sequence<kIndices...>) {
  return {args[kIndices]...};
}

[[gnu::always_inline]] inline OpRange::OpRange(const Op& op, Place place)
    : open_(IfOn(
          op, [&](internal::OpRangeCore & core, const internal::OpNode& copy) __attribute__((always_inline)) {
            return internal::BeginOp(core, copy, {}, {}, place.file, place.line);
          })) {}

template <size_t kArgs>
[[gnu::always_inline]] inline OpRange::OpRange(const Op& op, const OpArg (&args)[kArgs], Place place)
    : open_(IfOn(
          op, [&](internal::OpRangeCore & core, const internal::OpNode& copy) __attribute__((always_inline)) {
            return internal::BeginOp(core, copy, Copy(args, std::make_index_sequence<kArgs>()), {},
                                     place.file, place.line);
          })) {}

template <size_t kArgs, size_t kAttributes>
[[gnu::always_inline]] inline OpRange::OpRange(const Op& op, const OpArg (&args)[kArgs],
                                               const OpArg (&attributes)[kAttributes], Place place)
    : open_(IfOn(
          op, [&](internal::OpRangeCore & core, const internal::OpNode& copy) __attribute__((always_inline)) {
            return internal::BeginOp(core, copy, Copy(args, std::make_index_sequence<kArgs>()),
                                     Copy(attributes, std::make_index_sequence<kAttributes>()), place.file,
                                     place.line);
          })) {}

template <typename WithArgs, typename>
[[gnu::always_inline]] inline OpRange::OpRange(const Op& op, const WithArgs& with_args, Place place)
    : open_(IfOn(
          op, [&](internal::OpRangeCore & core, const internal::OpNode& copy) __attribute__((always_inline)) {
            const WithArgs with_args_copy = with_args;
            const internal::OpArgsTaker taker(core, copy, place);
            with_args_copy(taker);
            return taker.open();
          })) {}

inline OpRange::~OpRange() {
  if (__builtin_expect(open_.thread != nullptr, 0)) internal::EndRange(open_);
}

inline OpStash OpRange::Stash() {
  if (__builtin_expect(open_.thread == nullptr, 1)) return {};
  return internal::StashOp(open_);
}

template <typename... Tensors>
[[gnu::always_inline]] inline void OpRange::Outputs(const Tensors&... tensors) {
  if (__builtin_expect(open_.thread == nullptr, 1)) return;
  internal::AddOutputs(open_, Inputs(tensors...).args);
}

template <size_t kOutputs>
[[gnu::always_inline]] inline void OpRange::Outputs(const OpArg (&outputs)[kOutputs]) {
  if (__builtin_expect(open_.thread == nullptr, 1)) return;
  internal::AddOutputs(open_, Copy(outputs, std::make_index_sequence<kOutputs>()));
}

inline LayerRange::LayerRange(OpRanges& ranges, std::string_view name, Place place)
    : open_([&]() -> internal::OpenRange {
        auto* core = ranges.core_.IfEnabled();
        if (__builtin_expect(core == nullptr, 1)) return {};
        return internal::BeginLayer(*core, name.data(), name.size(), place.file, place.line);
      }()) {}

inline LayerRange::~LayerRange() {
  if (__builtin_expect(open_.thread != nullptr, 0)) internal::EndRange(open_);
}

inline PhaseRange::PhaseRange(OpRanges& ranges, std::string_view name, Place place)
    : open_([&]() -> internal::OpenRange {
        auto* core = ranges.core_.IfEnabled();
        if (__builtin_expect(core == nullptr, 1)) return {};
        return internal::BeginPhase(*core, name.data(), name.size(), place.file, place.line);
      }()) {}

inline PhaseRange::~PhaseRange() {
  if (__builtin_expect(open_.thread != nullptr, 0)) internal::EndRange(open_);
}

}  // namespace ott

#endif  // OTT_CORE_NVTX_OP_RANGE_H_
