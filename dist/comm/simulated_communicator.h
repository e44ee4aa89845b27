// Many ranks in one process, for tests and experiments of scale: each rank is used by a thread of its own, or
// all in turn by one thread where no call waits for another rank.

#ifndef OTT_DIST_COMM_SIMULATED_COMMUNICATOR_H_
#define OTT_DIST_COMM_SIMULATED_COMMUNICATOR_H_

#include <memory>
#include <string>
#include <vector>

#include "ott/dist/comm/communicator.h"

namespace ott {

// One communicator a rank. A rank stands for a stopped one by calling nothing.
//
//   auto ranks = CreateSimulatedCommunicators({"node0", "node0", "node1"});
//   std::thread other([&] { Train(*ranks[1]); });
std::vector<std::unique_ptr<Communicator>> CreateSimulatedCommunicators(std::vector<std::string> hosts);

}  // namespace ott

#endif  // OTT_DIST_COMM_SIMULATED_COMMUNICATOR_H_
