// The times of processes from what they left on disk. What a file is, its content says, not its name.

#ifndef OTT_QUESTIONS_FASTER_READ_SAMPLES_H_
#define OTT_QUESTIONS_FASTER_READ_SAMPLES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/questions/faster/samples.h"

namespace ott::faster {

enum class ClockKind { kWall, kCpu };

// The samples that a file or a folder holds.
struct SideSamples {
  std::vector<Process> processes;
  // The sources that were read: files and run directories, by the one name that each of them has.
  std::vector<std::string> sources;
  std::string primary;
  bool iterations_must_match = false;
  std::vector<std::string> notes;
};

// Paths are run directories, folders of run directories, files of the formats below, or globs of these:
//
//   Google Benchmark's JSON   a process; its repetitions are iterations
//   nvbench's JSON            a process; its samples (--jsonbin) are iterations, else it has one, their mean
//   hyperfine's JSON          each run is a process
//   CSV, JSON lines           columns or names process, seconds, and perhaps iteration and measurement
//
// clock: which of the times where a file has both. Errors name the file, the place in it and what is wrong,
// or what is there twice: a run that counts as two makes an answer surer than it is.
absl::StatusOr<SideSamples> ReadSide(const std::vector<std::string>& paths, ClockKind clock);

// Reads both sides, of which `a` is the earlier. INVALID_ARGUMENT if they have a run in common.
absl::StatusOr<Samples> ReadSides(const std::vector<std::string>& a, const std::vector<std::string>& b,
                                  ClockKind clock);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_READ_SAMPLES_H_
