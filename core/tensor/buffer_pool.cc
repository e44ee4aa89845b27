#include "ott/core/tensor/buffer_pool.h"

#include <utility>

#include "ott/core/base/status_macros.h"

namespace ott {

BufferPool::BufferPool(int64_t max_unused_bytes, HostAllocator allocate)
    : allocate_(std::move(allocate)), unused_(std::make_shared<Unused>(max_unused_bytes)) {}

absl::StatusOr<std::shared_ptr<void>> BufferPool::Allocate(int64_t num_bytes) {
  std::shared_ptr<void> buffer;
  {
    const std::lock_guard lock(unused_->mutex);
    if (const auto found = unused_->buffers.find(num_bytes); found != unused_->buffers.end()) {
      buffer = std::move(found->second);
      unused_->buffers.erase(found);
      unused_->num_bytes -= num_bytes;
    }
  }
  if (buffer == nullptr) {
    OTT_ASSIGN_OR_RETURN(buffer, allocate_(num_bytes));
  }
  void* const memory = buffer.get();
  // Holds the buffer, and gives it back when the last user is done.
  const auto give_back = [unused = unused_, num_bytes, buffer = std::move(buffer)](void*) mutable {
    const std::lock_guard lock(unused->mutex);
    if (unused->num_bytes + num_bytes > unused->max_bytes) return;
    unused->num_bytes += num_bytes;
    unused->buffers.emplace(num_bytes, std::move(buffer));
  };
  return std::shared_ptr<void>(memory, give_back);
}

}  // namespace ott
