// Communicator over any Transport: broadcasts and reductions along binomial trees, gathers straight to the
// root. Where another library gathers for it, collectives are that library's, as long as it works.

#ifndef OTT_DIST_COMM_MESSAGE_COMMUNICATOR_H_
#define OTT_DIST_COMM_MESSAGE_COMMUNICATOR_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/transport.h"

namespace ott {

// The members of a communicator, by rank in it.
struct Group {
  std::vector<int> members;  // ranks of the transport
  std::vector<std::string> hosts;
};

// Makes the group of all ranks of the transport. hosts: of each rank, the same on all ranks.
std::shared_ptr<const Group> MakeGroup(std::vector<std::string> hosts);

// Gathers what all ranks of the transport brought, in order of rank, by other means than messages. Every rank
// calls it at the same places. An error is for good.
using AllGatherBytes =
    std::function<absl::StatusOr<std::vector<std::string>>(std::string_view bytes, Deadline deadline)>;

// all_gather: does the collectives of this group, and of those that Split() makes of all its ranks in their
// order; null: messages do. It gets half of a collective's time. Where it fails on a rank, that collective
// and all later ones of the rank go by messages; there it meets the other ranks, for which it fails as well.
// REQUIRES: all is MakeGroup of as many hosts as the transport has ranks.
std::unique_ptr<Communicator> MakeMessageCommunicator(std::shared_ptr<Transport> transport,
                                                      std::shared_ptr<const Group> all,
                                                      AllGatherBytes all_gather = nullptr);

// Makes a communicator over all ranks of the transport. Collective, since the ranks tell each other their
// hosts.
absl::StatusOr<std::unique_ptr<Communicator>> MakeMessageCommunicator(std::shared_ptr<Transport> transport,
                                                                      Deadline deadline);

}  // namespace ott

#endif  // OTT_DIST_COMM_MESSAGE_COMMUNICATOR_H_
