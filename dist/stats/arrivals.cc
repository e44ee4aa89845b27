#include "ott/dist/stats/arrivals.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/statistics/rare_excess.h"
#include "ott/dist/stats/cluster_summary.h"

namespace ott {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr size_t kMaxListed = 8;
constexpr size_t kMaxKeptRanks = 64;
constexpr size_t kMaxKeptLate = 256;

}  // namespace

void ArrivalSummary::Interval::Merge(const Interval& other) {
  // On a tie the lower rank is said to be last, so that the order of merging does not matter.
  const bool is_later = other.last != last ? other.last > last : other.last_rank < last_rank;
  const Interval& later = is_later ? other : *this;
  const Interval& earlier = is_later ? *this : other;
  const int64_t apart = later.last - earlier.last;
  Interval merged;
  merged.num_ranks = num_ranks + other.num_ranks;
  merged.last_rank = later.last_rank;
  merged.last = later.last;
  merged.taken = later.taken;
  merged.taken_in_vain = later.taken_in_vain;
  merged.after_next = later.num_ranks > 1 ? std::min(apart, later.after_next) : apart;
  merged.after_first = std::max(later.after_first, apart + earlier.after_first);
  merged.waited = later.waited + earlier.waited + earlier.num_ranks * apart;
  merged.first_end = std::min(first_end, other.first_end);
  merged.held_up = later.held_up;
  merged.least_held_up = std::min(least_held_up, other.least_held_up);
  *this = merged;
}

ArrivalSummary::ArrivalSummary(int rank, const RankArrivals& arrivals)
    : error_bound_nanoseconds_(arrivals.error_bound_nanoseconds) {
  // Of all measurements, by time.
  struct Stay {
    const StopwatchArrivals::Arrival* arrival;
    const std::string* group;
    Interval* interval;
  };
  static const std::string* const all_ranks = new std::string;
  std::vector<Stay> stays;
  std::map<std::string, int64_t> held_up;  // by group
  for (const StopwatchArrivals& of_measurement : arrivals.measurements) {
    const auto told = arrivals.groups.find(of_measurement.name);
    const std::string& group = told == arrivals.groups.end() ? *all_ranks : told->second;
    held_up[group] = 0;
    Meeting& meeting = measurements_[{of_measurement.name, group}];
    meeting.like_work = arrivals.like_work;
    Key key = {-1, 0};
    for (const StopwatchArrivals::Arrival& arrival : of_measurement.arrivals) {
      key = {arrival.iteration, arrival.iteration == key.first ? key.second + 1 : 0};
      Interval& interval = meeting.intervals[key];
      interval.last_rank = rank;
      interval.last = arrival.nanoseconds;
      interval.taken = arrival.taken.value_or(0);
      interval.taken_in_vain = arrival.taken_in_vain;
      if (arrival.inside) interval.first_end = arrival.nanoseconds + *arrival.inside;
      stays.push_back({&arrival, &group, &interval});
    }
  }
  if (held_up.size() < 2) return;
  std::stable_sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) {
    return a.arrival->nanoseconds < b.arrival->nanoseconds;
  });
  for (const Stay& stay : stays) {
    int64_t& of_group = held_up[*stay.group];
    stay.interval->held_up = stay.interval->least_held_up = of_group;
    for (auto& [group, nanoseconds] : held_up) {
      const bool is_with_all_of_them = group == *stay.group || stay.group->empty();
      nanoseconds = is_with_all_of_them ? 0 : nanoseconds + stay.arrival->inside.value_or(0);
    }
  }
}

absl::StatusOr<ArrivalSummary> ArrivalSummary::FromProto(const internal::ArrivalSummary& proto) {
  ArrivalSummary summary;
  summary.error_bound_nanoseconds_ = proto.error_bound_nanoseconds();
  for (const internal::ArrivalsOfMeasurement& measurement : proto.measurements()) {
    const int size = measurement.iteration_size();
    const bool has_more = measurement.after_next_size() > 0;
    const bool has_taken = measurement.taken_size() > 0;
    const bool has_end = measurement.first_end_size() > 0;
    const bool has_held_up = measurement.held_up_size() > 0;
    for (const int other :
         {measurement.last_size(), measurement.last_rank_size(), measurement.num_ranks_size(),
          has_more ? measurement.after_next_size() : size, has_more ? measurement.after_first_size() : size,
          has_more ? measurement.waited_size() : size, has_taken ? measurement.taken_size() : size,
          has_taken ? measurement.taken_in_vain_size() : size, has_end ? measurement.first_end_size() : size,
          has_held_up ? measurement.held_up_size() : size,
          has_held_up ? measurement.least_held_up_size() : size}) {
      if (other != size) {
        return absl::InvalidArgumentError(
            absl::StrCat(measurement.name(), ": ", other, " values of ", size, " arrivals"));
      }
    }
    Meeting& meeting = summary.measurements_[{measurement.name(), measurement.group()}];
    meeting.like_work = measurement.like_work();
    meeting.is_mixed = measurement.is_mixed();
    Key key = {-1, 0};
    int64_t last = 0;
    for (int i = 0; i < size; ++i) {
      const int64_t step = measurement.iteration(i);
      key = {key.first + step, step == 0 ? key.second + 1 : 0};
      last += measurement.last(i);
      Interval& interval = meeting.intervals[key];
      interval = {measurement.num_ranks(i), measurement.last_rank(i), last};
      if (interval.num_ranks < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat(measurement.name(), ": arrivals of ", interval.num_ranks, " ranks"));
      }
      if (has_taken) {
        interval.taken = measurement.taken(i);
        interval.taken_in_vain = measurement.taken_in_vain(i);
      }
      if (has_end) interval.first_end = last + measurement.first_end(i);
      if (has_held_up) {
        interval.held_up = measurement.held_up(i);
        interval.least_held_up = measurement.least_held_up(i);
      }
      if (!has_more) continue;
      interval.after_next = measurement.after_next(i);
      interval.after_first = measurement.after_first(i);
      interval.waited = measurement.waited(i);
    }
  }
  return summary;
}

