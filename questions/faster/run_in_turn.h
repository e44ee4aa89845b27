// Runs two commands in turn, each in fresh processes, until there is an answer.

#ifndef OTT_QUESTIONS_FASTER_RUN_IN_TURN_H_
#define OTT_QUESTIONS_FASTER_RUN_IN_TURN_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/config.pb.h"
#include "ott/questions/faster/samples.h"

namespace ott::faster {

enum class WhatToCompare {
  // Iterations and measurements where the runs leave run directories, else the wall time.
  kAuto,
  kWallTime,
  kCpuTime,
};

struct TurnOptions {
  // "{dir}" in an argument is replaced by the run's own directory, "{seed}" by its number: 1 for the first
  // run of all, and no other run has the same.
  std::vector<std::string> command_a;
  std::vector<std::string> command_b;
  // Each run has a directory of its own in it: a_001, b_001 and so on.
  std::string directory;
  // False: a run's directory is removed when the run has been read.
  bool keep = true;
  // The configuration that the runs get as OTT_CONFIG, with a run directory of their own; a stopwatch is
  // added.
  Config config;
  // A file that each run leaves in its directory, with times in it; empty: none.
  std::string results;
  WhatToCompare what = WhatToCompare::kAuto;
  size_t max_runs = 20;  // of each side; even
  std::optional<double> max_seconds;
  size_t num_warm_runs = 1;  // of each side, not counted
  uint64_t seed = 0;
};

enum class Stop { kDecided, kMaxRuns, kMaxTime, kInterrupted };

struct Turns {
  // Samples of whole blocks: ABBA or BAAB, as the seed has it.
  Samples samples;
  Stop stop = Stop::kMaxRuns;
};

// on_block: called after each block with all of them so far; true ends it. An error for a run that fails,
// with its exit code and its last lines; nothing is concluded then.
absl::StatusOr<Turns> RunInTurn(const TurnOptions& options,
                                const std::function<bool(const Samples&)>& on_block);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_RUN_IN_TURN_H_
