#include "ott/questions/waiting/arrival_tracker.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr int64_t kMillisecond = 1'000'000;

// Arrivals at "allreduce", in milliseconds, one a iteration.
ArrivalSummary Of(int rank, const std::vector<int64_t>& milliseconds, int64_t error_bound = 0) {
  RankArrivals arrivals;
  arrivals.error_bound_nanoseconds = error_bound;
  StopwatchArrivals& measurement = arrivals.measurements.emplace_back();
  measurement.name = "allreduce";
  for (size_t i = 0; i < milliseconds.size(); ++i) {
    measurement.arrivals.push_back({static_cast<int64_t>(i), milliseconds[i] * kMillisecond});
  }
  return ArrivalSummary(rank, arrivals);
}

ArrivalSummary Merged(const std::vector<ArrivalSummary>& summaries) {
  ArrivalSummary merged;
  for (const ArrivalSummary& summary : summaries) merged.Merge(summary);
  return merged;
}

// All of the run has iterations like the latest.
std::vector<ArrivalStats> Finish(const ArrivalTracker& tracker, double iteration_seconds,
                                 const CpuShare& cpu = {}) {
  return tracker.Finish({iteration_seconds, cpu}, {iteration_seconds, cpu});
}

ArrivalStats Stats(const ArrivalSummary& summary, double iteration_seconds = 0.01, const CpuShare& cpu = {}) {
  ArrivalTracker tracker;
  tracker.Add(summary);
  const std::vector<ArrivalStats> stats = Finish(tracker, iteration_seconds, cpu);
  EXPECT_THAT(stats, SizeIs(1));
  return stats.empty() ? ArrivalStats() : stats[0];
}

