#include "ott/questions/waiting/arrival_tracker.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/field_comparator.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/statistics/rare_excess.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

constexpr int64_t kMillisecond = 1'000'000;

double Sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// An interval to which all came. cost: what all would have been spared without the last rank.
struct Came {
  size_t gather = 0;
  int64_t iteration = 0;
  int last_rank = 0;
  double num_others = 0, after_first = 0, after_next = 0, waited = 0, cost = 0, late = 0;
  bool all_wait = true;
};

// Holds all that is told of a place.
struct Told {
  int64_t num_ranks = 0;
  size_t num_gathers = 0;
  bool is_mixed = false;
  std::vector<Came> came;
  std::vector<double> steps, bounds;
  std::set<int64_t> iterations;
  int64_t num_incomplete = 0;

  double NumIterations() const {
    const double step = steps.empty() ? 1 : Sum(steps) / static_cast<double>(steps.size());
    return step * static_cast<double>(iterations.size());
  }
  double ShareOfIterations() const { return static_cast<double>(iterations.size()) / NumIterations(); }
  double Spread(const CpuShare& cpu) const {
    const double ranks = std::hypot(std::sqrt(2) * ExpectedSpread(cpu), SpreadOfTaken(cpu));
    return std::hypot(ranks / ShareOfIterations(), kExpectedLateness * static_cast<double>(came.size()) /
                                                       static_cast<double>(iterations.size()));
  }
};

void Add(const ArrivalSummary::Meeting& meeting, int64_t error_bound, Told& told) {
  int64_t most = 0, before = -1;
  for (const auto& [key, interval] : meeting.intervals) most = std::max<int64_t>(most, interval.num_ranks);
  if (most < 2) return;
  told.num_ranks = std::max(told.num_ranks, most);
  told.is_mixed |= meeting.is_mixed;
  for (const auto& [key, interval] : meeting.intervals) {
    if (before >= 0 && key.first > before) told.steps.push_back(static_cast<double>(key.first - before));
    before = key.first;
    if (interval.num_ranks < most) {
      ++told.num_incomplete;
      continue;
    }
    const auto seconds = [](int64_t nanoseconds) { return 1e-9 * static_cast<double>(nanoseconds); };
    const int64_t held_up = interval.taken + interval.held_up - interval.least_held_up;
    Came came = {told.num_gathers, key.first, interval.last_rank};
    came.num_others = interval.num_ranks - 1;
    came.after_first = seconds(interval.after_first);
    came.after_next = seconds(interval.after_next);
    came.waited = seconds(interval.waited);
    came.all_wait = interval.first_end + 2 * error_bound >= interval.last;
    if (came.all_wait) came.cost = std::max(0.0, seconds(interval.after_next - held_up));
    came.late = came.cost - seconds(interval.taken_in_vain);
    told.came.push_back(came);
    told.iterations.insert(key.first);
    told.bounds.push_back(2 * seconds(error_bound));
  }
  ++told.num_gathers;
}

// The costs of a rank in the iterations of the run or of the last window, less the mean cost of the others.
// as_most has those above zero, mean is of all.
struct Costs {
  std::vector<double> as_most;
  std::optional<SteadyTime> mean;
};

Costs CostsOf(const Told& told, int rank, bool is_recent) {
  std::vector<double> all, open, window;
  OwnTimeRecorder recorder;
  double cost = 0;
  for (size_t i = 0; i < told.came.size(); ++i) {
    const Came& came = told.came[i];
    cost += came.last_rank == rank ? came.cost : -came.cost / came.num_others;
    const bool is_end = i + 1 == told.came.size() || told.came[i + 1].gather != came.gather;
    if (is_end || told.came[i + 1].iteration != came.iteration) {
      recorder.Add(cost);
      if (cost > 1e-15) all.push_back(cost);
      if (cost > 1e-15) open.push_back(cost);
      cost = 0;
    }
    if (is_end && recorder.CloseWindow()) window = std::exchange(open, {});
  }
  return is_recent ? Costs{window, recorder.Read().window} : Costs{all, recorder.Read().all};
}

