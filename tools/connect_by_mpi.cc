#include <cstdlib>

#include "ott/dist/comm/mpi_communicator.h"
#include "tools/launched.h"

namespace ott {

absl::StatusOr<Connect> ConnectorOfMpi(char** /*argv*/) {
  // Summaries are small: Open MPI need not look for fast networks: that takes it 0.2 s, and its `ofi`
  // sleeps for 1 s at the end. mpirun's --mca counts.
  setenv("OMPI_MCA_pml", "ob1", /*overwrite=*/0);
  setenv("OMPI_MCA_btl", "^openib,ofi", /*overwrite=*/0);
  return [] { return CreateMpiCommunicator(); };
}

}  // namespace ott
