#include "ott/core/base/forked_from_cuda.h"

#include <pthread.h>

#include <atomic>

namespace ott {

bool IsForkedFromCuda() {
  static std::atomic<bool> is_child{false};
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { is_child.store(true, std::memory_order_relaxed); });
  return is_child.load(std::memory_order_relaxed);
}

}  // namespace ott