// The definition: of each iteration to which all came, and which nobody left before the last came.
TEST(Arrivals, AreWhatTheTimesOfTheRanksSay) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 500; ++trial) {
    const int num_ranks = 2 + static_cast<int>(random() % 4);
    const int num_iterations = 1 + static_cast<int>(random() % 6);
    const auto error_bound = static_cast<int64_t>(random() % 2) * kMillisecond;
    std::vector<std::map<int, std::pair<int64_t, int64_t>>> came(
        num_iterations);  // by rank, from and until when
    ArrivalSummary merged;
    for (int rank = 0; rank < num_ranks; ++rank) {
      RankArrivals arrivals;
      arrivals.error_bound_nanoseconds = error_bound;
      StopwatchArrivals& measurement = arrivals.measurements.emplace_back();
      measurement.name = "allreduce";
      for (int i = 0; i < num_iterations; ++i) {
        if (rank > 0 && i != 2 && random() % 8 == 0) continue;
        const int64_t at = (20 * i + static_cast<int64_t>(random() % 8)) * kMillisecond;
        const int64_t inside = 3 * kMillisecond * static_cast<int64_t>(1 + random() % 3);
        measurement.arrivals.push_back({i, at});
        measurement.arrivals.back().inside = inside;
        came[i][rank] = {at, at + inside};
      }
      merged.Merge(ArrivalSummary(rank, arrivals));
    }
    size_t most = 0;
    for (const auto& iteration : came) most = std::max(most, iteration.size());
    ArrivalStats expected;
    std::map<int, LastArrival> last_of;
    for (int i = 0; i < num_iterations; ++i) {
      if (came[i].size() < most) {
        expected.set_num_incomplete(expected.num_incomplete() + 1);
        continue;
      }
      if (expected.num_intervals() == 0) expected.set_first_iteration(i);
      expected.set_last_iteration(i);
      expected.set_num_intervals(expected.num_intervals() + 1);
      int last = -1;
      int64_t left = INT64_MAX;
      for (const auto& [rank, times] : came[i]) {
        if (last < 0 || times.first > came[i][last].first) last = rank;
        left = std::min(left, times.second);
      }
      if (left + 2 * error_bound < came[i][last].first) {
        expected.set_num_left(expected.num_left() + 1);
        continue;
      }
      double next = INFINITY, waited = 0;
      for (const auto& [rank, times] : came[i]) {
        if (rank == last) continue;
        const double wait = 1e-9 * static_cast<double>(came[i][last].first - times.first);
        next = std::min(next, wait);
        waited += wait;
        expected.set_max_wait(std::max(expected.max_wait(), wait));
      }
      expected.set_mean_wait(expected.mean_wait() + waited / static_cast<double>(most));
      LastArrival& of_rank = last_of[last];
      of_rank.set_num_intervals(of_rank.num_intervals() + 1);
      of_rank.set_after_next(of_rank.after_next() + next);
      of_rank.set_mean_wait_of_others(of_rank.mean_wait_of_others() + waited / static_cast<double>(most - 1));
    }
    ArrivalTracker tracker;
    tracker.Add(merged);
    const std::vector<ArrivalStats> all = Finish(tracker, kMillisecond);
    ASSERT_EQ(all.size(), most < 2 ? 0 : 1) << trial;
    if (all.empty()) continue;
    const ArrivalStats& stats = all[0];
    EXPECT_EQ(stats.name(), "allreduce");
    EXPECT_EQ(stats.num_ranks(), most);
    EXPECT_EQ(stats.num_intervals(), expected.num_intervals()) << trial;
    EXPECT_EQ(stats.num_incomplete(), expected.num_incomplete()) << trial;
    EXPECT_EQ(stats.num_left(), expected.num_left()) << trial;
    EXPECT_EQ(stats.first_iteration(), expected.first_iteration()) << trial;
    EXPECT_EQ(stats.last_iteration(), expected.last_iteration()) << trial;
    EXPECT_DOUBLE_EQ(stats.max_wait(), expected.max_wait()) << trial;
    EXPECT_NEAR(stats.mean_wait() * static_cast<double>(stats.num_intervals()), expected.mean_wait(), 1e-12)
        << trial;
    EXPECT_DOUBLE_EQ(stats.error_bound(), 2e-9 * static_cast<double>(error_bound));
    EXPECT_EQ(stats.last_size(), last_of.size());
    for (int i = 0; i < stats.last_size(); ++i) {
      LastArrival of_rank = last_of[stats.last(i).rank()];
      const auto count = static_cast<double>(of_rank.num_intervals());
      EXPECT_EQ(stats.last(i).num_intervals(), of_rank.num_intervals());
      EXPECT_NEAR(stats.last(i).after_next(), of_rank.after_next() / count, 1e-12);
      EXPECT_NEAR(stats.last(i).mean_wait_of_others(), of_rank.mean_wait_of_others() / count, 1e-12);
      const LastArrival& before = last_of[stats.last(std::max(0, i - 1)).rank()];
      EXPECT_GE(before.after_next(), of_rank.after_next() - 1e-12);
    }
    // A few intervals say nothing about the next.
    EXPECT_FALSE(stats.has_hold_up());
  }
}

constexpr int kIterationsBetweenGathers = 200;
constexpr double kIteration = 0.01;

// One arrival an iteration of 10 ms, later by what late_of says of rank and iteration, in milliseconds; of
// which the rank had no CPU for what taken_of says, and in_vain_of inside of the collective before.
ArrivalSummary Late(int num_ranks, const std::function<double(int, int)>& late_of,
                    const std::function<double(int, int)>& taken_of = {}, int64_t error_bound = 0,
                    int begin = 0, const std::function<double(int, int)>& in_vain_of = {}) {
  ArrivalSummary merged;
  for (int rank = 0; rank < num_ranks; ++rank) {
    RankArrivals arrivals;
    arrivals.error_bound_nanoseconds = error_bound;
    StopwatchArrivals& measurement = arrivals.measurements.emplace_back();
    measurement.name = "allreduce";
    for (int i = begin; i < begin + kIterationsBetweenGathers; ++i) {
      const auto late = static_cast<int64_t>(late_of(rank, i) * kMillisecond);
      const auto taken = taken_of ? static_cast<int64_t>(taken_of(rank, i) * kMillisecond) : 0;
      const auto in_vain = in_vain_of ? static_cast<int64_t>(in_vain_of(rank, i) * kMillisecond) : 0;
      measurement.arrivals.push_back({i, i * 10 * kMillisecond + late, taken, in_vain});
    }
    merged.Merge(ArrivalSummary(rank, arrivals));
  }
  return merged;
}

