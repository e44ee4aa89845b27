#include "ott/questions/waiting/arrival_tracker.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/statistics/rare_excess.h"

namespace ott {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr size_t kMaxListed = 8;
constexpr size_t kMaxKeptRanks = 64;
constexpr size_t kMaxKeptLate = 256;

}  // namespace

double ArrivalTracker::Caused::Spared(int64_t num_iterations, int64_t num_ranks) const {
  const double num_alike = static_cast<double>(num_iterations) / static_cast<double>(num_ranks);
  const std::map<int, uint64_t>& buckets = costs.buckets();
  double num_longer = 0;
  double late_by = 0;
  double spared = 0;
  double all = 0;
  for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket) {
    const double cost = 1e-12 * QuantileSketch::ValueOf(bucket->first);
    const auto count = static_cast<double>(bucket->second);
    num_longer += count;
    all += count * cost;
    if (late_by == 0 && num_longer >= num_alike) {
      late_by = cost;
      spared = num_longer * cost;
    } else if (late_by > 0) {
      spared += count * cost;
    }
  }
  // The sum is exact, and the sketch is not.
  return all > 0 ? spared / all * seconds : 0;
}

void ArrivalTracker::Add(const ArrivalSummary& summary) {
  for (const auto& [place, meeting] : summary.measurements()) {
    int32_t num_ranks = 0;
    for (const auto& [unused_key, interval] : meeting.intervals)
      num_ranks = std::max(num_ranks, interval.num_ranks);
    if (num_ranks < 2) continue;
    Measurement& measurement = measurements_[place];
    measurement.num_ranks = std::max<int64_t>(measurement.num_ranks, num_ranks);
    // Each of the two times may be wrong by the bound.
    const double error_bound = 2 * kNanosecond * static_cast<double>(summary.error_bound_nanoseconds());
    measurement.is_mixed |= meeting.is_mixed;
    int64_t before = -1;
    for (const auto& [key, interval] : meeting.intervals) {
      if (before >= 0 && key.first != before) {
        FinishIteration(num_ranks, measurement);
        measurement.stepped += key.first - before;
        ++measurement.num_steps;
      }
      before = key.first;
      if (interval.num_ranks < num_ranks) {
        ++measurement.num_incomplete;
      } else {
        AddInterval(key.first, interval, 2 * summary.error_bound_nanoseconds(), measurement);
        measurement.error_bound += error_bound;
      }
    }
    FinishIteration(num_ranks, measurement);
    measurement.cost_of_never_last.CloseWindow();
    for (auto& [unused_rank, last] : measurement.last) {
      if (last.cost.CloseWindow()) last.caused_in_window = std::exchange(last.caused_since, {});
    }
  }
}

void ArrivalTracker::AddInterval(int64_t iteration, const ArrivalSummary::Interval& interval,
                                 int64_t error_bound, Measurement& measurement) {
  if (measurement.num_intervals++ == 0) measurement.first_iteration = iteration;
  if (iteration != measurement.last_iteration) ++measurement.num_iterations;
  measurement.last_iteration = iteration;
  measurement.is_open = true;
  if (interval.first_end + error_bound < interval.last) {
    ++measurement.num_left;
    return;
  }
  const double waited = kNanosecond * static_cast<double>(interval.waited);
  const double num_others = interval.num_ranks - 1;
  measurement.waited += waited / interval.num_ranks;
  measurement.max_wait =
      std::max(measurement.max_wait, kNanosecond * static_cast<double>(interval.after_first));
  Last& of_rank = FindLast(interval.last_rank, measurement);
  ++of_rank.num_intervals;
  of_rank.after_next += kNanosecond * static_cast<double>(interval.after_next);
  of_rank.waited += waited / num_others;

  const int64_t held_up = interval.taken + interval.held_up - interval.least_held_up;
  const double cost = kNanosecond * static_cast<double>(std::max<int64_t>(0, interval.after_next - held_up));
  of_rank.cost_in_sum += cost;
  of_rank.cost_of_open += cost;
  measurement.cost_of_open += cost;
  // One event is not made up for by others: what may be a matter of the CPU is.
  const double late = cost - kNanosecond * static_cast<double>(interval.taken_in_vain);
  if (late < kHiccupSeconds) return;
  const auto is_longer = [](const Late& a, const Late& b) { return a.seconds > b.seconds; };
  measurement.latest.push_back({late, iteration, interval.last_rank});
  std::push_heap(measurement.latest.begin(), measurement.latest.end(), is_longer);
  if (measurement.latest.size() <= kMaxKeptLate) return;
  std::pop_heap(measurement.latest.begin(), measurement.latest.end(), is_longer);
  measurement.latest.pop_back();
}

