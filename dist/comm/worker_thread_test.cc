#include "ott/dist/comm/worker_thread.h"

#include <future>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/no_threads_for_test.h"

namespace ott {
namespace {

TEST(WorkerThread, RunsTasksInOrderOnAnotherThreadAndTellsTheirStatus) {
  std::vector<int> order;
  std::promise<void> begin;
  {
    WorkerThread worker;
    auto first = worker.Run([&, begun = begin.get_future().share()] {
      begun.wait();
      order.push_back(1);
      return absl::DataLossError("cut");
    });
    auto second = worker.Run([&, caller = std::this_thread::get_id()] {
      order.push_back(std::this_thread::get_id() == caller ? -2 : 2);
      return absl::OkStatus();
    });
    begin.set_value();
    EXPECT_EQ(second.get(), absl::OkStatus());
    EXPECT_EQ(first.get(), absl::DataLossError("cut"));
    worker.Run([&] {
      order.push_back(3);
      return absl::OkStatus();
    });
  }
  // The third, too, though nobody waited for it.
  EXPECT_THAT(order, testing::ElementsAre(1, 2, 3));
  // One that waits for tasks ends as well.
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(WorkerThread().Run([] { return absl::OkStatus(); }).get().ok());
}

TEST(WorkerThread, RunsTasksAtOnceWhereNoThreadCanBeStarted) {
  const NoThreads no_threads;
  WorkerThread worker;
  EXPECT_EQ(worker.Run([] { return absl::DataLossError("cut"); }).get(), absl::DataLossError("cut"));
}

}  // namespace
}  // namespace ott
