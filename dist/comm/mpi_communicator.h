// Communicator over MPI.

#ifndef OTT_DIST_COMM_MPI_COMMUNICATOR_H_
#define OTT_DIST_COMM_MPI_COMMUNICATOR_H_

#include <chrono>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

struct MpiOptions {
  // MPI_Comm_c2f(communicator) of the ranks to talk to; nothing: MPI_COMM_WORLD.
  std::optional<int> communicator;
  // Ranks wait so long for all others at the start.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
};

// Collective over the ranks to talk to. Works on a duplicate of their communicator, so its messages do not
// mix with others', and calls only functions of MPI that do not block.
//
// If MPI is not initialised yet, it is initialised here, and finalised with the last communicator made from
// this one; but not after an error, since that would wait for ranks that did not come. If the program
// initialised MPI, it also finalises it, after the communicators are destroyed.
//
// Thread safety: as Communicator where MPI gives MPI_THREAD_MULTIPLE. Else only the thread that called this
// may use the communicator, and another gets FAILED_PRECONDITION.
//
// UNIMPLEMENTED where this library was built without MPI; FAILED_PRECONDITION after MPI_Finalize.
absl::StatusOr<std::unique_ptr<Communicator>> CreateMpiCommunicator(const MpiOptions& options = {});

}  // namespace ott

#endif  // OTT_DIST_COMM_MPI_COMMUNICATOR_H_
