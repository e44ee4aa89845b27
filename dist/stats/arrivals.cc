#include "ott/dist/stats/arrivals.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace ott {
namespace {

constexpr double kNanosecond = 1e-9;
constexpr size_t kMaxListed = 8;

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
  merged.after_next = later.num_ranks > 1 ? std::min(apart, later.after_next) : apart;
  merged.after_first = std::max(later.after_first, apart + earlier.after_first);
  merged.waited = later.waited + earlier.waited + earlier.num_ranks * apart;
  *this = merged;
}

ArrivalSummary::ArrivalSummary(int rank, const RankArrivals& arrivals)
    : error_bound_nanoseconds_(arrivals.error_bound_nanoseconds) {
  for (const StopwatchArrivals& of_measurement : arrivals.measurements) {
    std::map<Key, Interval>& intervals = measurements_[of_measurement.name];
    Key key = {-1, 0};
    for (const auto& [iteration, nanoseconds] : of_measurement.arrivals) {
      key = {iteration, iteration == key.first ? key.second + 1 : 0};
      Interval& interval = intervals[key];
      interval.last_rank = rank;
      interval.last = nanoseconds;
    }
  }
}

absl::StatusOr<ArrivalSummary> ArrivalSummary::FromProto(const internal::ArrivalSummary& proto) {
  ArrivalSummary summary;
  summary.error_bound_nanoseconds_ = proto.error_bound_nanoseconds();
  for (const internal::ArrivalsOfMeasurement& measurement : proto.measurements()) {
    const int size = measurement.iteration_size();
    const bool has_more = measurement.after_next_size() > 0;
    for (const int other :
         {measurement.last_size(), measurement.last_rank_size(), measurement.num_ranks_size(),
          has_more ? measurement.after_next_size() : size, has_more ? measurement.after_first_size() : size,
          has_more ? measurement.waited_size() : size}) {
      if (other != size) {
        return absl::InvalidArgumentError(
            absl::StrCat(measurement.name(), ": ", other, " values of ", size, " arrivals"));
      }
    }
    std::map<Key, Interval>& intervals = summary.measurements_[measurement.name()];
    Key key = {-1, 0};
    int64_t last = 0;
    for (int i = 0; i < size; ++i) {
      const int64_t step = measurement.iteration(i);
      key = {key.first + step, step == 0 ? key.second + 1 : 0};
      last += measurement.last(i);
      Interval& interval = intervals[key];
      interval = {measurement.num_ranks(i), measurement.last_rank(i), last};
      if (interval.num_ranks < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat(measurement.name(), ": arrivals of ", interval.num_ranks, " ranks"));
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
  for (const auto& [name, intervals] : measurements_) {
    internal::ArrivalsOfMeasurement& measurement = *proto.add_measurements();
    measurement.set_name(name);
    const bool has_more = std::any_of(intervals.begin(), intervals.end(),
                                      [](const auto& interval) { return interval.second.num_ranks > 1; });
    int64_t iteration = -1;
    int64_t last = 0;
    for (const auto& [key, interval] : intervals) {
      measurement.add_iteration(key.first - iteration);
      iteration = key.first;
      measurement.add_last(interval.last - last);
      last = interval.last;
      measurement.add_last_rank(interval.last_rank);
      measurement.add_num_ranks(interval.num_ranks);
      if (!has_more) continue;
      measurement.add_after_next(interval.after_next);
      measurement.add_after_first(interval.after_first);
      measurement.add_waited(interval.waited);
    }
  }
  return proto;
}

void ArrivalSummary::Merge(const ArrivalSummary& other) {
  for (const auto& [name, intervals] : other.measurements_) {
    std::map<Key, Interval>& mine = measurements_[name];
    for (const auto& [key, interval] : intervals) {
      const auto [found, is_new] = mine.emplace(key, interval);
      if (!is_new) found->second.Merge(interval);
    }
  }
  error_bound_nanoseconds_ = std::max(error_bound_nanoseconds_, other.error_bound_nanoseconds_);
}

void ArrivalTracker::Add(const ArrivalSummary& summary) {
  for (const auto& [name, intervals] : summary.measurements_) {
    int32_t num_ranks = 0;
    for (const auto& [unused_key, interval] : intervals) num_ranks = std::max(num_ranks, interval.num_ranks);
    if (num_ranks < 2) continue;
    Measurement& measurement = measurements_[name];
    measurement.num_ranks = std::max<int64_t>(measurement.num_ranks, num_ranks);
    // Each of the two times may be wrong by the bound.
    measurement.error_bound = std::max(
        measurement.error_bound, 2 * kNanosecond * static_cast<double>(summary.error_bound_nanoseconds_));
    for (const auto& [key, interval] : intervals) {
      if (interval.num_ranks < num_ranks) {
        ++measurement.num_incomplete;
        continue;
      }
      if (measurement.num_intervals++ == 0) measurement.first_iteration = key.first;
      if (key.first != measurement.last_iteration) ++measurement.num_iterations;
      measurement.last_iteration = key.first;
      const double waited = kNanosecond * static_cast<double>(interval.waited);
      measurement.waited += waited / num_ranks;
      measurement.max_wait =
          std::max(measurement.max_wait, kNanosecond * static_cast<double>(interval.after_first));
      Last& last = measurement.last[interval.last_rank];
      ++last.num_intervals;
      last.after_next += kNanosecond * static_cast<double>(interval.after_next);
      last.waited += waited / (num_ranks - 1);
    }
  }
}

std::vector<ArrivalStats> ArrivalTracker::Finish(double iteration_seconds) const {
  std::vector<ArrivalStats> finished;
  for (const auto& [name, measurement] : measurements_) {
    ArrivalStats& stats = finished.emplace_back();
    stats.set_name(name);
    stats.set_num_ranks(measurement.num_ranks);
    stats.set_num_intervals(measurement.num_intervals);
    stats.set_num_incomplete(measurement.num_incomplete);
    stats.set_first_iteration(measurement.first_iteration);
    stats.set_last_iteration(measurement.last_iteration);
    stats.set_max_wait(measurement.max_wait);
    stats.set_error_bound(measurement.error_bound);
    if (measurement.num_intervals == 0) continue;
    const auto num_iterations = static_cast<double>(measurement.num_iterations);
    stats.set_mean_wait(measurement.waited / num_iterations);

    std::vector<std::pair<int, Last>> costliest(measurement.last.begin(), measurement.last.end());
    std::stable_sort(costliest.begin(), costliest.end(),
                     [](const auto& a, const auto& b) { return a.second.after_next > b.second.after_next; });
    for (size_t i = 0; i < std::min(costliest.size(), kMaxListed); ++i) {
      const auto& [rank, last] = costliest[i];
      const auto count = static_cast<double>(last.num_intervals);
      LastArrival& arrival = *stats.add_last();
      arrival.set_rank(rank);
      arrival.set_num_intervals(last.num_intervals);
      arrival.set_after_next(last.after_next / count);
      arrival.set_mean_wait_of_others(last.waited / count);
    }
    const auto& [rank, last] = costliest.front();
    const double cost = last.after_next / num_iterations;
    if (2 * last.num_intervals > measurement.num_intervals &&
        stats.last(0).after_next() > measurement.error_bound &&
        cost > kHoldUpIterationShare * iteration_seconds) {
      HoldUp& hold_up = *stats.mutable_hold_up();
      hold_up.set_rank(rank);
      hold_up.set_seconds_per_iteration(cost);
      hold_up.set_share_of_iteration(iteration_seconds > 0 ? cost / iteration_seconds : 0);
    }
  }
  return finished;
}

}  // namespace ott
