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

// Keeps buffers that are no longer used, up to a limit, for later requests of that size or up to a quarter
// less. Thread-safe. Buffers may outlive the pool.
class BufferPool {
 public:
  // allocate: where the memory comes from; its errors are Allocate's.
  explicit BufferPool(int64_t max_unused_bytes, HostAllocator allocate = AllocateHost);

  // Asks the machine for this much host memory now, so that the first buffers are as fast to write to as
  // later ones. It asks for less where the machine, or the process's control group, has not 32 times as much
  // to spare. May be called once, before Allocate().
  void Reserve(int64_t num_bytes);
  // Gives the machine back what no buffer was made of.
  void ReleaseReserve();

  absl::StatusOr<std::shared_ptr<void>> Allocate(int64_t num_bytes);

 private:
  // Returns a buffer of the reserve; null if too little is left of it.
  std::shared_ptr<void> TakeReserved(int64_t num_bytes);

  struct Unused {
    explicit Unused(int64_t max) : max_bytes(max) {}

    const int64_t max_bytes;
    std::mutex mutex;
    int64_t num_bytes = 0;
    std::multimap<int64_t, std::shared_ptr<void>> buffers;
  };

  const HostAllocator allocate_;
  const std::shared_ptr<Unused> unused_;
  std::mutex reserve_mutex_;
  std::shared_ptr<char> reserve_;
  int64_t reserve_bytes_ = 0;
  int64_t reserve_used_ = 0;
};

}  // namespace ott

#endif  // OTT_CORE_TENSOR_BUFFER_POOL_H_
