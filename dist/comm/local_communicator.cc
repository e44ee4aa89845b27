#include "ott/dist/comm/local_communicator.h"

#include <utility>

#include "ott/dist/comm/host_name.h"
#include "ott/dist/comm/simulated_communicator.h"

namespace ott {

std::unique_ptr<Communicator> CreateLocalCommunicator() {
  return std::move(CreateSimulatedCommunicators({HostName()}).front());
}

}  // namespace ott