TEST(HoldUp, IsTheRankThatIsLateAgainAndAgain) {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> noise(0, 2);
  const ArrivalStats stats =
      Stats(Late(3, [&](int rank, int) { return rank == 1 ? 2.0 + noise(random) : 0.1 * rank; }));
  ASSERT_TRUE(stats.has_hold_up());
  EXPECT_EQ(stats.hold_up().rank(), 1);
  EXPECT_FALSE(stats.hold_up().recent());
  EXPECT_NEAR(stats.hold_up().seconds_per_iteration(), 0.0028, 2e-4);
  EXPECT_LT(stats.hold_up().seconds_low(), stats.hold_up().seconds_per_iteration());
  EXPECT_GT(stats.hold_up().seconds_high(), stats.hold_up().seconds_per_iteration());
}

TEST(HoldUp, CostsWhatAllWouldBeSparedIfItWereLikeTheOthers) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(5, 1);
  constexpr double kLate = 3;
  constexpr int kRuns = 20;
  for (const size_t num_ranks : {2, 3, 4}) {
    double spared = 0;
    double said = 0;
    for (int run = 0; run < kRuns; ++run) {
      std::vector<std::vector<double>> came(num_ranks);
      for (std::vector<double>& of_rank : came) {
        for (int i = 0; i < kIterationsBetweenGathers; ++i) of_rank.push_back(noise(random));
      }
      for (size_t i = 0; i < kIterationsBetweenGathers; ++i) {
        double others = came[0][i];
        for (size_t rank = 2; rank < num_ranks; ++rank) others = std::max(others, came[rank][i]);
        spared += std::max(others, came[1][i] + kLate) - std::max(others, came[1][i]);
      }
      const ArrivalStats stats = Stats(Late(static_cast<int>(num_ranks), [&](int rank, int i) {
        return came[static_cast<size_t>(rank)][static_cast<size_t>(i)] + (rank == 1 ? kLate : 0);
      }));
      EXPECT_EQ(stats.hold_up().rank(), 1);
      said += 1e3 * stats.hold_up().seconds_per_iteration() * kIterationsBetweenGathers;
    }
    EXPECT_NEAR(said, spared, 0.05 * spared) << num_ranks << " ranks";
  }
}

TEST(HoldUp, OneOutlierNeitherConvictsNorAcquits) {
  EXPECT_FALSE(Stats(Late(2, [](int rank, int i) { return rank == 1 && i == 50 ? 2000 : 0; })).has_hold_up());
  // Rank 0 is 20 s late once, rank 1 a millisecond always.
  const ArrivalStats stats = Stats(Late(2, [](int rank, int i) {
    return rank == 1 ? 1 : i == 50 ? 20000 : 0;
  }));
  EXPECT_EQ(stats.hold_up().rank(), 1);
  // All wait for it in 199 of 200.
  EXPECT_NEAR(stats.hold_up().seconds_per_iteration(), 0.000995, 1e-5);
}

TEST(HoldUp, WhatTheOthersCostInTheSameWayIsSubtracted) {
  // One of two ranks that are alike is last in more than half of the intervals.
  std::mt19937_64 random(1);
  std::exponential_distribution<double> noise;
  int named = 0;
  for (int run = 0; run < 200; ++run) {
    named += Stats(Late(2, [&](int, int) { return noise(random); })).has_hold_up() ? 1 : 0;
  }
  EXPECT_LE(named, 3);
}

TEST(HoldUp, IsNobodyWhereRanksTakeTurnsInUnlikeWork) {
  // Batches of 1, 4, 3 and 2 rows, of which the other rank has the one before: rank 1 is late in three of
  // four iterations, and rank 0 in the fourth by as much in sum.
  const int rows[] = {1, 4, 3, 2};
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 0.2);
  const auto late_of = [&](int rank, int i) { return 10 + rows[(i + 3 * rank) % 4] + noise(random); };
  EXPECT_FALSE(Stats(Late(2, late_of)).has_hold_up());
  // Over two gathers, too, where the last window is looked at by itself.
  ArrivalTracker tracker;
  tracker.Add(Late(2, late_of));
  tracker.Add(Late(2, late_of, {}, 0, kIterationsBetweenGathers));
  EXPECT_FALSE(Finish(tracker, kIteration)[0].has_hold_up());
  // It is rank 1 if it has a row more in each of them.
  const ArrivalStats stats = Stats(Late(2, [&](int rank, int i) { return late_of(rank, i) + 1.0 * rank; }));
  EXPECT_EQ(stats.hold_up().rank(), 1);
}

