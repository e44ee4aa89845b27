// The communicator of a job that is one process.

#ifndef OTT_DIST_COMM_LOCAL_COMMUNICATOR_H_
#define OTT_DIST_COMM_LOCAL_COMMUNICATOR_H_

#include <memory>

#include "ott/dist/comm/communicator.h"

namespace ott {

// Creates rank 0 of 1. Collectives return at once; what it posts to itself it can receive.
std::unique_ptr<Communicator> CreateLocalCommunicator();

}  // namespace ott

#endif  // OTT_DIST_COMM_LOCAL_COMMUNICATOR_H_
