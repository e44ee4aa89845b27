// Ranks that did not answer.

#ifndef OTT_DIST_CHECK_SILENT_RANKS_H_
#define OTT_DIST_CHECK_SILENT_RANKS_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

// Ranks that did not answer and have not been heard since: nobody is waited for twice. Several communicators
// may share one, if `name` is the same rank in all of them.
//
// Not thread-safe.
class SilentRanks {
 public:
  // Works like ranks.Receive(), except that it does not wait for a silent rank: it takes only what has come
  // already.
  absl::StatusOr<std::string> Receive(Communicator& ranks, int from, int name, int tag, Deadline deadline) {
    absl::StatusOr<std::string> bytes =
        ranks.Receive(from, tag, silent_.count(name) == 0 ? deadline : Deadline::Now());
    if (absl::IsDeadlineExceeded(bytes.status())) silent_.insert(name);
    if (bytes.ok()) silent_.erase(name);
    return bytes;
  }

 private:
  std::set<int> silent_;
};

}  // namespace ott

#endif  // OTT_DIST_CHECK_SILENT_RANKS_H_
