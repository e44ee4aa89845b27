#include "ott/dist/local_communicator.h"

#include <utility>

#include "ott/dist/host_name.h"
#include "ott/dist/simulated_communicator.h"

namespace ott {

std::unique_ptr<Communicator> CreateLocalCommunicator() {
  return std::move(CreateSimulatedCommunicators({HostName()}).front());
}

}  // namespace ott
