#include "ott/dist/stats/arrival_summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ott/core/base/utf8.h"

namespace ott {

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
  // A stay in a measurement; the stays in all measurements are sorted by time.
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
    // Protocol buffers hold UTF-8 alone.
    Meeting& meeting = measurements_[{ValidUtf8(of_measurement.name), group}];
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
  std::stable_sort(stays.begin(), stays.end(), [](const Stay& a, const Stay& b) {
    return a.arrival->nanoseconds < b.arrival->nanoseconds;
  });
  for (const Stay& stay : stays) {
    for (auto& [unused_group, nanoseconds] : held_up) nanoseconds += stay.arrival->observed;
    stay.interval->held_up = stay.interval->least_held_up = held_up[*stay.group];
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

}  // namespace ott
