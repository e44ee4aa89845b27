// Tests which part of an iteration is a process's own work: waiting counts once, wherever it is, and CPU time
// of others not at all.

#include "ott/core/stopwatch/own_time.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/core/stopwatch/thread_times.h"
#include "stopwatch_for_test.h"

namespace ott {
namespace {

constexpr int kIterations = 60;

// The kernel would say this of the thread; here the test decides it.
uint64_t taken_ns = 0;
uint64_t read_takes_ns = 0;
// Others have the CPU for so long right after that.
uint64_t taken_after_reading_ns = 0;
int num_reads = 0;
std::optional<ThreadTimes> FakeThreadTimes() {
  ++num_reads;
  now_ns += read_takes_ns;
  const ThreadTimes times = {now_ns - taken_ns, taken_ns};
  now_ns += taken_after_reading_ns;
  taken_ns += taken_after_reading_ns;
  return times;
}

// The CPU time of threads that compute all the time.
uint64_t FakeProcessCpuTime() { return now_ns - taken_ns; }

class OwnTimeTest : public ::testing::Test {
 protected:
  OwnTimeTest() : stopwatch_(Environment()) {
    Stopwatch::Options options;
    options.num_warmup_iters = 1;
    options.collective_measurements = {"allreduce", "inner_allreduce"};
    options.sampled_measurements = {"module *"};
    options.watch_cpu = true;
    options.arrivals_limit = 1000;
    EXPECT_TRUE(stopwatch_.Enable(options).ok());
  }

  static Stopwatch::Environment Environment() {
    Stopwatch::Environment environment = EnvironmentWith(&NoDevice);
    environment.read_thread_times = &FakeThreadTimes;
    environment.read_process_cpu_time = &FakeProcessCpuTime;
    return environment;
  }

  template <typename Iteration>
  StopwatchStats Train(const Iteration& iteration) {
    for (int i = 0; i < kIterations + 1; ++i) {
      iteration();
      stopwatch_.FinishIter();
    }
    StopwatchStats stats;
    stopwatch_.Stats(&stats);
    return stats;
  }

  static OwnTimeStats Own(const StopwatchStats& stats, const std::string& name) {
    for (const Measurement& measurement : stats.measurements()) {
      if (measurement.name() == name) return measurement.own();
    }
    return {};
  }

  // Without a CPU.
  static void LoseCpu(uint64_t milliseconds) {
    Pass(milliseconds);
    taken_ns += milliseconds * 1'000'000;
  }

