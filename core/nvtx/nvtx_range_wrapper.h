// NVTX ranges that can be switched off, and that complain when they do not nest.

#ifndef OTT_CORE_NVTX_NVTX_RANGE_WRAPPER_H_
#define OTT_CORE_NVTX_NVTX_RANGE_WRAPPER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "ott/core/base/helper.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/place.h"
#include "ott/core/nvtx/nvtx.h"

namespace ott {

class EventRecorder;  // core/events/event_recorder.h
class NvtxConfig;     // config.proto

namespace internal {
class NvtxCore;
}

// A domain of a library or a program, which profilers show apart from others. Made at its first use and never
// destroyed; constant-initialised, so it can be a static without a guard. `name` is not copied.
class NvtxDomain {
 public:
  constexpr explicit NvtxDomain(const char* name) : name_(name) {}
  NvtxDomain(const NvtxDomain&) = delete;
  NvtxDomain& operator=(const NvtxDomain&) = delete;

  const char* name() const { return name_; }

 private:
  friend class internal::NvtxCore;

  const char* name_;
  std::atomic<bool> made_{false};
  std::atomic<void*> handle_{nullptr};
};

// A name that NVTX gets to see once, at its first use, and afterwards knows by number. Constant-initialised;
// `text` is not copied, and `domain` must outlive the name. May be used from any thread, but with one wrapper
// at a time.
class NvtxName {
 public:
  // Makes a name in the default domain.
  constexpr explicit NvtxName(const char* text) : text_(text) {}
  constexpr NvtxName(NvtxDomain& domain, const char* text) : text_(text), domain_(&domain) {}
  NvtxName(const NvtxName&) = delete;
  NvtxName& operator=(const NvtxName&) = delete;

  const char* text() const { return text_; }

 private:
  friend class internal::NvtxCore;

  const char* text_;
  NvtxDomain* domain_ = nullptr;
  // The core of the scope with this name that began last.
  std::atomic<internal::NvtxCore*> core_{nullptr};
  std::atomic<bool> made_{false};
  std::atomic<void*> handle_{nullptr};
};

// Attributes that a range or a mark carries besides its name.
struct NvtxAttributes {
  // A number of the user's own, 0 for none. NvtxRangeWrapper::NameCategory() names it.
  uint32_t category = 0;
  // Alpha, red, green and blue from the high byte on, such as 0xFF76B900; 0: the profiler chooses.
  uint32_t color = 0;
  NvtxPayload payload = {};
};

// Pushes and pops NVTX ranges, which a profiler such as Nsight Systems shows per thread. Off until Enable(),
// and free of cost until then: every call is one load and a branch. The instance of a process is
// NvtxRangeWrapper::Get(), for all its shared objects. Without a profiler NVTX itself costs about a
// nanosecond.
//
// Thread-safe; ranges belong to the thread that pushes them. What was called before Enable() is ignored.
//
//   OTT_RETURN_IF_ERROR(NvtxRangeWrapper::Get().Enable({}));        // once, in main
//   { OTT_NVTX_SCOPE("forward"); Forward(batch); }                  // anywhere
//   NvtxRangeWrapper::Get().Push("backward"); Backward(); NvtxRangeWrapper::Get().Pop("backward");
class NvtxRangeWrapper {
 public:
  struct Options {
    // Waits for the CUDA device before a range begins or ends, so that it covers the device's work too.
    bool sync_on_push = false;
    bool sync_on_pop = false;
    // Remembers the open ranges of each thread. Without it Pop(expected) does not compare.
    bool keep_track_of_range_order = false;
    OnMisuse on_misuse = OnMisuse::kLogAndCount;
  };

  // The outside world; what tests replace.
  struct Environment {
    absl::Status (*synchronize_device)();
  };

  // A range from construction to destruction.
  class Scope {
   public:
    // Uses NvtxRangeWrapper::Get(). `name` must outlive the scope.
    explicit Scope(const char* name, Place place = Place::Current()) : Scope(Get(), name, place) {}
    explicit Scope(NvtxName& name, Place place = Place::Current()) : Scope(Get(), name, place) {}
    Scope(NvtxName& name, const NvtxAttributes& attributes, Place place = Place::Current())
        : Scope(Get(), name, attributes, place) {}

    Scope(NvtxRangeWrapper& wrapper, const char* name, Place place = Place::Current());
    Scope(NvtxRangeWrapper& wrapper, NvtxName& name, Place place = Place::Current());
    Scope(NvtxRangeWrapper& wrapper, NvtxName& name, const NvtxAttributes& attributes,
          Place place = Place::Current());

    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    // Both null if the wrapper was off; otherwise name_, or core_ and text_ where the name is no NvtxName.
    NvtxName* const name_ = nullptr;
    internal::NvtxCore* const core_ = nullptr;
    const char* const text_ = nullptr;
  };