// Returns what all would be spared if no cost exceeded a limit, which is exceeded in one of `num_ranks`
// iterations. The tracker knows costs by their bucket.
double Spared(const Costs& costs, int64_t num_ranks) {
  std::vector<double> known;
  for (const double cost : costs.as_most)
    known.push_back(QuantileSketch::ValueOf(QuantileSketch::BucketOf(static_cast<uint64_t>(cost * 1e12))));
  std::sort(known.rbegin(), known.rend());
  const double all = Sum(known);
  const auto num_alike = static_cast<size_t>((costs.mean->count + num_ranks - 1) / num_ranks);
  if (num_alike > known.size() || all == 0) return 0;
  std::vector<double> spared;
  for (const double cost : known) spared.push_back(std::min(cost, known[num_alike - 1]));
  return Sum(spared) / all * Sum(costs.as_most);
}

void AddHoldUp(const Told& told, int rank, bool is_recent, size_t num_places,
               const ArrivalTracker::MeanIteration& iteration, ArrivalStats& stats) {
  const Costs costs = CostsOf(told, rank, is_recent);
  if (!costs.mean) return;
  const Estimate within_run = {costs.mean->seconds, costs.mean->standard_error,
                               costs.mean->degrees_of_freedom};
  Estimate excess = WithExpectedSpread(within_run, told.Spread(iteration.cpu));
  excess.value -= SecondsOfOneSlowdown(iteration.cpu) / told.ShareOfIterations();
  const double error =
      (is_recent ? 0.05 : 1) * kHoldUpError / static_cast<double>(num_places * told.num_ranks);
  if (excess.value <= 0 || excess.PValue() > 2 * error) return;
  const double seconds =
      Spared(costs, told.num_ranks) / static_cast<double>(costs.mean->count) * told.ShareOfIterations();
  if (seconds <= std::max(0.02 * iteration.seconds, Sum(told.bounds) / told.NumIterations())) return;
  for (int other = 0; other < told.num_ranks; ++other) {
    std::vector<double> of_other = CostsOf(told, other, is_recent).as_most;
    std::sort(of_other.begin(), of_other.end());
    if (other == rank || of_other.empty()) continue;
    if (Sum(costs.as_most) < 1.5 * (Sum(of_other) - of_other.back())) return;
  }
  if (stats.hold_up().seconds_per_iteration() >= seconds) return;
  HoldUp& hold_up = *stats.mutable_hold_up();
  hold_up.set_rank(rank);
  hold_up.set_recent(is_recent);
  hold_up.set_seconds_per_iteration(seconds);
  const Interval interval = within_run.IntervalAt(0.05);
  hold_up.set_seconds_low(interval.low * seconds / within_run.value);
  hold_up.set_seconds_high(interval.high * seconds / within_run.value);
  hold_up.set_share_of_iteration(seconds / iteration.seconds);
}

// What a rank must cost so that of five normal numbers around it four are beyond what the test takes.
void AddDetectable(const Told& told, size_t num_places, const ArrivalTracker::MeanIteration& iteration,
                   ArrivalStats& stats) {
  const double share_that_waits =
      1 - static_cast<double>(stats.num_left()) / static_cast<double>(stats.num_intervals());
  double most_caused = 0;
  for (int rank = 0; rank < told.num_ranks; ++rank) {
    double caused = 0;
    for (const Came& came : told.came) caused += came.last_rank == rank ? came.cost : 0;
    most_caused = std::max(most_caused, caused);
  }
  stats.set_most_caused_share(most_caused / told.NumIterations() / iteration.seconds);
  if (share_that_waits <= 0.5) return;
  double most = 0;
  for (int rank = 0; rank < told.num_ranks; ++rank) {
    const std::optional<SteadyTime> mean = CostsOf(told, rank, false).mean;
    if (!mean) return;
    const Estimate error =
        WithExpectedSpread({0, mean->standard_error, mean->degrees_of_freedom}, told.Spread(iteration.cpu));
    const double level = kHoldUpError / static_cast<double>(num_places * told.num_ranks);
    most = std::max(
        most, SecondsOfOneSlowdown(iteration.cpu) / told.ShareOfIterations() +
                  (StudentTQuantile(1 - level, error.degrees_of_freedom) + 0.84) * error.standard_error);
  }
  stats.set_detectable_share(std::max({0.02 * iteration.seconds, Sum(told.bounds) / told.NumIterations(),
                                       most * told.ShareOfIterations() / share_that_waits}) /
                             iteration.seconds);
}

