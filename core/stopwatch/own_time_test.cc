// Tests which part of an iteration is a process's own work: waiting counts once, wherever it is, and CPU time
// of others not at all.

#include "ott/core/stopwatch/own_time.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

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
uint64_t slept_ns = 0;
uint64_t read_takes_ns = 0;
// Others have the CPU for so long right after that.
uint64_t taken_after_reading_ns = 0;
int num_reads = 0;
std::optional<ThreadTimes> FakeThreadTimes() {
  ++num_reads;
  now_ns += read_takes_ns;
  const ThreadTimes times = {now_ns - taken_ns - slept_ns, taken_ns};
  now_ns += taken_after_reading_ns;
  taken_ns += taken_after_reading_ns;
  return times;
}

uint64_t FakeProcessCpuTime() { return now_ns - taken_ns - slept_ns; }

class OwnTimeTest : public StopwatchTest {
 protected:
  OwnTimeTest() : StopwatchTest(Environment()) { Enable(); }

  void Enable() {
    Stopwatch::Options options;
    options.num_warmup_iters = 1;
    options.collective_measurements = {"allreduce", "inner_allreduce", "ott"};
    options.observer_measurement = "ott";
    options.sampled_measurements = {"module *"};
    options.watch_cpu = true;
    options.arrivals_limit = 1000;
    StopwatchTest::Enable(options);
  }

  static Stopwatch::Environment Environment() {
    Stopwatch::Environment environment = EnvironmentWith(&NoDevice);
    environment.read_thread_times = &FakeThreadTimes;
    environment.read_process_cpu_time = &FakeProcessCpuTime;
    return environment;
  }

  template <typename Iteration>
  void Train(const Iteration& iteration) {
    for (int i = 0; i < kIterations + 1; ++i) {
      iteration();
      stopwatch_.FinishIter();
    }
  }

  OwnTimeStats Own(const std::string& name) const { return Stats(name).own(); }
  OwnWorkStats OwnWork() const { return Stats().own_work(); }

  void MeasureScope(const std::string& name, uint64_t nanoseconds) {
    const Stopwatch::Scope scope(stopwatch_, name);
    now_ns += nanoseconds;
  }

  // Returns how often the kernel was asked meanwhile, and the milliseconds that passed.
  template <typename Work>
  static std::pair<int, int> ReadsDuring(const Work& work) {
    num_reads = 0;
    const uint64_t begin = now_ns;
    work();
    return {num_reads, static_cast<int>((now_ns - begin) / 1'000'000)};
  }

  // Without a CPU.
  static void LoseCpu(uint64_t milliseconds) {
    Pass(milliseconds);
    taken_ns += milliseconds * 1'000'000;
  }
};

// A measurement, or milliseconds with and then without a CPU, and then asleep. What is inside of a collective
// is no measurement but another collective.
struct Step {
  std::string name = {};
  uint64_t passes = 0;
  uint64_t loses = 0;
  uint64_t sleeps = 0;
  bool is_called = false;
  bool ends_elsewhere = false;
  std::vector<Step> inner = {};
};

Step DrawStep(std::mt19937& random, int depth, bool in_collective) {
  Step step;
  if (random() % 4 < static_cast<uint32_t>(depth)) {
    step.passes = 1 + random() % 9;
    if (random() % 4 == 0) step.loses = 5 + random() % 9;
    if (random() % 4 == 0) step.sleeps = 1 + random() % 3;
    return step;
  }
  static int number = 0;
  const bool is_collective = in_collective || random() % 2 == 0;
  if (is_collective) {
    step.name = in_collective ? "inner_allreduce" : "allreduce";
  } else {
    step.name = (random() % 2 == 0 ? "module " : "function ") + std::to_string(++number);
  }
  for (uint32_t left = 1 + random() % 3; left > 0; --left)
    step.inner.push_back(DrawStep(random, depth + 1, is_collective));
  const auto is_leaf = [](const Step& inner) { return inner.name.empty(); };
  step.is_called = random() % 2 == 0 && std::all_of(step.inner.begin(), step.inner.end(), is_leaf);
  step.ends_elsewhere = step.is_called && !is_collective && random() % 3 == 0;
  return step;
}