internal::ArrivalSummary ArrivalSummary::ToProto() const {
  internal::ArrivalSummary proto;
  proto.set_error_bound_nanoseconds(error_bound_nanoseconds_);
  for (const auto& [place, meeting] : measurements_) {
    const std::map<Key, Interval>& intervals = meeting.intervals;
    internal::ArrivalsOfMeasurement& measurement = *proto.add_measurements();
    measurement.set_name(place.first);
    measurement.set_group(place.second);
    measurement.set_like_work(meeting.like_work);
    measurement.set_is_mixed(meeting.is_mixed);
    const auto any = [&intervals](const auto& is_so) {
      return std::any_of(intervals.begin(), intervals.end(),
                         [&](const auto& interval) { return is_so(interval.second); });
    };
    const bool has_end = any([](const Interval& interval) { return interval.first_end != kNever; });
    const bool has_held_up = any([](const Interval& interval) { return interval.held_up != 0; });
    const bool has_taken =
        any([](const Interval& interval) { return interval.taken != 0 || interval.taken_in_vain != 0; });
    const bool has_more = any([](const Interval& interval) { return interval.num_ranks > 1; });
    int64_t iteration = -1;
    int64_t last = 0;
    for (const auto& [key, interval] : intervals) {
      measurement.add_iteration(key.first - iteration);
      iteration = key.first;
      measurement.add_last(interval.last - last);
      last = interval.last;
      measurement.add_last_rank(interval.last_rank);
      measurement.add_num_ranks(interval.num_ranks);
      if (has_taken) {
        measurement.add_taken(interval.taken);
        measurement.add_taken_in_vain(interval.taken_in_vain);
      }
      if (has_end) measurement.add_first_end(interval.first_end - interval.last);
      if (has_held_up) {
        measurement.add_held_up(interval.held_up);
        measurement.add_least_held_up(interval.least_held_up);
      }
      if (!has_more) continue;
      measurement.add_after_next(interval.after_next);
      measurement.add_after_first(interval.after_first);
      measurement.add_waited(interval.waited);
    }
  }
  return proto;
}

void ArrivalSummary::Merge(const ArrivalSummary& other) {
  for (const auto& [place, theirs] : other.measurements_) {
    const auto [position, is_first] = measurements_.emplace(place, theirs);
    if (is_first) continue;
    Meeting& mine = position->second;
    mine.is_mixed |= theirs.is_mixed || mine.like_work != theirs.like_work;
    mine.like_work = std::min(mine.like_work, theirs.like_work);
    for (const auto& [key, interval] : theirs.intervals) {
      const auto [found, is_new] = mine.intervals.emplace(key, interval);
      if (!is_new) found->second.Merge(interval);
    }
  }
  error_bound_nanoseconds_ = std::max(error_bound_nanoseconds_, other.error_bound_nanoseconds_);
}

void ArrivalTracker::Add(const ArrivalSummary& summary) {
  for (const auto& [place, meeting] : summary.measurements_) {
    int32_t num_ranks = 0;
    for (const auto& [unused_key, interval] : meeting.intervals)
      num_ranks = std::max(num_ranks, interval.num_ranks);
    if (num_ranks < 2) continue;
    Measurement& measurement = measurements_[place];
    measurement.num_ranks = std::max<int64_t>(measurement.num_ranks, num_ranks);
    // Each of the two times may be wrong by the bound.
    const double error_bound = 2 * kNanosecond * static_cast<double>(summary.error_bound_nanoseconds_);
    measurement.is_mixed |= meeting.is_mixed;
    int64_t before = -1;
    for (const auto& [key, interval] : meeting.intervals) {
      if (before >= 0 && key.first != before) {
        measurement.stepped += key.first - before;
        ++measurement.num_steps;
      }
      before = key.first;
      if (interval.num_ranks < num_ranks) {
        ++measurement.num_incomplete;
      } else {
        AddInterval(key.first, interval, 2 * summary.error_bound_nanoseconds_, measurement);
        measurement.error_bound += error_bound;
      }
    }
    measurement.cost_of_never_last.CloseWindow();
    for (auto& [unused_rank, last] : measurement.last) last.cost.CloseWindow();
  }
}

