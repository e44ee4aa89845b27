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
  // The address where rank 0 listens; the others only need to reach it.
  std::string address;
  int port = 0;
  int rank = 0;
  int world_size = 1;
  // Names the job, so that ranks of several jobs that use one port do not mix; the same on all ranks. Empty:
  // ranks on rank 0's host that another process started than rank 0 wait 3 s for one that the same process
  // started, which goes first, and longer while that process has children that are not here. If the other
  // process started a rank 0, too, they are refused.
  std::string job;
  // Ranks wait so long for all others at the start.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
};

// Reads the variables that torchrun and similar launchers set: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE.
// OTT_MASTER_PORT goes before MASTER_PORT, where torchrun's own store listens. The job is OTT_JOB_ID, or else
// TORCHELASTIC_RUN_ID, SLURM_JOB_ID, PBS_JOBID or LSB_JOBID, as far as they are set, or else MASTER_PORT
// beside OTT_MASTER_PORT. Where srun started the process and RANK and WORLD_SIZE are not set, rank 0 listens
// on the step's first node, at MASTER_PORT or else a port made of the job's number. INVALID_ARGUMENT naming
// the variable that is missing or no number that fits.
absl::StatusOr<TcpOptions> TcpOptionsFromEnvironment();

// Collective over options.world_size processes. Rank 0 listens at the port and tells each rank where the
// others are; then each connects to each. Nothing is encrypted or authenticated: for networks that are
// trusted, as MPI's are. Connections that come from no rank are ignored.
//
// When a rank ends, those that wait for it get UNAVAILABLE at once.
//
// INVALID_ARGUMENT: this rank is there twice, or was started with another world size than rank 0. The others
// go on waiting for the right one. ALREADY_EXISTS: the port is taken. DEADLINE_EXCEEDED: ranks did not come;
// rank 0's error names them and those that were refused, another rank's says whether it was rank 0.
// UNAVAILABLE: what listens at the port is no rank 0 of this job. RESOURCE_EXHAUSTED: too few files may be
// open.
//
// All hosts must be little-endian and use the same version of this library.
absl::StatusOr<std::unique_ptr<Communicator>> CreateTcpCommunicator(const TcpOptions& options);

}  // namespace ott

#endif  // OTT_DIST_COMM_TCP_COMMUNICATOR_H_
