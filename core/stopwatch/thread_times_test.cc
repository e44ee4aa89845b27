#include "ott/core/stopwatch/thread_times.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(ThreadTimes, AreReadFromSchedstat) {
  EXPECT_EQ(ParseSchedstat("49263122 23975778 16\n"), 23975778u);
  for (const char* const bad : {"", "12", "x 3 4", "1 -3 2", "1\t2 3"})
    EXPECT_FALSE(ParseSchedstat(bad).has_value()) << bad;
}

bool KernelTells() { return access("/proc/thread-self/schedstat", R_OK) == 0; }

// The scheduler writes down what a thread had only as it looks, some milliseconds apart.
TEST(ThreadTimes, AreThoseOfThisMoment) {
  constexpr uint64_t kSpun = 200'000;
  for (int i = 0; i < 20; ++i) {
    if (!KernelTells()) GTEST_SKIP() << "this kernel has no /proc/thread-self/schedstat";
    const std::optional<ThreadTimes> before = ReadThreadTimes();
    ASSERT_TRUE(before.has_value());
    for (const uint64_t begin = ReadProcessCpuTime(); ReadProcessCpuTime() - begin < kSpun;) {
    }
    EXPECT_GE((*ReadThreadTimes() - *before).on_cpu, kSpun);
  }
}

TEST(ThreadTimes, OfAProcessThatWasForkedAreNotThoseOfItsParent) {
  if (!KernelTells()) GTEST_SKIP() << "this kernel has no /proc/thread-self/schedstat";
  ASSERT_TRUE(ReadThreadTimes().has_value());
  const pid_t child = fork();
  if (child == 0) _exit(ReadThreadTimes().has_value() ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ThreadTimes, OfEachThreadAreItsOwn) {
  if (!KernelTells()) GTEST_SKIP() << "this kernel has no /proc/thread-self/schedstat";
  const std::optional<ThreadTimes> mine = ReadThreadTimes();
  ASSERT_TRUE(mine.has_value());
  std::optional<ThreadTimes> others;
  const auto num_open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = num_open_files();
  std::thread([&] { others = ReadThreadTimes(); }).join();
  EXPECT_EQ(num_open_files(), before);
  ASSERT_TRUE(others.has_value());
  EXPECT_LT(others->on_cpu, mine->on_cpu);
}

}  // namespace
}  // namespace ott
