// Files of several ranks, side by side on the machine's cores.

#ifndef OTT_TOOLS_RANKS_PARALLEL_H_
#define OTT_TOOLS_RANKS_PARALLEL_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace ott::ranks {

// Calls function(i) for all i below count, on as many threads as there are cores; returns when all are done.
template <typename Function>
void ForEachInParallel(size_t count, Function function) {
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) function(i);
  };
  std::vector<std::thread> threads;
  const size_t num_threads = std::min<size_t>(count, std::max(1U, std::thread::hardware_concurrency()));
  for (size_t i = 1; i < num_threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace ott::ranks

#endif  // OTT_TOOLS_RANKS_PARALLEL_H_