// Milliseconds in all, in collectives, and without a CPU or asleep outside of them.
struct Spent {
  uint64_t all = 0, waiting = 0, taken = 0, slept = 0;
  bool in_scope = false;

  void operator+=(const Spent& other) {
    all += other.all;
    waiting += other.waiting;
    taken += other.taken;
    slept += other.slept;
  }
  double Seconds(bool with_taken = false) const {
    return 1e-3 * static_cast<double>(all - waiting - (with_taken ? 0 : taken));
  }
};

// Plays steps, and knows what of them is whose.
struct Player {
  Stopwatch& stopwatch;
  std::map<std::string, Spent> spent = {};
  // By arrival in this iteration: milliseconds without a CPU, and those of them in vain.
  std::vector<std::pair<int64_t, int64_t>> arrivals = {};
  int64_t taken = 0, taken_in_vain = 0;

  Spent Play(const Step& step, bool in_scope, bool in_collective) {
    if (step.name.empty()) {
      const uint64_t all = step.passes + step.loses + step.sleeps;
      Pass(all);
      slept_ns += 1'000'000 * step.sleeps;
      taken_ns += 1'000'000 * step.loses;
      taken += static_cast<int64_t>(step.loses);
      return {all, 0, step.loses, step.sleeps};
    }
    const bool is_collective = step.name.find("allreduce") != std::string::npos;
    const bool is_outermost = is_collective && !in_collective;
    if (is_outermost) {
      const int64_t in_vain = std::exchange(taken_in_vain, 0);
      arrivals.emplace_back(std::exchange(taken, 0) - in_vain, in_vain);
    }
    std::optional<Stopwatch::Scope> scope;
    step.is_called ? stopwatch.Start(step.name) : void(scope.emplace(stopwatch, step.name));
    Spent sum;
    for (const Step& inner : step.inner) sum += Play(inner, in_scope || !step.is_called, is_collective);
    scope.reset();
    if (step.ends_elsewhere) {
      std::thread([&] { stopwatch.End(step.name); }).join();
    } else if (step.is_called) {
      stopwatch.End(step.name);
    }
    if (is_outermost) {
      taken_in_vain += std::max<int64_t>(0, static_cast<int64_t>(sum.taken) - 4);
      sum = {sum.all, sum.all};
    }
    sum.in_scope = in_scope;
    if (!is_collective) spent[step.name] = sum;
    // Another thread knows nothing of the CPU of this one.
    if (step.ends_elsewhere) spent[step.name].taken = 0;
    return sum;
  }
};