using Place = ArrivalSummary::Place;

// Holds the long waits for a rank, and in which iterations; of waits in a row the first is an event.
struct LongWaits {
  std::vector<double> seconds, events;
  std::vector<int64_t> iterations;
};

LongWaits LongWaitsOf(const Told& told, int rank, double least, double iteration_seconds) {
  LongWaits waits;
  for (const Came& came : told.came) {
    if (came.last_rank != rank || came.late < least || !IsHiccup(came.late, iteration_seconds)) continue;
    if (waits.iterations.empty() || waits.iterations.back() + 1 < came.iteration)
      waits.events.push_back(came.late);
    waits.seconds.push_back(came.late);
    waits.iterations.push_back(came.iteration);
  }
  return waits;
}

void AddHiccups(const Told& told, const std::map<Place, Told>& places, double length, ArrivalStats& stats) {
  const auto num_ranks = static_cast<double>(told.num_ranks);
  std::map<double, class Hiccups, std::greater<>> by_seconds;
  for (int rank = 0; rank < told.num_ranks; ++rank) {
    LongWaits waits = LongWaitsOf(told, rank, 0, length);
    if (waits.seconds.empty() || (stats.has_hold_up() && stats.hold_up().rank() == rank)) continue;
    std::vector<double> of_others;
    for (const auto& [place, elsewhere] : places) {
      for (int other = 0; other < elsewhere.num_ranks && !elsewhere.is_mixed; ++other) {
        const std::vector<double> events = LongWaitsOf(elsewhere, other, 0, length).events;
        if (other != rank) of_others.insert(of_others.end(), events.begin(), events.end());
      }
    }
    class Hiccups hiccups;
    hiccups.set_rank(rank);
    hiccups.set_all_seconds(stats.mean_wait() * told.NumIterations() * num_ranks / (num_ranks - 1));
    hiccups.set_is_pause(
        !IsRepeated(waits.seconds, hiccups.all_seconds(), std::llround(told.NumIterations()), length) ||
        !(IsRegular(waits.iterations) || IsMoreThanChance(waits.events, of_others, told.num_ranks)));
    if (hiccups.is_pause()) waits = LongWaitsOf(told, rank, std::max(1.0, 10 * length), length);
    hiccups.set_num_hiccups(static_cast<int64_t>(waits.seconds.size()));
    hiccups.set_seconds(Sum(waits.seconds));
    waits.iterations.resize(std::min<size_t>(waits.iterations.size(), 8));
    hiccups.mutable_iterations()->Assign(waits.iterations.begin(), waits.iterations.end());
    if (hiccups.num_hiccups() > 0) by_seconds[hiccups.seconds()] = hiccups;
  }
  for (const auto& [seconds, hiccups] : by_seconds) *stats.add_hiccups() = hiccups;
}

// Applies the rules of arrival_tracker.h once more, to lists of all that was told.
std::vector<ArrivalStats> ByDefinition(const std::vector<ArrivalSummary>& gathers,
                                       const ArrivalTracker::MeanIteration& run,
                                       const ArrivalTracker::MeanIteration& recent) {
  std::map<Place, Told> places;
  for (const ArrivalSummary& gather : gathers) {
    for (const auto& [place, meeting] : gather.measurements())
      Add(meeting, gather.error_bound_nanoseconds(), places[place]);
  }
  std::vector<ArrivalStats> all;
  for (const auto& [place, told] : places) {
    ArrivalStats& stats = all.emplace_back();
    stats.set_name(place.first);
    stats.set_group(place.second);
    stats.set_num_ranks(told.num_ranks);
    stats.set_num_intervals(static_cast<int64_t>(told.came.size()));
    stats.set_num_incomplete(told.num_incomplete);
    stats.set_first_iteration(*told.iterations.begin());
    stats.set_last_iteration(*told.iterations.rbegin());
    stats.set_error_bound(Sum(told.bounds) / static_cast<double>(told.bounds.size()));
    std::map<double, LastArrival, std::greater<>> last;
    double waited_by_mean = 0;
    for (int rank = 0; rank < told.num_ranks; ++rank) {
      std::vector<double> after_next, waited;
      for (const Came& came : told.came) {
        if (rank == 0 && !came.all_wait) stats.set_num_left(stats.num_left() + 1);
        if (!came.all_wait || came.last_rank != rank) continue;
        stats.set_max_wait(std::max(stats.max_wait(), came.after_first));
        after_next.push_back(came.after_next);
        waited.push_back(came.waited / came.num_others);
        waited_by_mean += came.waited / (came.num_others + 1);
      }
      const auto count = static_cast<double>(waited.size());
      if (count == 0) continue;
      LastArrival& arrival = last[Sum(after_next)];
      arrival.set_rank(rank);
      arrival.set_num_intervals(static_cast<int64_t>(waited.size()));
      arrival.set_after_next(Sum(after_next) / count);
      arrival.set_mean_wait_of_others(Sum(waited) / count);
    }
    stats.set_mean_wait(waited_by_mean / told.NumIterations());
    for (const auto& [seconds, arrival] : last) *stats.add_last() = arrival;
    for (const bool is_recent : {false, true}) {
      if (told.is_mixed || stats.has_hold_up()) break;
      for (int rank = 0; rank < told.num_ranks; ++rank)
        AddHoldUp(told, rank, is_recent, places.size(), is_recent ? recent : run, stats);
    }
    if (!told.is_mixed) AddDetectable(told, places.size(), run, stats);
    if (!told.is_mixed) AddHiccups(told, places, run.seconds, stats);
  }
  return all;
}

