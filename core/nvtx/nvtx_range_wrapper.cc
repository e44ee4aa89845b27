#include "ott/core/nvtx/nvtx_range_wrapper.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/device_sync.h"
#include "ott/core/base/misuse_log.h"
#include "ott/core/base/per_thread.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/nvtx/nvtx.h"

namespace ott {
namespace internal {
namespace {

std::string InDomain(const NvtxDomain* domain) {
  return domain == nullptr ? "" : absl::StrCat(" of domain ", Quoted(domain->name()));
}

struct OpenRange {
  std::string name;
  const NvtxDomain* domain = nullptr;
  Place place{};
};

// The ranges of one thread in all domains, innermost last. Entries are kept and used again.
class RangeStack {
 public:
  void Push(const char* name, const NvtxDomain* domain, Place place) {
    if (size_ == ranges_.size()) ranges_.emplace_back();
    ranges_[size_].name = name;
    ranges_[size_].domain = domain;
    ranges_[size_].place = place;
    ++size_;
  }

  bool empty() const { return size_ == 0; }

  // The innermost of a domain; null if there is none. Domains nest each by itself.
  const OpenRange* Innermost(const NvtxDomain* domain) const {
    for (size_t i = size_; i > 0; --i) {
      if (ranges_[i - 1].domain == domain) return &ranges_[i - 1];
    }
    return nullptr;
  }

  // REQUIRES: range is one of this stack.
  void Remove(const OpenRange* range) {
    const auto removed = ranges_.begin() + (range - ranges_.data());
    std::rotate(removed, removed + 1, ranges_.begin() + static_cast<ptrdiff_t>(size_));
    --size_;
  }

  // Innermost first, one a line.
  std::string Describe() const {
    if (empty()) return "; no range is open on this thread";
    std::string result = "; open on this thread, innermost first:";
    for (size_t i = size_; i > 0; --i) {
      const OpenRange& range = ranges_[i - 1];
      absl::StrAppend(&result, "\n  ", Quoted(range.name), InDomain(range.domain), ", pushed at ",
                      At(range.place));
    }
    return result;
  }

 private:
  std::vector<OpenRange> ranges_;
  size_t size_ = 0;
};

}  // namespace

class NvtxCore {
 public:
  NvtxCore() : NvtxCore(NvtxRangeWrapper::Environment{&SynchronizeDevice}) {}

  explicit NvtxCore(const NvtxRangeWrapper::Environment& environment)
      : environment_(environment),
        stacks_([](RangeStack&) {},
                [this](RangeStack& stack) {
                  if (stack.empty()) return true;
                  ReportMisuse(
                      "thread ends with open ranges",
                      absl::StrCat("thread ", ThisThreadId(), " ends with open ranges", stack.Describe()));
                  stack = RangeStack();
                  return true;
                }) {}

  absl::Status Enable(const NvtxRangeWrapper::Options& options, Place place) {
    OTT_RETURN_IF_ERROR(NvtxStatus());
    const std::lock_guard<std::mutex> lock(mutex_);
    OTT_RETURN_IF_ERROR(CheckNotEnabled("NVTX ranges", enabled_at_, place, recorder_));
    if (options.sync_on_push || options.sync_on_pop) {
      OTT_RETURN_IF_ERROR(WithContext("NVTX ranges", environment_.synchronize_device()));
    }
    enabled_at_ = place;
    options_ = options;
    enabled_.store(true, std::memory_order_release);
    FindWork();
    return absl::OkStatus();
  }

  bool enabled() const { return enabled_.load(std::memory_order_acquire); }
  static bool observed() { return false; }

  void Disable() {
    const std::lock_guard<std::mutex> lock(mutex_);
    enabled_at_.reset();
    options_ = {};
    enabled_.store(false, std::memory_order_release);
    FindWork();
  }

  void RecordInto(EventRecorder* recorder) {
    const std::lock_guard<std::mutex> lock(mutex_);
    recorder_.store(recorder, std::memory_order_release);
    FindWork();
  }