// Returns by how many milliseconds in the mean a rank has to come after `num_ranks` - 1 others, with the same
// noise, to be named where ranks meet at so many places.
double LeastNamed(int num_ranks, int num_places) {
  const auto is_named = [&](double late) {
    ArrivalTracker tracker;
    const auto late_of = [&](int rank, int i) {
      return rank == 1 ? late * (0.5 + 0.1 * ((7 * i) % 11)) : 0.0;
    };
    for (int place = 0; place < num_places; ++place) {
      ArrivalSummary merged;
      for (int rank = 0; rank < num_ranks; ++rank) {
        RankArrivals arrivals;
        StopwatchArrivals& measurement = arrivals.measurements.emplace_back();
        measurement.name = "allreduce" + std::to_string(place);
        for (int i = 0; i < kIterationsBetweenGathers; ++i) {
          const double milliseconds = 100 * i + (place == 0 ? late_of(rank, i) : 0);
          measurement.arrivals.push_back({i, static_cast<int64_t>(milliseconds * kMillisecond)});
        }
        merged.Merge(ArrivalSummary(rank, arrivals));
      }
      tracker.Add(merged);
    }
    return Finish(tracker, 0.001)[0].has_hold_up();
  };
  double low = 0, high = 60;
  while (high - low > 1e-4) {
    const double middle = (low + high) / 2;
    (is_named(middle) ? high : low) = middle;
  }
  return high;
}

TEST(HoldUp, OfManyRanksAndPlacesEachHasItsShareOfTheError) {
  const double of_two = LeastNamed(2, 1);
  EXPECT_GT(LeastNamed(2, 16), 1.05 * of_two);
  EXPECT_NEAR(LeastNamed(32, 1), LeastNamed(2, 16), 1e-3);
}

TEST(HoldUp, IsNobodyThatIsLateByWhatInnocentWorkDiffersBy) {
  const ArrivalSummary late = Late(2, [](int rank, int) { return rank == 1 ? 0.5 : 0; });
  const auto is_named = [&](double work_seconds, double watched_seconds, double taken_seconds = 0) {
    const CpuShare cpu = {work_seconds, 0, watched_seconds, taken_seconds};
    return Stats(late, kIteration, cpu).has_hold_up();
  };
  EXPECT_TRUE(is_named(5e-4, 100));
  EXPECT_FALSE(is_named(1e-2, 100));
  // One slowdown of its CPU makes it as late.
  EXPECT_FALSE(is_named(5e-4, 0.1));
  // Others had its CPU for nine times as long, in whatever time.
  EXPECT_TRUE(is_named(5e-4, 100, 5e-5));
  EXPECT_FALSE(is_named(5e-4, 100, 4.5e-3));
}

TEST(HoldUp, IsNobodyWhoseCpuOthersHad) {
  const auto late_of = [](int rank, int) { return rank == 1 ? 3.0 : 0; };
  EXPECT_TRUE(Stats(Late(4, late_of)).has_hold_up());
  EXPECT_FALSE(Stats(Late(4, late_of, late_of)).has_hold_up());
}

TEST(HoldUp, IsNobodyWithinTheClocksErrorOrForATrifle) {
  const auto late_of = [](int rank, int) { return rank == 1 ? 3.0 : 0; };
  // Two times are compared, each wrong by 2 ms at most.
  EXPECT_FALSE(Stats(Late(2, late_of, {}, 2 * kMillisecond)).has_hold_up());
  EXPECT_TRUE(Stats(Late(2, late_of, {}, kMillisecond)).has_hold_up());
  EXPECT_FALSE(Stats(Late(2, late_of), 1.0).has_hold_up());
}

