#include "ott/core/nvtx/op_range.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/misuse_log.h"
#include "ott/core/base/per_thread.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/nvtx/nvtx.h"
#include "ott/core/nvtx/op_text.h"

namespace ott {
namespace internal {

// The open ranges of one thread, and what it counts.
struct OpRangeThread {
  struct Told {
    // Null: nobody.
    OpObserver* observer = nullptr;
    // The result of its Begin().
    void* op = nullptr;
  };
  struct Range {
    uint64_t id = 0;
    std::string name;
    Place place{};
    int num_nvtx_ranges = 0;
    // A phase is no range of NVTX and of the profiler.
    bool is_phase = false;
    // The observers that were told of its begin: TellObserver()'s, and then that of the options.
    Told told_first;
    Told told_last;
    // The size of the module path that this range is inside of.
    size_t module_size = 0;
    // True if it is, or is inside of, a node of the backward pass.
    bool is_backward = false;
    // True if operations in it create nodes of the backward pass.
    bool creates_graph = true;
  };

  OpRangeCore* core = nullptr;
  // The kernel's.
  int thread_id = 0;
  int64_t next_seq = 0;
  uint64_t last_id = 0;
  // Innermost last. Entries beyond `depth` are kept to be used again.
  std::vector<Range> ranges;
  size_t depth = 0;
  // Names of the open layers, joined by dots.
  std::string module;
  TextBuffer label;
  TextBuffer json;

  // Inherits from the innermost.
  Range& Push(std::string_view name, Place place) {
    if (depth == ranges.size()) ranges.emplace_back();
    Range& range = ranges[depth];
    range.id = ++last_id;
    range.name = name;
    range.place = place;
    range.num_nvtx_ranges = 0;
    range.is_phase = false;
    range.told_first = range.told_last = {};
    range.module_size = module.size();
    range.is_backward = depth > 0 && ranges[depth - 1].is_backward;
    range.creates_graph = depth == 0 || ranges[depth - 1].creates_graph;
    ++depth;
    return range;
  }

  // The name of the innermost phase; empty: none.
  std::string_view phase() const {
    for (size_t i = depth; i > 0; --i) {
      if (ranges[i - 1].is_phase) return ranges[i - 1].name;
    }
    return {};
  }

  // Null if it is not open on this thread.
  Range* Find(OpenRange open) {
    for (size_t i = open.thread == this ? depth : 0; i > 0; --i) {
      if (ranges[i - 1].id == open.id) return &ranges[i - 1];
    }
    return nullptr;
  }
};

namespace {

std::string Describe(const OpRangeThread::Range& range) {
  return absl::StrCat(Quoted(range.name), ", begun at ", At(range.place));
}

// Those inside of ranges[outermost], innermost first, one a line.
std::string DescribeFrom(const OpRangeThread& thread, size_t outermost) {
  std::string result;
  for (size_t i = thread.depth; i > outermost; --i) {
    absl::StrAppend(&result, "\n  ", Describe(thread.ranges[i - 1]));
  }
  return result;
}

}  // namespace

class OpRangeCore {
 public:
  OpRangeCore()
      : threads_(
            [this](OpRangeThread& thread) {
              thread.core = this;
              thread.thread_id = ThisThreadId();
            },
            [this](OpRangeThread& thread) {
              Leave(thread);
              return true;
            }) {}

  absl::Status Enable(const OpRanges::Options& options, Place place) {
    OTT_RETURN_IF_ERROR(NvtxStatus());
    const std::lock_guard<std::mutex> lock(mutex_);
    OTT_RETURN_IF_ERROR(CheckNotEnabled("op ranges", enabled_at_, place, recorder_));
    enabled_at_ = place;
    options_ = options;
    record_ = {options.record_shapes, options.record_dtypes, options.record_layouts};
    enabled_.store(true, std::memory_order_release);
    return absl::OkStatus();
  }

  bool enabled() const { return enabled_.load(std::memory_order_acquire); }

  std::string_view module_path() { return threads_.Get().module; }

  void Disable() {
    const std::lock_guard<std::mutex> lock(mutex_);
    enabled_at_.reset();
    options_ = {};
    enabled_.store(false, std::memory_order_release);
    record_ = {};
  }

  void RecordInto(EventRecorder* recorder) {
    const std::lock_guard<std::mutex> lock(mutex_);
    recorder_.store(recorder, std::memory_order_release);
  }

  void TellObserver(OpObserver* observer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    observer_.store(observer, std::memory_order_release);
  }
  OpObserver* observer() const { return observer_.load(std::memory_order_acquire); }
  bool observed() const { return observer() != nullptr; }

  // Returns true if anybody is told of ranges.
  bool has_listeners() const {
    return enabled() || recorder_.load(std::memory_order_acquire) != nullptr || observer() != nullptr;
  }