  void Push(const char* name, Place place) {
    if (__builtin_expect(has_work_before_push_.load(std::memory_order_relaxed), 0) &&
        !BeforePush(name, nullptr, place)) {
      return;
    }
    NvtxPush(name);
  }

  void Push(const char* name, const NvtxAttributes& attributes, Place place) {
    if (BeforePush(name, nullptr, place)) NvtxPush(nullptr, Native(name, attributes));
  }

  void Push(NvtxName& name, Place place) {
    if (__builtin_expect(has_work_before_push_.load(std::memory_order_relaxed), 0) &&
        !BeforePush(name.text_, name.domain_, place)) {
      return;
    }
    const NvtxDomainHandle domain = Handle(name.domain_);
    if (const NvtxStringHandle registered = Handle(name); __builtin_expect(registered != nullptr, 1)) {
      NvtxPush(domain, registered);
    } else {
      NvtxPush(domain, Native(name, {}));
    }
  }

  void Push(NvtxName& name, const NvtxAttributes& attributes, Place place) {
    if (!BeforePush(name.text_, name.domain_, place)) return;
    const NvtxDomainHandle domain = Handle(name.domain_);
    NvtxPush(domain, Native(name, attributes));
  }

  NvtxName* Remember(NvtxName& name) {
    if (name.core_.load(std::memory_order_relaxed) != this) name.core_.store(this, std::memory_order_relaxed);
    return &name;
  }

  static void EndScope(NvtxName& name) {
    name.core_.load(std::memory_order_relaxed)->Pop(name, std::nullopt);
  }

  // place: nullopt at the end of a scope.
  void Pop(std::optional<std::string_view> expected, std::optional<Place> place) {
    if (__builtin_expect(has_work_before_pop_.load(std::memory_order_relaxed), 0) &&
        !BeforePop(expected, nullptr, place)) {
      return;
    }
    NvtxPop();
  }

  void Pop(NvtxName& expected, std::optional<Place> place) {
    if (__builtin_expect(has_work_before_pop_.load(std::memory_order_relaxed), 0) &&
        !BeforePop(expected.text_, expected.domain_, place)) {
      return;
    }
    NvtxPop(Handle(expected.domain_));
  }

  void Mark(const char* name, const NvtxAttributes& attributes) {
    if (BeforeMark(name)) NvtxMark(nullptr, Native(name, attributes));
  }

  void Mark(NvtxName& name, const NvtxAttributes& attributes) {
    if (!BeforeMark(name.text_)) return;
    const NvtxDomainHandle domain = Handle(name.domain_);
    NvtxMark(domain, Native(name, attributes));
  }

  void NameCategory(NvtxDomain* domain, uint32_t category, const char* name) {
    if (enabled()) NvtxNameCategory(Handle(domain), category, name);
  }

  void FinishIter(Place place) {
    if (!options_.keep_track_of_range_order || stacks_.Get().empty()) return;
    ReportMisuse("FinishIter() with open ranges",
                 absl::StrCat("FinishIter() at ", At(place), " on thread ", ThisThreadId(),
                              " with open ranges", stacks_.Get().Describe()));
  }

  int64_t num_misuses() const { return misuses_.total(); }

 private:
  static NvtxEventAttributes Native(const char* name, const NvtxAttributes& attributes) {
    return {name, nullptr, attributes.category, attributes.color, attributes.payload};
  }

  // The text goes along for the case that no profiler is there, or refuses to register it.
  NvtxEventAttributes Native(NvtxName& name, const NvtxAttributes& attributes) {
    return {name.text_, Handle(name), attributes.category, attributes.color, attributes.payload};
  }

  NvtxDomainHandle Handle(NvtxDomain* domain) {
    if (domain == nullptr) return nullptr;
    return MadeOnce(*domain, [domain] { return NvtxCreateDomain(domain->name_); });
  }

