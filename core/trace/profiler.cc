#include "ott/core/trace/profiler.h"

#include <cstdlib>
#include <mutex>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ott/core/base/misuse.h"
#include "ott/core/base/status_context.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/nvtx/nvtx.h"
#include "ott/core/nvtx/nvtx_range_wrapper.h"
#include "ott/core/nvtx/op_range.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace ott {
namespace internal {
namespace {

// Captures look for this to know which part is of interest.
void MarkForCaptures(const char* name) {
  static const NvtxDomainHandle domain = NvtxCreateDomain("ott.profiler");
  NvtxEventAttributes attributes;
  attributes.text = name;
  NvtxMark(domain, attributes);
}

}  // namespace

class ProfilerCore {
 public:
  using Switch = std::function<void(bool)>;

  // The process's.
  ProfilerCore() : ProfilerCore(Profiler::Environment{Clock::Fastest()}, true) {}
  explicit ProfilerCore(const Profiler::Environment& environment) : ProfilerCore(environment, false) {}

  EventRecorder& recorder() { return recorder_; }

  // set_recording: switches the Profiler's own calls.
  absl::Status Enable(const Profiler::Options& options, Switch set_recording, Place place) {
    const std::lock_guard<std::mutex> lock(mutex_);
    OTT_RETURN_IF_ERROR(CheckNotEnabled("profiler", enabled_at_, place));
    OTT_ASSIGN_OR_RETURN(const Schedule schedule, Schedule::Create(options.schedule));
    if (options.synchronize_device) {
      OTT_RETURN_IF_ERROR(WithContext("profiler", environment_.synchronize_device()));
    }
    enabled_at_ = place;
    options_ = options;
    schedule_ = schedule;
    set_recording_ = std::move(set_recording);
    recorder_.SetThreadBufferBytes(options.thread_buffer_bytes);
    step_ = 0;
    num_windows_ = 0;
    const absl::Status begun = BeginStep(ProfilerAction::kNone);
    if (!begun.ok()) SwitchOff();
    return begun;
  }

