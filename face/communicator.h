// Lets ranks talk to each other.

#ifndef OTT_FACE_COMMUNICATOR_H_
#define OTT_FACE_COMMUNICATOR_H_

#include "ott/dist/comm/communicator.h"  // IWYU pragma: export

#endif  // OTT_FACE_COMMUNICATOR_H_