void ArrivalTracker::FinishIteration(int64_t num_ranks, Measurement& measurement) {
  if (!std::exchange(measurement.is_open, false)) return;
  const double of_all = std::exchange(measurement.cost_of_open, 0);
  const auto num_others = static_cast<double>(num_ranks - 1);
  for (auto& [unused_rank, last] : measurement.last) {
    const double own = std::exchange(last.cost_of_open, 0);
    const double cost = own - (of_all - own) / num_others;
    last.cost.Add(cost);
    if (cost <= 0) continue;
    last.caused.Add(cost);
    last.caused_since.Add(cost);
  }
  measurement.cost_of_never_last.Add(-of_all / num_others);
}

ArrivalTracker::Last& ArrivalTracker::FindLast(int rank, Measurement& measurement) {
  const auto found = measurement.last.find(rank);
  if (found != measurement.last.end()) return found->second;
  if (measurement.last.size() == kMaxKeptRanks) {
    measurement.last.erase(std::min_element(
        measurement.last.begin(), measurement.last.end(),
        [](const auto& a, const auto& b) { return a.second.num_intervals < b.second.num_intervals; }));
  }
  Last& last = measurement.last[rank];
  last.cost = measurement.cost_of_never_last;
  return last;
}

std::vector<ArrivalStats> ArrivalTracker::Finish(const MeanIteration& of_run,
                                                 const MeanIteration& recent) const {
  std::vector<ArrivalStats> finished;
  for (const auto& [place, measurement] : measurements_) {
    ArrivalStats& stats = finished.emplace_back();
    stats.set_name(place.first);
    stats.set_group(place.second);
    stats.set_num_ranks(measurement.num_ranks);
    stats.set_num_intervals(measurement.num_intervals);
    stats.set_num_incomplete(measurement.num_incomplete);
    stats.set_first_iteration(measurement.first_iteration);
    stats.set_last_iteration(measurement.last_iteration);
    stats.set_max_wait(measurement.max_wait);
    stats.set_error_bound(measurement.error_bound / static_cast<double>(measurement.num_intervals));
    stats.set_mean_wait(measurement.waited / measurement.NumIterations());
    stats.set_num_left(measurement.num_left);
    FinishLast(measurement, stats);
    if (measurement.is_mixed) continue;
    FindHoldUp(measurement, of_run, false, stats);
    FindDetectable(measurement, of_run, stats);
    if (!stats.has_hold_up()) FindHoldUp(measurement, recent, true, stats);
    FindHiccups(measurement, of_run.seconds, stats);
  }
  return finished;
}

void ArrivalTracker::FinishLast(const Measurement& measurement, ArrivalStats& stats) {
  std::vector<std::pair<int, const Last*>> costliest;
  for (const auto& [rank, last] : measurement.last) costliest.emplace_back(rank, &last);
  std::stable_sort(costliest.begin(), costliest.end(),
                   [](const auto& a, const auto& b) { return a.second->after_next > b.second->after_next; });
  if (costliest.size() > kMaxListed) costliest.resize(kMaxListed);
  for (const auto& [rank, last] : costliest) {
    const auto count = static_cast<double>(last->num_intervals);
    LastArrival& arrival = *stats.add_last();
    arrival.set_rank(rank);
    arrival.set_num_intervals(last->num_intervals);
    arrival.set_after_next(last->after_next / count);
    arrival.set_mean_wait_of_others(last->waited / count);
  }
}

bool ArrivalTracker::AnotherCostsAsMuch(const Measurement& measurement, int rank, bool is_recent) {
  const auto caused = [&](const Last& last) { return is_recent ? last.caused_in_window : last.caused; };
  const double of_rank = caused(measurement.last.at(rank)).seconds;
  return std::any_of(measurement.last.begin(), measurement.last.end(), [&](const auto& other) {
    const Caused of_other = caused(other.second);
    return other.first != rank && of_rank < kTimesCaused * (of_other.seconds - of_other.longest);
  });
}

