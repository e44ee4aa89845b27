// A state for each thread, found quickly and kept after the thread has ended.

#ifndef OTT_CORE_BASE_PER_THREAD_H_
#define OTT_CORE_BASE_PER_THREAD_H_

#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "ott/core/base/check.h"

namespace ott::internal {

// Owns a T for each thread that asked for one. All copies of the library in a process find the same T for a
// thread, since the C library's thread-specific data is what they share; each copy's thread_local merely
// remembers it.
//
// A thread that ends leaves its T to the next new thread, so there are only as many Ts as threads were alive
// at one time.
//
// Thread-safe, except that the destructor must be the last call.
//
//   PerThread<Stack> stacks([](Stack&) {}, [](Stack& stack) { return stack.empty(); });
//   stacks.Get().Push(name);
template <typename T>
class PerThread {
 public:
  // Both are called on the thread, with mutex() held: enter as it gets its T, leave as it ends. leave returns
  // whether the T may be given to another thread.
  PerThread(std::function<void(T&)> enter, std::function<bool(T&)> leave)
      : enter_(std::move(enter)), leave_(std::move(leave)) {
    OTT_CHECK(pthread_key_create(&key_, &Leave) == 0) << "the process has no thread-specific key left";
  }
  PerThread(const PerThread&) = delete;
  PerThread& operator=(const PerThread&) = delete;
  ~PerThread() { pthread_key_delete(key_); }

  // The calling thread's. Locks and allocates only at a thread's first call.
  T& Get() {
    if (__builtin_expect(last_used_.id == id_, 1)) return *last_used_.state;
    return Find();
  }

  // Guards the list of states, not what is in them.
  std::mutex& mutex() const { return mutex_; }

  // REQUIRES: mutex() is held.
  const std::vector<T*>& all() const { return all_; }

 private:
  struct Slot {
    PerThread* owner;
    T state;
    bool taken = true;
  };

  struct LastUsed {
    uint64_t id;
    T* state;
  };

  T& Find() {
    auto* slot = static_cast<Slot*>(pthread_getspecific(key_));
    if (slot == nullptr) {
      const std::lock_guard<std::mutex> lock(mutex_);
      slot = &Take();
      enter_(slot->state);
      pthread_setspecific(key_, slot);
    }
    last_used_ = {id_, &slot->state};
    return slot->state;
  }

  Slot& Take() {
    for (const auto& slot : slots_) {
      if (slot->taken) continue;
      slot->taken = true;
      return *slot;
    }
    slots_.push_back(std::unique_ptr<Slot>(new Slot{this, {}}));
    all_.push_back(&slots_.back()->state);
    return *slots_.back();
  }

  static void Leave(void* left) {
    auto* slot = static_cast<Slot*>(left);
    last_used_ = {};
    const std::lock_guard<std::mutex> lock(slot->owner->mutex_);
    slot->taken = !slot->owner->leave_(slot->state);
  }

  static uint64_t NewId(const void* self) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    return reinterpret_cast<uintptr_t>(self) ^ (static_cast<uint64_t>(now) << 20);
  }

  static inline thread_local LastUsed last_used_{};

  // No two PerThreads of a process have the same, even if they were at the same address.
  const uint64_t id_ = NewId(this);
  const std::function<void(T&)> enter_;
  const std::function<bool(T&)> leave_;
  pthread_key_t key_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<T*> all_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_BASE_PER_THREAD_H_
