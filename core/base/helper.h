// The parts that the process-wide helpers (Stopwatch, NvtxRangeWrapper, OpRanges, Profiler) have in common:
// one instance for the process and others for tests, being enabled and disabled, recording for the profiler,
// and work to do when the process exits.

#ifndef OTT_CORE_BASE_HELPER_H_
#define OTT_CORE_BASE_HELPER_H_

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/place.h"
#include "ott/core/base/process_wide.h"
#include "ott/core/base/status_macros.h"

namespace ott {

class EventRecorder;

namespace internal {

// FAILED_PRECONDITION, naming both places, if `enabled_at` is set: `helper` has been enabled there already.
absl::Status CheckNotEnabled(const char* helper, const std::optional<Place>& enabled_at, Place place);

// The same; also FAILED_PRECONDITION if `recorder` is not null, since a profiler's window is open then.
absl::Status CheckNotEnabled(const char* helper, const std::optional<Place>& enabled_at, Place place,
                             const EventRecorder* recorder);

// Registers call_at_exit, a lambda without captures, to be called when this process exits normally. It is
// called once, even if it was registered several times; a forked child does not call it, unless the child
// registers it again.
template <typename Call>
void CallAtExit(Call call_at_exit) {
  static_assert(std::is_empty_v<Call>);
  static const Call call = call_at_exit;
  static std::atomic<pid_t> process;
  process = getpid();
  static const int registered = std::atexit([] {
    if (getpid() == process) call();
  });
  static_cast<void>(registered);
}

// The implementation of a helper, behind its inline calls: the one of the process, or one that the caller
// owns.
//
// Core has Enable(options, place), Disable(), enabled(), RecordInto(recorder), and observed(), which says
// whether somebody besides the recorder receives its calls while it is off. It may lack those that are not
// used.
template <typename Core>
class HelperCore : public ProcessWide<Core> {
 public:
  constexpr explicit HelperCore(const char* process_wide_name) : ProcessWide<Core>(process_wide_name) {}
  // Takes ownership of `own`.
  explicit HelperCore(Core* own) : ProcessWide<Core>(own), own_(own) {}
  ~HelperCore() { delete own_; }

  bool is_process_wide() const { return own_ == nullptr; }

  // Returns what ProcessWide::Find() does, but FAILED_PRECONDITION with the refusal instead of null.
  absl::StatusOr<Core*> Find() {
    if (Core* const core = ProcessWide<Core>::Find(); core != nullptr) return core;
    return absl::FailedPreconditionError(this->refusal());
  }

  template <typename Options>
  absl::Status Enable(const Options& options, Place place) {
    OTT_ASSIGN_OR_RETURN(Core* const core, this->Find());
    OTT_RETURN_IF_ERROR(core->Enable(options, place));
    this->SetEnabled(true);
    return absl::OkStatus();
  }

  bool enabled() const {
    const Core* const core = this->IfEnabled();
    return core != nullptr && core->enabled();
  }

  void Disable() {
    if (!enabled()) return;
    Core* const core = this->IfEnabled();
    this->SetEnabled(core->observed());
    core->Disable();
  }

  void RecordInto(EventRecorder* recorder) {
    const absl::StatusOr<Core*> core = this->Find();
    if (!core.ok()) return;
    // As long as the core has a recorder, nobody enables it meanwhile.
    if (recorder == nullptr && !(*core)->enabled() && !(*core)->observed()) this->SetEnabled(false);
    (*core)->RecordInto(recorder);
    if (recorder != nullptr) this->SetEnabled(true);
  }

 private:
  // Null for the process's.
  Core* own_ = nullptr;
};

}  // namespace internal
}  // namespace ott

#endif  // OTT_CORE_BASE_HELPER_H_
