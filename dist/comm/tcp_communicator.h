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
  // Names the job, so that those of several that use one port do not mix; the same on all ranks.
  std::string job;
  // For the ranks to find together.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
};

// From what torchrun and its like set: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE. OTT_MASTER_PORT goes
// before MASTER_PORT, where torchrun's own store listens. The job is OTT_JOB_ID, or else TORCHELASTIC_RUN_ID,
// or else SLURM_JOB_ID, as far as they are set. INVALID_ARGUMENT naming the variable that is
// missing or no number that fits.
absl::StatusOr<TcpOptions> TcpOptionsFromEnvironment();

// Collective over options.world_size processes. Rank 0 listens at the port and tells each rank where the
// others are; then each connects to each. Nothing is encrypted or authenticated: for networks that are
// trusted, as MPI's are. What connects and is no rank is ignored.
//
// A rank that ends is an UNAVAILABLE error of whoever waits for it, at once.
//
// INVALID_ARGUMENT: this rank is there twice, or was started with another world size than rank 0. The others
// go on waiting for the right one. ALREADY_EXISTS: the port is taken. DEADLINE_EXCEEDED: names the ranks that
// did not come, and who was refused, or rank 0 where it is that. UNAVAILABLE: what listens at the port is no
// rank 0 of this job. RESOURCE_EXHAUSTED: too few files may be open.
//
// The same bytes are expected on all hosts: all little-endian, all of one version of this library.
absl::StatusOr<std::unique_ptr<Communicator>> CreateTcpCommunicator(const TcpOptions& options);

}  // namespace ott

#endif  // OTT_DIST_COMM_TCP_COMMUNICATOR_H_
