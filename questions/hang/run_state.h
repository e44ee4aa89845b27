// Reads the state of the ranks of a run from the flight recorders in its run directory.

#ifndef OTT_QUESTIONS_HANG_RUN_STATE_H_
#define OTT_QUESTIONS_HANG_RUN_STATE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/flight/flight_record.h"
#include "ott/core/flight/process.h"
#include "ott/questions/hang/job_state.h"

namespace ott {

// Returns RUN/rank_NNNNN/flight.
std::string FlightPath(const std::string& run_dir, int rank);

// The outside world; what tests replace.
struct RunStateEnvironment {
  // Nanoseconds since 1970.
  int64_t now_ns = 0;
  std::string machine = ThisMachine();
  ProcessStatus (*read_process)(int64_t process) = &ReadProcess;
  // For the bytes of a recorder that is not in the run directory as it is seen from here; empty: nobody is
  // asked.
  std::function<absl::StatusOr<std::string>(int rank)> ask_for_recorder;
  // Returns when the heart of a process that lives has beaten again, wherever it is. Empty: nobody waits.
  std::function<void()> wait_for_beats;

  static RunStateEnvironment Real();
};

// Records by rank, or why there is none. What is known of processes of other machines is their heartbeat:
// silent for ten seconds by this machine's clock, they are dead or stopped. Of a job in which no process
// lives any more, the time is that of its last sign of life, and those that fell silent before the rest were
// dead then.
JobState MakeJobState(const std::vector<absl::StatusOr<FlightRecord>>& records,
                      const RunStateEnvironment& environment);

// Reads as many ranks as run.json says, or as have folders if there is no run.json. NOT_FOUND if there is no
// run directory. Clocks of machines may be apart: a heart elsewhere that seems silent is waited for.
absl::StatusOr<JobState> ReadRunState(const std::string& run_dir, const RunStateEnvironment& environment);

}  // namespace ott

#endif  // OTT_QUESTIONS_HANG_RUN_STATE_H_