TEST(HoldUp, ThatBeginsLateIsNamedInTheNextGather) {
  ArrivalTracker tracker;
  for (int gather = 0; gather < 9; ++gather) {
    tracker.Add(Late(
        2, [](int, int) { return 0; }, {}, 0, gather * kIterationsBetweenGathers));
  }
  EXPECT_FALSE(Finish(tracker, kIteration)[0].has_hold_up());
  tracker.Add(Late(
      2, [](int rank, int) { return rank == 1 ? 2 : 0; }, {}, 0, 9 * kIterationsBetweenGathers));
  const ArrivalStats stats = Finish(tracker, kIteration)[0];
  ASSERT_TRUE(stats.has_hold_up());
  EXPECT_EQ(stats.hold_up().rank(), 1);
  EXPECT_TRUE(stats.hold_up().recent());
  // Batches grew: the latest iterations take four times as long.
  const HoldUp hold_up = tracker.Finish({kIteration, {}}, {4 * kIteration, {}})[0].hold_up();
  EXPECT_DOUBLE_EQ(hold_up.share_of_iteration(), hold_up.seconds_per_iteration() / (4 * kIteration));
}

// Two ranks, of which rank 1 comes 3 ms late to "allreduce" in every `every`-th iteration; `edit` may say
// more.
ArrivalSummary LateByThree(int every, const std::function<void(int, RankArrivals&)>& edit) {
  ArrivalSummary merged;
  for (int rank = 0; rank < 2; ++rank) {
    RankArrivals arrivals;
    StopwatchArrivals& measurement = arrivals.measurements.emplace_back();
    measurement.name = "allreduce";
    for (int i = 0; i < kIterationsBetweenGathers; i += every) {
      measurement.arrivals.push_back({i, (10 * i + 3 * rank) * kMillisecond});
      measurement.arrivals.back().inside = (4 - 3 * rank) * kMillisecond;
    }
    edit(rank, arrivals);
    merged.Merge(ArrivalSummary(rank, arrivals));
  }
  // The summary travels as a message, as between ranks.
  return *ArrivalSummary::FromProto(merged.ToProto());
}

TEST(HoldUp, IsOfAMeanIterationThoughRanksMeetInFew) {
  for (const int every : {1, 4}) {
    const ArrivalStats stats = Stats(LateByThree(every, [](int, RankArrivals&) {}));
    EXPECT_EQ(stats.hold_up().rank(), 1);
    EXPECT_NEAR(stats.hold_up().seconds_per_iteration(), 0.003 / every, 1e-6);
    EXPECT_NEAR(stats.mean_wait(), 0.0015 / every, 1e-6);
  }
}

TEST(HoldUp, DoesNotDependOnWhereIterationsBegin) {
  const auto at = [](int begin) {
    return Stats(Late(
        2, [](int rank, int i) { return rank == 1 ? 3.0 + i % 3 : 0; }, {}, 0, begin));
  };
  const ArrivalStats from_zero = at(0);
  // It is late by 3, 4 and 5 ms, of which the last millisecond is noise.
  EXPECT_NEAR(from_zero.hold_up().seconds_per_iteration(), 0.011 / 3, 1e-5);
  for (const int begin : {3, 3000}) {
    EXPECT_EQ(at(begin).hold_up().seconds_per_iteration(), from_zero.hold_up().seconds_per_iteration());
    EXPECT_EQ(at(begin).mean_wait(), from_zero.mean_wait());
  }
}

TEST(HoldUp, IsNobodyWhereTheOthersLeftBefore) {
  const ArrivalStats stats = Stats(LateByThree(1, [](int rank, RankArrivals& arrivals) {
    for (auto& arrival : arrivals.measurements[0].arrivals) arrival.inside = (rank + 1) * kMillisecond;
  }));
  EXPECT_FALSE(stats.has_hold_up());
  EXPECT_EQ(stats.num_left(), kIterationsBetweenGathers);
  EXPECT_EQ(stats.mean_wait(), 0);
}

