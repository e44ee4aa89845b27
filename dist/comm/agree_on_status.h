// One status for all ranks.

#ifndef OTT_DIST_COMM_AGREE_ON_STATUS_H_
#define OTT_DIST_COMM_AGREE_ON_STATUS_H_

#include "absl/status/status.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

// Collective. The error of the first rank that has one, with its number in front, on all ranks; so that none
// goes on to wait for one that gave up. Errors of the communicator.
absl::Status AgreeOnStatus(Communicator& ranks, const absl::Status& mine, Deadline deadline);

}  // namespace ott

#endif  // OTT_DIST_COMM_AGREE_ON_STATUS_H_