  OpenRange BeginOp(const OpNode& op, absl::Span<const OpArg> args, absl::Span<const OpArg> attributes,
                    Place place) {
    OpRangeThread& thread = threads_.Get();
    OpRangeThread::Range& range = thread.Push(op.name, place);
    LabelledOp description;
    description.name = op.name;
    description.args = args;
    description.attributes = attributes;
    if (op.is_backward) {
      range.is_backward = true;
      range.creates_graph = op.creates_graph;
      description.seq = op.seq;
      description.forward_thread = op.forward_thread;
    } else if (range.creates_graph) {
      description.seq = thread.next_seq;
    }
    range.told_first = Tell(observer(), op, description, thread, range, place);
    EventRecorder* const recorder = recorder_.load(std::memory_order_acquire);
    if (!enabled() && recorder == nullptr) return {&thread, range.id};
    const bool shows_zero = !op.is_backward && !range.creates_graph;
    FormatOpLabel(op.name, shows_zero ? 0 : description.seq, args, record_, thread.label);
    std::string_view json;
    if (options_.record_json) {
      description.backward = range.is_backward;
      if (options_.record_module) description.module = thread.module;
      if (options_.record_source) description.source = place;
      FormatOpJson(description, record_, thread.json);
      json = thread.json.view();
    }
    if (enabled()) {
      PushNvtx(thread.label, range);
      if (options_.record_json) PushNvtx(thread.json, range);
    }
    if (recorder != nullptr) {
      recorder->BeginRange(EventCategory::kOp, thread.label.view(), recorder->Now(), json,
                           Flow(op, description.seq, thread));
    }
    // Last, so that it does not measure what is above.
    if (enabled()) range.told_last = Tell(options_.observer, op, description, thread, range, place);
    return {&thread, range.id};
  }

  OpenRange BeginPhase(std::string_view name, Place place) {
    OpRangeThread& thread = threads_.Get();
    OpRangeThread::Range& range = thread.Push(name, place);
    range.is_phase = true;
    return {&thread, range.id};
  }

  void AddOutputs(OpenRange open, absl::Span<const OpArg> outputs) {
    OpRangeThread& thread = threads_.Get();
    OpRangeThread::Range* const range = thread.Find(open);
    if (range == nullptr) {
      return ReportMisuse("Outputs() of another thread's range",
                          absl::StrCat("Outputs() on thread ", ThisThreadId(), " of a range of another one"));
    }
    for (const OpRangeThread::Told& told : {range->told_first, range->told_last}) {
      if (told.observer != nullptr) told.observer->AddOutputs(told.op, outputs);
    }
  }

  OpenRange BeginLayer(std::string_view name, Place place) {
    OpRangeThread& thread = threads_.Get();
    OpRangeThread::Range& range = thread.Push(name, place);
    if (!thread.module.empty()) thread.module.push_back('.');
    thread.module.append(name);
    FormatLayerLabel(name, thread.label);
    if (enabled()) PushNvtx(thread.label, range);
    if (EventRecorder* const recorder = recorder_.load(std::memory_order_acquire); recorder != nullptr) {
      recorder->BeginRange(EventCategory::kOp, thread.label.view(), recorder->Now());
    }
    return {&thread, range.id};
  }

  void End(OpenRange open) {
    OpRangeThread& thread = threads_.Get();
    OpRangeThread::Range* const range = thread.Find(open);
    if (range == nullptr) {
      return ReportMisuse("a range ends on another thread",
                          absl::StrCat("a range ends on thread ", ThisThreadId(),
                                       ", but began on another; make it a local variable"));
    }
    if (range->told_last.observer != nullptr) range->told_last.observer->End(range->told_last.op);
    const size_t index = range - thread.ranges.data();
    if (index + 1 < thread.depth) {
      ReportMisuse("a range ends before what is inside of it",
                   absl::StrCat(Describe(*range), ", ends on thread ", ThisThreadId(),
                                " before what is inside of it:", DescribeFrom(thread, index + 1)));
    }
    if (range->told_first.observer != nullptr) range->told_first.observer->End(range->told_first.op);
    for (int i = 0; i < range->num_nvtx_ranges; ++i) NvtxPop();
    EventRecorder* const recorder = recorder_.load(std::memory_order_acquire);
    if (!range->is_phase && recorder != nullptr) {
      recorder->EndRange(EventCategory::kOp, recorder->Now());
    }
    // A range that is still inside keeps the path that it began with.
    if (index + 1 == thread.depth) thread.module.resize(range->module_size);
    std::rotate(thread.ranges.begin() + index, thread.ranges.begin() + index + 1,
                thread.ranges.begin() + thread.depth);
    if (--thread.depth == 0) thread.module.clear();
  }

  OpStash Stash(OpenRange open) {
    OpRangeThread& thread = threads_.Get();
    const OpRangeThread::Range* const range = thread.Find(open);
    if (range == nullptr || !range->creates_graph) {
      ReportMisuse("Stash() of a range that has none",
                   absl::StrCat("Stash() on thread ", ThisThreadId(), " of ",
                                range == nullptr
                                    ? "a range of another one"
                                    : Describe(*range) + ", which is part of a backward pass that creates "
                                                         "no graph; OpRange::Backward() has create_graph"));
      return {};
    }
    return {thread.next_seq++, thread.thread_id};
  }

  int64_t num_misuses() const { return misuses_.total(); }