TEST_F(OwnTimeTest, IsWhatIsNeitherInCollectivesNorWithoutACpu) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    Step all;
    for (int i = 1 + trial % 3; i > 0; --i) all.inner.push_back(DrawStep(random, i - 1, false));
    Step again;
    again.name = "module of each trial";
    again.inner.emplace_back().passes = 1;
    all.inner.push_back(again);
    Player player = {stopwatch_};
    const uint64_t beside = 1 + random() % 9, asleep = random() % 3;
    Spent whole;
    Train([&] {
      player.arrivals.clear();
      Pass(beside + asleep);
      slept_ns += 1'000'000 * asleep;
      whole = {beside + asleep, 0, 0, asleep};
      for (const Step& step : all.inner) whole += player.Play(step, false, false);
    });
    const OwnWorkStats work = OwnWork();
    EXPECT_NEAR(work.time().all().seconds(), whole.Seconds(), 1e-7) << trial;
    // The CPU time of the process is counted for iterations of 16 ms and more together.
    const int64_t together = (15 + static_cast<int64_t>(whole.all)) / static_cast<int64_t>(whole.all);
    const int64_t watched = kIterations / together * together;
    EXPECT_EQ(work.num_watched_iters(), watched);
    EXPECT_NEAR(work.waiting_seconds(), kIterations * 1e-3 * static_cast<double>(whole.waiting), 5e-13);
    EXPECT_NEAR(work.taken_seconds(), watched * 1e-3 * static_cast<double>(whole.taken), 5e-13);
    EXPECT_NEAR(work.cpu_seconds(), watched * (whole.Seconds() - 1e-3 * static_cast<double>(whole.slept)),
                5e-13);
    for (const auto& [name, spent] : player.spent) {
      const OwnTimeStats own = Own(name);
      // If nobody watches, all time that was taken may have been in it.
      const bool is_known = whole.taken == 0 || !spent.in_scope || name.find("module") == 0;
      EXPECT_EQ(own.has_all(), is_known) << trial << " " << name;
      EXPECT_EQ(own.has_all_with_taken(), is_known && spent.taken > 0) << trial << " " << name;
      if (!is_known) continue;
      EXPECT_NEAR(own.all().seconds(), spent.Seconds(), 1e-7) << trial << " " << name;
      if (spent.taken == 0) continue;
      EXPECT_NEAR(own.all_with_taken().seconds(), spent.Seconds(true), 1e-7) << trial << " " << name;
    }
    for (const StopwatchSnapshot::Measurement& measurement : stopwatch_.Snapshot().measurements)
      EXPECT_FALSE(measurement.collective && measurement.own.all.has_value()) << trial;
    for (const StopwatchArrivals& of : stopwatch_.TakeArrivals()) {
      EXPECT_EQ(of.arrivals.front().iteration, 1);
      if (of.name == "inner_allreduce") continue;
      EXPECT_FALSE(of.arrivals.front().taken.has_value());
      std::vector<std::pair<int64_t, int64_t>> arrivals;
      for (const StopwatchArrivals::Arrival& arrival : of.arrivals) {
        if (arrival.iteration != kIterations) continue;
        arrivals.emplace_back(arrival.taken.value_or(-1) / 1'000'000, arrival.taken_in_vain / 1'000'000);
      }
      EXPECT_EQ(arrivals, player.arrivals) << trial;
    }
    // The waiting of an iteration that did not end counts in no later one.
    {
      const Stopwatch::Scope unfinished(stopwatch_, again.name);
      Measure("allreduce", 5);
    }
    stopwatch_.Disable();
    Enable();
  }
}

TEST_F(OwnTimeTest, OfACollectiveThatBeganBeforeCountsWhatIsInside) {
  Train([&] {
    stopwatch_.Start("step");
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
    stopwatch_.End("step");
  });
  EXPECT_NEAR(Own("forward").all().seconds(), 0.003, 1e-6);
  EXPECT_NEAR(Own("layer").all().seconds(), 0.003, 1e-6);
  EXPECT_NEAR(Own("step").all().seconds(), 0.003, 1e-6);
}

TEST_F(OwnTimeTest, WhatAnotherThreadStartedDoesNotWaitWhereThisOneDoes) {
  Train([&] {
    stopwatch_.Start("here");
    std::thread([&] { stopwatch_.Start("there"); }).join();
    MeasureScope("allreduce", 5'000'000);
    Pass(2);
    for (const char* const name : {"here", "there"}) stopwatch_.End(name);
  });
  EXPECT_NEAR(Own("here").all().seconds(), 0.002, 1e-6);
  EXPECT_NEAR(Own("there").all().seconds(), 0.007, 1e-6);
}

