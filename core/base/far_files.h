// Files of other hosts, which processes there read for this one.

#ifndef OTT_CORE_BASE_FAR_FILES_H_
#define OTT_CORE_BASE_FAR_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace ott {

// Finds files that another process has and this one has not. Thread-safe.
class FarFiles {
 public:
  enum class Kind : uint8_t { kNone, kFile, kDirectory };

  virtual ~FarFiles() = default;

  virtual Kind KindOf(const std::string& path) const = 0;
  // Returns the host that a path is on; "" if it is on none.
  virtual std::string HostOf(const std::string& path) const = 0;
  // Returns the names in a directory, ascending; those of one that is here, too, are only the far ones.
  virtual std::vector<std::string> List(const std::string& directory) const = 0;
  // Reads a whole file, with the errors of ReadFile() in file.h.
  virtual absl::StatusOr<std::string> Read(const std::string& path, int64_t max_bytes) = 0;
};

// From now on the functions of file.h that read find these files, too; null: no more. Called before other
// threads use files.
void SetFarFiles(FarFiles* files);
// Null if there are none.
FarFiles* GetFarFiles();

}  // namespace ott

#endif  // OTT_CORE_BASE_FAR_FILES_H_
