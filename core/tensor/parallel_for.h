// A loop on several threads.

#ifndef OTT_CORE_TENSOR_PARALLEL_FOR_H_
#define OTT_CORE_TENSOR_PARALLEL_FOR_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "ott/core/base/thread_group.h"

namespace ott {

namespace internal {
inline std::atomic<int> default_num_threads{0};
}  // namespace internal

// Sets what 0 stands for in NumThreads(); 0: as many as the process may use cores.
inline void SetDefaultNumThreads(int number) { internal::default_num_threads = number; }

// Threads for a number that an option gives: 0 stands for the default.
inline int NumThreads(int option) {
  if (option <= 0) option = internal::default_num_threads;
  return option > 0 ? option : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// Calls f(i) once for each i in [0, count), on the caller's thread and up to num_threads - 1 others, fewer
// where the machine gives no more; returns when all are done. Each thread takes its next i in ascending
// order, so a call may wait for those of smaller i, but not for others.
template <typename F>
void ParallelFor(int64_t count, int num_threads, const F& f) {
  std::atomic<int64_t> next{0};
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) f(i);
  };
  ThreadGroup threads;
  for (int64_t i = 1; i < std::min<int64_t>(num_threads, count) && threads.Start(work);) ++i;
  work();
  threads.Join();
}

}  // namespace ott

#endif  // OTT_CORE_TENSOR_PARALLEL_FOR_H_