// Draws what two to four ranks tell in up to three gathers, and why they are late.
std::vector<ArrivalSummary> DrawGathers(std::mt19937_64& random) {
  const auto draw = [&](int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  };
  const auto one_of = [&](const std::vector<int64_t>& values) {
    return values[static_cast<size_t>(draw(static_cast<int64_t>(values.size())))];
  };
  const int64_t num_ranks = 2 + draw(3), length = one_of({30, 60, 120}), step = one_of({1, 1, 3});
  const int64_t num_gathers = 1 + draw(3), slow = draw(num_ranks), stalls = draw(num_ranks);
  const int64_t late = draw(4) * draw(2 * kMillisecond), since = draw(num_gathers);
  const int64_t stall = kMillisecond * one_of({0, 4, 60, 1500}), stall_every = one_of({7, 16, 1000});
  const bool is_regular = draw(2) == 0, is_twice = draw(4) == 0, is_missing = draw(4) == 0,
             is_absent = draw(4) == 0;
  const bool is_taken = draw(8) == 0, is_in_vain = draw(8) == 0, is_mixed = draw(8) == 0;
  const bool stalls_early = draw(2) == 0, is_late_once = draw(2) == 0, is_other_first = draw(4) == 0;
  const int64_t pause = draw(4) == 0 ? draw(length) : -1;
  const int64_t num_places = 1 + draw(2), stay = kMillisecond * one_of({1, 9, 5000, 5000});
  const int64_t error_bound = kMillisecond * one_of({0, 0, 1});
  std::vector<ArrivalSummary> gathers(static_cast<size_t>(num_gathers));
  for (int64_t gather = 0; gather < num_gathers; ++gather) {
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      if (is_absent && gather == 1 && rank + 1 == num_ranks) continue;
      RankArrivals arrivals;
      arrivals.error_bound_nanoseconds = error_bound;
      arrivals.groups["sum"] = "row";
      if (is_mixed && gather == 0) arrivals.like_work = std::to_string(rank);
      for (int64_t place = 0; place < num_places; ++place) {
        StopwatchArrivals& measurement = arrivals.measurements.emplace_back();
        measurement.name = place == 0 ? "loss" : "sum";
        for (int64_t i = gather * length; i < (gather + 1) * length; i += step) {
          for (int64_t again = 0; again < (is_twice ? 2 : 1); ++again) {
            if (is_missing && draw(10) == 0) continue;
            const bool is_late =
                rank == slow && gather >= since && place == 0 && (again == 0 || !is_late_once);
            const bool is_stalled = rank == (stalls + place) % num_ranks &&
                                    !(stalls_early && gather >= since) &&
                                    (is_regular ? i % stall_every == 1 : draw(stall_every) == 0);
            int64_t more = is_stalled ? stall : 0;
            if (rank == slow) more += is_late ? late : -kMillisecond / 3;
            if (rank == (slow + 1) % num_ranks && gather < since && is_other_first) more += late;
            if (rank == (stalls + 1) % num_ranks && i == pause) more += 2500 * kMillisecond;
            StopwatchArrivals::Arrival arrival;
            arrival.iteration = i;
            arrival.nanoseconds = (20 * i + 5 * place + 9 * again) * kMillisecond + more + draw(300'000);
            if (is_taken) arrival.taken = more / 2;
            if (is_in_vain) arrival.taken_in_vain = more;
            arrival.inside = stay + draw(kMillisecond);
            measurement.arrivals.push_back(arrival);
          }
        }
      }
      gathers[static_cast<size_t>(gather)].Merge(ArrivalSummary(static_cast<int>(rank), arrivals));
    }
  }
  return gathers;
}

