// Communicator over NCCL, for bytes of the host as for what lies in device memory.

#ifndef OTT_DIST_COMM_NCCL_COMMUNICATOR_H_
#define OTT_DIST_COMM_NCCL_COMMUNICATOR_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/core/tensor/dtype.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

struct NcclOptions {
  // The CUDA device of this rank.
  int device = 0;
  // Ranks wait so long for NCCL to connect them.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
};

// Once NCCL has connected the ranks, and until it fails, collectives of Communicator go through it, too, and
// not through the communicator that this one was made from (`control`). So do those of groups that Split()
// makes of all ranks in their order. Call them all in one order on all ranks. Post, Send and Receive, for
// which NCCL has no means, and collectives of other groups go by messages of control.
//
// A collective that fails or misses its deadline aborts NCCL's communicator, as nothing less ends its
// kernels. The ranks tell each other so, and collectives of Communicator go on by messages of control, which
// name the ranks that are missing. NCCL has half of a collective's time; where it fails, messages have the
// rest, and in later collectives all of the time.
//
// From then on, device collectives and gathers by NCCL return FAILED_PRECONDITION. The error of the one that
// failed says which ranks called what and from which there is nothing. To find that out takes up to half a
// deadline more, at most two seconds, in which no other thread may use control.
//
// Device collectives may be called by any thread, NCCL's functions are called by one at a time, and the
// caller's current device stays what it was. Device collectives return when their result is there. They wait
// for the work enqueued on `stream` before the call (a cudaStream_t; null: the default stream).
//
// Like any second communicator of NCCL, it can make ranks that wait in it and ranks that wait in the
// training's wait for each other if a device runs only one of the two at a time. Call device collectives at
// the same place of the program on all ranks.
class NcclCommunicator : public Communicator {
 public:
  // Reduces in place. REQUIRES: values points to count elements on this rank's device; count is the same on
  // all ranks. INVALID_ARGUMENT for a dtype that NCCL cannot reduce, and for the minimum or maximum of
  // floating-point numbers, where it may drop a NaN that Reduction keeps.
  virtual absl::Status AllReduceOnDevice(Reduction reduction, DType dtype, void* values, int64_t count,
                                         void* stream, Deadline deadline) = 0;
  // Returns true if all ranks brought the same words, which are at most kMaxWords. By a reduction on a stream
  // of its own; what the training's streams do does not matter. REQUIRES: the same number of words on all
  // ranks
  virtual absl::StatusOr<bool> AreEqual(absl::Span<const uint64_t> words, Deadline deadline) = 0;
  static constexpr size_t kMaxWords = 16;

  // Brings every rank's bytes, whatever their sizes, to rank 0, in blocks on a stream of its own and without
  // holding back a rank that comes before others. Returns when this rank's bytes are enqueued; the first of a
  // communicator connects the ranks and waits for them. There is room for 128 KiB of each rank, or for as
  // much as an earlier gather had. Where a rank has more: if all_wait says that all ranks will wait in
  // TakeGathered(), the bytes are gathered once more; else rank 0 gets an empty string for that rank, and the
  // next gather has room for it. A gather that nobody took is waited for and dropped. REQUIRES: all ranks
  // begin it at the same place among their device collectives, with the same all_wait
  virtual absl::Status BeginGather(std::string_view bytes, bool all_wait, Deadline deadline) = 0;
  // Returns on rank 0 one element a rank, elsewhere none; nullopt if they are not there by `deadline`.
  // DEADLINE_EXCEEDED once `last` has passed. REQUIRES: a gather was begun
  virtual absl::StatusOr<std::optional<std::vector<std::string>>> TakeGathered(Deadline deadline,
                                                                               Deadline last) = 0;

  // Returns on every rank one element a rank, in order of rank, whatever their sizes; like AllGather, but by
  // NCCL alone: an error if that fails. It may be called where AllGather may, and is in one order with it on
  // all ranks.
  virtual absl::StatusOr<std::vector<std::string>> AllGatherByNccl(std::string_view bytes,
                                                                   Deadline deadline) = 0;

  // Broadcasts in place. REQUIRES: as of AllReduceOnDevice
  virtual absl::Status BroadcastOnDevice(int root, void* bytes, int64_t num_bytes, void* stream,
                                         Deadline deadline) = 0;

  NcclCommunicator* nccl() final { return this; }
};

// Creates it, collectively over control's ranks, which must each have a device of their own. Gathers once,
// which connects them. UNIMPLEMENTED if this library was built without NCCL; FAILED_PRECONDITION, on all
// ranks, if one has no usable device: the message names it.
absl::StatusOr<std::unique_ptr<NcclCommunicator>> CreateNcclCommunicator(
    std::shared_ptr<Communicator> control, const NcclOptions& options);

}  // namespace ott

#endif  // OTT_DIST_COMM_NCCL_COMMUNICATOR_H_
