// A process that can start no more threads.

#ifndef OTT_CORE_BASE_NO_THREADS_FOR_TEST_H_
#define OTT_CORE_BASE_NO_THREADS_FOR_TEST_H_

#include <pthread.h>

#include <cstddef>

#include "ott/core/base/check.h"

namespace ott {

// While one exists, starting a thread fails for want of memory for its stack.
class NoThreads {
 public:
  NoThreads() {
    OTT_CHECK(pthread_getattr_default_np(&before_) == 0) << "no default attributes of threads";
    SetStackBytes(size_t{1} << 60);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;
  ~NoThreads() {
    size_t stack_bytes = 0;
    pthread_attr_getstacksize(&before_, &stack_bytes);
    SetStackBytes(stack_bytes);
    pthread_attr_destroy(&before_);
  }

 private:
  static void SetStackBytes(size_t stack_bytes) {
    pthread_attr_t attributes;
    OTT_CHECK(pthread_attr_init(&attributes) == 0 &&
              pthread_attr_setstacksize(&attributes, stack_bytes) == 0 &&
              pthread_setattr_default_np(&attributes) == 0)
        << "cannot set the size of stacks";
    pthread_attr_destroy(&attributes);
  }

  pthread_attr_t before_;
};

}  // namespace ott

#endif  // OTT_CORE_BASE_NO_THREADS_FOR_TEST_H_