// Returns nothing where they are the same but for rounding.
std::string Differences(const ArrivalStats& expected, const ArrivalStats& found) {
  google::protobuf::util::MessageDifferencer differencer;
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_float_comparison(google::protobuf::util::DefaultFieldComparator::APPROXIMATE);
  comparator.SetDefaultFractionAndMargin(1e-6, 1e-12);
  differencer.set_field_comparator(&comparator);
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  return differencer.Compare(expected, found) ? "" : differences;
}

TEST(Arrivals, HoldUpsAndHiccupsAreThoseOfTheDefinition) {
  std::mt19937_64 random(1);
  const auto draw = [&](const std::vector<double>& values) { return values[random() % values.size()]; };
  int num_of_run = 0, num_recent = 0, num_repeated = 0, num_pauses = 0, num_without = 0, num_untold = 0;
  for (int trial = 0; trial < 800; ++trial) {
    const std::vector<ArrivalSummary> gathers = DrawGathers(random);
    ArrivalTracker::MeanIteration iterations[2];
    for (ArrivalTracker::MeanIteration& iteration : iterations) {
      iteration.seconds = draw({0.01, 0.02, 0.06, 0.2});
      const std::vector<double> seconds = {0, 0, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2};
      iteration.cpu = {draw(seconds), 0, draw({100, 100, 0.5}), draw(seconds)};
    }
    ArrivalTracker tracker;
    for (const ArrivalSummary& gather : gathers) tracker.Add(gather);
    const std::vector<ArrivalStats> expected = ByDefinition(gathers, iterations[0], iterations[1]);
    const std::vector<ArrivalStats> found = tracker.Finish(iterations[0], iterations[1]);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(Differences(expected[i], found[i]), "") << trial;
      ++(!found[i].has_hold_up() ? num_without : found[i].hold_up().recent() ? num_recent : num_of_run);
      for (const auto& hiccups : found[i].hiccups()) ++(hiccups.is_pause() ? num_pauses : num_repeated);
      num_untold += !found[i].has_detectable_share();
    }
  }
  EXPECT_GT(std::min({num_of_run, num_recent, num_repeated, num_pauses, num_without, num_untold}), 20)
      << num_of_run << " " << num_recent << " " << num_repeated << " " << num_pauses << " " << num_without
      << " " << num_untold;
}

constexpr int kIterationsBetweenGathers = 200;
constexpr double kIteration = 0.01;

// An arrival in each iteration of 10 ms, later by what late_of says of rank and iteration, in milliseconds.
ArrivalSummary Late(int num_ranks, const std::function<double(int, int)>& late_of, int begin = 0) {
  ArrivalSummary merged;
  for (int rank = 0; rank < num_ranks; ++rank) {
    RankArrivals arrivals;
    StopwatchArrivals& measurement = arrivals.measurements.emplace_back();
    measurement.name = "allreduce";
    for (int i = begin; i < begin + kIterationsBetweenGathers; ++i) {
      const auto late = static_cast<int64_t>(late_of(rank, i) * kMillisecond);
      measurement.arrivals.push_back({i, i * 10 * kMillisecond + late, 0, 0});
    }
    merged.Merge(ArrivalSummary(rank, arrivals));
  }
  return merged;
}

