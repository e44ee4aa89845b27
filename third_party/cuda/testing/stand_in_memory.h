// The memory of the stand-in's devices, and pinned memory.

#ifndef OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_MEMORY_H_
#define OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace ott::cuda_stand_in {

// One device's. A block has pages of its own, ends where its last page does, and lies between pages that
// nobody may touch; its addresses are never given out again. The host may touch none of it but through
// Alias(). Thread-safe.
class Arena {
 public:
  explicit Arena(int64_t capacity);

  // Returns null if capacity is exceeded. `is_ready`: usable at once, else from MakeReady() on.
  void* Allocate(size_t size, bool is_ready);
  void MakeReady(const void* pointer);
  // Returns false for what is not the beginning of a block. Ends the process if somebody wrote behind the
  // block.
  bool Free(void* pointer);

  bool Holds(const void* pointer) const { return Offset(pointer) < kReserved; }
  // Returns true if all of these bytes lie in one block that is usable.
  bool IsUsable(const void* pointer, size_t size) const;
  // Returns where the host and the copy engines find the same byte. REQUIRES: Holds(pointer)
  char* Alias(const void* pointer) const { return alias_ + Offset(pointer); }

  // Kernels reach the device's memory only between these.
  void BeginKernel();
  void EndKernel();

  int64_t num_blocks() const;
  int64_t num_bytes() const;

 private:
  struct Block {
    size_t size;
    size_t page_offset, num_page_bytes;
    bool is_ready;
  };
  static constexpr size_t kReserved = size_t{256} << 30;

  size_t Offset(const void* pointer) const {
    return static_cast<size_t>(static_cast<const char*>(pointer) - base_);
  }
  void Protect(const Block& block) const;

  const int64_t capacity_;
  int file_ = -1;
  char* base_ = nullptr;
  char* alias_ = nullptr;
  mutable std::mutex mutex_;
  std::map<size_t, Block> blocks_;  // by offset
  size_t next_page_ = 0;
  int64_t num_bytes_ = 0;
  int num_kernels_ = 0;
};

// Memory of the host that devices copy from and to by themselves. Thread-safe.
class PinnedMemory {
 public:
  void* Allocate(size_t size);
  bool Free(void* pointer);
  bool Holds(const void* pointer, size_t size) const;
  int64_t num_blocks() const;

 private:
  mutable std::mutex mutex_;
  std::map<char*, size_t> blocks_;
};

}  // namespace ott::cuda_stand_in

#endif  // OTT_THIRD_PARTY_CUDA_TESTING_STAND_IN_MEMORY_H_