TEST_F(OwnTimeTest, InShortIterationsTheKernelIsAskedOnceInFourMilliseconds) {
  constexpr int kSaved = 16;
  const auto [reads, milliseconds] = ReadsDuring([&] {
    for (int i = 0; i < 10; ++i) {
      Train([&] {
        const Stopwatch::Scope forward(stopwatch_, "forward");
        now_ns += 50'000;
        for (int part = 0; part < 4; ++part) MeasureScope("allreduce", 25'000);
      });
    }
  });
  EXPECT_GT(milliseconds, 90);
  EXPECT_LE(reads, milliseconds / 4 + kSaved + 1);
  EXPECT_GE(reads, milliseconds / 8);
  // All that is known of such iterations is so in the mean.
  const OwnWorkStats own = OwnWork();
  EXPECT_GE(own.num_watched_iters(), 500);
  EXPECT_NEAR(own.cpu_seconds() / static_cast<double>(own.num_watched_iters()), 50e-6, 20e-6);
}

TEST_F(OwnTimeTest, InALongRunOfShortIterationsTheKernelIsAskedOnceInSixteenMilliseconds) {
  const auto train = [&](int times) {
    for (int i = 0; i < times; ++i) Train([&] { now_ns += 150'000; });
  };
  train(150);
  const auto [reads, milliseconds] = ReadsDuring([&] { train(50); });
  EXPECT_LE(reads, milliseconds / 16 + 1);
  EXPECT_GE(reads, milliseconds / 17);
}

TEST_F(OwnTimeTest, AKernelThatAnswersSlowlyIsAskedForOnePartIn200OfTheTime) {
  const auto train = [&] {
    return Train([&] {
      for (int part = 0; part < 20; ++part) MeasureScope("allreduce", 200'000);
    });
  };
  read_takes_ns = 20'000;
  train();
  const auto [reads, milliseconds] = ReadsDuring(train);
  read_takes_ns = 0;
  // 20 us are one part in 200 of 4 ms.
  EXPECT_LE(reads, milliseconds / 4 + 16);
  EXPECT_GE(reads, milliseconds / 4 / 2);
}

TEST_F(OwnTimeTest, ALongIterationAsksTheKernelWhereverItsMeasurementsEnd) {
  Train([&] {
    for (int part = 0; part < 7; ++part) MeasureScope("forward", 1'000'000);
    Pass(20);
  });
  num_reads = 0;
  Train([&] {
    for (int part = 0; part < 7; ++part) {
      const Stopwatch::Scope forward(stopwatch_, "forward");
      now_ns += 200'000;
      LoseCpu(1);
    }
    Pass(20);
  });
  EXPECT_GE(num_reads, 7 * (kIterations + 1));
  EXPECT_NEAR(OwnWork().taken_seconds(), (kIterations + 1) * 0.007, 0.0075);
}

TEST_F(OwnTimeTest, CollectivesThatOverlapAreSubtractedOnce) {
  Train([&] {
    stopwatch_.Start("backward");
    Pass(5);
    stopwatch_.Start("allreduce");
    Pass(7);
    stopwatch_.Start("inner_allreduce");
    Pass(3);
    stopwatch_.End("allreduce");
    Pass(4);
    slept_ns += 4'000'000;
    stopwatch_.End("inner_allreduce");
    stopwatch_.End("backward");
  });
  EXPECT_NEAR(Own("backward").all().seconds(), 0.005, 1e-6);
  EXPECT_NEAR(OwnWork().time().all().seconds(), 0.005, 1e-6);
  EXPECT_NEAR(OwnWork().cpu_seconds(), kIterations * 0.005, 1e-6);
  const std::vector<StopwatchArrivals> arrivals = stopwatch_.TakeArrivals();
  ASSERT_EQ(arrivals.size(), 2u);
  EXPECT_EQ(arrivals[0].arrivals.back().inside, 10'000'000);
  EXPECT_EQ(arrivals[1].arrivals.back().inside, 7'000'000);
}

TEST_F(OwnTimeTest, TheObserverMakesNoArrivalLate) {
  Train([&] {
    LoseCpu(3);
    for (int i = 0; i < 2; ++i) {
      const Stopwatch::Scope scope(stopwatch_, "ott");
      Pass(5);
      LoseCpu(7);
    }
    LoseCpu(2);
    const Stopwatch::Scope scope(stopwatch_, "allreduce");
    Pass(1);
    LoseCpu(6);
  });
  const std::vector<StopwatchArrivals> arrivals = stopwatch_.TakeArrivals();
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_EQ(arrivals[0].name, "allreduce");
  const StopwatchArrivals::Arrival& last = arrivals[0].arrivals.back();
  EXPECT_EQ(last.observed, 24'000'000);
  EXPECT_EQ(last.taken, 9'000'000) << "before the observer, after it, and as the collective ended";
  EXPECT_EQ(last.taken_in_vain, 2'000'000);
}

void ExpectSteadyTime(const SteadyTimeStats& found, const std::vector<uint64_t>& milliseconds) {
  SteadyTimeRecorder recorder;
  for (const uint64_t duration : milliseconds) recorder.Add(1e-3 * static_cast<double>(duration));
  const SteadyTime expected = recorder.Finish().value();
  EXPECT_NEAR(found.seconds(), expected.seconds, 1e-7);
  EXPECT_NEAR(found.standard_error(), expected.standard_error, 1e-7);
  EXPECT_NEAR(found.degrees_of_freedom(), expected.degrees_of_freedom, 1e-3);
  EXPECT_EQ(found.count(), expected.count);
  EXPECT_EQ(found.block_iterations(), expected.block_iterations);
  ASSERT_EQ(found.block_size(), expected.num_blocks);
  for (int i = 0; i < found.block_size(); ++i) EXPECT_NEAR(found.block(i), expected.blocks[i], 1e-7);
}

TEST_F(OwnTimeTest, IsKnownWithWhatWasTakenTooAndByTheWindow) {
  std::vector<uint64_t> own, with_taken;
  for (int window = 0; window < 2; ++window) {
    own.clear();
    with_taken.clear();
    Train([&] {
      const Stopwatch::Scope forward(stopwatch_, "forward");
      own.push_back(10 + own.size() % 7);
      with_taken.push_back(own.back() + (window > 0 && own.size() % 2 == 0 ? 30 : 0));
      Pass(own.back());
      LoseCpu(with_taken.back() - own.back());
    });
    stopwatch_.CloseWindow();
  }
  for (const OwnTimeStats& found : {Own("forward"), OwnWork().time()}) {
    ExpectSteadyTime(found.window(), own);
    ExpectSteadyTime(found.window_with_taken(), with_taken);
    EXPECT_EQ(found.all().count(), 2 * kIterations + 1);
    EXPECT_EQ(found.all_with_taken().count(), 2 * kIterations + 1);
  }
}

TEST_F(OwnTimeTest, OfAnInnerMeasurementOnlyIterationsWithTheCpuCount) {
  int iteration = 0;
  Train([&] {
    const Stopwatch::Scope forward(stopwatch_, "forward");
    const Stopwatch::Scope attention(stopwatch_, "attention");
    Pass(10);
    if (++iteration % 4 == 0) LoseCpu(30);
  });
  ASSERT_TRUE(Own("attention").has_all());
  EXPECT_NEAR(Own("attention").all().seconds(), 0.010, 1e-6);
  // One part in fifty of the work, without waiting, may be taken.
  for (const uint64_t passes : {50, 30}) {
    const std::string name = "norm of " + std::to_string(passes);
    Train([&] {
      {
        const Stopwatch::Scope forward(stopwatch_, "forward");
        const Stopwatch::Scope norm(stopwatch_, name);
        Pass(passes);
        LoseCpu(1);
      }
      MeasureScope("allreduce", 100'000'000);
    });
    EXPECT_NEAR(Own(name).all().seconds(), passes == 50 ? 0.051 : 0, 1e-6);
  }
}

// It was read a moment ago, and what was taken since is no more than what the measurement took.
TEST_F(OwnTimeTest, OfAMomentNoMoreIsTakenThanItTook) {
  Train([&] {
    now_ns += 90'000;
    taken_ns += 90'000;
    MeasureScope("module norm", 20'000);
  });
  EXPECT_NEAR(Own("module norm").all().seconds(), 0, 20e-6);
}

TEST_F(OwnTimeTest, InACollectiveNoMoreIsTakenThanItTook) {
  Train([&] {
    now_ns += 90'000;
    taken_ns += 90'000;
    MeasureScope("allreduce", 20'000);
    Pass(20);
  });
  EXPECT_NEAR(OwnWork().taken_seconds(), kIterations * 90e-6, kIterations * 20e-6 + 1e-9);
}

TEST_F(OwnTimeTest, NoMoreIsTakenThanTheWorkBesidesCollectivesOfOtherThreads) {
  Train([&] {
    Pass(1);
    std::thread([&] {
      const Stopwatch::Scope allreduce(stopwatch_, "allreduce");
      LoseCpu(10);
    }).join();
  });
  EXPECT_NEAR(OwnWork().taken_seconds(), kIterations * 0.001, 1e-6);
}

TEST_F(OwnTimeTest, OfIterationsThatOtherThreadsBeganNothingIsTaken) {
  // Nor of those before them that were not counted yet: 16 ms are counted together.
  Train([&] { Pass(1); });
  Train([&] {
    LoseCpu(10);
    std::thread([&] { stopwatch_.FinishIter(); }).join();
    Pass(20);
  });
  constexpr int kCounted = kIterations / 16 * 16;
  EXPECT_EQ(OwnWork().num_watched_iters(), kCounted);
  EXPECT_EQ(OwnWork().taken_seconds(), 0);
  Train([&] {
    Pass(1);
    slept_ns += 500'000;
  });
  EXPECT_EQ(OwnWork().num_watched_iters(), 2 * kCounted);
  EXPECT_NEAR(OwnWork().cpu_seconds(), kCounted * 1.5e-3, 1e-9);
}

TEST_F(OwnTimeTest, AMeasurementThatIsShortForOnceIsWatchedOn) {
  int iteration = 0;
  Train([&] {
    {
      const Stopwatch::Scope module(stopwatch_, "module norm");
      now_ns += 50'000;
      if (++iteration % 2 == 0) LoseCpu(5);
    }
    Pass(10);
  });
  EXPECT_EQ(Own("module norm").all().count(), kIterations);
}

TEST_F(OwnTimeTest, AMeasurementThatRanInsideOfAnotherIsWatchedNoMore) {
  int iteration = 0;
  Train([&] {
    std::optional<Stopwatch::Scope> forward;
    if (++iteration > kIterations - 10) forward.emplace(stopwatch_, "forward");
    const Stopwatch::Scope norm(stopwatch_, "norm");
    Pass(10);
    LoseCpu(5);
  });
  // Not the first one, before which it was not known how long it takes, either.
  EXPECT_EQ(Own("norm").all().count(), kIterations - 10 - 2);
  Train([&] {
    {
      const Stopwatch::Scope norm(stopwatch_, "outer and inner norm");
      Pass(50);
      LoseCpu(1);
    }
    const Stopwatch::Scope forward(stopwatch_, "forward");
    MeasureScope("outer and inner norm", 1'000'000);
  });
  EXPECT_NEAR(Own("outer and inner norm").all().seconds(), 0.052, 1e-4);
}

TEST_F(OwnTimeTest, WithoutACpuWhileAnArrivalIsTakenDownItIsNoLater) {
  Train([&] { Pass(10); });
  const uint64_t arrived = now_ns;
  taken_after_reading_ns = 130'000'000;
  MeasureScope("allreduce", 0);
  taken_after_reading_ns = 0;
  const std::vector<StopwatchArrivals> arrivals = stopwatch_.TakeArrivals();
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_EQ(arrivals[0].arrivals[0].nanoseconds, static_cast<int64_t>(arrived));
}

// The kernel counts the times of each thread from its beginning.
TEST_F(OwnTimeTest, OfAThreadAreNotComparedWithThoseOfOneThatEnded) {
  Train([&] {
    for (const uint64_t taken : {5'000'000, 0}) {
      std::thread([&] {
        taken_ns = taken;
        for (const char* const name : {taken > 0 ? "before" : "after", "allreduce"})
          MeasureScope(name, 10'000'000);
      }).join();
    }
  });
  EXPECT_NEAR(Own("after").all().seconds(), 0.010, 1e-9);
  const auto arrivals = stopwatch_.TakeArrivals();
  for (const StopwatchArrivals::Arrival& arrival : arrivals.at(0).arrivals)
    EXPECT_FALSE(arrival.taken.has_value()) << *arrival.taken;
}

}  // namespace
}  // namespace ott
