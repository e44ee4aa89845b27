// One status for all ranks.

#ifndef OTT_DIST_COMM_AGREE_ON_STATUS_H_
#define OTT_DIST_COMM_AGREE_ON_STATUS_H_

#include "absl/status/status.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

// Collective. Returns, on all ranks, the error of the first rank that has one, with its number in front; so
// no rank goes on and waits for one that gave up. Also the errors of the communicator.
absl::Status AgreeOnStatus(Communicator& ranks, const absl::Status& mine, Deadline deadline);

}  // namespace ott

#endif  // OTT_DIST_COMM_AGREE_ON_STATUS_H_