ArrivalTracker::HoldUpTest ArrivalTracker::TestOf(const Measurement& measurement,
                                                  const MeanIteration& iteration, bool is_recent) const {
  const auto num_compared =
      static_cast<double>(measurements_.size()) * static_cast<double>(measurement.num_ranks);
  HoldUpTest test;
  test.level = kHoldUpError * (is_recent ? kWindowErrorShare : 1) / num_compared;
  test.share_of_iterations = static_cast<double>(measurement.num_iterations) / measurement.NumIterations();
  test.least = std::max(kHoldUpIterationShare * iteration.seconds,
                        measurement.error_bound / measurement.NumIterations());
  // A rank that comes last by what innocent work takes longer does so in each of these iterations; of two
  // ranks each differs.
  const double intervals =
      static_cast<double>(measurement.num_intervals) / static_cast<double>(measurement.num_iterations);
  test.spread =
      std::hypot(std::sqrt(2) * ExpectedSpread(iteration.cpu) / test.share_of_iterations,
                 SpreadOfTaken(iteration.cpu) / test.share_of_iterations, kExpectedLateness * intervals);
  test.slowdown = SecondsOfOneSlowdown(iteration.cpu) / test.share_of_iterations;
  return test;
}

void ArrivalTracker::FindDetectable(const Measurement& measurement, const MeanIteration& iteration,
                                    ArrivalStats& stats) const {
  if (iteration.seconds <= 0) return;
  const HoldUpTest test = TestOf(measurement, iteration, false);
  double caused = 0;
  for (const auto& [unused_rank, last] : measurement.last) caused = std::max(caused, last.cost_in_sum);
  stats.set_most_caused_share(caused / measurement.NumIterations() / iteration.seconds);
  // Medians do not tell of what is in fewer than half of the intervals.
  const double found_share =
      1 - static_cast<double>(measurement.num_left) / static_cast<double>(measurement.num_intervals);
  if (found_share <= 0.5) return;
  std::vector<const OwnTimeRecorder*> costs;
  if (static_cast<int64_t>(measurement.last.size()) < measurement.num_ranks)
    costs.push_back(&measurement.cost_of_never_last);
  for (const auto& [unused_rank, last] : measurement.last) costs.push_back(&last.cost);
  double most = 0;
  for (const OwnTimeRecorder* const cost : costs) {
    const std::optional<SteadyTime> time = cost->Read().all;
    if (!time.has_value()) return;
    const Estimate estimate =
        WithExpectedSpread({0, time->standard_error, time->degrees_of_freedom}, test.spread);
    most = std::max(most, test.slowdown + estimate.IntervalAt(2 * test.level).high +
                              kPowerQuantile * estimate.standard_error);
  }
  stats.set_detectable_share(std::max(test.least, most * test.share_of_iterations / found_share) /
                             iteration.seconds);
}

void ArrivalTracker::FindHoldUp(const Measurement& measurement, const MeanIteration& iteration,
                                bool is_recent, ArrivalStats& stats) const {
  const HoldUpTest test = TestOf(measurement, iteration, is_recent);
  double most = 0;
  for (const auto& [rank, last] : measurement.last) {
    const OwnTime time = last.cost.Read();
    const std::optional<SteadyTime>& cost = is_recent ? time.window : time.all;
    if (!cost.has_value()) continue;
    const Estimate within_run = {cost->seconds, cost->standard_error, cost->degrees_of_freedom};
    Estimate estimate = WithExpectedSpread(within_run, test.spread);
    estimate.value -= test.slowdown;
    const Caused& caused = is_recent ? last.caused_in_window : last.caused;
    const double seconds = caused.Spared(cost->count, measurement.num_ranks) /
                           static_cast<double>(cost->count) * test.share_of_iterations;
    if (estimate.value <= 0 || estimate.PValue() / 2 > test.level || seconds <= test.least || seconds <= most)
      continue;
    if (AnotherCostsAsMuch(measurement, rank, is_recent)) continue;
    most = seconds;
    const Interval interval = within_run.IntervalAt(kIntervalError);
    HoldUp& hold_up = *stats.mutable_hold_up();
    hold_up.set_rank(rank);
    hold_up.set_recent(is_recent);
    hold_up.set_seconds_per_iteration(seconds);
    const double scale = seconds / cost->seconds;
    hold_up.set_seconds_low(interval.low * scale);
    hold_up.set_seconds_high(interval.high * scale);
    hold_up.set_share_of_iteration(iteration.seconds > 0 ? seconds / iteration.seconds : 0);
  }
}

