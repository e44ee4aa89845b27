// The communicator over TCP, for jobs without MPI.

#ifndef OTT_FACE_TCP_COMMUNICATOR_H_
#define OTT_FACE_TCP_COMMUNICATOR_H_

#include "ott/dist/comm/tcp_communicator.h"  // IWYU pragma: export

#endif  // OTT_FACE_TCP_COMMUNICATOR_H_
