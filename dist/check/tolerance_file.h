// The file of tolerances that `ott calibrate` writes and comparisons read.

#ifndef OTT_DIST_CHECK_TOLERANCE_FILE_H_
#define OTT_DIST_CHECK_TOLERANCE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/compare/compare.h"
#include "ott/dist/check/tolerances.pb.h"

namespace ott {

// Tolerances by path and iteration. Thread-safe.
class ToleranceFile {
 public:
  // Returns INVALID_ARGUMENT, naming file and place, for what is no such file.
  static absl::StatusOr<ToleranceFile> Read(const std::string& path);

  // Returns CompareOptions::path_tolerances of a dump of this iteration. Between two calibrated iterations
  // that of the larger tolerance counts; before the first and beyond the last one, theirs. nan_equal: of
  // each.
  std::vector<PathTolerance> At(int64_t iteration, bool nan_equal = false) const;

  // Returns true if the iteration makes a difference.
  bool by_iteration() const { return tolerances_.iterations_size() > 0; }
  const std::string& path() const { return path_; }

 private:
  ToleranceFile(std::string path, Tolerances tolerances);

  std::string path_;
  Tolerances tolerances_;
};

// Makes a file that Read() reads, with a comment, and tolerances rounded up to three digits.
std::string TolerancesToText(const Tolerances& tolerances);

}  // namespace ott

#endif  // OTT_DIST_CHECK_TOLERANCE_FILE_H_