  NvtxStringHandle Handle(NvtxName& name) {
    if (__builtin_expect(name.made_.load(std::memory_order_acquire), 1)) {
      return name.handle_.load(std::memory_order_relaxed);
    }
    const NvtxDomainHandle domain = Handle(name.domain_);
    return MadeOnce(name, [&name, domain] { return NvtxRegisterString(domain, name.text_); });
  }

  template <typename Named, typename Make>
  void* MadeOnce(Named& named, const Make& make) {
    if (__builtin_expect(named.made_.load(std::memory_order_acquire), 1)) {
      return named.handle_.load(std::memory_order_relaxed);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!named.made_.load(std::memory_order_relaxed)) {
      named.handle_.store(make(), std::memory_order_relaxed);
      named.made_.store(true, std::memory_order_release);
    }
    return named.handle_.load(std::memory_order_relaxed);
  }

  // REQUIRES: mutex_ is held.
  void FindWork() {
    const bool always = options_.keep_track_of_range_order || recorder_ != nullptr || !enabled_;
    has_work_before_push_.store(always || options_.sync_on_push, std::memory_order_relaxed);
    has_work_before_pop_.store(always || options_.sync_on_pop, std::memory_order_relaxed);
  }

  static uint64_t Key(const NvtxDomain* domain) {
    return domain == nullptr ? 0 : reinterpret_cast<uintptr_t>(domain->name_);
  }

  // Returns true if NVTX is to see the range, as below.
  bool BeforePush(const char* name, const NvtxDomain* domain, Place place) {
    // An error that comes up later than Enable() is of the program's own work; its next CUDA call reports it.
    if (options_.sync_on_push) environment_.synchronize_device().IgnoreError();
    if (options_.keep_track_of_range_order) stacks_.Get().Push(name, domain, place);
    if (EventRecorder* const recorder = recorder_.load(std::memory_order_acquire); recorder != nullptr) {
      recorder->BeginRange(EventCategory::kRange, std::string_view(name), recorder->Now(), Key(domain));
    }
    return enabled();
  }

  // Also false if there is no range to pop, as far as is known.
  bool BeforePop(std::optional<std::string_view> expected, const NvtxDomain* domain,
                 std::optional<Place> place) {
    if (options_.sync_on_pop) environment_.synchronize_device().IgnoreError();
    if (options_.keep_track_of_range_order && !PopTracked(expected, domain, place)) return false;
    if (EventRecorder* const recorder = recorder_.load(std::memory_order_acquire); recorder != nullptr) {
      recorder->EndRange(EventCategory::kRange, recorder->Now(), Key(domain));
    }
    return enabled();
  }

  bool BeforeMark(const char* name) {
    if (EventRecorder* const recorder = recorder_.load(std::memory_order_acquire); recorder != nullptr) {
      recorder->Mark(EventCategory::kRange, name);
    }
    return enabled();
  }

  bool PopTracked(std::optional<std::string_view> expected, const NvtxDomain* domain,
                  std::optional<Place> place) {
    RangeStack& stack = stacks_.Get();
    const OpenRange* const innermost = stack.Innermost(domain);
    if (innermost == nullptr || (expected.has_value() && innermost->name != *expected)) {
      const std::string call =
          absl::StrCat("Pop(", expected.has_value() ? Quoted(*expected) : "", ")", InDomain(domain));
      ReportMisuse(absl::StrCat(call, innermost == nullptr ? " of no range" : " of another range"),
                   absl::StrCat(call, " at ", place.has_value() ? At(*place) : "the end of its scope",
                                " on thread ", ThisThreadId(), stack.Describe()));
    }
    if (innermost != nullptr) stack.Remove(innermost);
    return innermost != nullptr;
  }

  void ReportMisuse(const std::string& kind, const std::string& message) {
    misuses_.Report(options_.on_misuse, kind, message);
  }

