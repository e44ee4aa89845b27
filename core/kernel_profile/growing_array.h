// An array that grows without a second copy of itself.

#ifndef OTT_CORE_KERNEL_PROFILE_GROWING_ARRAY_H_
#define OTT_CORE_KERNEL_PROFILE_GROWING_ARRAY_H_

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace ott::kernels {

// std::vector of what can be moved as bytes, for hundreds of megabytes: realloc() moves large blocks by
// changing the page table, where a vector holds the old and the new block while it copies.
template <typename T>
class GrowingArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  GrowingArray() = default;
  GrowingArray(GrowingArray&& other) noexcept { *this = std::move(other); }
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }

  void push_back(const T& value) {
    if (size_ == capacity_) Grow();
    data_.get()[size_++] = value;
  }

  // Gives the memory of the elements before end back to the system. They are not to be used again.
  void Forget(const T* end) {
    constexpr uintptr_t kPage = 4096;
    const uintptr_t first = (reinterpret_cast<uintptr_t>(begin()) + kPage - 1) / kPage * kPage;
    const uintptr_t last = reinterpret_cast<uintptr_t>(end) / kPage * kPage;
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t index) { return data_.get()[index]; }
  const T& operator[](size_t index) const { return data_.get()[index]; }
  T* begin() { return data_.get(); }
  T* end() { return data_.get() + size_; }
  const T* begin() const { return data_.get(); }
  const T* end() const { return data_.get() + size_; }

 private:
  struct Free {
    void operator()(T* data) const { std::free(data); }
  };

  void Grow() {
    const size_t capacity = std::max<size_t>(16, 2 * capacity_);
    void* data = std::realloc(data_.get(), capacity * sizeof(T));
    if (data == nullptr) throw std::bad_alloc();
    (void)data_.release();
    data_.reset(static_cast<T*>(data));
    capacity_ = capacity;
  }

  std::unique_ptr<T, Free> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace ott::kernels

#endif  // OTT_CORE_KERNEL_PROFILE_GROWING_ARRAY_H_
