// Measures blocks of code, in files that need nothing else of a stopwatch (stopwatch.h): compiles in a tenth
// of the time.

#ifndef OTT_CORE_STOPWATCH_STOPWATCH_SCOPE_H_
#define OTT_CORE_STOPWATCH_STOPWATCH_SCOPE_H_

#include <atomic>
#include <cstddef>
#include <string_view>

#include "ott/core/base/place.h"
#include "ott/core/base/process_wide.h"

namespace ott {

class Stopwatch;

namespace internal {
class StopwatchCore;
struct StopwatchFrame;
struct StopwatchMeasurement;
}  // namespace internal

// A name that is looked up once. Constant-initialised, so it can be a static without a guard; `name` is not
// copied. May be used from any thread. May be used with several stopwatches, but remembers the last one only
// and looks the name up again for another.
class StopwatchName {
 public:
  constexpr explicit StopwatchName(const char* name) : name_(name) {}
  StopwatchName(const StopwatchName&) = delete;
  StopwatchName& operator=(const StopwatchName&) = delete;

  const char* name() const { return name_; }

  // Starts with Stopwatch::Get().
  void Start(Place place = Place::Current());
  void End(Place place = Place::Current());

 private:
  friend class internal::StopwatchCore;

  const char* name_;
  std::atomic<internal::StopwatchMeasurement*> found_{nullptr};
};

// An interval from construction to destruction.
class StopwatchScope {
 public:
  // Starts with Stopwatch::Get().
  explicit StopwatchScope(StopwatchName& name, Place place = Place::Current());
  explicit StopwatchScope(std::string_view name, Place place = Place::Current());

  // Defined in stopwatch.h.
  StopwatchScope(Stopwatch& stopwatch, StopwatchName& name, Place place = Place::Current());
  StopwatchScope(Stopwatch& stopwatch, std::string_view name, Place place = Place::Current());

  StopwatchScope(const StopwatchScope&) = delete;
  StopwatchScope& operator=(const StopwatchScope&) = delete;
  ~StopwatchScope();

 private:
  // Null if the stopwatch was off.
  internal::StopwatchFrame* const frame_;
};

// Measures the rest of the enclosing block as `name`, a string literal.
#define OTT_STOPWATCH_SCOPE(name) OTT_STOPWATCH_INTERNAL_SCOPE(name, __LINE__)

#define OTT_STOPWATCH_INTERNAL_SCOPE(name, line) OTT_STOPWATCH_INTERNAL_SCOPE_AT(name, line)
#define OTT_STOPWATCH_INTERNAL_SCOPE_AT(name, line)            \
  static ::ott::StopwatchName ott_stopwatch_name_##line(name); \
  const ::ott::StopwatchScope ott_stopwatch_scope_##line(ott_stopwatch_name_##line)

// Implementation of the inline calls.

namespace internal {

// Another copy of the switch in Stopwatch::Get(), which shares its instance, for files that do not know the
// class.
extern ProcessWide<StopwatchCore> stopwatch_of_scopes;

// These take scalars, since compilers would build structs before the branch.
[[gnu::cold]] void StartByHandle(StopwatchCore& core, StopwatchName& name, const char* file, int line);
[[gnu::cold]] void EndByHandle(StopwatchCore& core, StopwatchName& name, const char* file, int line);
[[gnu::cold]] StopwatchFrame* BeginScopeByName(StopwatchCore& core, const char* name, size_t size,
                                               const char* file, int line);
[[gnu::cold]] StopwatchFrame* BeginScopeByHandle(StopwatchCore& core, StopwatchName& name, const char* file,
                                                 int line);
[[gnu::cold]] void EndScope(StopwatchFrame* frame);

inline StopwatchFrame* BeginScopeIfOn(StopwatchCore* core, StopwatchName& name, Place place) {
  if (__builtin_expect(core == nullptr, 1)) return nullptr;
  return BeginScopeByHandle(*core, name, place.file, place.line);
}

inline StopwatchFrame* BeginScopeIfOn(StopwatchCore* core, std::string_view name, Place place) {
  if (__builtin_expect(core == nullptr, 1)) return nullptr;
  return BeginScopeByName(*core, name.data(), name.size(), place.file, place.line);
}

}  // namespace internal

inline void StopwatchName::Start(Place place) {
  if (auto* core = internal::stopwatch_of_scopes.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::StartByHandle(*core, *this, place.file, place.line);
  }
}

inline void StopwatchName::End(Place place) {
  if (auto* core = internal::stopwatch_of_scopes.IfEnabled(); __builtin_expect(core != nullptr, 0)) {
    internal::EndByHandle(*core, *this, place.file, place.line);
  }
}

inline StopwatchScope::StopwatchScope(StopwatchName& name, Place place)
    : frame_(internal::BeginScopeIfOn(internal::stopwatch_of_scopes.IfEnabled(), name, place)) {}

inline StopwatchScope::StopwatchScope(std::string_view name, Place place)
    : frame_(internal::BeginScopeIfOn(internal::stopwatch_of_scopes.IfEnabled(), name, place)) {}

inline StopwatchScope::~StopwatchScope() {
  if (__builtin_expect(frame_ != nullptr, 0)) internal::EndScope(frame_);
}

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_STOPWATCH_SCOPE_H_
