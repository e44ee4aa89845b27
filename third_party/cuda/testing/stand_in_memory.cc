#include "third_party/cuda/testing/stand_in_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ott::cuda_stand_in {
namespace {

constexpr size_t kPage = 4096;
// cudaMalloc aligns to this.
constexpr size_t kAlignment = 256;
// Floats of these bytes are NaN.
constexpr int kPoison = 0xff;
// Larger blocks are left as they are: sparse, so that tests may have tensors larger than the machine.
constexpr size_t kMaxPoisoned = size_t{64} << 20;

size_t RoundUp(size_t value, size_t to) { return (value + to - 1) / to * to; }

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "CUDA stand-in: %s\n", what);
  std::abort();
}

void Poison(void* memory, size_t size) {
  if (size <= kMaxPoisoned) std::memset(memory, kPoison, size);
}

}  // namespace

Arena::Arena(int64_t capacity) : capacity_(capacity) {
  file_ = memfd_create("cuda_stand_in", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, kReserved) != 0) Die("no memory file");
  const auto map = [&](int protection) {
    void* const memory = mmap(nullptr, kReserved, protection, MAP_SHARED | MAP_NORESERVE, file_, 0);
    if (memory == MAP_FAILED) Die("no address space");
    return static_cast<char*>(memory);
  };
  base_ = map(PROT_NONE);
  alias_ = map(PROT_READ | PROT_WRITE);
}

void* Arena::Allocate(size_t size, bool is_ready) {
  const std::lock_guard lock(mutex_);
  Block block;
  block.size = size;
  block.num_page_bytes = RoundUp(std::max<size_t>(size, 1), kPage);
  block.page_offset = next_page_ + kPage;
  block.is_ready = is_ready;
  if (size > static_cast<size_t>(capacity_ - num_bytes_) ||
      block.page_offset + block.num_page_bytes + kPage > kReserved) {
    return nullptr;
  }
  next_page_ = block.page_offset + block.num_page_bytes;
  num_bytes_ += static_cast<int64_t>(size);
  // The first byte behind the block lies on a page of its own, as far as the alignment allows.
  const size_t offset =
      block.page_offset + block.num_page_bytes - RoundUp(std::max<size_t>(size, 1), kAlignment);
  Poison(alias_ + block.page_offset, block.num_page_bytes);
  blocks_.emplace(offset, block);
  if (num_kernels_ > 0) Protect(block);
  return base_ + offset;
}

void Arena::MakeReady(const void* pointer) {
  const std::lock_guard lock(mutex_);
  if (const auto found = blocks_.find(Offset(pointer)); found != blocks_.end()) {
    found->second.is_ready = true;
    if (num_kernels_ > 0) Protect(found->second);
  }
}

bool Arena::Free(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(Offset(pointer));
  if (found == blocks_.end()) return false;
  const Block block = found->second;
  if (block.num_page_bytes <= kMaxPoisoned) {
    const char* const end = alias_ + block.page_offset + block.num_page_bytes;
    for (const char* byte = alias_ + found->first + block.size; byte < end; ++byte) {
      if (*byte != static_cast<char>(kPoison))
        Die("somebody wrote behind the end of a block of device memory");
    }
  }
  blocks_.erase(found);
  num_bytes_ -= static_cast<int64_t>(block.size);
  mprotect(base_ + block.page_offset, block.num_page_bytes, PROT_NONE);
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(block.page_offset),
            static_cast<off_t>(block.num_page_bytes));
  return true;
}

bool Arena::IsUsable(const void* pointer, size_t size) const {
  const std::lock_guard lock(mutex_);
  const size_t offset = Offset(pointer);
  auto found = blocks_.upper_bound(offset);
  if (found == blocks_.begin()) return false;
  --found;
  const Block& block = found->second;
  return block.is_ready && offset - found->first <= block.size &&
         size <= block.size - (offset - found->first);
}

void Arena::Protect(const Block& block) const {
  const int protection = num_kernels_ > 0 && block.is_ready ? PROT_READ | PROT_WRITE : PROT_NONE;
  if (mprotect(base_ + block.page_offset, block.num_page_bytes, protection) != 0) Die("mprotect failed");
}

void Arena::BeginKernel() {
  const std::lock_guard lock(mutex_);
  if (num_kernels_++ > 0) return;
  for (const auto& [offset, block] : blocks_) Protect(block);
}

void Arena::EndKernel() {
  const std::lock_guard lock(mutex_);
  if (--num_kernels_ > 0) return;
  for (const auto& [offset, block] : blocks_) Protect(block);
}

int64_t Arena::num_blocks() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(blocks_.size());
}

int64_t Arena::num_bytes() const {
  const std::lock_guard lock(mutex_);
  return num_bytes_;
}

void* PinnedMemory::Allocate(size_t size) {
  void* const memory = mmap(nullptr, RoundUp(std::max<size_t>(size, 1), kPage), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  Poison(memory, size);
  const std::lock_guard lock(mutex_);
  blocks_.emplace(static_cast<char*>(memory), size);
  return memory;
}

bool PinnedMemory::Free(void* pointer) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(static_cast<char*>(pointer));
  if (found == blocks_.end()) return false;
  munmap(pointer, RoundUp(std::max<size_t>(found->second, 1), kPage));
  blocks_.erase(found);
  return true;
}

bool PinnedMemory::Holds(const void* pointer, size_t size) const {
  const std::lock_guard lock(mutex_);
  const auto* const byte = static_cast<const char*>(pointer);
  auto found = blocks_.upper_bound(const_cast<char*>(byte));
  if (found == blocks_.begin()) return false;
  --found;
  const auto offset = static_cast<size_t>(byte - found->first);
  return offset <= found->second && size <= found->second - offset;
}

int64_t PinnedMemory::num_blocks() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int64_t>(blocks_.size());
}

}  // namespace ott::cuda_stand_in
