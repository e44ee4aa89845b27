#include "ott/dist/stats/arrival_summary.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "dist/stats/merge_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using testing::HasSubstr;

// One arrival of a rank.
struct Stay {
  std::string name;
  std::string group;
  StopwatchArrivals::Arrival arrival;
};

std::vector<Stay> DrawStays(const std::map<std::string, std::string>& groups, bool watches, Random& random) {
  std::vector<Stay> stays;
  int64_t time = 0;
  for (int i = 0; i < 12; ++i) {
    time += 1 + random.Below(3);
    const std::string name(1, static_cast<char>('a' + random.Below(3)));
    const auto group = groups.find(name);
    Stay& stay = stays.emplace_back(Stay{name, group == groups.end() ? "" : group->second, {i / 4, time}});
    if (watches) stay.arrival.taken = random.Below(3);
    if (watches) stay.arrival.taken_in_vain = random.Below(3);
    if (watches) stay.arrival.observed = random.Below(3);
    if (!random.OnceIn(4)) stay.arrival.inside = random.Below(2);
  }
  return stays;
}

// The time inside of the observer, and of collectives of other groups, since the rank met those of this stay.
int64_t HeldUp(const std::vector<Stay>& stays, size_t at) {
  int64_t held_up = stays[at].arrival.observed;
  for (size_t i = at; i-- > 0;) {
    if (stays[i].group == stays[at].group || stays[i].group.empty()) break;
    held_up += stays[i].arrival.inside.value_or(0) + stays[i].arrival.observed;
  }
  return held_up;
}

auto Fields(const ArrivalSummary::Interval& of) {
  return std::tuple(of.num_ranks, of.last_rank, of.last, of.after_next, of.after_first, of.waited, of.taken,
                    of.taken_in_vain, of.first_end, of.held_up, of.least_held_up);
}

// A rank comes to an interval and stays there.
struct Visit {
  int rank;
  const Stay* stay;
  int64_t held_up;
};

ArrivalSummary::Interval ExpectedInterval(std::vector<Visit> visits) {
  std::stable_sort(visits.begin(), visits.end(), [](const Visit& a, const Visit& b) {
    return a.stay->arrival.nanoseconds > b.stay->arrival.nanoseconds;
  });
  const StopwatchArrivals::Arrival& last = visits[0].stay->arrival;
  ArrivalSummary::Interval interval;
  interval.num_ranks = static_cast<int32_t>(visits.size());
  interval.last_rank = visits[0].rank;
  interval.last = last.nanoseconds;
  interval.taken = last.taken.value_or(0);
  interval.taken_in_vain = last.taken_in_vain;
  interval.held_up = interval.least_held_up = visits[0].held_up;
  for (size_t i = 0; i < visits.size(); ++i) {
    const StopwatchArrivals::Arrival& arrival = visits[i].stay->arrival;
    const int64_t before = last.nanoseconds - arrival.nanoseconds;
    if (i == 1) interval.after_next = before;
    interval.after_first = std::max(interval.after_first, before);
    interval.waited += before;
    interval.least_held_up = std::min(interval.least_held_up, visits[i].held_up);
    if (arrival.inside)
      interval.first_end = std::min(interval.first_end, arrival.nanoseconds + *arrival.inside);
  }
  return interval;
}

