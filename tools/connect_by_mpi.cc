#include "ott/dist/comm/mpi_communicator.h"
#include "tools/launched.h"

namespace ott {

absl::StatusOr<Connect> ConnectorOfMpi(char** /*argv*/) {
  return [] { return CreateMpiCommunicator(); };
}

}  // namespace ott
