// The files that other processes found, by path.

#ifndef OTT_DIST_SHARE_FAR_INDEX_H_
#define OTT_DIST_SHARE_FAR_INDEX_H_

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/base/far_files.h"
#include "ott/dist/share/share.pb.h"

namespace ott::internal {

// Returns what lies below the folders among `request.paths`, but not inside single dumps; is_same if the
// names in them are the ones that were sent.
Listing ListBelow(const ListingRequest& request);
// Returns a request of paths with what this process finds.
ListingRequest AskForListing(const std::vector<std::string>& paths);

// Filled first, then read only.
class FarIndex final : public FarFiles {
 public:
  using ReadAt = std::function<absl::StatusOr<std::string>(const std::string& path, int64_t max_bytes)>;

  // host: of a process. read: reads a file where it is.
  FarIndex(std::function<std::string(int process)> host, ReadAt read);

  void Add(int process, const Listing& listing);
  // Returns the processes that have a path; empty: none has.
  std::vector<int> Owners(const std::string& path) const;

  Kind KindOf(const std::string& path) const override;
  std::string HostOf(const std::string& path) const override;
  std::vector<std::string> List(const std::string& directory) const override;
  absl::StatusOr<std::string> Read(const std::string& path, int64_t max_bytes) override;

 private:
  struct Entry {
    bool is_directory = false;
    std::vector<int> owners;
  };

  const Entry* Find(const std::string& path) const;

  const std::function<std::string(int)> host_;
  const ReadAt read_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::set<std::string>> names_;  // by folder
};

}  // namespace ott::internal

#endif  // OTT_DIST_SHARE_FAR_INDEX_H_
