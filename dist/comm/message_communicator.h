// Communicator over any Transport: broadcasts and reductions along binomial trees, gathers straight to the
// root.

#ifndef OTT_DIST_COMM_MESSAGE_COMMUNICATOR_H_
#define OTT_DIST_COMM_MESSAGE_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/transport.h"

namespace ott {

// Who belongs to a communicator, by rank in it.
struct Group {
  std::vector<int> members;  // ranks of the transport
  std::vector<std::string> hosts;
};

// Of all ranks of the transport. hosts: of each rank, the same on all ranks.
std::shared_ptr<const Group> MakeGroup(std::vector<std::string> hosts);

// REQUIRES: all is MakeGroup of as many hosts as the transport has ranks.
std::unique_ptr<Communicator> MakeMessageCommunicator(std::shared_ptr<Transport> transport,
                                                      std::shared_ptr<const Group> all);

// Over all ranks of the transport. Collective, since the ranks tell each other their hosts.
absl::StatusOr<std::unique_ptr<Communicator>> MakeMessageCommunicator(std::shared_ptr<Transport> transport,
                                                                      Deadline deadline);

}  // namespace ott

#endif  // OTT_DIST_COMM_MESSAGE_COMMUNICATOR_H_
