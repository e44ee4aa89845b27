#include "ott/questions/waiting/collectives.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/waiting/traces_for_test.h"

namespace ott::waiting {
namespace {

using kernels::Profile;
using ::testing::ElementsAreArray;

constexpr int64_t kMillisecond = 1'000'000;

int64_t MedianOf(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// The definition: a line through the medians of both halves of the differences, or, of fewer than twenty,
// their median; nine of ten are within the bound. Clocks that agree within that are left alone.
ClockOffset OffsetByDefinition(const std::vector<std::pair<int64_t, int64_t>>& differences,
                               const TraceSummary& trace) {
  const size_t count = differences.size(), half = (count + 1) / 2;
  std::vector<int64_t> all;
  for (const auto& [time, difference] : differences) all.push_back(difference);
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(half);
  double drift = 0, at_begin = static_cast<double>(MedianOf(all));
  if (count >= 20) {
    const int64_t early = MedianOf({all.begin(), middle}), late = MedianOf({middle, all.end()});
    const int64_t from = differences[count / 4].first, to = differences[3 * count / 4].first;
    drift = static_cast<double>(late - early) / static_cast<double>(to - from);
    at_begin = static_cast<double>(early) + drift * static_cast<double>(trace.first_time - from);
  }
  const double at_end = at_begin + drift * static_cast<double>(trace.last_time - trace.first_time);
  std::vector<double> residuals;
  for (const auto& [time, difference] : differences) {
    residuals.push_back(std::abs(static_cast<double>(difference) - at_begin -
                                 drift * static_cast<double>(time - trace.first_time)));
  }
  std::sort(residuals.begin(), residuals.end());
  double bound = residuals[count * 9 / 10];
  const double apart = std::max(std::abs(at_begin), std::abs(at_end));
  const bool agree = apart <= std::max(bound, 20e3);
  if (agree) bound += apart;
  return {true, agree ? 0 : static_cast<int64_t>(at_begin), agree ? 0 : static_cast<int64_t>(at_end),
          static_cast<int64_t>(bound), static_cast<int64_t>(count)};
}

// The first of three traces shares collectives with the second, and that with the third.
TEST(AlignClocks, FindsOffsetsDriftAndErrorsOfTheDefinition) {
  std::mt19937 random(1);
  const auto draw = [&](int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  };
  Profile::CollectiveKind kind, message;
  kind.name = "allreduce";
  message.name = "broadcast";
  int num_agreeing = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const int64_t num_collectives = std::vector<int64_t>{1, 6, 19, 20, 41}[random() % 5];
    const int64_t noise = std::vector<int64_t>{2, 3'000, 200'000}[random() % 3];
    std::vector<TraceSummary> traces(3);
    std::vector<int64_t> ahead = {0, 0, 0};
    std::vector<double> drift = {0, 0, 0};
    for (size_t i = 0; i < 3; ++i) {
      if (draw(2) == 0) ahead[i] = draw(3) == 0 ? draw(20'000) : draw(9) * kMillisecond;
      if (draw(2) == 0) drift[i] = 1e-5 * static_cast<double>(draw(5));
      // It agrees at the end only.
      if (draw(4) == 0) {
        drift[i] = -1e-3;
        ahead[i] = num_collectives * 100'000;
      }
      traces[i].first_time = ahead[i] + draw(kMillisecond);
      traces[i].last_time = traces[i].first_time + (num_collectives + 3) * 100 * kMillisecond;
    }
    std::vector<Collective> collectives;
    std::vector<std::pair<int64_t, int64_t>> ends[2];  // of both traces that meet
    for (int64_t i = 0; i < 2 * num_collectives; ++i) {
      const size_t first = static_cast<size_t>(i % 2);
      Collective& collective = collectives.emplace_back();
      collective.kind = &kind;
      for (size_t trace = first; trace < first + 2; ++trace) {
        const int64_t time = i * 50 * kMillisecond;
        const int64_t end = time + ahead[trace] + draw(noise) +
                            static_cast<int64_t>(drift[trace] * static_cast<double>(time));
        collective.parts.push_back({trace, end - 5, end});
      }
      ends[first].emplace_back(collective.parts[0].end, collective.parts[1].end);
      collectives.push_back(collective);
      collectives.back().kind = &message;  // whose ends tell nothing
      collectives.back().parts[0].end += kMillisecond;
    }
    const std::vector<ClockOffset> clocks = AlignClocks(traces, collectives);
    ClockOffset known;
    for (size_t trace = 1; trace < 3; ++trace) {
      std::vector<std::pair<int64_t, int64_t>> differences;
      const TraceSummary& before = traces[trace - 1];
      for (const auto& [end_before, end] : ends[trace - 1]) {
        const double shift = static_cast<double>(known.at_begin) +
                             static_cast<double>(known.at_end - known.at_begin) *
                                 static_cast<double>(end_before - before.first_time) /
                                 static_cast<double>(before.last_time - before.first_time);
        differences.emplace_back(end, end_before + static_cast<int64_t>(shift) - end);
      }
      ClockOffset expected = OffsetByDefinition(differences, traces[trace]);
      expected.error_bound += known.error_bound;
      const ClockOffset& found = clocks[trace];
      EXPECT_TRUE(found.is_known);
      EXPECT_NEAR(found.at_begin, expected.at_begin, 2) << trial;
      EXPECT_NEAR(found.at_end, expected.at_end, 2) << trial;
      EXPECT_NEAR(found.error_bound, expected.error_bound, 4) << trial;
      EXPECT_EQ(found.num_collectives, num_collectives);
      known = found;
      num_agreeing += found.at_begin == 0 && found.at_end == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(num_agreeing, 50);
}

// From what is known to what shares most with it; of equal ones, from the first to the first.
TEST(AlignClocks, AClockIsKnownWhereCollectivesLeadToTheFirst) {
  std::mt19937 random(4);
  Profile::CollectiveKind kind;
  kind.name = "allreduce";
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<TraceSummary> traces(6);
    std::vector<int64_t> ahead;
    const size_t window = 1 + trial / 6 % 5;  // is one of any rank
    for (size_t i = 0; i < traces.size(); ++i) {
      traces[i].rank = static_cast<int>(i == window ? trial % 6 : i);
      traces[i].last_time = 1000 * kMillisecond;
      ahead.push_back(static_cast<int64_t>(random() % 9) * 10 * kMillisecond);
    }
    std::vector<std::map<size_t, int64_t>> ends(1 + random() % 9);  // of the traces that have it
    std::vector<Collective> collectives(ends.size());
    for (size_t i = 0; i < collectives.size(); ++i) {
      collectives[i].kind = &kind;
      for (size_t trace = 0; trace < traces.size(); ++trace) {
        if (random() % 3 > 0) continue;
        const auto late = static_cast<int64_t>(random() % kMillisecond);
        ends[i][trace] = static_cast<int64_t>(i) * 100 * kMillisecond + ahead[trace] + late;
        collectives[i].parts.push_back({trace, ends[i][trace] - 5, ends[i][trace]});
      }
    }
    std::vector<ClockOffset> expected(traces.size());
    expected[0].is_known = true;
    for (;;) {
      std::vector<std::pair<int64_t, int64_t>> most;
      size_t from = 0, to = 0;
      for (size_t known = 0; known < traces.size(); ++known) {
        for (size_t other = 0; other < traces.size(); ++other) {
          if (!expected[known].is_known || expected[other].is_known) continue;
          std::vector<std::pair<int64_t, int64_t>> differences;
          for (const std::map<size_t, int64_t>& of : ends) {
            if (of.count(known) == 0 || of.count(other) == 0) continue;
            differences.emplace_back(of.at(other), of.at(known) + expected[known].at_begin - of.at(other));
          }
          if (differences.size() <= most.size()) continue;
          most = differences;
          from = known;
          to = other;
        }
      }
      if (most.empty() && traces[window].rank == 0 && !expected[window].is_known) {
        expected[window].is_known = true;
        continue;
      }
      if (most.empty()) break;
      expected[to] = OffsetByDefinition(most, traces[to]);
      expected[to].error_bound += expected[from].error_bound;
    }
    const std::vector<ClockOffset> clocks = AlignClocks(traces, collectives);
    for (size_t trace = 0; trace < traces.size(); ++trace) {
      SCOPED_TRACE(absl::StrCat(trial, " ", trace));
      ASSERT_EQ(clocks[trace].is_known, expected[trace].is_known);
      EXPECT_EQ(clocks[trace].at_begin, expected[trace].at_begin);
      EXPECT_EQ(clocks[trace].at_end, expected[trace].at_end);
      EXPECT_EQ(clocks[trace].error_bound, expected[trace].error_bound);
      EXPECT_EQ(clocks[trace].num_collectives, expected[trace].num_collectives);
    }
  }
}

TEST(AlignClocks, OnlyWhatNeedsAllRanksTellsOfClocks) {
  const std::set<std::string> of_all = {"allreduce",
                                        "all_reduce",
                                        "_allgather_base",
                                        "all_gather",
                                        "reduce_scatter",
                                        "alltoall",
                                        "all_to_all",
                                        "barrier",
                                        "ncclDevKernel_AllReduce_Sum",
                                        "ncclDevKernel_AllGather_RING_LL",
                                        "ncclDevKernel_ReduceScatter_Sum",
                                        "ncclDevKernel_AllToAll"};
  std::set<std::string> names = of_all;
  names.insert({"broadcast", "reduce", "gather", "scatter"});
  for (const std::string& name : names) {
    Profile::CollectiveKind kind;
    kind.name = name;
    Collective collective;
    collective.kind = &kind;
    collective.parts = {{0, 0, 5}, {1, 0, 5}};
    std::vector<TraceSummary> traces(2);
    traces[1].rank = 1;
    EXPECT_EQ(AlignClocks(traces, {collective})[1].is_known, of_all.count(name) > 0) << name;
  }
}

// What a trace tells of its collectives, looked for one by one: each in the step that the host was in when it
// called it; messages are left out.
TEST(Collectives, AreSummarizedWithTheStepThatTheHostWasInWhenItCalledThem) {
  using Told = std::tuple<uint32_t, int64_t, int64_t, int64_t, int64_t>;
  std::mt19937 random(2);
  const auto draw = [&](int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  };
  for (int trial = 0; trial < 100; ++trial) {
    Profile profile = EmptyTraceForTest();
    profile.collective_kinds.resize(3, profile.collective_kinds[0]);
    profile.collective_kinds[1].name = "recv";
    profile.collective_kinds[2].name = "isend_all";
    const int64_t base = draw(2) * 1'000'000;
    if (base > 0) profile.begin_unix_nanoseconds = base;
    std::map<int64_t, int64_t> steps;
    for (int i = 0; i < 4; ++i) {
      const int64_t begin = draw(100);
      if (steps.emplace(begin, 10 + i).second) AddStepForTest(&profile, 10 + i, begin, begin + 5);
    }
    kernels::OpLabel no_step;
    no_step.text = "no such step#99";
    profile.labels.push_back(no_step);
    const auto label = static_cast<uint32_t>(profile.labels.size() - 1);
    profile.threads[0].ranges.push_back({draw(100), 100, label, kernels::kNone});
    std::vector<Told> expected, found;
    const auto expect = [&](uint32_t kind, int64_t sequence_number, int64_t call, int64_t start) {
      const auto after =
          std::find_if(steps.rbegin(), steps.rend(), [&](const auto& step) { return step.first <= call; });
      if (kind == 0)
        expected.emplace_back(0, sequence_number, after == steps.rend() ? 0 : after->second, base + start,
                              base + start + 1);
    };
    for (int64_t i = 0; i < 20; ++i) {
      const int64_t call = draw(100), start = draw(2) * 90 + i, why = draw(4);
      AddKernelForTest(&profile, 1, call, start, start + 1);
      if (why == 0) profile.kernels.back().launch = kernels::kNone;
      if (why == 1) profile.launches.back().thread = kernels::kNone;
      const auto kind = static_cast<uint32_t>(std::max<int64_t>(0, draw(5) - 2));
      profile.collectives.back().kind = kind;
      profile.collectives.back().sequence_number = draw(3) - 1;
      expect(kind, profile.collectives.back().sequence_number, why < 2 ? start : call, start);
    }
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t start = draw(100);
      profile.host_collectives.push_back({start, start + 1, static_cast<uint32_t>(draw(3))});
      expect(profile.host_collectives.back().kind, -1, start, start);
    }
    profile.path = "trace.json";
    const TraceSummary summary = SummarizeCollectives({7, &profile});
    for (const TraceSummary::Part& part : summary.collectives)
      found.emplace_back(part.kind, part.sequence_number, part.step, part.start, part.end);
    EXPECT_THAT(found, ElementsAreArray(expected));
    EXPECT_EQ(std::tie(summary.rank, summary.path), std::make_tuple(7, "trace.json"));
    EXPECT_EQ(summary.first_time, base + profile.first_time);
    EXPECT_EQ(summary.last_time, base + profile.last_time);
    EXPECT_EQ(summary.num_steps, profile.num_steps);
    EXPECT_EQ(summary.kinds.size(), 3U);
  }
}

// One ends before the other begins, and its steps are before those of the other.
TEST(Windows, AreOfOneRunWhereTimesAndStepsGoOn) {
  std::mt19937 random(7);
  int num_true = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    TraceSummary traces[2];
    std::vector<int64_t> steps[2];
    for (const int i : {0, 1}) {
      traces[i].first_time = 2 * static_cast<int64_t>(random() % 8) + i;  // no two begin at once
      traces[i].last_time = traces[i].first_time + static_cast<int64_t>(random() % 4);
      traces[i].num_steps = static_cast<int64_t>(random() % 4);
      for (size_t left = random() % 4; left > 0; --left) {
        steps[i].push_back(static_cast<int64_t>(random() % 9));
        traces[i].collectives.push_back({0, -1, steps[i].back(), 0, 0});
      }
    }
    const int early = traces[0].first_time < traces[1].first_time ? 0 : 1, late = 1 - early;
    const bool have_steps =
        !steps[0].empty() && !steps[1].empty() && traces[0].num_steps > 0 && traces[1].num_steps > 0;
    const bool are_of_one_run = have_steps && traces[early].last_time <= traces[late].first_time &&
                                *std::max_element(steps[early].begin(), steps[early].end()) <
                                    *std::min_element(steps[late].begin(), steps[late].end());
    EXPECT_EQ(AreWindowsOfOneRun(traces[0], traces[1]), are_of_one_run);
    num_true += are_of_one_run;
  }
  EXPECT_GT(num_true, 100);
}

// The definition: collectives of two traces are one if they have group, name, and number or else step in
// common, and are the k-th of those in both.
TEST(Collectives, OfTwoTracesAreOneByTheDefinition) {
  struct Known {
    size_t trace;
    std::tuple<std::string, std::string, int64_t, int64_t, int64_t> what;
    std::tuple<int64_t, int64_t, std::string> message;
  };
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<TraceSummary> traces(3);
    std::map<int64_t, Known> known;  // by start, which no two share
    for (size_t trace = 0; trace < traces.size(); ++trace) {
      std::map<std::tuple<std::string, std::string, int64_t, int64_t>, int64_t> counts;
      for (const std::string group : {"0", "1"}) {
        for (const std::string name : {"allreduce", "broadcast"}) {
          Profile::CollectiveKind& kind = traces[trace].kinds.emplace_back();
          kind.name = name;
          kind.group = "group";
          kind.group_ranks = absl::StrCat(trace == 0 ? "[0, 1" : "[0,1", group, "]");
          kind.in_elements = 1 + random() % 9 / 8;
          kind.out_elements = 1 + random() % 9 / 8;
          kind.dtype = random() % 9 == 0 ? "half" : "float32";
        }
      }
      for (int i = 0; i < 8; ++i) {
        const auto kind = static_cast<uint32_t>(random() % 4);
        const auto number = static_cast<int64_t>(random() % 3) - 1, step = static_cast<int64_t>(random() % 2);
        int64_t start = 0;
        do start = static_cast<int64_t>(random() % 1000);
        while (known.count(start) > 0);
        traces[trace].collectives.push_back({kind, number, step, start, start + 5});
        const Profile::CollectiveKind& of_trace = traces[trace].kinds[kind];
        const int64_t of_step = number < 0 ? step : 0;
        const std::string group = kind < 2 ? "0" : "1";
        const int64_t count = counts[{group, of_trace.name, number, of_step}]++;
        known[start] = {trace,
                        {group, of_trace.name, number, of_step, count},
                        {of_trace.in_elements, of_trace.out_elements, of_trace.dtype}};
      }
    }
    const std::vector<Collective> matched = MatchCollectives(traces);
    std::map<int64_t, size_t> whole_of;
    for (size_t i = 0; i < matched.size(); ++i) {
      bool same_message = true;
      for (const Collective::Part& part : matched[i].parts) {
        EXPECT_TRUE(whole_of.emplace(part.start, i).second);
        EXPECT_EQ(part.trace, known.at(part.start).trace);
        same_message &= known.at(part.start).message == known.at(matched[i].parts[0].start).message;
      }
      EXPECT_EQ(matched[i].same_message, same_message);
      EXPECT_EQ(matched[i].kind->name, std::get<1>(known.at(matched[i].parts[0].start).what));
      EXPECT_TRUE(i == 0 || matched[i - 1].parts[0].start < matched[i].parts[0].start);
    }
    ASSERT_EQ(whole_of.size(), known.size());
    for (const auto& [a, of_a] : known) {
      for (const auto& [b, of_b] : known) EXPECT_EQ(whole_of[a] == whole_of[b], of_a.what == of_b.what);
    }
  }
}

}  // namespace
}  // namespace ott::waiting