  absl::Status Step() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!enabled_at_.has_value()) return absl::OkStatus();
    const ProfilerAction ended = schedule_->Action(step_);
    Synchronize(ended);
    if (InWindow(ended)) recorder_.EndRange(EventCategory::kStep, recorder_.Now());
    absl::Status status;
    if (ended == ProfilerAction::kRecordAndSave) status = CloseWindow(step_, false);
    ++step_;
    status.Update(BeginStep(ended));
    return status;
  }

  absl::Status Stop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return Stop(false);
  }

  absl::Status VisitLastWindow(const std::function<absl::Status(const Profiler::Window&)>& visit) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (last_window_.has_value()) return visit(*last_window_);
    return absl::FailedPreconditionError(
        "profiler: there is no window to look at: none has closed, or the next one has begun");
  }

  void AtExit() {
    // Whoever holds it is about to write the window, or has called exit() out of doing so.
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) Stop(true).IgnoreError();
  }

 private:
  ProfilerCore(const Profiler::Environment& environment, bool records_helpers)
      : environment_(environment), records_helpers_(records_helpers), recorder_(environment.clock) {}

  static bool InWindow(ProfilerAction action) {
    return action == ProfilerAction::kRecord || action == ProfilerAction::kRecordAndSave;
  }

  // Begins a step. A window lasts from its first step to one that saves.
  absl::Status BeginStep(ProfilerAction before) {
    const ProfilerAction action = schedule_->Action(step_);
    absl::Status status;
    if (action == ProfilerAction::kWarmUp && !recorder_.is_open()) OpenRecorder();
    if (InWindow(action) && before != ProfilerAction::kRecord) {
      Synchronize(action);
      if (options_.before_window) status = options_.before_window();
      // Also forgets what the warm-up recorded.
      OpenRecorder();
      MarkForCaptures("start");
      first_step_ = step_;
      ++num_windows_;
    }
    if (InWindow(action)) {
      recorder_.BeginRange(EventCategory::kStep, absl::StrCat("ProfilerStep#", step_), recorder_.Now());
    }
    return status;
  }

  void Synchronize(ProfilerAction action) const {
    // An error that comes up later than Enable() is of the program's own work; its next CUDA call reports it.
    if (options_.synchronize_device && InWindow(action)) environment_.synchronize_device().IgnoreError();
  }

  void OpenRecorder() {
    last_window_.reset();
    recorder_.Open();
    SetRecording(true);
  }

  void CloseRecorder() {
    SetRecording(false);
    recorder_.Close();
  }

  void SetRecording(bool recording) {
    set_recording_(recording);
    if (!records_helpers_) return;
    EventRecorder* const recorder = recording ? &recorder_ : nullptr;
    Stopwatch::Get().RecordInto(recorder);
    NvtxRangeWrapper::Get().RecordInto(recorder);
    OpRanges::Get().RecordInto(recorder);
  }

  absl::Status CloseWindow(int64_t last_step, bool cut) {
    MarkForCaptures("stop");
    CloseRecorder();
    last_window_.emplace(Profiler::Window{recorder_, num_windows_, first_step_, last_step, cut});
    return options_.on_window ? options_.on_window(*last_window_) : absl::OkStatus();
  }

  // REQUIRES: mutex_ is held.
  absl::Status Stop(bool at_exit) {
    if (!enabled_at_.has_value()) return absl::OkStatus();
    absl::Status status;
    const bool has_events = step_ > first_step_ || at_exit;
    if (InWindow(schedule_->Action(step_)) && has_events) status = CloseWindow(step_, true);
    SwitchOff();
    return status;
  }

  void SwitchOff() {
    if (recorder_.is_open()) CloseRecorder();
    enabled_at_.reset();
    options_ = {};
  }

  const Profiler::Environment environment_;
  const bool records_helpers_;
  EventRecorder recorder_;

  std::mutex mutex_;
  // Guarded by mutex_, as is all below.
  std::optional<Place> enabled_at_;
  Profiler::Options options_;
  std::optional<Schedule> schedule_;
  Switch set_recording_;
  int64_t step_ = 0;
  int64_t first_step_ = 0;
  int64_t num_windows_ = 0;
  // The last window, as long as the recorder has it.
  std::optional<Profiler::Window> last_window_;
};

EventRecorder* RecorderOf(ProfilerCore& core) { return &core.recorder(); }

}  // namespace internal

constexpr Profiler::Profiler(const char* process_wide_name) : core_(process_wide_name) {}

constexpr ProfilerOfThisProcess::Immortal::Immortal() : profiler("ott.Profiler") {}

ProfilerOfThisProcess::Immortal ProfilerOfThisProcess::instance;

const ProcessWide<internal::ProfilerCore>::JoinAtLoad ProfilerOfThisProcess::join_at_load(
    instance.profiler.core_);

Profiler::Profiler(const Environment& environment) : Profiler(new internal::ProfilerCore(environment)) {}

Profiler::Profiler(internal::ProfilerCore* own_core) : core_(own_core) {}

Profiler::~Profiler() = default;

absl::Status Profiler::Enable(const Options& options, Place place) {
  OTT_ASSIGN_OR_RETURN(internal::ProfilerCore* const core, core_.Find());
  OTT_RETURN_IF_ERROR(core->Enable(
      options, [this](bool recording) { core_.SetEnabled(recording); }, place));
  if (core_.is_process_wide()) internal::CallAtExit([] { Get().core_.Get().AtExit(); });
  return absl::OkStatus();
}

absl::Status Profiler::Step() {
  OTT_ASSIGN_OR_RETURN(internal::ProfilerCore* const core, core_.Find());
  return core->Step();
}

absl::Status Profiler::Stop() {
  OTT_ASSIGN_OR_RETURN(internal::ProfilerCore* const core, core_.Find());
  return core->Stop();
}

absl::Status Profiler::VisitLastWindow(const std::function<absl::Status(const Window&)>& visit) {
  OTT_ASSIGN_OR_RETURN(internal::ProfilerCore* const core, core_.Find());
  return core->VisitLastWindow(visit);
}

}  // namespace ott
