#include "ott/dist/comm/clock_align.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
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

// Runs f(rank, its communicator) on so many ranks, each on a thread of its own.
template <typename F>
void OnRanks(int num_ranks, const F& f) {
  auto ranks = CreateSimulatedCommunicators(std::vector<std::string>(num_ranks, "node"));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < num_ranks; ++rank)
    threads.emplace_back([&, rank] { f(rank, std::move(ranks[rank])); });
  for (std::thread& thread : threads) thread.join();
}

// Runs f(rank, aligner) on ranks whose clocks go by `clocks`.
template <typename F>
void OnRanks(const std::vector<WrongClock>& clocks, const F& f) {
  OnRanks(static_cast<int>(clocks.size()), [&](int rank, std::unique_ptr<Communicator> group) {
    ClockAligner aligner(std::move(group), clocks[rank], /*unknown_drift=*/0.1);
    f(rank, aligner);
  });
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

// The quickest ping of each measurement counts, the first and the last of these tell the drift, and the error
// grows outside of them.
TEST(ClockAligner, OfAnyReadingsTheTimeIsThatOfTheDefinition) {
  struct Sample {
    int64_t local, offset, error;
  };
  std::mt19937_64 random(1);
  const auto draw = [&](uint64_t below) { return static_cast<int64_t>(random() % below); };
  int num_drifts = 0;
  for (int trial = 0; trial < 200; ++trial) {
    constexpr int kPings = 3;
    constexpr double kUnknown = 0.1;
    std::vector<int64_t> readings[2];
    std::vector<Sample> samples(1 + random() % 3);
    int64_t now = draw(1000);
    for (Sample& best : samples) {
      for (int ping = 0; ping < kPings; ++ping) {
        const int64_t sent = now += draw(100);
        const int64_t received = now += draw(trial % 5 == 0 ? 2 : 2000);
        const int64_t answered = sent / 2 + draw(5000);
        readings[0].push_back(answered);
        readings[1].insert(readings[1].end(), {sent, received});
        const int64_t local = sent + (received - sent) / 2, error = (received - sent + 1) / 2;
        if (ping == 0 || error < best.error) best = {local, answered - local, error};
      }
      now += draw(trial % 2 == 0 ? 1000 : 100'000);
    }
    const Sample &first = samples.front(), &last = samples.back();
    const auto span = static_cast<double>(last.local - first.local);
    const auto errors = static_cast<double>(first.error + last.error);
    const bool has_drift = span > 0 && errors <= kUnknown * span;
    const double drift = has_drift ? static_cast<double>(last.offset - first.offset) / span : 0;
    num_drifts += has_drift;
    OnRanks(2, [&](int rank, std::unique_ptr<Communicator> group) {
      size_t next = 0;
      ClockAligner aligner(
          std::move(group), [&] { return readings[rank].at(next++); }, kUnknown);
      if (rank == 1) {
        EXPECT_THAT(std::string(aligner.ToRankZero(1).status().message()), testing::HasSubstr("Measure()"));
      }
      for (size_t i = 0; i < samples.size(); ++i) {
        ASSERT_TRUE(aligner.Measure(kPings, Deadline::After(seconds(60))).ok());
      }
      EXPECT_EQ(next, readings[rank].size());
      if (rank == 0) return;
      ASSERT_EQ(aligner.drift().has_value(), has_drift);
      EXPECT_DOUBLE_EQ(aligner.drift().value_or(0), drift);
      for (const int64_t when : {first.local - 70'000, first.local, (first.local + last.local) / 2,
                                 last.local, last.local + 70'000}) {
        const auto since = static_cast<double>(when - last.local);
        const double outside = std::max({0.0, since, -since - span});
        const double error =
            has_drift ? static_cast<double>(std::max(first.error, last.error)) + outside * errors / span
                      : static_cast<double>(last.error) + std::abs(since) * kUnknown;
        const AlignedTime aligned = *aligner.ToRankZero(when);
        EXPECT_EQ(aligned.nanoseconds, when + last.offset + std::llround(drift * since));
        EXPECT_NEAR(static_cast<double>(aligned.error_bound_nanoseconds), std::ceil(error), 1e-6);
      }
    });
  }
  EXPECT_GT(num_drifts, 20);
  EXPECT_LT(num_drifts, 150);
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
    EXPECT_TRUE(aligner.drift().has_value()) << "measured once";
  });
}

TEST(ClockAligner, RanksOfOneKernelReadOneClock) {
  for (uint32_t have_own = 0; have_own < 8; ++have_own) {
    OnRanks(3, [&](int rank, std::unique_ptr<Communicator> group) {
      const auto has_own = [&](int of) { return (have_own >> of & 1) != 0; };
      ClockAligner aligner(std::move(group), has_own(rank) ? ClockAligner::Clock(WrongClock()) : nullptr);
      ASSERT_TRUE(aligner.Measure(10, Deadline::After(seconds(60))).ok());
      EXPECT_EQ(aligner.ReadsClockOfRankZero(), rank == 0 || (!has_own(0) && !has_own(rank)));
      if (!aligner.ReadsClockOfRankZero()) return;
      EXPECT_EQ(aligner.ToRankZero(12345)->nanoseconds, 12345);
      EXPECT_EQ(aligner.ToRankZero(12345)->error_bound_nanoseconds, 0);
    });
  }
}

TEST(ClockAligner, ManyRanksAreMeasuredInTurns) {
  constexpr int kSize = 2 * ClockAligner::kRanksPerRound + 10;
  OnRanks(kSize, [](int rank, std::unique_ptr<Communicator> group) {
    WrongClock clock;
    clock.offset = rank * int64_t{1'000'000'000};
    ClockAligner aligner(std::move(group), clock, /*unknown_drift=*/1e9);
    for (int round = 0; round < 4; ++round) {
      ASSERT_TRUE(aligner.Measure(2, Deadline::After(seconds(60))).ok());
      ExpectAligned(aligner, clock, TrueTime());
    }
    // Each had a second turn.
    EXPECT_TRUE(aligner.drift().has_value()) << "rank " << rank;
  });
}

}  // namespace
}  // namespace ott
