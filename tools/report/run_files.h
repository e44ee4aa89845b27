// Tells what changed in a run directory between two reports.

#ifndef OTT_TOOLS_REPORT_RUN_FILES_H_
#define OTT_TOOLS_REPORT_RUN_FILES_H_

#include <sys/stat.h>

#include <map>
#include <string>
#include <vector>

namespace ott::report {

// Holds when each file of a run was written; dumps are listed as folders. A folder that was not written since
// has the files that it had, so it is not read again.
class RunFiles {
 public:
  // before: of the same run, or null.
  RunFiles(const std::string& run_dir, const RunFiles* before);

  // Returns true if all files are as they were in `before`. If there are names, of the files in the ranks'
  // folders only those count that begin with one.
  bool Stay(const RunFiles& before, const std::vector<const char*>& names) const;
  // Returns true if a rank's folder has a file that begins with the name.
  bool HasOfRank(const char* name) const;

 private:
  struct Folder {
    struct stat is = {};
    std::vector<std::string> names;
    // True if it was written just before it was read: a change after that may leave it with the same time.
    bool is_fresh = false;
  };

  void List(const std::string& folder, const struct stat& is, int depth, const RunFiles* before);

  std::string run_dir_;
  // By path below the run directory, which begins with a slash. Of folders that are listed, the inode alone.
  std::map<std::string, struct stat> files_;
  std::map<std::string, Folder> folders_;
};

}  // namespace ott::report

#endif  // OTT_TOOLS_REPORT_RUN_FILES_H_
