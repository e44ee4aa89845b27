#include <cstdlib>

#include "ott/dist/comm/mpi_communicator.h"
#include "tools/launched.h"

namespace ott {

absl::StatusOr<Connect> ConnectorOfMpi(char** /*argv*/) {
  // Summaries are small: Open MPI need not look for fast networks, which takes it 0.2 s. mpirun's --mca
  // counts.
  setenv("OMPI_MCA_pml", "ob1", /*overwrite=*/0);
  setenv("OMPI_MCA_btl", "^openib", /*overwrite=*/0);
  return [] { return CreateMpiCommunicator(); };
}

}  // namespace ott
