// Selects which steps of a training are profiled.

#ifndef OTT_CORE_TRACE_SCHEDULE_H_
#define OTT_CORE_TRACE_SCHEDULE_H_

#include <cstdint>

#include "absl/status/statusor.h"

namespace ott {

class ProfileConfig;  // config.proto

// Says what the profiler does in a step. Several steps of kRecord end with one of kRecordAndSave; together
// they are a window.
enum class ProfilerAction {
  kNone,
  // Events are recorded and thrown away, so that what recording costs at first is not in the window.
  kWarmUp,
  kRecord,
  kRecordAndSave,
};

// The semantics of torch.profiler.schedule: after `skip_first` steps, cycles of `wait` steps without,
// `warmup` steps of warm-up and `active` steps of recording. A value type.
//
//   OTT_ASSIGN_OR_RETURN(const Schedule schedule, Schedule::Create({.wait = 1, .warmup = 1, .active = 3}));
//   schedule.Action(4);  // kRecordAndSave
class Schedule {
 public:
  struct Options {
    int64_t skip_first = 0;
    int64_t wait = 0;
    int64_t warmup = 0;
    int64_t active = 1;
    // The number of cycles; 0: as long as there are steps.
    int64_t repeat = 0;
    // The first cycle has no `wait`.
    bool skip_first_wait = false;
  };

  static Options FromConfig(const ProfileConfig& config);

  // Returns INVALID_ARGUMENT, naming the field, for negative numbers and for no active step.
  static absl::StatusOr<Schedule> Create(const Options& options);

  // REQUIRES: step >= 0
  ProfilerAction Action(int64_t step) const;

 private:
  explicit Schedule(const Options& options) : options_(options) {}

  Options options_;
};

}  // namespace ott

#endif  // OTT_CORE_TRACE_SCHEDULE_H_
