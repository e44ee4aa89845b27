// Communicator over any Transport: broadcasts and reductions along binomial trees, gathers straight to the
// root.

#ifndef OTT_DIST_MESSAGE_COMMUNICATOR_H_
#define OTT_DIST_MESSAGE_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/communicator.h"
#include "ott/dist/transport.h"

namespace ott {

// The group of all ranks of the transport. hosts: of each rank, the same on all ranks.
std::unique_ptr<Communicator> MakeMessageCommunicator(std::shared_ptr<Transport> transport,
                                                      std::vector<std::string> hosts);

// The same; collective, since the ranks tell each other their hosts.
absl::StatusOr<std::unique_ptr<Communicator>> MakeMessageCommunicator(std::shared_ptr<Transport> transport,
                                                                      Deadline deadline);

}  // namespace ott

#endif  // OTT_DIST_MESSAGE_COMMUNICATOR_H_
