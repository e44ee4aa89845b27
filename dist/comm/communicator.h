// Carries what the ranks of a job say to each other. This header is the contract; every implementation passes
// the one suite in communicator_conformance.h:
//
//   local_communicator.h      one rank, one process
//   simulated_communicator.h  many ranks, one process, for tests
//   mpi_communicator.h        MPI
//   tcp_communicator.h        TCP, without MPI
//   nccl_communicator.h       NCCL, and messages of another communicator where it has no means or fails

#ifndef OTT_DIST_COMM_COMMUNICATOR_H_
#define OTT_DIST_COMM_COMMUNICATOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/dist/comm/deadline.h"

namespace ott {

class NcclCommunicator;  // nccl_communicator.h

// Says how values are combined. A NaN on any rank makes the result NaN.
enum class Reduction : uint8_t { kSum, kMin, kMax };

// A group of ranks, numbered from 0.
//
// Collectives. Broadcast, Gather, GatherAvailable, AllGather, AllReduce, Barrier and Split are collective:
// every rank of the group calls the same ones in the same order with the same root and reduction. Contents
// and sizes of bytes may differ from rank to rank. A rank that calls another collective than the rest is an
// INTERNAL error that names it and both calls, on the ranks that notice. Post, Send and Receive are not
// collective.
//
// Deadlines. A call returns at its deadline, a little later at most, whatever the other ranks do: those that
// do not answer may be stopped or gone. It then returns DEADLINE_EXCEEDED naming a rank it waited for. The
// communicator stays usable: a late rank's part in a collective that others gave up is thrown away, and a
// late rank that goes on calling catches up. Each rank's deadline is its own; where one fails, others may
// have succeeded.
//
// Errors name this rank, the call, and the rank or expression concerned: "rank 1 (node7): Barrier #12:
// nothing from rank 3 (node9) within 0.5 s". INVALID_ARGUMENT: ranks brought values that do not fit together.
// UNAVAILABLE: the transport itself failed.
//
// Thread safety. One call at a time: a communicator may be used from any thread, but not from two at once,
// unless the implementation says less (MPI may allow only the thread that started it).
//
// Determinism. AllReduce combines in an order that depends on the number of ranks alone, and every rank gets
// the same bits.
//
// Invariants.
// 1. rank() is in [0, size()), and the ranks of a group agree on size() and on every host().
// 2. Bytes between two ranks with one tag arrive whole, once, and in the order they were sent.
// 3. Post never waits for another rank.
//
//   OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> all, CreateMpiCommunicator());
//   double slowest = my_seconds;
//   OTT_RETURN_IF_ERROR(all->AllReduce(Reduction::kMax, absl::MakeSpan(&slowest, 1), deadline));
class Communicator {
 public:
  // Combines `from`, which a higher rank brought, into `into`.
  using Merge = std::function<absl::Status(std::string_view from, std::string* into)>;

  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Returns the host of a rank. REQUIRES: 0 <= rank < size()
  virtual const std::string& host(int rank) const = 0;

  // Hands a copy of bytes over for `to`, which may be this rank itself, and returns. What the transport could
  // not take at once travels during this process's later calls. INVALID_ARGUMENT, here and below, for a
  // rank that is none and a negative tag.
  virtual absl::Status Post(int to, int tag, std::string_view bytes) = 0;
  // Waits until everything posted with `tag` arrives without further calls of this process. With
  // Deadline::Now(): only asks whether that is so.
  virtual absl::Status Flush(int tag, Deadline deadline) = 0;
  // Posts, then flushes.
  virtual absl::Status Send(int to, int tag, std::string_view bytes, Deadline deadline) = 0;
  // Returns the next bytes that `from` sent with `tag`. With Deadline::Now(): what has arrived, or
  // DEADLINE_EXCEEDED.
  virtual absl::StatusOr<std::string> Receive(int from, int tag, Deadline deadline) = 0;

  // Sets every rank's *bytes to root's.
  virtual absl::Status Broadcast(int root, std::string* bytes, Deadline deadline) = 0;
  // Returns on root one element a rank, in order of rank; elsewhere empty.
  virtual absl::StatusOr<std::vector<std::string>> Gather(int root, std::string_view bytes,
                                                          Deadline deadline) = 0;
  // Works like Gather, but a rank that did not answer has an error in its place, and the answers of the
  // others are returned all the same.
  virtual absl::StatusOr<std::vector<absl::StatusOr<std::string>>> GatherAvailable(int root,
                                                                                   std::string_view bytes,
                                                                                   Deadline deadline) = 0;
  // Returns on every rank one element a rank, in order of rank.
  virtual absl::StatusOr<std::vector<std::string>> AllGather(std::string_view bytes, Deadline deadline) = 0;

  // Merges the ranks' bytes along a tree, on every rank. An error of merge on one rank is returned on all.
  virtual absl::Status AllReduce(const Merge& merge, std::string* bytes, Deadline deadline) = 0;
  // Reduces in place. REQUIRES: the same number of values on all ranks, else INVALID_ARGUMENT on all.
  virtual absl::Status AllReduce(Reduction reduction, absl::Span<double> values, Deadline deadline) = 0;
  virtual absl::Status AllReduce(Reduction reduction, absl::Span<float> values, Deadline deadline) = 0;
  virtual absl::Status AllReduce(Reduction reduction, absl::Span<int64_t> values, Deadline deadline) = 0;

  // Returns once every rank has called it.
  virtual absl::Status Barrier(Deadline deadline) = 0;

  // Makes a group of the ranks that give the same color, ordered by key and then by rank here. It shares
  // nothing with this communicator but the way the bytes travel, and may outlive it.
  virtual absl::StatusOr<std::unique_ptr<Communicator>> Split(int color, int key, Deadline deadline) = 0;

  // Returns this communicator if it is one over NCCL, else null.
  virtual NcclCommunicator* nccl() { return nullptr; }
};

}  // namespace ott

#endif  // OTT_DIST_COMM_COMMUNICATOR_H_