void ArrivalTracker::AddInterval(int64_t iteration, const ArrivalSummary::Interval& interval,
                                 int64_t error_bound, Measurement& measurement) {
  if (measurement.num_intervals++ == 0) measurement.first_iteration = iteration;
  if (iteration != measurement.last_iteration) ++measurement.num_iterations;
  measurement.last_iteration = iteration;
  if (interval.first_end + error_bound < interval.last) {
    ++measurement.num_left;
    for (auto& [unused_rank, last] : measurement.last) last.cost.Add(0);
    measurement.cost_of_never_last.Add(0);
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
  for (auto& [rank, last] : measurement.last) {
    last.cost.Add(rank == interval.last_rank ? cost : -cost / num_others);
  }
  measurement.cost_of_never_last.Add(-cost / num_others);
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

std::vector<ArrivalStats> ArrivalTracker::Finish(double iteration_seconds, const CpuOfWork& cpu) const {
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
    if (measurement.num_intervals == 0) continue;
    stats.set_error_bound(measurement.error_bound / static_cast<double>(measurement.num_intervals));
    stats.set_mean_wait(measurement.waited / measurement.NumIterations());
    stats.set_num_left(measurement.num_left);
    FinishLast(measurement, stats);
    if (measurement.is_mixed) continue;
    FindHoldUp(measurement, iteration_seconds, false, cpu.all, stats);
    if (!stats.has_hold_up()) FindHoldUp(measurement, iteration_seconds, true, cpu.recent, stats);
    FindHiccups(measurement, iteration_seconds, stats);
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

// recent: in the last window instead of the whole run. cpu: for the work of an iteration.
void ArrivalTracker::FindHoldUp(const Measurement& measurement, double iteration_seconds, bool recent,
                                const CpuShare& cpu, ArrivalStats& stats) const {
  const auto num_compared =
      static_cast<double>(measurements_.size()) * static_cast<double>(measurement.num_ranks);
  const double level = kHoldUpError * (recent ? kWindowErrorShare : 1) / num_compared;
  const double intervals_of_iteration =
      static_cast<double>(measurement.num_intervals) / measurement.NumIterations();
  const double least = std::max(kHoldUpIterationShare * iteration_seconds, stats.error_bound());
  // Who comes last by what innocent work takes longer does so in each interval; of two ranks each differs.
  const double spread = std::hypot(std::sqrt(2) * ExpectedSpread(cpu) / intervals_of_iteration,
                                   SpreadOfTaken(cpu) / intervals_of_iteration, kExpectedLateness);
  const double slowdown = SecondsOfOneSlowdown(cpu) / intervals_of_iteration;
  double most = 0;
  for (const auto& [rank, last] : measurement.last) {
    const OwnTime time = last.cost.Read();
    const std::optional<SteadyTime>& cost = recent ? time.window : time.all;
    if (!cost.has_value()) continue;
    const Estimate within_run = {cost->seconds, cost->standard_error, cost->degrees_of_freedom};
    Estimate estimate = WithExpectedSpread(within_run, spread);
    estimate.value -= slowdown;
    const double seconds = cost->seconds * intervals_of_iteration;
    if (estimate.value <= 0 || estimate.PValue() / 2 > level || seconds <= least || seconds <= most) continue;
    most = seconds;
    const Interval interval = within_run.IntervalAt(kIntervalError);
    HoldUp& hold_up = *stats.mutable_hold_up();
    hold_up.set_rank(rank);
    hold_up.set_recent(recent);
    hold_up.set_seconds_per_iteration(seconds);
    hold_up.set_seconds_low(std::max(0.0, interval.low * intervals_of_iteration));
    hold_up.set_seconds_high(interval.high * intervals_of_iteration);
    hold_up.set_share_of_iteration(iteration_seconds > 0 ? seconds / iteration_seconds : 0);
  }
}

void ArrivalTracker::FindHiccups(const Measurement& measurement, double iteration_seconds,
                                 ArrivalStats& stats) {
  const double num_ranks = static_cast<double>(measurement.num_ranks);
  const double all_waited = measurement.waited * num_ranks / (num_ranks - 1);
  std::map<int, std::vector<Late>> by_rank;
  for (const Late& late : measurement.latest) {
    if (IsHiccup(late.seconds, iteration_seconds)) by_rank[late.rank].push_back(late);
  }
  for (auto& [rank, late] : by_rank) {
    // That is no hiccup.
    if (stats.hold_up().rank() == rank && stats.has_hold_up()) continue;
    std::sort(late.begin(), late.end(),
              [](const Late& a, const Late& b) { return a.iteration < b.iteration; });
    std::vector<double> seconds;
    for (const Late& interval : late) seconds.push_back(interval.seconds);
    const bool is_repeated =
        IsRepeated(seconds, all_waited, std::llround(measurement.NumIterations()), iteration_seconds);
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
