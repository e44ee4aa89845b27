// The files of one rank's stopwatch in a run directory.

#ifndef OTT_CORE_STOPWATCH_STOPWATCH_FILES_H_
#define OTT_CORE_STOPWATCH_STOPWATCH_FILES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace ott {

// Says whose files they are.
struct StopwatchFilesOptions {
  // Made if it is not there, such as RUN/rank_00003.
  std::string dir;
  std::string host;
  int rank = 0;
  int world_size = 1;
  // The fields of these names in StopwatchStats.
  std::optional<double> observer_thread_seconds = std::nullopt;
  int64_t start_iteration = 0;
};

// Writes what was measured so far to dir/stopwatch.pb and .json (ott.StopwatchStats), .csv and .txt
// (report.h). Each file appears whole or not at all, and replaces the one before.
absl::Status WriteStopwatchFiles(const Stopwatch& stopwatch, const StopwatchFilesOptions& options);

// For Stopwatch::Options::print and at_exit: WriteStopwatchFiles(), whose error goes to stderr.
//
//   options.at_exit = WritingStopwatchFiles({RankDirectory(run_dir, rank), host, rank, world_size});
std::function<void(const Stopwatch&)> WritingStopwatchFiles(const StopwatchFilesOptions& options);

}  // namespace ott

#endif  // OTT_CORE_STOPWATCH_STOPWATCH_FILES_H_