// All of the run has iterations like the latest.
ArrivalStats Stats(const std::vector<ArrivalSummary>& gathers) {
  ArrivalTracker tracker;
  for (const ArrivalSummary& gather : gathers) tracker.Add(gather);
  return tracker.Finish({kIteration, {}}, {kIteration, {}}).at(0);
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
      const ArrivalStats stats = Stats({Late(static_cast<int>(num_ranks), [&](int rank, int i) {
        return came[static_cast<size_t>(rank)][static_cast<size_t>(i)] + (rank == 1 ? kLate : 0);
      })});
      EXPECT_EQ(stats.hold_up().rank(), 1);
      said += 1e3 * stats.hold_up().seconds_per_iteration() * kIterationsBetweenGathers;
    }
    EXPECT_NEAR(said, spared, 0.05 * spared) << num_ranks << " ranks";
  }
}

TEST(HoldUp, WhatTheOthersCostInTheSameWayIsSubtracted) {
  // One of two ranks that are alike is last in more than half of the intervals.
  std::mt19937_64 random(1);
  std::exponential_distribution<double> noise;
  int named = 0;
  for (int run = 0; run < 200; ++run) {
    named += Stats({Late(2, [&](int, int) { return noise(random); })}).has_hold_up() ? 1 : 0;
  }
  EXPECT_LE(named, 3);
}

TEST(Hiccups, OfTooManyToKeepTheLongestAreKept) {
  for (const int pause : {0, 3, 150, 390}) {
    const auto late_of = [&](int rank, int i) { return rank == 0 ? (i == pause ? 1500.0 : 0) : 30 + i % 7; };
    const ArrivalStats stats = Stats({Late(2, late_of), Late(2, late_of, kIterationsBetweenGathers)});
    ASSERT_THAT(stats.hiccups(), SizeIs(1)) << pause;
    EXPECT_EQ(stats.hiccups(0).rank(), 0);
    EXPECT_THAT(stats.hiccups(0).iterations(), ElementsAre(pause));
  }
  // Ten ranks pause, and the eight that pause longest are listed.
  const ArrivalStats of_ten =
      Stats({Late(10, [](int rank, int i) { return i == 11 * rank + 5 ? 2000 + 100 * rank : 0; })});
  ASSERT_THAT(of_ten.hiccups(), SizeIs(8));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(of_ten.hiccups(i).rank(), 9 - i);
  // Of 400 that get longer the last 256.
  std::vector<ArrivalSummary> gathers;
  for (int begin = 0; begin < 1200; begin += kIterationsBetweenGathers)
    gathers.push_back(Late(
        2, [](int rank, int i) { return rank == 1 && i % 3 == 0 ? 100 + 0.01 * i : 0; }, begin));
  const ArrivalStats stats = Stats(gathers);
  ASSERT_THAT(stats.hiccups(), SizeIs(1));
  EXPECT_FALSE(stats.hiccups(0).is_pause());
  EXPECT_EQ(stats.hiccups(0).num_hiccups(), 256);
  EXPECT_EQ(stats.hiccups(0).iterations(0), 1200 - 3 * 256);
}

TEST(Arrivals, OfManyRanksTheTrackerKeepsFewAndStillNamesTheOne) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> noise;
  const auto late_of = [&](int rank, int i) { return (rank == 321 && i % 4 > 0 ? 20 : 0) + noise(random); };
  const ArrivalStats stats = Stats({Late(500, late_of), Late(500, late_of, kIterationsBetweenGathers),
                                    Late(500, late_of, 2 * kIterationsBetweenGathers)});
  EXPECT_EQ(stats.hold_up().rank(), 321);
  ASSERT_THAT(stats.last(), SizeIs(8));
  EXPECT_EQ(stats.last(0).rank(), 321);
  EXPECT_EQ(stats.last(0).num_intervals(), 450);
  // Rank 0 is last once, ranks 1 to 63 twice each; the next one takes the place of rank 0, which is last
  // again.
  const auto last_in = [](int i) { return i == 0 || i == 128 ? 0 : i < 128 ? 1 + (i - 1) / 2 : 1; };
  const ArrivalStats forgotten =
      Stats({Late(65, [&](int rank, int i) { return rank != last_in(i) ? 0
                                                    : rank == 0        ? 1500
                                                                       : 10; })});
  EXPECT_EQ(forgotten.last(0).rank(), 0);
  EXPECT_EQ(forgotten.last(0).num_intervals(), 1);
}

}  // namespace
}  // namespace ott
