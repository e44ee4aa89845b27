#include "ott/core/dumper/write_queue.h"

#include <unistd.h>

#include <atomic>
#include <functional>
#include <future>

#include "gtest/gtest.h"
#include "ott/core/base/no_threads_for_test.h"

namespace ott {
namespace {

WriteQueue::Options OptionsOf(int64_t max_bytes, bool drop_when_full, int num_threads = 1) {
  WriteQueue::Options options;
  options.num_threads = num_threads;
  options.max_bytes = max_bytes;
  options.drop_when_full = drop_when_full;
  return options;
}

std::function<absl::Status()> Counting(std::atomic<int>& jobs) {
  return [&jobs] {
    ++jobs;
    return absl::OkStatus();
  };
}

// A job that runs until it is let go.
struct HeldJob {
  std::promise<void> started;
  std::promise<void> go;

  std::function<absl::Status()> Job() {
    return [this] {
      started.set_value();
      go.get_future().wait();
      return absl::OkStatus();
    };
  }
};

TEST(WriteQueue, FlushAndTheDestructorWaitForAllJobs) {
  for (const int num_threads : {1, 3}) {
    std::atomic<int> done{0};
    {
      WriteQueue queue(OptionsOf(100, false, num_threads));
      for (int i = 0; i < 100; ++i) ASSERT_TRUE(queue.Submit(10, Counting(done)).ok());
      EXPECT_TRUE(queue.Flush().ok());
      EXPECT_EQ(done, 100);
      for (int i = 0; i < 10; ++i) ASSERT_TRUE(queue.Submit(1, Counting(done)).ok());
    }
    EXPECT_EQ(done, 110);
  }
}

TEST(WriteQueue, FlushReturnsThoughOthersGoOnSubmitting) {
  std::atomic<bool> goes_on{true};
  WriteQueue queue(OptionsOf(100, false));
  // Each job submits the next one before it is done, so that there is always one.
  std::function<absl::Status()> job = [&] { return goes_on ? queue.Submit(1, job) : absl::OkStatus(); };
  ASSERT_TRUE(queue.Submit(1, job).ok());
  EXPECT_TRUE(queue.Flush().ok());
  goes_on = false;
  EXPECT_TRUE(queue.Flush().ok());
}

TEST(WriteQueue, DropsAndCountsWhereThereIsNoRoom) {
  WriteQueue queue(OptionsOf(100, true));
  std::atomic<int> ran{0};
  // A job that is larger than the room runs alone, and one that is done leaves its room to others.
  ASSERT_TRUE(queue.Submit(1000, Counting(ran)).ok());
  EXPECT_TRUE(queue.Flush().ok());
  EXPECT_EQ(ran, 1);
  for (const int so_far : {0, 1}) {
    HeldJob held;
    ASSERT_TRUE(queue.Submit(60, held.Job()).ok());
    held.started.get_future().wait();
    EXPECT_TRUE(queue.Submit(50, Counting(ran)).ok());
    EXPECT_EQ(queue.num_dropped(), so_far + 1);
    EXPECT_TRUE(queue.Submit(40, Counting(ran)).ok());
    EXPECT_EQ(queue.num_dropped(), so_far + 1);
    held.go.set_value();
    EXPECT_TRUE(queue.Flush().ok());
    EXPECT_EQ(ran, so_far + 2);
  }
}

TEST(WriteQueue, WaitsWhereThereIsNoRoom) {
  WriteQueue queue(OptionsOf(100, false));
  HeldJob held;
  ASSERT_TRUE(queue.Submit(60, held.Job()).ok());
  held.started.get_future().wait();
  std::atomic<bool> first_done{false};
  std::future<absl::Status> submitted = std::async(std::launch::async, [&] {
    return queue.Submit(50, [&] {
      EXPECT_TRUE(first_done);
      return absl::OkStatus();
    });
  });
  first_done = true;
  held.go.set_value();
  EXPECT_TRUE(submitted.get().ok());
  EXPECT_TRUE(queue.Flush().ok());
  EXPECT_EQ(queue.num_dropped(), 0);
}

TEST(WriteQueue, AnErrorIsReturnedOnceByTheNextCall) {
  WriteQueue queue(OptionsOf(100, false));
  const absl::Status error = absl::ResourceExhaustedError("the disk is full");
  ASSERT_TRUE(queue.Submit(1, [&] { return error; }).ok());
  EXPECT_EQ(queue.Flush(), error);
  EXPECT_TRUE(queue.Flush().ok());
}

TEST(WriteQueue, RunsJobsAtOnceWhereNoThreadCanBeStarted) {
  const NoThreads no_threads;
  WriteQueue queue(OptionsOf(100, true, 2));
  const absl::Status error = absl::ResourceExhaustedError("the disk is full");
  EXPECT_EQ(queue.Submit(1, [&] { return error; }), error);
  EXPECT_TRUE(queue.Flush().ok());
}

TEST(WriteQueueDeathTest, AForkedProcessDoesNotWaitForThreadsThatItLacks) {
  WriteQueue queue(OptionsOf(100, false));
  EXPECT_EXIT(
      {
        const bool refused =
            absl::IsFailedPrecondition(queue.Submit(1, [] { return absl::OkStatus(); })) &&
            queue.Flush().message().find("dump there, or without writer threads") != std::string::npos;
        _exit(refused ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_TRUE(queue.Flush().ok());
}

}  // namespace
}  // namespace ott
