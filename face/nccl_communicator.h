// The communicator over NCCL.

#ifndef OTT_FACE_NCCL_COMMUNICATOR_H_
#define OTT_FACE_NCCL_COMMUNICATOR_H_

#include "ott/dist/comm/nccl_communicator.h"  // IWYU pragma: export

#endif  // OTT_FACE_NCCL_COMMUNICATOR_H_