  const NvtxRangeWrapper::Environment environment_;
  std::mutex mutex_;
  std::optional<Place> enabled_at_;
  // All that a push or pop without checks looks at.
  std::atomic<bool> has_work_before_push_{true};
  std::atomic<bool> has_work_before_pop_{true};
  // True if Enable() was called; otherwise ranges are only recorded.
  std::atomic<bool> enabled_{false};
  // Null outside of a profiler's windows.
  std::atomic<EventRecorder*> recorder_{nullptr};
  // Set by Enable() before any use.
  NvtxRangeWrapper::Options options_;
  MisuseLog misuses_{"NVTX ranges"};
  PerThread<RangeStack> stacks_;
};

void PushRange(NvtxCore& core, const char* name, const char* file, int line) {
  core.Push(name, {file, line});
}

void PushRange(NvtxCore& core, const char* name, const NvtxAttributes& attributes, Place place) {
  core.Push(name, attributes, place);
}

void PushRange(NvtxCore& core, NvtxName& name, const char* file, int line) { core.Push(name, {file, line}); }

void PushRange(NvtxCore& core, NvtxName& name, const NvtxAttributes& attributes, Place place) {
  core.Push(name, attributes, place);
}

void PopRange(NvtxCore& core, const char* file, int line) { core.Pop(std::nullopt, Place{file, line}); }

void PopRange(NvtxCore& core, const char* expected, size_t size, const char* file, int line) {
  core.Pop(std::string_view(expected, size), Place{file, line});
}

void PopRange(NvtxCore& core, NvtxName& expected, const char* file, int line) {
  core.Pop(expected, Place{file, line});
}

NvtxCore* BeginScope(NvtxCore& core, const char* name, const char* file, int line) {
  core.Push(name, {file, line});
  return &core;
}

NvtxName* BeginScope(NvtxCore& core, NvtxName& name, const char* file, int line) {
  core.Push(name, {file, line});
  return core.Remember(name);
}

NvtxName* BeginScope(NvtxCore& core, NvtxName& name, const NvtxAttributes& attributes, Place place) {
  core.Push(name, attributes, place);
  return core.Remember(name);
}

void EndScope(NvtxCore& core, const char* name) { core.Pop(name, std::nullopt); }

void EndScope(NvtxName& name) { NvtxCore::EndScope(name); }

void Mark(NvtxCore& core, const char* name, const NvtxAttributes& attributes) { core.Mark(name, attributes); }

void Mark(NvtxCore& core, NvtxName& name, const NvtxAttributes& attributes) { core.Mark(name, attributes); }

void NameCategory(NvtxCore& core, NvtxDomain* domain, uint32_t category, const char* name) {
  core.NameCategory(domain, category, name);
}

void FinishIter(NvtxCore& core, Place place) { core.FinishIter(place); }

}  // namespace internal

constexpr NvtxRangeWrapper::NvtxRangeWrapper(const char* process_wide_name) : core_(process_wide_name) {}

constexpr NvtxRangeWrapperOfThisProcess::Immortal::Immortal() : wrapper("ott.NvtxRangeWrapper") {}

NvtxRangeWrapperOfThisProcess::Immortal NvtxRangeWrapperOfThisProcess::instance;

const ProcessWide<internal::NvtxCore>::JoinAtLoad NvtxRangeWrapperOfThisProcess::join_at_load(
    instance.wrapper.core_);

NvtxRangeWrapper::NvtxRangeWrapper(const Environment& environment)
    : NvtxRangeWrapper(new internal::NvtxCore(environment)) {}

NvtxRangeWrapper::NvtxRangeWrapper(internal::NvtxCore* own_core) : core_(own_core) {}

NvtxRangeWrapper::~NvtxRangeWrapper() = default;

absl::Status NvtxRangeWrapper::Enable(const Options& options, Place place) {
  return core_.Enable(options, place);
}

void NvtxRangeWrapper::Disable() { core_.Disable(); }

bool NvtxRangeWrapper::enabled() const { return core_.enabled(); }

void NvtxRangeWrapper::RecordInto(EventRecorder* recorder) { core_.RecordInto(recorder); }

int64_t NvtxRangeWrapper::num_misuses() const {
  const internal::NvtxCore* core = core_.IfEnabled();
  return core == nullptr ? 0 : core->num_misuses();
}

}  // namespace ott