 private:
  static void PushNvtx(TextBuffer& text, OpRangeThread::Range& range) {
    NvtxPush(text.c_str());
    ++range.num_nvtx_ranges;
  }

  static OpRangeThread::Told Tell(OpObserver* observer, const OpNode& op, const LabelledOp& description,
                                  const OpRangeThread& thread, const OpRangeThread::Range& range,
                                  Place place) {
    if (observer == nullptr) return {};
    ObservedOp observed;
    observed.name = op.name;
    observed.role = op.role;
    observed.module = thread.module;
    observed.phase = thread.phase();
    observed.is_backward = range.is_backward;
    observed.seq = description.seq;
    observed.source = place;
    observed.thread = thread.thread_id;
    observed.args = description.args;
    observed.attributes = description.attributes;
    return {observer, observer->Begin(observed)};
  }

  // From the operation that creates a node to the node. The last one that shows a number creates it, and so
  // is where the arrow starts.
  static EventFlow Flow(const OpNode& op, int64_t seq, const OpRangeThread& thread) {
    if (seq < 0) return {};
    if (op.is_backward) return {EventFlow::End::kFinish, FlowId(op.forward_thread, seq)};
    return {EventFlow::End::kStart, FlowId(thread.thread_id, seq)};
  }

  void Leave(OpRangeThread& thread) {
    if (thread.depth > 0) {
      ReportMisuse("thread ends with open ranges",
                   absl::StrCat("thread ", thread.thread_id,
                                " ends with open ranges, innermost first:", DescribeFrom(thread, 0)));
    }
    thread.depth = 0;
    thread.next_seq = 0;
    thread.module.clear();
  }

  void ReportMisuse(const std::string& kind, const std::string& message) {
    misuses_.Report(options_.on_misuse, kind, message);
  }

  std::mutex mutex_;
  std::optional<Place> enabled_at_;
  // True if Enable() was called; otherwise ranges are only recorded.
  std::atomic<bool> enabled_{false};
  // Null outside of a profiler's windows.
  std::atomic<EventRecorder*> recorder_{nullptr};
  // Null if nobody looks at operations.
  std::atomic<OpObserver*> observer_{nullptr};
  // Set by Enable() before any use.
  OpRanges::Options options_;
  OpRecord record_;
  MisuseLog misuses_{"op ranges"};
  PerThread<OpRangeThread> threads_;
};

OpenRange BeginOp(OpRangeCore& core, const OpNode& op, absl::Span<const OpArg> args,
                  absl::Span<const OpArg> attributes, const char* file, int line) {
  return core.BeginOp(op, args, attributes, {file, line});
}

OpenRange BeginLayer(OpRangeCore& core, const char* name, size_t size, const char* file, int line) {
  return core.BeginLayer({name, size}, {file, line});
}

OpenRange BeginPhase(OpRangeCore& core, const char* name, size_t size, const char* file, int line) {
  return core.BeginPhase({name, size}, {file, line});
}

void AddOutputs(OpenRange open, absl::Span<const OpArg> outputs) {
  open.thread->core->AddOutputs(open, outputs);
}

void EndRange(OpenRange open) { open.thread->core->End(open); }

OpStash StashOp(OpenRange open) { return open.thread->core->Stash(open); }

}  // namespace internal

constexpr OpRanges::OpRanges(const char* process_wide_name) : core_(process_wide_name) {}

constexpr OpRangesOfThisProcess::Immortal::Immortal() : ranges("ott.OpRanges") {}

OpRangesOfThisProcess::Immortal OpRangesOfThisProcess::instance;

const ProcessWide<internal::OpRangeCore>::JoinAtLoad OpRangesOfThisProcess::join_at_load(
    instance.ranges.core_);

OpRanges::OpRanges() : OpRanges(new internal::OpRangeCore) {}

OpRanges::OpRanges(internal::OpRangeCore* own_core) : core_(own_core) {}

OpRanges::~OpRanges() = default;

absl::Status OpRanges::Enable(const Options& options, Place place) { return core_.Enable(options, place); }

void OpRanges::Disable() { core_.Disable(); }

bool OpRanges::enabled() const { return core_.enabled(); }

std::string_view OpRanges::module_path() const {
  internal::OpRangeCore* const core = core_.IfEnabled();
  return core == nullptr ? std::string_view() : core->module_path();
}

void OpRanges::RecordInto(EventRecorder* recorder) { core_.RecordInto(recorder); }

void OpRanges::TellObserver(OpObserver* observer) {
  const absl::StatusOr<internal::OpRangeCore*> core = core_.Find();
  if (!core.ok()) return;
  (*core)->TellObserver(observer);
  core_.SetEnabled((*core)->has_listeners());
}

OpObserver* OpRanges::observer() const {
  internal::OpRangeCore* const core = core_.IfEnabled();
  return core == nullptr ? nullptr : core->observer();
}

int64_t OpRanges::num_misuses() const {
  const internal::OpRangeCore* core = core_.IfEnabled();
  return core == nullptr ? 0 : core->num_misuses();
}

}  // namespace ott