  Stopwatch stopwatch_;
};

TEST_F(OwnTimeTest, SampledMeasurementsAreWatchedInsideOfOthersToo) {
  const StopwatchStats stats = Train([&] {
    const Stopwatch::Scope forward(stopwatch_, "forward");
    const Stopwatch::Scope module(stopwatch_, "module h.2");
    const Stopwatch::Scope function(stopwatch_, "function");
    Pass(10);
    LoseCpu(5);
  });
  EXPECT_NEAR(Own(stats, "forward").all().seconds(), 0.010, 1e-6);
  EXPECT_NEAR(Own(stats, "module h.2").all().seconds(), 0.010, 1e-6);
  // A third of its time was taken, nobody knows where inside of it.
  EXPECT_FALSE(Own(stats, "function").has_all());
}

TEST_F(OwnTimeTest, NestedCollectivesAreSubtractedOnce) {
  const StopwatchStats stats = Train([&] {
    Pass(2);
    const Stopwatch::Scope outer(stopwatch_, "allreduce");
    Pass(3);
    const Stopwatch::Scope inner(stopwatch_, "inner_allreduce");
    Pass(4);
  });
  EXPECT_NEAR(stats.own_work().time().all().seconds(), 0.002, 1e-6);
  EXPECT_NEAR(stats.own_work().waiting_seconds(), kIterations * 0.007, 1e-6);
}

TEST_F(OwnTimeTest, OfACollectiveThatBeganBeforeCountsWhatIsInside) {
  const StopwatchStats stats = Train([&] {
    stopwatch_.Start("allreduce");
    Pass(5);
    {
      const Stopwatch::Scope forward(stopwatch_, "forward");
      stopwatch_.Start("layer");
      Pass(2);
      stopwatch_.End("allreduce");
      Pass(3);
      stopwatch_.End("layer");
    }
  });
  EXPECT_NEAR(Own(stats, "forward").all().seconds(), 0.003, 1e-6);
  EXPECT_NEAR(Own(stats, "layer").all().seconds(), 0.003, 1e-6);
}

TEST_F(OwnTimeTest, ACollectiveInsideOfAMeasurementIsNotItsWork) {
  const StopwatchStats stats = Train([&] {
    const Stopwatch::Scope backward(stopwatch_, "backward");
    Pass(5);
    const Stopwatch::Scope allreduce(stopwatch_, "allreduce");
    Pass(7);
  });
  EXPECT_NEAR(Own(stats, "backward").all().seconds(), 0.005, 1e-6);
  EXPECT_FALSE(Own(stats, "allreduce").has_all());
}

TEST_F(OwnTimeTest, TheSameOfMeasurementsThatAreStartedAndEndedByCalls) {
  const StopwatchStats stats = Train([&] {
    stopwatch_.Start("backward");
    Pass(5);
    stopwatch_.Start("allreduce");
    Pass(7);
    stopwatch_.End("allreduce");
    stopwatch_.End("backward");
  });
  EXPECT_NEAR(Own(stats, "backward").all().seconds(), 0.005, 1e-6);
  EXPECT_NEAR(stats.own_work().time().all().seconds(), 0.005, 1e-6);
}

TEST_F(OwnTimeTest, InShortIterationsTheKernelIsAskedOnceInFourMilliseconds) {
  constexpr int kSaved = 16;
  num_reads = 0;
  const uint64_t begin = now_ns;
  StopwatchStats stats;
  for (int i = 0; i < 10; ++i) {
    stats = Train([&] {
      const Stopwatch::Scope forward(stopwatch_, "forward");
      now_ns += 50'000;
      for (int part = 0; part < 4; ++part) {
        const Stopwatch::Scope allreduce(stopwatch_, "allreduce");
        now_ns += 25'000;
      }
    });
  }
  const uint64_t milliseconds = (now_ns - begin) / 1'000'000;
  EXPECT_GT(milliseconds, 90u);
  EXPECT_LE(num_reads, static_cast<int>(milliseconds) / 4 + kSaved + 1);
  EXPECT_GE(num_reads, static_cast<int>(milliseconds) / 8);
  // All that is known of such iterations is so in the mean.
  const auto& own = stats.own_work();
  EXPECT_GE(own.num_watched_iters(), 500);
  EXPECT_NEAR(own.cpu_seconds() / static_cast<double>(own.num_watched_iters()), 50e-6, 20e-6);
}

TEST_F(OwnTimeTest, InALongRunOfShortIterationsTheKernelIsAskedOnceInSixteenMilliseconds) {
  const auto train = [&] { Train([&] { now_ns += 150'000; }); };
  for (int i = 0; i < 150; ++i) train();
  num_reads = 0;
  const uint64_t begin = now_ns;
  for (int i = 0; i < 50; ++i) train();
  const auto milliseconds = static_cast<int>((now_ns - begin) / 1'000'000);
  EXPECT_LE(num_reads, milliseconds / 16 + 1);
  EXPECT_GE(num_reads, milliseconds / 17);
}

TEST_F(OwnTimeTest, AKernelThatAnswersSlowlyIsAskedForOnePartIn200OfTheTime) {
  constexpr uint64_t kReadNanoseconds = 20'000;
  const auto train = [&] {
    return Train([&] {
      for (int part = 0; part < 20; ++part) {
        const Stopwatch::Scope allreduce(stopwatch_, "allreduce");
        now_ns += 200'000;
      }
    });
  };
  read_takes_ns = kReadNanoseconds;
  train();
  num_reads = 0;
  const uint64_t begin = now_ns;
  train();
  read_takes_ns = 0;
  const auto most = static_cast<int>((now_ns - begin) / (200 * kReadNanoseconds));
  EXPECT_LE(num_reads, most + 16);
  EXPECT_GE(num_reads, most / 2);
}

TEST_F(OwnTimeTest, ALongIterationAsksTheKernelWhereverItsMeasurementsEnd) {
  Train([&] {
    for (int part = 0; part < 7; ++part) {
      const Stopwatch::Scope forward(stopwatch_, "forward");
      Pass(1);
    }
    Pass(20);
  });
  num_reads = 0;
  const StopwatchStats stats = Train([&] {
    for (int part = 0; part < 7; ++part) {
      const Stopwatch::Scope forward(stopwatch_, "forward");
      now_ns += 200'000;
      LoseCpu(1);
    }
    Pass(20);
  });
  EXPECT_GE(num_reads, 7 * (kIterations + 1));
  EXPECT_NEAR(stats.own_work().taken_seconds(), (kIterations + 1) * 0.007, 0.0075);
}

TEST_F(OwnTimeTest, CollectivesThatOverlapAreSubtractedOnce) {
  const StopwatchStats stats = Train([&] {
    stopwatch_.Start("backward");
    Pass(5);
    stopwatch_.Start("allreduce");
    Pass(7);
    stopwatch_.Start("inner_allreduce");
    Pass(3);
    stopwatch_.End("allreduce");
    Pass(4);
    stopwatch_.End("inner_allreduce");
    stopwatch_.End("backward");
  });
  EXPECT_NEAR(Own(stats, "backward").all().seconds(), 0.005, 1e-6);
  EXPECT_NEAR(stats.own_work().time().all().seconds(), 0.005, 1e-6);
  const std::vector<StopwatchArrivals> arrivals = stopwatch_.TakeArrivals();
  ASSERT_EQ(arrivals.size(), 2u);
  EXPECT_EQ(arrivals[0].arrivals.back().inside, 10'000'000);
  EXPECT_EQ(arrivals[1].arrivals.back().inside, 7'000'000);
}

TEST_F(OwnTimeTest, TimeWithoutACpuIsNobodysWork) {
  const StopwatchStats stats = Train([&] {
    {
      const Stopwatch::Scope forward(stopwatch_, "forward");
      Pass(10);
      LoseCpu(30);
    }
    const Stopwatch::Scope allreduce(stopwatch_, "allreduce");
    LoseCpu(5);
  });
  EXPECT_NEAR(Own(stats, "forward").all().seconds(), 0.010, 1e-6);
  EXPECT_NEAR(stats.own_work().time().all().seconds(), 0.010, 1e-6);
  EXPECT_EQ(stats.own_work().num_watched_iters(), kIterations);
  EXPECT_NEAR(stats.own_work().taken_seconds(), kIterations * 0.030, 1e-6);
  EXPECT_NEAR(stats.own_work().cpu_seconds(), kIterations * 0.010, 1e-6);
}

TEST_F(OwnTimeTest, IsKnownWithWhatWasTakenToo) {
  int iteration = 0;
  const StopwatchStats stats = Train([&] {
    const Stopwatch::Scope forward(stopwatch_, "forward");
    Pass(10);
    if (++iteration > kIterations / 2) LoseCpu(30);
  });
  for (const OwnTimeStats& own : {Own(stats, "forward"), stats.own_work().time()}) {
    EXPECT_NEAR(own.all().seconds(), 0.010, 1e-6);
    EXPECT_NEAR(own.all_with_taken().seconds(), 0.025, 2e-3);
  }
}

TEST_F(OwnTimeTest, OfAnInnerMeasurementOnlyIterationsWithTheCpuCount) {
  int iteration = 0;
  const StopwatchStats stats = Train([&] {
    const Stopwatch::Scope forward(stopwatch_, "forward");
    const Stopwatch::Scope attention(stopwatch_, "attention");
    Pass(10);
    if (++iteration % 4 == 0) LoseCpu(30);
  });
  ASSERT_TRUE(Own(stats, "attention").has_all());
  EXPECT_NEAR(Own(stats, "attention").all().seconds(), 0.010, 1e-6);
}

TEST_F(OwnTimeTest, AnArrivalSaysHowLongTheThreadHadNoCpu) {
  Train([&] {
    LoseCpu(3);
    const Stopwatch::Scope allreduce(stopwatch_, "allreduce");
    LoseCpu(4);
  });
  const std::vector<StopwatchArrivals> arrivals = stopwatch_.TakeArrivals();
  ASSERT_EQ(arrivals.size(), 1u);
  ASSERT_EQ(arrivals[0].arrivals.size(), static_cast<size_t>(kIterations));
  EXPECT_FALSE(arrivals[0].arrivals[0].taken.has_value());
  EXPECT_EQ(arrivals[0].arrivals[1].taken, 7'000'000);
}

TEST_F(OwnTimeTest, WithoutACpuWhileItWaitsAnywayARankIsNoLater) {
  Train([&] {
    LoseCpu(3);
    const Stopwatch::Scope allreduce(stopwatch_, "allreduce");
    LoseCpu(400);
  });
  std::vector<StopwatchArrivals::Arrival> arrivals = stopwatch_.TakeArrivals()[0].arrivals;
  arrivals.erase(arrivals.begin());
  for (const StopwatchArrivals::Arrival& arrival : arrivals) {
    EXPECT_EQ(arrival.taken, 7'000'000);
    EXPECT_EQ(arrival.taken_in_vain, 396'000'000);
  }
}

TEST_F(OwnTimeTest, WithoutACpuWhileAnArrivalIsTakenDownItIsNoLater) {
  Train([&] { Pass(10); });
  const uint64_t arrived = now_ns;
  taken_after_reading_ns = 130'000'000;
  { const Stopwatch::Scope allreduce(stopwatch_, "allreduce"); }
  taken_after_reading_ns = 0;
  const std::vector<StopwatchArrivals> arrivals = stopwatch_.TakeArrivals();
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_EQ(arrivals[0].arrivals[0].nanoseconds, static_cast<int64_t>(arrived));
}

TEST_F(OwnTimeTest, AWindowEndsWhereItIsClosed) {
  Train([&] { Pass(10); });
  stopwatch_.CloseWindow();
  const StopwatchStats stats = Train([&] { Pass(20); });
  EXPECT_NEAR(stats.own_work().time().window().seconds(), 0.010, 1e-6);
  stopwatch_.CloseWindow();
  StopwatchStats later;
  stopwatch_.Stats(&later);
  EXPECT_NEAR(later.own_work().time().window().seconds(), 0.020, 1e-6);
}

TEST(ThreadTimes, AreReadFromSchedstat) {
  EXPECT_EQ(ParseSchedstat("49263122 23975778 16\n"), 23975778u);
  for (const char* const bad : {"", "12", "x 3 4", "1 -3 2", "1\t2 3"})
    EXPECT_FALSE(ParseSchedstat(bad).has_value()) << bad;
}

// The scheduler writes down what a thread had only as it looks, some milliseconds apart.
TEST(ThreadTimes, AreThoseOfThisMoment) {
  constexpr uint64_t kSpun = 200'000;
  for (int i = 0; i < 20; ++i) {
    const std::optional<ThreadTimes> before = ReadThreadTimes();
    if (!before.has_value()) GTEST_SKIP() << "this kernel does not tell";
    for (const uint64_t begin = ReadProcessCpuTime(); ReadProcessCpuTime() - begin < kSpun;) {
    }
    EXPECT_GE((*ReadThreadTimes() - *before).on_cpu, kSpun);
  }
}

TEST(ThreadTimes, OfAProcessThatWasForkedAreNotThoseOfItsParent) {
  if (!ReadThreadTimes().has_value()) GTEST_SKIP() << "this kernel does not tell";
  const pid_t child = fork();
  if (child == 0) _exit(ReadThreadTimes().has_value() ? 1 : 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ThreadTimes, OfEachThreadAreItsOwn) {
  const std::optional<ThreadTimes> mine = ReadThreadTimes();
  if (!mine.has_value()) GTEST_SKIP() << "this kernel does not tell";
  std::optional<ThreadTimes> others;
  std::thread([&] { others = ReadThreadTimes(); }).join();
  ASSERT_TRUE(others.has_value());
  EXPECT_LT(others->on_cpu, mine->on_cpu);
}

}  // namespace
}  // namespace ott