  static NvtxRangeWrapper& Get();

  // Returns the options that an ott.Config asks for.
  static Options FromConfig(const NvtxConfig& config);

  // Makes a wrapper of the caller's own.
  explicit NvtxRangeWrapper(const Environment& environment);
  NvtxRangeWrapper(const NvtxRangeWrapper&) = delete;
  NvtxRangeWrapper& operator=(const NvtxRangeWrapper&) = delete;
  // REQUIRES: no other thread uses it any more.
  ~NvtxRangeWrapper();

  // Switches it on. FAILED_PRECONDITION if it is on already, naming where that was done, if another
  // version of this library is in use in the process, or if a profiler's window is open; UNIMPLEMENTED in a
  // build without NVTX; the error of the device if it is to be synchronised and cannot.
  absl::Status Enable(const Options& options, Place place = Place::Current());
  bool enabled() const;
  // Switches it off; it may be enabled again. No effect while it is off. REQUIRES: no range is open, on any
  // thread, and no profiler's window.
  void Disable();

  // Sends ranges and marks also to `recorder` until the next call; while the wrapper is off, to it alone and
  // not to NVTX. The profiler calls this. Meanwhile the wrapper cannot be enabled. Null ends it.
  void RecordInto(EventRecorder* recorder);

  // Pushes a range in the default domain.
  void Push(const char* name, Place place = Place::Current());
  void Push(const std::string& name, Place place = Place::Current()) { Push(name.c_str(), place); }
  void Push(const char* name, const NvtxAttributes& attributes, Place place = Place::Current());
  // Pushes a range in the domain of the name.
  void Push(NvtxName& name, Place place = Place::Current());
  void Push(NvtxName& name, const NvtxAttributes& attributes, Place place = Place::Current());

  // Ends the range pushed last on this thread in the default domain.
  // REQUIRES, where the order is tracked: there is one.
  void Pop(Place place = Place::Current());
  // REQUIRES, where the order is tracked: it is named `expected`. Another one is popped nonetheless.
  void Pop(std::string_view expected, Place place = Place::Current());
  // Does the same in the domain of the name.
  void Pop(NvtxName& expected, Place place = Place::Current());

  // Marks a moment instead of a range.
  void Mark(const char* name, const NvtxAttributes& attributes = {});
  void Mark(NvtxName& name, const NvtxAttributes& attributes = {});

  // Names a category in the default domain, or in one of its own.
  void NameCategory(uint32_t category, const char* name);
  void NameCategory(NvtxDomain& domain, uint32_t category, const char* name);

  // REQUIRES, where the order is tracked: this thread has no open range. Ranges that are open are reported,
  // and stay open.
  void FinishIter(Place place = Place::Current());

  // Calls that broke a rule, where they are counted.
  int64_t num_misuses() const;

 private:
  friend struct NvtxRangeWrapperOfThisProcess;

  constexpr explicit NvtxRangeWrapper(const char* process_wide_name);
  explicit NvtxRangeWrapper(internal::NvtxCore* own_core);

  internal::HelperCore<internal::NvtxCore> core_;
};

// Opens a range over the rest of the enclosing block; `name` is a string literal, which is registered.
#define OTT_NVTX_SCOPE(name) OTT_NVTX_INTERNAL_SCOPE(name, __LINE__)

#define OTT_NVTX_INTERNAL_SCOPE(name, line) OTT_NVTX_INTERNAL_SCOPE_AT(name, line)
#define OTT_NVTX_INTERNAL_SCOPE_AT(name, line)       \
  static ::ott::NvtxName ott_nvtx_name_##line(name); \
  const ::ott::NvtxRangeWrapper::Scope ott_nvtx_scope_##line(ott_nvtx_name_##line)

// Implementation of the inline calls.

namespace internal {

// Hot calls take scalars, since compilers would build structs before the branch.
[[gnu::cold]] void PushRange(NvtxCore& core, const char* name, const char* file, int line);
void PushRange(NvtxCore& core, const char* name, const NvtxAttributes& attributes, Place place);
[[gnu::cold]] void PushRange(NvtxCore& core, NvtxName& name, const char* file, int line);
void PushRange(NvtxCore& core, NvtxName& name, const NvtxAttributes& attributes, Place place);
[[gnu::cold]] void PopRange(NvtxCore& core, const char* file, int line);
[[gnu::cold]] void PopRange(NvtxCore& core, const char* expected, size_t size, const char* file, int line);
[[gnu::cold]] void PopRange(NvtxCore& core, NvtxName& expected, const char* file, int line);
// The beginning of a scope returns what its end needs, so that no register has to be saved for that while the
// wrapper is off. The first returns &core, the others &name.
[[gnu::cold]] NvtxCore* BeginScope(NvtxCore& core, const char* name, const char* file, int line);
[[gnu::cold]] NvtxName* BeginScope(NvtxCore& core, NvtxName& name, const char* file, int line);
NvtxName* BeginScope(NvtxCore& core, NvtxName& name, const NvtxAttributes& attributes, Place place);
[[gnu::cold]] void EndScope(NvtxCore& core, const char* name);
[[gnu::cold]] void EndScope(NvtxName& name);
void Mark(NvtxCore& core, const char* name, const NvtxAttributes& attributes);
void Mark(NvtxCore& core, NvtxName& name, const NvtxAttributes& attributes);
void NameCategory(NvtxCore& core, NvtxDomain* domain, uint32_t category, const char* name);
void FinishIter(NvtxCore& core, Place place);

}  // namespace internal

// Never destroyed, so that static destructors can use it.
struct NvtxRangeWrapperOfThisProcess {
  union Immortal {
    constexpr Immortal();
    ~Immortal() {}
    NvtxRangeWrapper wrapper;
  };
  static Immortal instance;
  static const ProcessWide<internal::NvtxCore>::JoinAtLoad join_at_load;
};

inline NvtxRangeWrapper& NvtxRangeWrapper::Get() { return NvtxRangeWrapperOfThisProcess::instance.wrapper; }

inline void NvtxRangeWrapper::Push(const char* name, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0))
    internal::PushRange(*core, name, place.file, place.line);
}

