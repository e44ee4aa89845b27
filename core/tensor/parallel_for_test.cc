#include "ott/core/tensor/parallel_for.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/base/no_threads_for_test.h"

namespace ott {
namespace {

TEST(ParallelFor, CallsOnceForEach) {
  for (const int num_threads : {0, 1, 3, 100}) {
    std::vector<std::atomic<int>> calls(50);
    ParallelFor(50, num_threads, [&](int64_t i) { ++calls[i]; });
    for (const std::atomic<int>& count : calls) EXPECT_EQ(count, 1) << num_threads;
  }
  ParallelFor(0, 4, [](int64_t) { FAIL(); });
}

TEST(ParallelFor, CallsRunSideBySide) {
  std::mutex mutex;
  std::condition_variable all_came;
  int num_came = 0;
  // Ends only if all three run at once.
  ParallelFor(3, 3, [&](int64_t) {
    std::unique_lock lock(mutex);
    if (++num_came == 3) all_came.notify_all();
    all_came.wait(lock, [&] { return num_came == 3; });
  });
  EXPECT_EQ(num_came, 3);
}

TEST(ParallelFor, CallsForEachOnTheCallersThreadWhereThereIsNoOther) {
  const NoThreads no_threads;
  std::vector<int> order;
  ParallelFor(5, 4, [&](int64_t i) { order.push_back(static_cast<int>(i)); });
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

TEST(NumThreads, ZeroIsTheDefaultWhereThereIsOne) {
  SetDefaultNumThreads(7);
  EXPECT_EQ(NumThreads(0), 7);
  EXPECT_EQ(NumThreads(3), 3);
  SetDefaultNumThreads(0);
  EXPECT_GE(NumThreads(0), 1);
}

}  // namespace
}  // namespace ott
