// Host memory that is used again: copying into memory the machine has handed out already takes a third of the
// time.

#ifndef OTT_CORE_TENSOR_BUFFER_POOL_H_
#define OTT_CORE_TENSOR_BUFFER_POOL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "ott/core/tensor/tensor.h"

namespace ott {

// Keeps buffers that are no longer used, up to a limit, for later requests of the same size. Thread-safe.
// Buffers may outlive the pool.
class BufferPool {
 public:
  // allocate: where the memory comes from; its errors are Allocate's.
  explicit BufferPool(int64_t max_unused_bytes, HostAllocator allocate = AllocateHost);

  absl::StatusOr<std::shared_ptr<void>> Allocate(int64_t num_bytes);

 private:
  struct Unused {
    explicit Unused(int64_t max) : max_bytes(max) {}

    const int64_t max_bytes;
    std::mutex mutex;
    int64_t num_bytes = 0;
    std::multimap<int64_t, std::shared_ptr<void>> buffers;
  };

  const HostAllocator allocate_;
  const std::shared_ptr<Unused> unused_;
};

}  // namespace ott

#endif  // OTT_CORE_TENSOR_BUFFER_POOL_H_
