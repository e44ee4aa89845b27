// The communicator of one process.

#ifndef OTT_FACE_LOCAL_COMMUNICATOR_H_
#define OTT_FACE_LOCAL_COMMUNICATOR_H_

#include "ott/dist/comm/local_communicator.h"  // IWYU pragma: export

#endif  // OTT_FACE_LOCAL_COMMUNICATOR_H_
