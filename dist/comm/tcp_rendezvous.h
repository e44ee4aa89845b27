// Connects processes that know rank 0's address with each other.

#ifndef OTT_DIST_COMM_TCP_RENDEZVOUS_H_
#define OTT_DIST_COMM_TCP_RENDEZVOUS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/dist/comm/deadline.h"
#include "ott/dist/comm/socket.h"
#include "ott/dist/comm/tcp_communicator.h"

namespace ott {

// Tells the starts of two jobs on one host apart, where their launchers gave them no id.
struct ProcessStart {
  // Identifies the running system and the namespace of process ids; 0: unknown.
  uint64_t host = 0;
  // Identifies the process that started this one.
  uint64_t launcher = 0;
};
ProcessStart StartOfThisProcess();

// Returns a connection to each other rank, by rank; this rank's own is not open. Errors: as
// CreateTcpCommunicator.
absl::StatusOr<std::vector<Socket>> ConnectRanks(const TcpOptions& options, Deadline deadline);

}  // namespace ott

#endif  // OTT_DIST_COMM_TCP_RENDEZVOUS_H_
