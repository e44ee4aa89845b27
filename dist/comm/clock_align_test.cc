#include "ott/dist/comm/clock_align.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/simulated_communicator.h"

namespace ott {
namespace {

using std::chrono::seconds;

int64_t TrueTime() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A clock that starts at the true time, off by `offset`, and gains `drift` seconds a second.
struct WrongClock {
  int64_t start = TrueTime();
  int64_t offset = 0;
  double drift = 0;

  int64_t operator()() const { return At(TrueTime()); }
  int64_t At(int64_t true_time) const {
    return true_time + offset + static_cast<int64_t>(drift * static_cast<double>(true_time - start));
  }
};

// Runs f(rank, aligner) on 3 ranks, whose clocks go by `clocks`.
template <typename F>
void OnRanks(const std::vector<WrongClock>& clocks, const F& f) {
  auto ranks = CreateSimulatedCommunicators({"a", "b", "c"});
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      ClockAligner aligner(std::move(ranks[rank]), clocks[rank], /*unknown_drift=*/0.1);
      f(rank, aligner);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<WrongClock> ThreeClocks() {
  std::vector<WrongClock> clocks(3);
  clocks[1].offset = 3'600'000'000'000;  // an hour ahead
  clocks[2].offset = -5'000'000;
  clocks[2].drift = 0.05;  // far more than real clocks have, to be seen at once
  return clocks;
}

void ExpectAligned(const ClockAligner& aligner, const WrongClock& clock, int64_t true_time) {
  const auto aligned = aligner.ToRankZero(clock.At(true_time));
  ASSERT_TRUE(aligned.ok()) << aligned.status();
  EXPECT_LE(std::abs(aligned->nanoseconds - true_time), aligned->error_bound_nanoseconds + 2);
}

TEST(ClockAligner, FindsAnOffsetWithinItsErrorBound) {
  const std::vector<WrongClock> clocks = ThreeClocks();
  OnRanks(clocks, [&](int rank, ClockAligner& aligner) {
    constexpr int kPings = 50;
    const int64_t begin = TrueTime();
    ASSERT_TRUE(aligner.Measure(kPings, Deadline::After(seconds(60))).ok());
    if (rank == 2) return;
    ExpectAligned(aligner, clocks[rank], TrueTime());
    // Half of the quickest round trip, which is no longer than a mean one, and the drift since.
    const auto bound = aligner.ToRankZero(clocks[rank].At(TrueTime()))->error_bound_nanoseconds;
    const auto elapsed = static_cast<double>(TrueTime() - begin);
    EXPECT_LE(static_cast<double>(bound), elapsed / kPings / 2 + 0.1 * elapsed + 2);
    EXPECT_EQ(aligner.drift().has_value(), rank == 0);
  });
}

TEST(ClockAligner, FindsADriftFromTwoMeasurements) {
  const std::vector<WrongClock> clocks = ThreeClocks();
  OnRanks(clocks, [&](int rank, ClockAligner& aligner) {
    ASSERT_TRUE(aligner.Measure(50, Deadline::After(seconds(60))).ok());
    const int64_t first = TrueTime();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_TRUE(aligner.Measure(50, Deadline::After(seconds(60))).ok());
    const int64_t last = TrueTime();
    ASSERT_TRUE(aligner.drift().has_value());
    if (rank == 2) {
      EXPECT_NEAR(*aligner.drift(), -0.05 / 1.05, 0.02);
    }
    for (const int64_t when : {first - 100'000'000, first, (first + last) / 2, last, last + 100'000'000}) {
      ExpectAligned(aligner, clocks[rank], when);
    }
  });
}

TEST(ClockAligner, RankZeroIsTheMeasure) {
  OnRanks(ThreeClocks(), [](int rank, ClockAligner& aligner) {
    if (rank != 0) return;
    EXPECT_EQ(aligner.ToRankZero(12345)->nanoseconds, 12345);
    EXPECT_EQ(aligner.ToRankZero(12345)->error_bound_nanoseconds, 0);
  });
}

TEST(ClockAligner, SaysThatItWasNotMeasured) {
  OnRanks(ThreeClocks(), [](int rank, ClockAligner& aligner) {
    if (rank != 1) return;
    const absl::Status status = aligner.ToRankZero(1).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr("Measure()"));
  });
}

TEST(ClockAligner, AMissingRankCostsTheDeadlineAndSpoilsNothing) {
  const std::vector<WrongClock> clocks = ThreeClocks();
  OnRanks(clocks, [&](int rank, ClockAligner& aligner) {
    ASSERT_TRUE(aligner.Measure(10, Deadline::After(seconds(60))).ok());
    if (rank == 2) return;
    const absl::Status status = aligner.Measure(10, Deadline::After(std::chrono::milliseconds(500)));
    EXPECT_EQ(status.ok(), rank == 1) << status;
    ExpectAligned(aligner, clocks[rank], TrueTime());
    // Rank 0 does not wait for it again.
    EXPECT_TRUE(aligner.Measure(10, Deadline::After(seconds(60))).ok());
  });
}

TEST(ClockAligner, ARankThatWasSilentIsAlignedAgain) {
  const std::vector<WrongClock> clocks = ThreeClocks();
  std::atomic<int> num_done{0};
  OnRanks(clocks, [&](int rank, ClockAligner& aligner) {
    ASSERT_TRUE(aligner.Measure(10, Deadline::After(seconds(60))).ok());
    // The second and the third without rank 2, which calls them late.
    const Deadline deadline = Deadline::After(std::chrono::milliseconds(300));
    if (rank == 2) {
      while (num_done < 2) std::this_thread::yield();
    }
    for (int round = 2; round <= 3; ++round) aligner.Measure(10, deadline).IgnoreError();
    ++num_done;
    EXPECT_TRUE(aligner.Measure(10, Deadline::After(seconds(60))).ok());
    ExpectAligned(aligner, clocks[rank], TrueTime());
  });
}

TEST(ClockAligner, TwoMeasurementsCloseToEachOtherTellNoDrift) {
  auto ranks = CreateSimulatedCommunicators({"a", "b"});
  const auto measure = [](std::unique_ptr<Communicator> mine, bool is_other) {
    // Each reading is a microsecond later, however long it takes.
    ClockAligner aligner(std::move(mine), [now = int64_t{0}]() mutable { return now += 1000; });
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(aligner.Measure(2, Deadline::After(seconds(60))).ok());
    if (!is_other) return;
    // Ten seconds later, 100 ppm of it and not what the errors of both make of it.
    EXPECT_FALSE(aligner.drift().has_value());
    EXPECT_NEAR(static_cast<double>(aligner.ToRankZero(10'000'000'000)->error_bound_nanoseconds), 1e6, 1e3);
  };
  std::thread other(measure, std::move(ranks[1]), true);
  measure(std::move(ranks[0]), false);
  other.join();
}

TEST(ClockAligner, RanksOfOneKernelReadOneClock) {
  for (uint32_t have_own = 0; have_own < 8; ++have_own) {
    auto ranks = CreateSimulatedCommunicators({"a", "b", "c"});
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        const auto has_own = [&](int of) { return (have_own >> of & 1) != 0; };
        ClockAligner aligner(std::move(ranks[rank]),
                             has_own(rank) ? ClockAligner::Clock(WrongClock()) : nullptr);
        ASSERT_TRUE(aligner.Measure(10, Deadline::After(seconds(60))).ok());
        EXPECT_EQ(aligner.ReadsClockOfRankZero(), rank == 0 || (!has_own(0) && !has_own(rank)));
        if (!aligner.ReadsClockOfRankZero()) return;
        EXPECT_EQ(aligner.ToRankZero(12345)->nanoseconds, 12345);
        EXPECT_EQ(aligner.ToRankZero(12345)->error_bound_nanoseconds, 0);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(ClockAligner, ManyRanksAreMeasuredInTurns) {
  constexpr int kSize = 2 * ClockAligner::kRanksPerRound + 10;
  auto ranks = CreateSimulatedCommunicators(std::vector<std::string>(kSize, "node"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kSize; ++rank) {
    threads.emplace_back([&, rank] {
      WrongClock clock;
      clock.offset = rank * int64_t{1'000'000'000};
      ClockAligner aligner(std::move(ranks[rank]), clock, /*unknown_drift=*/1e9);
      for (int round = 0; round < 4; ++round) {
        ASSERT_TRUE(aligner.Measure(2, Deadline::After(seconds(60))).ok());
        ExpectAligned(aligner, clock, TrueTime());
      }
      // Each had a second turn.
      EXPECT_TRUE(aligner.drift().has_value()) << "rank " << rank;
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ott
