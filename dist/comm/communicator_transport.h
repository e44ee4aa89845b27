// Transport over the messages of a communicator.

#ifndef OTT_DIST_COMM_COMMUNICATOR_TRANSPORT_H_
#define OTT_DIST_COMM_COMMUNICATOR_TRANSPORT_H_

#include <memory>

#include "ott/dist/comm/communicator.h"
#include "ott/dist/comm/transport.h"

namespace ott {

// ranks: a communicator of its own, from Split(). None of its collectives is called.
std::shared_ptr<Transport> MakeTransportOver(std::unique_ptr<Communicator> ranks);

}  // namespace ott

#endif  // OTT_DIST_COMM_COMMUNICATOR_TRANSPORT_H_
