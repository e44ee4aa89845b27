// The communicator over MPI.

#ifndef OTT_FACE_MPI_COMMUNICATOR_H_
#define OTT_FACE_MPI_COMMUNICATOR_H_

#include "ott/dist/comm/mpi_communicator.h"  // IWYU pragma: export

#endif  // OTT_FACE_MPI_COMMUNICATOR_H_
