#include "ott/dist/comm/mpi_communicator.h"

namespace ott {

absl::StatusOr<std::unique_ptr<Communicator>> CreateMpiCommunicator(const MpiOptions&) {
  return absl::UnimplementedError(
      "built without MPI: it was not found or not wanted when this program was built; install libopenmpi-dev "
      "or set MPI_HOME, and see --//third_party/mpi:enable");
}

}  // namespace ott
