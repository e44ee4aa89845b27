// Names the folders in which commands that run in turn leave their files, and reads the longest time to run.

#ifndef OTT_QUESTIONS_FASTER_RUNS_DIRECTORY_H_
#define OTT_QUESTIONS_FASTER_RUNS_DIRECTORY_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace ott::faster {

// A directory for the runs; of our own if none was named, and then it goes with this object.
class RunsDirectory {
 public:
  // ALREADY_EXISTS if there is something in it.
  static absl::StatusOr<std::unique_ptr<RunsDirectory>> Create(const std::string& path);

  RunsDirectory(std::string path, bool temporary);
  RunsDirectory(const RunsDirectory&) = delete;
  RunsDirectory& operator=(const RunsDirectory&) = delete;
  ~RunsDirectory();

  const std::string& path() const { return path_; }
  bool temporary() const { return temporary_; }

 private:
  const std::string path_;
  const bool temporary_;
};

// Seconds of "90", "90s" or "1h30m"; nullopt if empty.
absl::StatusOr<std::optional<double>> ParseMaxTime(const std::string& text);

}  // namespace ott::faster

#endif  // OTT_QUESTIONS_FASTER_RUNS_DIRECTORY_H_