TEST(HoldUp, IsNobodyThatWaitedElsewhere) {
  const ArrivalSummary summary = LateByThree(1, [](int rank, RankArrivals& arrivals) {
    arrivals.groups = {{"allreduce", "stage"}, {"receive", rank == 0 ? "pair 0" : "pair 1"}};
    StopwatchArrivals& receive = arrivals.measurements.emplace_back();
    receive.name = "receive";
    for (int i = 0; i < kIterationsBetweenGathers; ++i) {
      receive.arrivals.push_back({i, (10 * i - 4) * kMillisecond});
      receive.arrivals.back().inside = (1 + 3 * rank) * kMillisecond;
    }
  });
  ArrivalTracker tracker;
  tracker.Add(summary);
  for (const ArrivalStats& stats : Finish(tracker, 0.01)) EXPECT_FALSE(stats.has_hold_up());
}

TEST(HoldUp, IsNobodyAmongRanksThatDoUnlikeWork) {
  const ArrivalStats stats = Stats(LateByThree(
      1, [](int rank, RankArrivals& arrivals) { arrivals.like_work = rank == 0 ? "stage 0" : "stage 1"; }));
  EXPECT_FALSE(stats.has_hold_up());
}

TEST(Hiccups, AreNamedWithTheIterationsAndTheirShareOfAllWaiting) {
  const std::set<int> late_in = {6, 8, 39, 52, 60, 81, 99, 140, 150, 163, 180};
  const auto late_of = [&](int rank, int i) {
    return rank == 1 && late_in.count(i) > 0 ? 50.0 : 0.08 * (1 - rank);
  };
  const ArrivalStats stats = Stats(Late(2, late_of));
  EXPECT_FALSE(stats.has_hold_up());
  ASSERT_THAT(stats.hiccups(), SizeIs(1));
  EXPECT_EQ(stats.hiccups(0).rank(), 1);
  EXPECT_EQ(stats.hiccups(0).num_hiccups(), 11);
  EXPECT_NEAR(stats.hiccups(0).seconds(), 0.55, 1e-3);
  EXPECT_NEAR(stats.hiccups(0).all_seconds(), 11 * (0.05 - 80e-6) + 189 * 80e-6, 1e-5);
  EXPECT_THAT(stats.hiccups(0).iterations(), ElementsAre(6, 8, 39, 52, 60, 81, 99, 140));
  // Not where others had the CPU, nor where it is little beside all waiting.
  EXPECT_THAT(Stats(Late(2, late_of, late_of)).hiccups(), SizeIs(0));
  EXPECT_THAT(
      Stats(Late(2, [&](int rank, int i) { return late_of(rank, i) + 4 * ((rank + i) % 2); })).hiccups(),
      SizeIs(0));
}

// Nobody waits for the ranks that receive a broadcast, so these are late at the next collective instead.
TEST(Hiccups, AreNobodysWhereAnotherRankIsLateAsOftenElsewhere) {
  std::mt19937_64 random(1);
  std::vector<int> late_rank;
  for (int i = 0; i < kIterationsBetweenGathers; ++i) {
    late_rank.push_back(random() % 4 == 0 ? static_cast<int>(random() % 2) : -1);
  }
  const auto named_of = [&](const std::vector<std::string>& collectives) {
    ArrivalSummary merged;
    for (int rank = 0; rank < 2; ++rank) {
      RankArrivals arrivals;
      for (size_t which = 0; which < collectives.size(); ++which) {
        StopwatchArrivals& measurement = arrivals.measurements.emplace_back();
        measurement.name = collectives[which];
        const bool may_be_late = (which == 0) == (rank == 1);
        for (int i = 0; i < kIterationsBetweenGathers; ++i) {
          const int late = may_be_late && late_rank[i] == rank ? 50 : 0;
          measurement.arrivals.push_back({i, (100 * i + 10 * static_cast<int>(which) + late) * kMillisecond});
        }
      }
      merged.Merge(ArrivalSummary(rank, arrivals));
    }
    ArrivalTracker tracker;
    tracker.Add(merged);
    std::set<int> named;
    for (const ArrivalStats& stats : Finish(tracker, kIteration)) {
      for (const class Hiccups& hiccups : stats.hiccups()) named.insert(hiccups.rank());
    }
    return named;
  };
  EXPECT_THAT(named_of({"allreduce"}), ElementsAre(1));
  EXPECT_THAT(named_of({"allreduce", "broadcast"}), ElementsAre());
}