TEST(ArrivalSummary, IsThatOfTheDefinitionInWhateverOrderItIsMerged) {
  for (uint32_t trial = 0; trial < 300; ++trial) {
    Random random(trial);
    const int num_ranks = 1 + random.Below(6);
    const bool watches = random.OnceIn(2);
    const int num_groups = random.Below(3);
    const int num_works = 1 + random.Below(2);
    std::vector<std::vector<Stay>> stays(static_cast<size_t>(num_ranks));
    std::vector<ArrivalSummary> summaries;
    std::map<ArrivalSummary::Place, std::map<ArrivalSummary::Key, std::vector<Visit>>> expected;
    std::map<ArrivalSummary::Place, std::set<std::string>> works;
    int64_t error_bound = 0;
    for (int rank = 0; rank < num_ranks; ++rank) {
      RankArrivals arrivals;
      if (num_groups > 0) arrivals.groups["a"] = "data";
      if (num_groups > 1) arrivals.groups["b"] = std::to_string(rank % 2);
      arrivals.like_work = std::to_string(random.Below(num_works));
      arrivals.error_bound_nanoseconds = random.Below(9);
      error_bound = std::max(error_bound, arrivals.error_bound_nanoseconds);
      std::vector<Stay>& of_rank = stays[static_cast<size_t>(rank)];
      of_rank = DrawStays(arrivals.groups, watches, random);
      std::map<std::string, StopwatchArrivals> by_name;
      std::map<std::pair<std::string, int64_t>, int64_t> counts;
      for (size_t i = 0; i < of_rank.size(); ++i) {
        const Stay& stay = of_rank[i];
        by_name[stay.name].name = stay.name;
        by_name[stay.name].arrivals.push_back(stay.arrival);
        const ArrivalSummary::Place place = {stay.name, stay.group};
        const int64_t position = counts[{stay.name, stay.arrival.iteration}]++;
        expected[place][{stay.arrival.iteration, position}].push_back({rank, &stay, HeldUp(of_rank, i)});
        works[place].insert(arrivals.like_work);
      }
      for (const auto& [unused, measurement] : by_name) arrivals.measurements.push_back(measurement);
      summaries.emplace_back(rank, arrivals);
    }
    const ArrivalSummary merged = MergeInAnyOrder(std::move(summaries), random);
    EXPECT_EQ(merged.error_bound_nanoseconds(), error_bound);
    ASSERT_EQ(merged.measurements().size(), expected.size());
    for (const auto& [place, meeting] : merged.measurements()) {
      EXPECT_EQ(meeting.like_work, *works[place].begin());
      EXPECT_EQ(meeting.is_mixed, works[place].size() > 1);
      ASSERT_EQ(meeting.intervals.size(), expected[place].size());
      for (const auto& [key, interval] : meeting.intervals) {
        EXPECT_EQ(Fields(interval), Fields(ExpectedInterval(expected[place][key])))
            << "trial " << trial << ", " << place.first << ", iteration " << key.first;
      }
    }
  }
}

TEST(ArrivalSummary, OfANameThatIsNoUtf8CanBeReadBack) {
  RankArrivals arrivals;
  arrivals.measurements = {{"all\xffreduce", {{3, 5}}}};
  internal::ArrivalSummary read;
  ASSERT_TRUE(read.ParseFromString(ArrivalSummary(0, arrivals).ToProto().SerializeAsString()));
  EXPECT_EQ(ArrivalSummary::FromProto(read)->measurements().size(), 1u);
}

TEST(ArrivalSummary, WhatIsCutOffIsRefused) {
  RankArrivals arrivals;
  arrivals.measurements = {{"a", {{3, 5, 1, 1, 1}, {4, 12, 1, 1, 1}}}, {"b", {{4, 9, 0, 0, 2}}}};
  arrivals.groups = {{"a", "data"}};
  ArrivalSummary summary(0, arrivals);
  summary.Merge(ArrivalSummary(1, arrivals));
  const internal::ArrivalSummary whole = summary.ToProto();
  ASSERT_TRUE(ArrivalSummary::FromProto(whole).ok());
  const auto* const reflection = internal::ArrivalsOfMeasurement::GetReflection();
  const auto* const descriptor = internal::ArrivalsOfMeasurement::descriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const auto* const field = descriptor->field(i);
    if (!field->is_repeated()) continue;
    internal::ArrivalSummary cut = whole;
    const int size = reflection->FieldSize(cut.measurements(0), field);
    ASSERT_EQ(size, field->name() == "held_up" || field->name() == "least_held_up" ? 0 : 2) << field->name();
    if (size == 0) continue;
    reflection->RemoveLast(cut.mutable_measurements(0), field);
    const absl::Status status = ArrivalSummary::FromProto(cut).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << field->name();
    EXPECT_THAT(std::string(status.message()), HasSubstr("a: "));
  }
  internal::ArrivalSummary nobody = whole;
  nobody.mutable_measurements(0)->set_num_ranks(1, 0);
  EXPECT_THAT(std::string(ArrivalSummary::FromProto(nobody).status().message()),
              HasSubstr("a: arrivals of 0 ranks"));
}

}  // namespace
}  // namespace ott