inline void NvtxRangeWrapper::Push(const char* name, const NvtxAttributes& attributes, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::PushRange(*core, name, attributes, place);
  }
}

inline void NvtxRangeWrapper::Push(NvtxName& name, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::PushRange(*core, name, place.file, place.line);
  }
}

inline void NvtxRangeWrapper::Push(NvtxName& name, const NvtxAttributes& attributes, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::PushRange(*core, name, attributes, place);
  }
}

inline void NvtxRangeWrapper::Pop(Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0))
    internal::PopRange(*core, place.file, place.line);
}

inline void NvtxRangeWrapper::Pop(std::string_view expected, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::PopRange(*core, expected.data(), expected.size(), place.file, place.line);
  }
}

inline void NvtxRangeWrapper::Pop(NvtxName& expected, Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::PopRange(*core, expected, place.file, place.line);
  }
}

inline void NvtxRangeWrapper::Mark(const char* name, const NvtxAttributes& attributes) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0))
    internal::Mark(*core, name, attributes);
}

inline void NvtxRangeWrapper::Mark(NvtxName& name, const NvtxAttributes& attributes) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0))
    internal::Mark(*core, name, attributes);
}

inline void NvtxRangeWrapper::NameCategory(uint32_t category, const char* name) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::NameCategory(*core, nullptr, category, name);
  }
}

inline void NvtxRangeWrapper::NameCategory(NvtxDomain& domain, uint32_t category, const char* name) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::NameCategory(*core, &domain, category, name);
  }
}

inline void NvtxRangeWrapper::FinishIter(Place place) {
  if (auto* core = core_.IfEnabled(); __builtin_expect(core != nullptr, 0))
    internal::FinishIter(*core, place);
}

inline NvtxRangeWrapper::Scope::Scope(NvtxRangeWrapper& wrapper, const char* name, Place place)
    : core_([&]() -> internal::NvtxCore* {
        auto* core = wrapper.core_.IfEnabled();
        if (__builtin_expect(core == nullptr, 1)) return nullptr;
        return internal::BeginScope(*core, name, place.file, place.line);
      }()),
      text_(name) {}

inline NvtxRangeWrapper::Scope::Scope(NvtxRangeWrapper& wrapper, NvtxName& name, Place place)
    : name_([&]() -> NvtxName* {
        auto* core = wrapper.core_.IfEnabled();
        if (__builtin_expect(core == nullptr, 1)) return nullptr;
        return internal::BeginScope(*core, name, place.file, place.line);
      }()) {}

inline NvtxRangeWrapper::Scope::Scope(NvtxRangeWrapper& wrapper, NvtxName& name,
                                      const NvtxAttributes& attributes, Place place)
    : name_([&]() -> NvtxName* {
        auto* core = wrapper.core_.IfEnabled();
        if (__builtin_expect(core == nullptr, 1)) return nullptr;
        return internal::BeginScope(*core, name, attributes, place);
      }()) {}

inline NvtxRangeWrapper::Scope::~Scope() {
  if (__builtin_expect(name_ != nullptr, 0)) internal::EndScope(*name_);
  if (__builtin_expect(core_ != nullptr, 0)) internal::EndScope(*core_, text_);
}

}  // namespace ott

#endif  // OTT_CORE_NVTX_NVTX_RANGE_WRAPPER_H_