TEST(Hiccups, AreNobodysWhereChanceGivesOneRankSoMany) {
  const auto late_in = [](const std::set<int>& iterations) {
    return Late(2, [&](int rank, int i) { return rank == 1 && iterations.count(i) > 0 ? 50.0 : 0.0; });
  };
  EXPECT_THAT(Stats(late_in({6, 8, 39})).hiccups(), SizeIs(0));
  // In a row they are one.
  EXPECT_THAT(Stats(late_in({6, 7, 8, 9, 10, 11, 12, 39})).hiccups(), SizeIs(0));
  EXPECT_THAT(Stats(late_in({6, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50})).hiccups(), SizeIs(0));
  EXPECT_THAT(Stats(late_in({20, 50, 80, 110, 140})).hiccups(), SizeIs(1)) << "at equal distances";
}

TEST(Hiccups, OneLongPauseIsOne) {
  const ArrivalStats stats = Stats(Late(2, [](int rank, int i) { return rank == 0 && i == 30 ? 1500 : 0; }));
  ASSERT_THAT(stats.hiccups(), SizeIs(1));
  EXPECT_TRUE(stats.hiccups(0).is_pause());
  EXPECT_EQ(stats.hiccups(0).num_hiccups(), 1);
  EXPECT_THAT(stats.hiccups(0).iterations(), ElementsAre(30));
  for (const int milliseconds : {999, 1000}) {
    EXPECT_THAT(
        Stats(Late(2, [&](int rank, int i) { return rank == 0 && i == 30 ? milliseconds : 0; })).hiccups(),
        SizeIs(milliseconds < 1000 ? 0 : 1));
  }
}

TEST(Hiccups, OfTooManyToKeepTheLongestAreKept) {
  for (const int pause : {0, 3, 150, 390}) {
    ArrivalTracker tracker;
    for (const int begin : {0, kIterationsBetweenGathers}) {
      const auto late_of = [&](int rank, int i) {
        return rank == 0 ? (i == pause ? 1500.0 : 0) : 30 + i % 7;
      };
      tracker.Add(Late(2, late_of, {}, 0, begin));
    }
    const ArrivalStats stats = Finish(tracker, kIteration)[0];
    ASSERT_THAT(stats.hiccups(), SizeIs(1)) << pause;
    EXPECT_EQ(stats.hiccups(0).rank(), 0);
    EXPECT_THAT(stats.hiccups(0).iterations(), ElementsAre(pause));
  }
}

TEST(Hiccups, AreNoneWhereOthersHadTheCpuInsideOfTheCollectiveBefore) {
  const auto late_of = [](int rank, int i) { return rank == 0 && i % 60 == 6 ? 1500.0 : 0; };
  EXPECT_THAT(Stats(Late(2, late_of)).hiccups(), SizeIs(1));
  EXPECT_THAT(Stats(Late(2, late_of, {}, 0, 0, late_of)).hiccups(), SizeIs(0));
}

TEST(Hiccups, OneThatIsLongIsNotMadeACauseByShortOnes) {
  const auto late_of = [](int rank, int i) {
    return rank == 0 && i == 30 ? 500.0 : rank == 0 && i % 90 == 6 ? 5.0 : 0;
  };
  EXPECT_THAT(Stats(Late(2, late_of)).hiccups(), SizeIs(0));
}

TEST(Arrivals, OfManyRanksTheTrackerKeepsFewAndStillNamesTheOne) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> noise;
  const ArrivalStats stats =
      Stats(Late(500, [&](int rank, int) { return (rank == 321 ? 12 : 0) + noise(random); }));
  EXPECT_EQ(stats.hold_up().rank(), 321);
}

TEST(Arrivals, AddUpOverGathers) {
  ArrivalTracker tracker;
  tracker.Add(Merged({Of(0, {1}), Of(1, {3})}));
  tracker.Add(Merged({Of(0, {1}), Of(1, {5})}));
  const std::vector<ArrivalStats> stats = Finish(tracker, 0.01);
  ASSERT_THAT(stats, SizeIs(1));
  EXPECT_EQ(stats[0].num_intervals(), 2);
  EXPECT_DOUBLE_EQ(stats[0].last(0).after_next(), 0.003);
}

}  // namespace
}  // namespace ott