std::map<int, std::vector<ArrivalTracker::Late>> ArrivalTracker::FindLate(const Measurement& measurement,
                                                                          double iteration_seconds) {
  std::map<int, std::vector<Late>> by_rank;
  for (const Late& late : measurement.latest) {
    if (IsHiccup(late.seconds, iteration_seconds)) by_rank[late.rank].push_back(late);
  }
  for (auto& [unused_rank, late] : by_rank) {
    std::sort(late.begin(), late.end(),
              [](const Late& a, const Late& b) { return a.iteration < b.iteration; });
  }
  return by_rank;
}

std::vector<double> ArrivalTracker::EventsOf(const std::vector<Late>& late) {
  std::vector<double> events;
  for (size_t i = 0; i < late.size(); ++i) {
    if (i == 0 || late[i].iteration > late[i - 1].iteration + 1) events.push_back(late[i].seconds);
  }
  return events;
}

std::vector<double> ArrivalTracker::EventsOfOthers(int rank, double iteration_seconds) const {
  std::vector<double> events;
  for (const auto& [unused_place, measurement] : measurements_) {
    if (measurement.is_mixed) continue;
    for (const auto& [other, late] : FindLate(measurement, iteration_seconds)) {
      if (other == rank) continue;
      const std::vector<double> of_other = EventsOf(late);
      events.insert(events.end(), of_other.begin(), of_other.end());
    }
  }
  return events;
}

void ArrivalTracker::FindHiccups(const Measurement& measurement, double iteration_seconds,
                                 ArrivalStats& stats) const {
  const double num_ranks = static_cast<double>(measurement.num_ranks);
  const double all_waited = measurement.waited * num_ranks / (num_ranks - 1);
  std::map<int, std::vector<Late>> by_rank = FindLate(measurement, iteration_seconds);
  for (auto& [rank, late] : by_rank) {
    // A rank that holds the others up is always late, which is no hiccup.
    if (stats.hold_up().rank() == rank && stats.has_hold_up()) continue;
    std::vector<double> seconds;
    std::vector<int64_t> iterations;
    for (const Late& interval : late) {
      seconds.push_back(interval.seconds);
      iterations.push_back(interval.iteration);
    }
    const bool is_repeated =
        IsRepeated(seconds, all_waited, std::llround(measurement.NumIterations()), iteration_seconds) &&
        (IsRegular(iterations) ||
         IsMoreThanChance(EventsOf(late), EventsOfOthers(rank, iteration_seconds), measurement.num_ranks));
    if (!is_repeated) {
      const double least = std::max(kPauseSeconds, kPauseIterations * iteration_seconds);
      late.erase(std::remove_if(late.begin(), late.end(),
                                [&](const Late& interval) { return interval.seconds < least; }),
                 late.end());
      if (late.empty()) continue;
    }
    Hiccups& hiccups = *stats.add_hiccups();
    hiccups.set_rank(rank);
    hiccups.set_is_pause(!is_repeated);
    hiccups.set_all_seconds(all_waited);
    hiccups.set_num_hiccups(static_cast<int64_t>(late.size()));
    for (const Late& interval : late) {
      hiccups.set_seconds(hiccups.seconds() + interval.seconds);
      if (hiccups.iterations_size() < static_cast<int>(kMaxListed))
        hiccups.add_iterations(interval.iteration);
    }
  }
  std::stable_sort(stats.mutable_hiccups()->begin(), stats.mutable_hiccups()->end(),
                   [](const Hiccups& a, const Hiccups& b) { return a.seconds() > b.seconds(); });
  if (stats.hiccups_size() > static_cast<int>(kMaxListed)) {
    stats.mutable_hiccups()->DeleteSubrange(static_cast<int>(kMaxListed),
                                            stats.hiccups_size() - static_cast<int>(kMaxListed));
  }
}

}  // namespace ott
