// Splits the time of a rank's device.

#ifndef OTT_QUESTIONS_WAITING_TIME_SPLIT_H_
#define OTT_QUESTIONS_WAITING_TIME_SPLIT_H_

#include <cstdint>

#include "ott/core/kernel_profile/profile.h"

namespace ott::waiting {

// Nanoseconds of the time from the first to the last activity of the devices. At each moment the first of
// these counts that there is: compute (kernels but for collectives, and memsets), communication (kernels of
// collectives), copies, nothing. TraceLens's and HTA's definitions.
struct TimeSplit {
  int64_t total = 0;
  int64_t compute = 0;
  int64_t communication = 0;  // all of it
  int64_t exposed_communication = 0;
  int64_t copies = 0;  // all of them
  int64_t exposed_copies = 0;
  int64_t memsets = 0;  // of compute, where there is nothing but memsets
  int64_t busy = 0;
  int64_t idle = 0;

  // Idle, by what the next activity waited for:
  int64_t idle_host = 0;        // the call that launched it
  int64_t idle_collective = 0;  // that call, while the host was in a collective or waited for one
  int64_t idle_launch = 0;      // the way from the call to the device
  int64_t idle_queued = 0;      // it was launched before the device became idle: another stream, an event

  // Without any activity of a device, the times above are of the host: from the trace's beginning to its end,
  // its operators are compute, and gloo's and MPI's work is communication.
  bool of_host = false;

  // Activities that do not count, since they were launched before the trace began.
  int64_t num_left_out = 0;

  TimeSplit& operator+=(const TimeSplit& other);
};

// REQUIRES: profile has its ranges; JoinKernels has not been called.
TimeSplit SplitTime(const kernels::Profile& profile);

}  // namespace ott::waiting

#endif  // OTT_QUESTIONS_WAITING_TIME_SPLIT_H_
