// Communicator with NCCL for what lies in device memory.

#ifndef OTT_DIST_COMM_NCCL_COMMUNICATOR_H_
#define OTT_DIST_COMM_NCCL_COMMUNICATOR_H_

#include <chrono>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ott/core/tensor/dtype.h"
#include "ott/dist/comm/communicator.h"

namespace ott {

struct NcclOptions {
  // The CUDA device of this rank.
  int device = 0;
  // For NCCL to connect the ranks.
  std::chrono::nanoseconds timeout = std::chrono::seconds(60);
};

// Everything of Communicator goes through the communicator it was made from; what it adds goes through NCCL.
// A device collective that fails or misses its deadline aborts NCCL's communicator, as nothing less ends its
// kernels: later device collectives return FAILED_PRECONDITION, the rest stays usable.
//
// Device collectives may be called by any thread, NCCL's functions are called by one at a time, and the
// caller's current device stays what it was. Device collectives return when their result is there. They wait
// for the work enqueued on `stream` before the call (a cudaStream_t; null: the default stream).
class NcclCommunicator : public Communicator {
 public:
  // In place. REQUIRES: values points to count elements on this rank's device; count is the same on all
  // ranks. INVALID_ARGUMENT for a dtype that NCCL cannot reduce, and for the minimum or maximum of
  // floating-point numbers, where it may drop a NaN that Reduction keeps.
  virtual absl::Status AllReduceOnDevice(Reduction reduction, DType dtype, void* values, int64_t count,
                                         void* stream, Deadline deadline) = 0;
  // Whether all ranks brought the same words, which are at most kMaxWords. By a reduction on a stream of its
  // own; what the training's streams do does not matter. REQUIRES: the same number of words on all ranks
  virtual absl::StatusOr<bool> AreEqual(absl::Span<const uint64_t> words, Deadline deadline) = 0;
  static constexpr size_t kMaxWords = 16;

  // In place. REQUIRES: as above
  virtual absl::Status BroadcastOnDevice(int root, void* bytes, int64_t num_bytes, void* stream,
                                         Deadline deadline) = 0;
};

// Collective over control's ranks, which must each have a device of their own. UNIMPLEMENTED where this
// library was built without NCCL; FAILED_PRECONDITION, on all ranks, where one has no usable device: the
// message names it.
absl::StatusOr<std::unique_ptr<NcclCommunicator>> CreateNcclCommunicator(
    std::shared_ptr<Communicator> control, const NcclOptions& options);

}  // namespace ott

#endif  // OTT_DIST_COMM_NCCL_COMMUNICATOR_H_
