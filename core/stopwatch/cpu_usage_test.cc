#include "ott/core/stopwatch/cpu_usage.h"

#include <sys/resource.h>

#include <chrono>

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(CpuUsage, ProcStatIsCountedAsPsutilDoesAndSomethingElseRefused) {
  const auto times = ParseProcStat("cpu  100 20 30 400 50 6 7 8 90 10\ncpu0 1 2 3 4\n", 100);
  ASSERT_TRUE(times.ok());
  EXPECT_DOUBLE_EQ(times->all_total, 6.21);
  EXPECT_DOUBLE_EQ(times->all_busy, 1.71);
  // Old kernels have fewer columns.
  EXPECT_DOUBLE_EQ(ParseProcStat("cpu 1 1 1 7", 1)->all_busy, 3);
  EXPECT_FALSE(ParseProcStat("", 100).ok());
  EXPECT_FALSE(ParseProcStat("cpu 1 2 3\n", 100).ok());
  EXPECT_FALSE(ParseProcStat("intr 1 2 3 4 5\ncpu 1 2 3 4", 100).ok());
}

TEST(CpuUsage, LongIntervalsWeighMore) {
  CpuUsage usage;
  EXPECT_EQ(usage.all_percent(), 0);
  // 1 s with all of two CPUs busy, then 3 s idle.
  usage.Add({0, 0, 0, 0, 0}, {2, 2, 1.5, 0.5, 1});
  usage.Add({10, 10, 10, 10, 10}, {10, 16, 10, 10, 13});
  EXPECT_DOUBLE_EQ(usage.all_percent(), 25);
  EXPECT_DOUBLE_EQ(usage.process_user_percent(), 37.5);
  EXPECT_DOUBLE_EQ(usage.process_system_percent(), 12.5);
  EXPECT_DOUBLE_EQ(usage.duration(), 4);
  usage.Add({0, 0, 0, 0, 0}, {8.001, 0, 0, 0, 0});
  EXPECT_EQ(usage.all_percent(), 100) << "though sums round";
}

TEST(CpuUsage, ABusyThreadIsSeen) {
  const auto start = ReadCpuTimes().value();
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < until) {
  }
  rusage before = {}, after = {};
  getrusage(RUSAGE_SELF, &before);
  const auto end = ReadCpuTimes();
  getrusage(RUSAGE_SELF, &after);
  ASSERT_TRUE(end.ok());
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  EXPECT_TRUE(seconds(before.ru_utime) <= end->process_user && end->process_user <= seconds(after.ru_utime));
  EXPECT_TRUE(seconds(before.ru_stime) <= end->process_system &&
              end->process_system <= seconds(after.ru_stime));
  CpuUsage usage;
  usage.Add(start, *end);
  EXPECT_GT(usage.process_user_percent() + usage.process_system_percent(), 5);
  EXPECT_GT(usage.all_percent(), 0);
  EXPECT_LE(usage.all_percent(), 100);
  EXPECT_GE(usage.duration(), 0.2);
}

}  // namespace
}  // namespace ott
