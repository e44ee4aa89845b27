// One instance of a helper in a process, and its switch.
//
// A process may hold several copies of this library: an executable and plug-ins opened with RTLD_LOCAL that
// each link it statically, built by different compilers, with hidden symbols. All of them share one instance
// of each helper, and enabling it in one copy enables it in all, also in copies that are loaded later.
//
// How the copies meet: whoever comes first maps a page of memory under a name that the others find in
// /proc/self/maps; it holds the registry of instances. Neither symbols nor sections of the objects nor the
// environment are involved: fork keeps it, exec starts anew. A copy with another kAbiVersion than the
// registry's, or with another release of Abseil, is refused with both named. Copies in another dlmopen
// namespace have another C library and do not meet.
//
// A copy stays loaded once it has used an instance, or while it was enabled: dlclose does not unmap it, since
// others hold pointers into it. A copy that was always off is unloaded.

#ifndef OTT_CORE_BASE_PROCESS_WIDE_H_
#define OTT_CORE_BASE_PROCESS_WIDE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ott {

// Copies of this library meet only if this is equal. Every commit raises it that changes the layout or the
// meaning of a process-wide instance, or of anything that copies reach through one (measurements, an event
// recorder, the registry), since programs may be built from any commit. Join() also notices an instance of
// another size, but most changes are in what the instance points to.
inline constexpr uint32_t kAbiVersion = 28;

namespace internal {

// ProcessWide without its type. Part of the layout that kAbiVersion stands for.
class ProcessWideBase {
 public:
  using Create = void* (*)();

  constexpr ProcessWideBase(const char* name, size_t size, Create create)
      : name_(name), size_(size), create_(create) {}
  constexpr explicit ProcessWideBase(void* instance) : instance_(instance) {}
  ProcessWideBase(const ProcessWideBase&) = delete;
  ProcessWideBase& operator=(const ProcessWideBase&) = delete;

  // Returns true if this copy takes part in the process's instance; refusal() says why not.
  bool Join();
  // Takes it out again before it is unloaded. No effect on a copy that stays loaded.
  void Leave();
  void* Find();
  void* FindOrDie();
  void SetEnabled(bool enabled);

  void* enabled() const { return enabled_.load(std::memory_order_acquire); }
  void* instance() const { return instance_.load(std::memory_order_acquire); }
  const char* refusal() const { return refusal_.load(std::memory_order_acquire); }

 private:
  // Makes all copies what the instance is, enabled or not.
  void SwitchCopies();

  // The instance while it is enabled, null otherwise.
  std::atomic<void*> enabled_{nullptr};
  // Null until this copy has looked for it or was enabled; the copy stays loaded from then on.
  std::atomic<void*> instance_{nullptr};
  // Null for an instance of the caller's own.
  const char* name_ = nullptr;
  size_t size_ = 0;
  Create create_ = nullptr;
  // The next copy's ProcessWide of this name; guarded by the registry, as is joined_.
  ProcessWideBase* next_ = nullptr;
  bool joined_ = false;
  // Never freed, as whoever was refused may ask until the end.
  std::atomic<const char*> refusal_{nullptr};
};

class JoinAtLoad {
 public:
  explicit JoinAtLoad(ProcessWideBase& process_wide);
  JoinAtLoad(const JoinAtLoad&) = delete;
  JoinAtLoad& operator=(const JoinAtLoad&) = delete;
  ~JoinAtLoad();

 private:
  ProcessWideBase& process_wide_;
};

}  // namespace internal

// The one T of this process, at a link-time address: constant-initialised and trivially destructible, so it
// can be used before the first static initialiser and after the last static destructor. T is never destroyed.
//
// T is an ordinary class with a default constructor, which uses no other ProcessWide. Its layout must be the
// same in all copies: change kAbiVersion with it, and keep types out of it whose layout depends on compiler
// flags.
//
// Thread-safe.
//
//   // dumper.h
//   class Dumper { ... static ProcessWide<Dumper> process_wide_; };
//   // dumper.cc
//   ProcessWide<Dumper> Dumper::process_wide_("ott.Dumper");
//   const ProcessWide<Dumper>::JoinAtLoad join_at_load(Dumper::process_wide_);
template <typename T>
class ProcessWide : private internal::ProcessWideBase {
 public:
  // name: the same literal in all copies, another for each helper.
  constexpr explicit ProcessWide(const char* name)
      : ProcessWideBase(name, sizeof(T), [] { return Erase(new T); }) {}

  // An instance of the caller's own, unknown to the rest of the process; what tests use. Must outlive this
  // object.
  constexpr explicit ProcessWide(T* instance) : ProcessWideBase(instance) {}

  // Null while disabled. This is the whole cost of a disabled helper: one load from a link-time address (a
  // plain load on x86-64) and the caller's branch.
  T* IfEnabled() const { return static_cast<T*>(enabled()); }

  // The instance, made by the first call in the process, enabled or not. Null if another version of the
  // library is in use in this process.
  T* Find() { return static_cast<T*>(ProcessWideBase::Find()); }
  // Says why Find() was null, naming both versions and both files.
  using ProcessWideBase::refusal;

  // Find(), except that a refusal is printed and aborts.
  T& Get() {
    void* found = instance();
    return *static_cast<T*>(found != nullptr ? found : FindOrDie());
  }

  // Switches all copies, as often as needed. No effect on an instance that Find() refuses. A thread that got
  // T from IfEnabled() just before it is switched off may go on using it for a moment: T must allow that.
  void SetEnabled(bool enabled) { ProcessWideBase::SetEnabled(enabled); }

  // Lets this copy learn that the helper was enabled before it was loaded. Static, beside the ProcessWide.
  // Another version in use is reported on stderr, and this copy's calls are ignored as while disabled.
  struct JoinAtLoad : internal::JoinAtLoad {
    explicit JoinAtLoad(ProcessWide& process_wide) : internal::JoinAtLoad(process_wide) {}
  };

 private:
  static void* Erase(T* instance) { return instance; }
};

}  // namespace ott

#endif  // OTT_CORE_BASE_PROCESS_WIDE_H_
