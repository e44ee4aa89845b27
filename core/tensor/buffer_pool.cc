#include "ott/core/tensor/buffer_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/parallel_for.h"

namespace ott {
namespace {

// The number behind a name in a file of such lines, or at its beginning where name is empty; all where there
// is none.
int64_t ReadNumber(const char* path, const std::string& name) {
  std::ifstream in(path);
  std::string word;
  while (!name.empty() && in >> word && word != name) {
  }
  int64_t number = 0;
  return in >> number ? number : std::numeric_limits<int64_t>::max();
}

int64_t SpareBytes() {
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::max();
  const int64_t kibibytes = ReadNumber("/proc/meminfo", "MemAvailable:");
  const int64_t machine = kibibytes == kUnknown ? 0 : kibibytes * 1024;
  const int64_t limit = ReadNumber("/sys/fs/cgroup/memory.max", "");
  if (limit == kUnknown) return machine;
  const int64_t used = ReadNumber("/sys/fs/cgroup/memory.current", "");
  return std::min(machine, limit - std::min(limit, used));
}

}  // namespace

BufferPool::BufferPool(int64_t max_unused_bytes, HostAllocator allocate)
    : allocate_(std::move(allocate)), unused_(std::make_shared<Unused>(max_unused_bytes)) {}

absl::StatusOr<std::shared_ptr<void>> BufferPool::Allocate(int64_t num_bytes) {
  std::shared_ptr<void> buffer;
  {
    const std::lock_guard lock(unused_->mutex);
    const auto found = unused_->buffers.lower_bound(num_bytes);
    if (found != unused_->buffers.end() && found->first - num_bytes <= found->first / 4) {
      num_bytes = found->first;
      buffer = std::move(found->second);
      unused_->buffers.erase(found);
      unused_->num_bytes -= num_bytes;
    }
  }
  if (buffer == nullptr) buffer = TakeReserved(num_bytes);
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

void BufferPool::Reserve(int64_t num_bytes) {
  num_bytes = std::min(num_bytes, SpareBytes() / 32) / kHugePageBytes * kHugePageBytes;
  if (num_bytes <= 0) return;
  absl::StatusOr<std::shared_ptr<void>> memory = AllocateHost(num_bytes);
  if (!memory.ok()) return;
  char* const begin = static_cast<char*>(memory->get());
  ParallelFor(num_bytes / kHugePageBytes, NumThreads(0), [begin](int64_t i) {
    // The first write to a page takes the time.
    for (int64_t at = 0; at < kHugePageBytes; at += 4096) begin[i * kHugePageBytes + at] = 0;
  });
  const std::lock_guard lock(reserve_mutex_);
  reserve_ = std::shared_ptr<char>(*std::move(memory), begin);
  reserve_bytes_ = num_bytes;
}

void BufferPool::ReleaseReserve() {
  const std::lock_guard lock(reserve_mutex_);
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  const int64_t begin = (reserve_used_ + page_bytes - 1) / page_bytes * page_bytes;
  if (begin < reserve_bytes_) madvise(reserve_.get() + begin, reserve_bytes_ - begin, MADV_DONTNEED);
  reserve_.reset();
  reserve_bytes_ = reserve_used_ = 0;
}

std::shared_ptr<void> BufferPool::TakeReserved(int64_t num_bytes) {
  constexpr int64_t kAlignment = 64;
  const std::lock_guard lock(reserve_mutex_);
  if (num_bytes > reserve_bytes_ - reserve_used_) return nullptr;
  std::shared_ptr<void> buffer(reserve_, reserve_.get() + reserve_used_);
  reserve_used_ =
      std::min(reserve_bytes_, reserve_used_ + (num_bytes + kAlignment - 1) / kAlignment * kAlignment);
  return buffer;
}

}  // namespace ott
