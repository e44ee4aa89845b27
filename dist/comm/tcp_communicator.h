// Communicator over TCP, for jobs without MPI.

#ifndef OTT_DIST_COMM_TCP_COMMUNICATOR_H_
#define OTT_DIST_COMM_TCP_COMMUNICATOR_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

struct TcpOptions {
  // Where rank 0 listens; the others only need to reach it.
  std::string address;
  int port = 0;
  int rank = 0;
  int world_size = 1;
  // For the ranks to find together.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
};

// From what torchrun and its like set: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE. OTT_MASTER_PORT goes
// before MASTER_PORT, where torchrun's own store listens. INVALID_ARGUMENT naming the variable that is
// missing or no number that fits.
absl::StatusOr<TcpOptions> TcpOptionsFromEnvironment();

// Collective over options.world_size processes. Rank 0 listens at the port and tells each rank where the
// others are; then each connects to each. Nothing is encrypted or authenticated: for networks that are
// trusted, as MPI's are. What connects and is no rank is ignored.
//
// A rank that ends is an UNAVAILABLE error of whoever waits for it, at once.
//
// INVALID_ARGUMENT, on all ranks that rank 0 heard: a rank that is there twice, or started with another world
// size. ALREADY_EXISTS: the port is taken. DEADLINE_EXCEEDED: names the ranks that did not come, or rank 0
// where it is that. UNAVAILABLE: what listens at the port is no rank 0.
//
// The same bytes are expected on all hosts: all little-endian, all of one version of this library.
absl::StatusOr<std::unique_ptr<Communicator>> CreateTcpCommunicator(const TcpOptions& options);

}  // namespace ott

#endif  // OTT_DIST_COMM_TCP_COMMUNICATOR_H_
