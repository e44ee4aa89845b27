// Counts what a run could not write, which is no reason to end a training that others wait for.

#ifndef OTT_RUN_TRAINING_UNWRITTEN_FILES_H_
#define OTT_RUN_TRAINING_UNWRITTEN_FILES_H_

#include <cstdint>
#include <mutex>

#include "absl/status/status.h"

namespace ott {

// Says the first error on stderr, and counts all. Thread-safe.
class UnwrittenFiles {
 public:
  // Notes a file that the run writes by itself, such as statistics.
  void Note(int rank, const absl::Status& written);
  // Notes a file that was asked for, such as a dump.
  void NoteLost(int rank, const absl::Status& written);

  // Says how many there were if they were several. Returns the first error of NoteLost().
  absl::Status Finish(int rank);

 private:
  std::mutex mutex_;
  // Guarded by mutex_.
  int64_t count_ = 0;
  absl::Status lost_;
};

}  // namespace ott

#endif  // OTT_RUN_TRAINING_UNWRITTEN_FILES_H_
