#include "ott/questions/waiting/traced_job.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/waiting/traces_for_test.h"

namespace ott::waiting {
namespace {

using kernels::Profile;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMillisecond = 1'000'000;

void AddBarrierLabel(Profile& profile) {
  kernels::OpLabel& barrier = profile.labels.emplace_back();
  barrier.kind = kernels::OpLabel::Kind::kOp;
  barrier.description.module = "c10d";
  barrier.description.op = "barrier";
}

// Steps of 100 ms with a kernel and an all-reduce each. Rank 1 comes `late` after rank 0 to each of sixty
// all-reduces; its clock shows `ahead` more.
std::vector<Profile> TwoRanks(int64_t late, int64_t ahead, int64_t first_step_of_rank_1 = 0,
                              int num_steps = 60) {
  std::vector<Profile> ranks;
  for (int rank = 0; rank < 2; ++rank) ranks.push_back(EmptyTraceForTest());
  for (int step = 0; step < num_steps; ++step) {
    const int64_t begin = step * 100 * kMillisecond;
    const int64_t meet = begin + 50 * kMillisecond + std::max<int64_t>(late, 0);
    for (int rank = 0; rank < 2; ++rank) {
      if (rank == 1 && step < first_step_of_rank_1) continue;
      const int64_t shift = rank * ahead;
      const int64_t come = begin + 50 * kMillisecond + rank * late;
      // Ends differ by some microseconds, now in this, now in that order.
      const int64_t end = meet + 10 * kMillisecond + ((step + rank) % 2) * 3'000;
      Profile& profile = ranks[static_cast<size_t>(rank)];
      AddStepForTest(&profile, step, begin + shift, begin + shift + 90 * kMillisecond);
      AddKernelForTest(&profile, 0, begin + shift, begin + shift + kMillisecond, come + shift);
      AddKernelForTest(&profile, 1, begin + shift + 1, come + shift, end + shift);
    }
  }
  return ranks;
}

// An activity of a device, and when the host called it.
struct ActivityForTest {
  enum Kind { kCompute, kCollective, kCopy, kMemset };
  Kind kind;
  int64_t call, begin, end;
};

// The definition: nanosecond by nanosecond. `in_collective`: when the host was in one. All begin apart.
TimeSplit SplitByNanoseconds(const std::vector<ActivityForTest>& activities,
                             const std::set<int64_t>& in_collective) {
  int64_t first = INT64_MAX, last = 0;
  for (const ActivityForTest& activity : activities) {
    first = std::min(first, activity.begin);
    last = std::max(last, activity.end);
  }
  TimeSplit split;
  split.total = last - first;
  int64_t idle_since = 0;
  for (int64_t now = first; now < last; ++now) {
    bool is[4] = {};
    const ActivityForTest* next = nullptr;
    for (const ActivityForTest& activity : activities) {
      if (activity.begin <= now && now < activity.end) is[activity.kind] = true;
      if (activity.begin > now && (next == nullptr || activity.begin < next->begin)) next = &activity;
    }
    const bool computes = is[ActivityForTest::kCompute] || is[ActivityForTest::kMemset];
    const bool reduces = is[ActivityForTest::kCollective], copies = is[ActivityForTest::kCopy];
    split.compute += computes;
    split.memsets += computes && !is[ActivityForTest::kCompute];
    split.communication += reduces;
    split.exposed_communication += reduces && !computes;
    split.copies += copies;
    split.exposed_copies += copies && !computes && !reduces;
    if (computes || reduces || copies) {
      ++split.busy;
      idle_since = now + 1;
      continue;
    }
    ++split.idle;
    int64_t& why = next->call <= idle_since       ? split.idle_queued
                   : next->call <= now            ? split.idle_launch
                   : in_collective.count(now) > 0 ? split.idle_collective
                                                  : split.idle_host;
    ++why;
  }
  return split;
}

std::string ToText(const TimeSplit& split) {
  TracedJob job;
  job.ranks.emplace_back().split = split;
  return SplitsToJson(job);
}

TEST(TimeSplit, IsTheSumOfItsNanoseconds) {
  std::mt19937 random(1);
  const auto draw = [&](int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  };
  for (int trial = 0; trial < 300; ++trial) {
    Profile profile = EmptyTraceForTest();
    AddBarrierLabel(profile);
    std::set<int64_t> begins, in_collective;
    while (begins.size() < 10) begins.insert(draw(200));
    std::vector<ActivityForTest> activities;
    for (const int64_t begin : begins) {
      const auto kind = static_cast<ActivityForTest::Kind>(draw(4));
      activities.push_back({kind, begin - draw(40), begin, begin + 1 + draw(20)});
    }
    std::shuffle(activities.begin(), activities.end(), random);
    for (const ActivityForTest& activity : activities) {
      AddKernelForTest(&profile, activity.kind == ActivityForTest::kCollective ? 1 : 0, activity.call,
                       activity.begin, activity.end);
      if (activity.kind < ActivityForTest::kCopy) continue;
      const Profile::Kernel kernel = profile.kernels.back();
      profile.kernels.pop_back();
      const uint32_t name = activity.kind == ActivityForTest::kCopy ? 0 : 1;
      profile.transfers.push_back({kernel.start, kernel.end, 64, name, kernel.launch, 0, 0, 0});
    }
    for (int i = 0; i < 4; ++i) {
      const int64_t begin = draw(200), end = begin + 1 + draw(20);
      profile.threads[0].ranges.push_back({begin, end, 0, kernels::kNone});
      for (int64_t now = begin; now < end; ++now) in_collective.insert(now);
    }
    EXPECT_EQ(ToText(SplitTime(profile)), ToText(SplitByNanoseconds(activities, in_collective)));
  }
}

TEST(TimeSplit, WhatWasLaunchedBeforeTheTraceDoesNotCount) {
  Profile profile = EmptyTraceForTest();
  AddKernelForTest(&profile, 0, 0, 100, 200);
  profile.kernels.push_back(profile.kernels[0]);
  profile.kernels[1].launch = kernels::kNone;
  profile.kernels[1].start = 0;
  const TimeSplit split = SplitTime(profile);
  EXPECT_EQ(split.total, 100);
  EXPECT_EQ(split.num_left_out, 1);
}

TEST(TracedJob, TheRankThatComesLateIsNamedWithItsCost) {
  const std::vector<Profile> ranks = TwoRanks(20 * kMillisecond, 0);
  const TracedJob job = DescribeForTest(ranks);
  ASSERT_EQ(job.hold_ups.found.size(), 1U);
  EXPECT_EQ(job.hold_ups.found[0].rank, 1);
  EXPECT_NEAR(job.hold_ups.found[0].seconds_per_step, 0.02, 1e-6);
  EXPECT_EQ(job.num_matched, 60);
  const std::string text = FormatHoldUps(job);
  EXPECT_THAT(text, HasSubstr("all wait for rank 1 at \"allreduce of group default_pg\": 20 ms a step"));
  // 4 MB in 10 ms, of which each link carries as much.
  EXPECT_THAT(FormatCollectives(job, 5), HasSubstr("4 MB     60     10 ms"));
  EXPECT_NEAR(static_cast<double>(job.collectives[0].transfer), 600e6, 6e5);
  EXPECT_NEAR(static_cast<double>(job.collectives[0].wait), 600e6, 1e5);
  EXPECT_EQ(job.collectives[0].last_rank, 1);
}

TEST(TracedJob, NobodyIsBlamedWhereRanksComeTogether) {
  for (const int64_t late : {int64_t{0}, int64_t{2'000}, int64_t{-2'000}}) {
    const TracedJob job = DescribeForTest(TwoRanks(late, 0));
    EXPECT_TRUE(job.hold_ups.found.empty()) << late;
    EXPECT_THAT(FormatHoldUps(job), HasSubstr("no rank holds the others up"));
  }
}

TEST(TracedJob, OfTooFewStepsItCannotBeToldWhoWaits) {
  for (const int64_t late : {int64_t{0}, 20 * kMillisecond}) {
    const TracedJob job = DescribeForTest(TwoRanks(late, 0, 0, 9));
    EXPECT_TRUE(job.hold_ups.found.empty());
    EXPECT_FALSE(job.hold_ups.CanTell());
    EXPECT_THAT(FormatHoldUps(job), HasSubstr("all ranks have collectives in 9 steps, and 10 are needed"));
  }
}

TEST(TracedJob, OfTracesWithoutStepsItCannotBeToldFromFewCollectives) {
  SimulatedJob simulated;
  simulated.has_steps = false;
  simulated.num_steps = 31;
  simulated.collectives_per_step = 1;
  EXPECT_THAT(FormatHoldUps(DescribeForTest(SimulateTraces(simulated, 1))),
              HasSubstr("no collective came more than 31 times, and 32 are needed in traces without steps"));
}

TEST(TracedJob, WhoeverIsLateByWhatRanksThatAreAlikeDifferByIsNotNamed) {
  // Always by 4 % of a step, without any spread within the traces.
  const TracedJob job = DescribeForTest(TwoRanks(4 * kMillisecond, 0));
  EXPECT_TRUE(job.hold_ups.found.empty());
  EXPECT_THAT(FormatHoldUps(job), HasSubstr("no rank holds the others up; one that costs"));
}

TEST(TracedJob, WithClocksThatAreFarOffItCannotBeTold) {
  std::vector<Profile> ranks = TwoRanks(0, 0);
  for (size_t i = 0; i < ranks[1].kernels.size(); ++i)
    ranks[1].kernels[i].end += static_cast<int64_t>(i % 7) * 20 * kMillisecond;
  const TracedJob job = DescribeForTest(ranks);
  EXPECT_FALSE(job.hold_ups.CanTell());
  EXPECT_THAT(FormatHoldUps(job), HasSubstr("cannot tell who waits for whom: only a rank that costs"));
}

TEST(TracedJob, ClocksOfTwoMachinesAreFoundByTheEndsOfCollectives) {
  // A clock that is 25 ms ahead hides that the rank comes 20 ms early, or late.
  for (const int64_t late : {-20 * kMillisecond, 20 * kMillisecond}) {
    const TracedJob job = DescribeForTest(TwoRanks(late, 25 * kMillisecond));
    EXPECT_NEAR(static_cast<double>(job.clocks[1].at_begin), -25e6, 1e4);
    EXPECT_LT(job.clocks[1].error_bound, 10'000);
    ASSERT_EQ(job.hold_ups.found.size(), 1U) << late;
    EXPECT_EQ(job.hold_ups.found[0].rank, late > 0 ? 1 : 0);
  }
}

// Each rank shares most with its neighbour on a ring of groups, which lead to the first one's clock.
TEST(AlignClocks, ClocksOfAThousandRanksAreFoundFromGroupToGroup) {
  constexpr int kRanks = 1024;
  Profile::CollectiveKind kind;
  kind.name = "allreduce";
  std::vector<TraceSummary> traces(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    traces[rank].last_time = 1000 * kMillisecond;
    for (const int first : {rank - 1, rank}) {
      kind.group = absl::StrCat(first);
      traces[rank].kinds.push_back(kind);
      for (int i = 0; i < 8; ++i) {
        const int64_t end =
            (i * 100 + first % 50) * kMillisecond + rank * kMillisecond;  // ahead by the last term
        traces[rank].collectives.push_back(
            {static_cast<uint32_t>(traces[rank].kinds.size() - 1), i, 0, end - 1000, end});
      }
    }
  }
  const std::vector<ClockOffset> clocks = AlignClocks(traces, MatchCollectives(traces));
  for (int rank = 0; rank < kRanks; ++rank) {
    ASSERT_TRUE(clocks[rank].is_known) << rank;
    EXPECT_EQ(clocks[rank].at_begin, -rank * kMillisecond) << rank;
  }
}

// The second clock is 5 ms ahead, and gains 10 us a second; few collectives tell no drift.
TEST(AlignClocks, AClockThatDriftsIsFoundFromEnoughCollectives) {
  const auto ahead = [](double time) { return 5e6 + 1e-5 * time; };
  for (const int num_collectives : {19, 20, 40}) {
    std::vector<TraceSummary> traces(2);
    std::vector<Collective> collectives(num_collectives);
    const int64_t last = 100 * kMillisecond * num_collectives;
    Profile::CollectiveKind kind;
    kind.name = "allreduce";
    traces[1].first_time = static_cast<int64_t>(ahead(0));
    traces[1].last_time = last + static_cast<int64_t>(ahead(static_cast<double>(last)));
    for (int i = 0; i < num_collectives; ++i) {
      const int64_t end = i * 100 * kMillisecond;
      collectives[i].kind = &kind;
      collectives[i].parts = {{0, end - 5, end},
                              {1, end - 5, end + static_cast<int64_t>(ahead(static_cast<double>(end)))}};
    }
    const ClockOffset clock = AlignClocks(traces, collectives)[1];
    const double middle = ahead(static_cast<double>(last / 2));
    const bool drifts = num_collectives >= 20;
    EXPECT_NEAR(static_cast<double>(clock.at_begin), -(drifts ? ahead(0) : middle), 1.2e3) << num_collectives;
    EXPECT_NEAR(static_cast<double>(clock.at_end), -(drifts ? ahead(static_cast<double>(last)) : middle),
                1.2e3)
        << num_collectives;
    EXPECT_EQ(clock.num_collectives, num_collectives);
  }
}

TEST(AlignClocks, AClockIsKnownWhereCollectivesLeadToTheFirst) {
  std::mt19937 random(4);
  Profile::CollectiveKind kind;
  kind.name = "allreduce";
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<TraceSummary> traces(6);
    std::vector<int64_t> ahead;
    for (TraceSummary& trace : traces) {
      trace.last_time = 1000 * kMillisecond;
      ahead.push_back(static_cast<int64_t>(random() % 9) * 10 * kMillisecond);
    }
    std::vector<Collective> collectives(1 + random() % 6);
    for (size_t i = 0; i < collectives.size(); ++i) {
      collectives[i].kind = &kind;
      const auto end = static_cast<int64_t>(i) * 100 * kMillisecond;
      for (size_t trace = 0; trace < traces.size(); ++trace) {
        if (random() % 3 == 0)
          collectives[i].parts.push_back({trace, end + ahead[trace] - 5, end + ahead[trace]});
      }
    }
    std::set<size_t> known = {0};
    for (size_t before = 0; before != known.size();) {
      before = known.size();
      for (const Collective& collective : collectives) {
        const bool leads =
            std::any_of(collective.parts.begin(), collective.parts.end(),
                        [&](const Collective::Part& part) { return known.count(part.trace) > 0; });
        if (!leads) continue;
        for (const Collective::Part& part : collective.parts) known.insert(part.trace);
      }
    }
    const std::vector<ClockOffset> clocks = AlignClocks(traces, collectives);
    for (size_t trace = 0; trace < traces.size(); ++trace) {
      ASSERT_EQ(clocks[trace].is_known, known.count(trace) > 0);
      if (!clocks[trace].is_known) continue;
      EXPECT_EQ(clocks[trace].at_begin, ahead[0] - ahead[trace]);
      EXPECT_EQ(clocks[trace].at_end, ahead[0] - ahead[trace]);
    }
  }
}

TEST(TracedJob, WhatDoesNotNeedAllRanksTellsNothingOfClocks) {
  for (const char* const name : {"broadcast", "reduce", "allreduce", "ncclDevKernel_AllGather_RING_LL"}) {
    std::vector<Profile> ranks = TwoRanks(0, 25 * kMillisecond);
    for (Profile& profile : ranks) profile.collective_kinds.at(0).name = name;
    const bool needs_all = absl::StrContains(absl::AsciiStrToLower(name), "all");
    EXPECT_EQ(DescribeForTest(ranks).clocks[1].is_known, needs_all) << name;
  }
}

// Ranks 3 and 5, of which each figure is another one.
TracedJob JobOfSplits() {
  TracedJob job;
  for (const int rank : {3, 5}) {
    TracedJob::Rank& of_job = job.ranks.emplace_back();
    of_job.rank = rank;
    const int64_t ms = rank * kMillisecond;
    of_job.split = {20 * ms, 1 * ms, 8 * ms, 2 * ms, 9 * ms,  3 * ms, 10 * ms,
                    4 * ms,  5 * ms, 6 * ms, 7 * ms, 11 * ms, 12 * ms};
  }
  return job;
}

TEST(TracedJob, SplitsAreATableOfSharesOfTheTime) {
  const std::vector<std::string> lines = absl::StrSplit(FormatSplits(JobOfSplits()), '\n');
  ASSERT_EQ(lines.size(), 5U);
  const char* const shares = "5.0 % 10.0 % 30.0 % 15.0 % 25.0 % 30.0 % 35.0 % 55.0 % 60.0 %";
  const char* const rows[] = {"3 60 ms", "5 100 ms", "all 160 ms"};
  for (size_t row = 0; row < 3; ++row) {
    const std::vector<std::string> words = absl::StrSplit(lines[row + 1], ' ', absl::SkipEmpty());
    EXPECT_EQ(absl::StrJoin(words, " "), absl::StrCat(rows[row], " ", shares));
  }
}

TEST(TracedJob, FiguresOfEachRankAreALineOfJson) {
  const auto line = [](int rank) {
    std::string text = absl::StrCat("{\"rank\":", rank);
    for (const auto& [name, times] : std::vector<std::pair<const char*, int>>{{"computation", 1},
                                                                              {"exposed_comm", 2},
                                                                              {"exposed_memcpy", 3},
                                                                              {"busy", 4},
                                                                              {"idle", 5},
                                                                              {"total", 20},
                                                                              {"total_comm", 8},
                                                                              {"total_memcpy", 9},
                                                                              {"memset", 10},
                                                                              {"idle_host", 6},
                                                                              {"idle_collective", 7},
                                                                              {"idle_launch", 11},
                                                                              {"idle_queued", 12}}) {
      absl::StrAppendFormat(&text, ",\"%s_time\":%d.000000", name, rank * times);
    }
    return text + "}\n";
  };
  EXPECT_EQ(SplitsToJson(JobOfSplits()), line(3) + line(5));
}

// The step in which the host called each collective, looked for one by one; messages are left out.
TEST(Collectives, AreOfTheStepThatTheHostWasInWhenItCalledThem) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 100; ++trial) {
    Profile profile = EmptyTraceForTest();
    profile.collective_kinds.push_back(profile.collective_kinds[0]);
    profile.collective_kinds[1].name = "recv";
    std::map<int64_t, int64_t> steps;
    for (int i = 0; i < 4; ++i) {
      const auto begin = static_cast<int64_t>(random() % 100);
      if (steps.emplace(begin, 10 + i).second) AddStepForTest(&profile, 10 + i, begin, begin + 5);
    }
    std::vector<std::pair<int64_t, int64_t>> expected;  // start, step
    for (int64_t i = 0; i < 20; ++i) {
      const auto call = static_cast<int64_t>(random() % 100);
      const int64_t start = 1000 * (i + 1);
      AddKernelForTest(&profile, 1, call, start, start + 1);
      const bool has_call = random() % 4 != 0, is_message = random() % 4 == 0;
      if (!has_call) profile.kernels.back().launch = kernels::kNone;
      profile.collectives.back().kind = is_message ? 1 : 0;
      if (is_message) continue;
      int64_t last = -1, step = 0;
      for (const auto& [begin, number] : steps) {
        if (begin <= (has_call ? call : start) && begin > last) {
          last = begin;
          step = number;
        }
      }
      expected.emplace_back(start, step);
    }
    std::vector<std::pair<int64_t, int64_t>> found;
    for (const TraceSummary::Part& part : SummarizeCollectives({0, &profile}).collectives) {
      found.emplace_back(part.start, part.step);
    }
    EXPECT_THAT(found, ElementsAreArray(expected));
  }
}

// The definition: collectives of two traces are one if they have group, name, and number or else step in
// common, and are the k-th of those in both.
TEST(Collectives, OfTwoTracesAreOneByTheDefinition) {
  struct Known {
    size_t trace;
    std::tuple<std::string, std::string, int64_t, int64_t, int64_t> what;
    int64_t elements;
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
          kind.group = group;
          kind.group_ranks = trace == 0 ? "[0, 1]" : "[0,1]";
          kind.in_elements = 1 + random() % 5 / 4;
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
        const int64_t count = counts[{of_trace.group, of_trace.name, number, of_step}]++;
        known[start] = {trace, {of_trace.group, of_trace.name, number, of_step, count}, of_trace.in_elements};
      }
    }
    const std::vector<Collective> matched = MatchCollectives(traces);
    std::map<int64_t, size_t> whole_of;
    for (size_t i = 0; i < matched.size(); ++i) {
      bool same_message = true;
      for (const Collective::Part& part : matched[i].parts) {
        EXPECT_TRUE(whole_of.emplace(part.start, i).second);
        EXPECT_EQ(part.trace, known.at(part.start).trace);
        same_message &= known.at(part.start).elements == known.at(matched[i].parts[0].start).elements;
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

TEST(TracedJob, CollectivesAreATableOfTheirMeans) {
  CollectiveSum sum;
  sum.kind.name = "allreduce";
  sum.num_ranks = 2;
  sum.count = 5;
  sum.num_complete = 4;
  sum.transfer = 8 * kMillisecond;
  sum.wait = 4 * kMillisecond;
  sum.longest_wait = 3 * kMillisecond;
  sum.message_bytes = 2e6;
  sum.bus_bytes = 4e6;
  sum.last_rank = 1;
  sum.num_last = 3;
  TracedJob job;
  job.collectives.assign(6, sum);
  job.collectives[1].num_complete = 1;
  job.collectives[2].num_complete = 0;
  job.collectives[2].num_ranks = 1;
  const std::vector<std::string> lines = absl::StrSplit(FormatCollectives(job, 3), '\n');
  ASSERT_EQ(lines.size(), 6U) << FormatCollectives(job, 3);
  const auto words = [&](size_t line) {
    return absl::StrJoin(std::vector<std::string>(absl::StrSplit(lines[line], ' ', absl::SkipEmpty())), " ");
  };
  EXPECT_EQ(words(1), "allreduce 2 2 MB 5 2 ms 1 2 1 ms 3 ms rank 1 (3 of 4)");
  EXPECT_EQ(words(2), "allreduce 2 2 MB 5 8 ms 0.25 0.5 4 ms 3 ms rank 1 (3 of 1)");
  EXPECT_EQ(words(3), "allreduce 1 2 MB 5 - 0 0 - - -");
  EXPECT_EQ(lines[4], "and 3 more");
  EXPECT_EQ(lines[5], "");
  job.num_incomplete = 7;
  EXPECT_THAT(FormatCollectives(job, 3), HasSubstr("\n7 collectives are missing on a traced rank"));
}

TEST(HoldUpFinder, OfManyRanksAndKindsEachHasItsShareOfTheError) {
  constexpr int kTraces = 400, kRanks = 4, kKinds = 16, kCollectivesOfStep = 16;
  std::vector<int> ranks(kRanks);
  std::iota(ranks.begin(), ranks.end(), 0);
  std::mt19937_64 random(1);
  int num_named = 0;
  for (int trace = 0; trace < kTraces; ++trace) {
    HoldUpFinder finder;
    for (int step = 0; step < 12; ++step) {
      for (int i = 0; i < kCollectivesOfStep * kKinds; ++i) {
        finder.Add({absl::StrCat("kind ", i % kKinds), "", ""}, step, ranks,
                   static_cast<int>(random() % kRanks), 1'000'000);
      }
    }
    HoldUpOptions options;
    options.step_seconds = 0.01;
    options.has_steps = true;
    num_named += finder.Find(options).found.empty() ? 0 : 1;
  }
  // One is expected, and 50 if each rank had all of the error.
  EXPECT_LE(num_named, 4);
}

// The small form of hold_up_rates.
TEST(TracedJob, RanksThatAreAlikeAreNotNamedAndASlowOneIs) {
  constexpr uint64_t kNumSeeds = 100;
  for (const int num_ranks : {2, 4}) {
    for (const bool has_steps : {true, false}) {
      int named = 0, found = 0, uneven = 0, few = 0;
      for (uint64_t seed = 1; seed <= kNumSeeds; ++seed) {
        SimulatedJob simulated;
        simulated.num_ranks = num_ranks;
        simulated.has_steps = has_steps;
        const auto hold_ups = [&] { return DescribeForTest(SimulateTraces(simulated, seed)).hold_ups; };
        named += hold_ups().found.empty() ? 0 : 1;
        simulated.slow_rank = 1;
        simulated.slowdown = 0.25;
        const TracedHoldUps of_slow = hold_ups();
        found += !of_slow.found.empty() && of_slow.found[0].rank == 1 ? 1 : 0;
        if (!has_steps) continue;
        simulated.num_steps = 5;
        few += hold_ups().CanTell() ? 1 : 0;
        simulated.num_steps = 12;
        simulated.slow_rank = -1;
        simulated.uneven_data = 0.2;
        uneven += hold_ups().found.empty() ? 0 : 1;
      }
      EXPECT_LE(named, 1) << num_ranks;
      EXPECT_GE(found, 95) << num_ranks;
      EXPECT_LE(uneven, 1) << num_ranks;
      EXPECT_EQ(few, 0) << num_ranks;
    }
  }
}

TEST(TracedJob, CollectivesOfATraceThatBeganLaterMatchByTheirStep) {
  const TracedJob job = DescribeForTest(TwoRanks(20 * kMillisecond, 0, 4));
  EXPECT_EQ(job.num_incomplete, 4);
  ASSERT_EQ(job.hold_ups.found.size(), 1U);
  EXPECT_EQ(job.hold_ups.found[0].rank, 1);
}

TEST(TracedJob, GroupsOfOtherRanksAreNotMatched) {
  std::vector<Profile> ranks = TwoRanks(20 * kMillisecond, 0);
  ranks[0].collective_kinds[0].group_ranks = "[0, 2]";
  ranks[1].collective_kinds[0].group_ranks = "[1, 3]";
  const TracedJob job = DescribeForTest(ranks);
  EXPECT_TRUE(job.hold_ups.found.empty());
  EXPECT_THAT(FormatHoldUps(job), HasSubstr("cannot tell who waits for whom"));
}

TEST(TracedJob, RanksThatShareNoCollectiveAreCountedIfThereAreAny) {
  std::vector<Profile> ranks = TwoRanks(20 * kMillisecond, 0);
  EXPECT_THAT(FormatHoldUps(DescribeForTest(ranks)), Not(HasSubstr("share no collective")));
  ranks.push_back(std::move(TwoRanks(20 * kMillisecond, 0)[0]));
  ranks[2].collective_kinds[0].group = "1";
  EXPECT_THAT(FormatHoldUps(DescribeForTest(ranks)),
              HasSubstr("\n1 ranks share no collective with the others"));
}

// As TwoRanks(), by gloo: operators of the host, and no devices.
std::vector<Profile> TwoRanksByGloo(int64_t late) {
  std::vector<Profile> ranks = TwoRanks(late, 0);
  for (Profile& rank : ranks) {
    const auto op = static_cast<uint32_t>(rank.labels.size());
    rank.labels.emplace_back().kind = kernels::OpLabel::Kind::kOp;
    for (const Profile::Kernel& kernel : rank.kernels) {
      if (kernel.name == 1) {
        rank.host_collectives.push_back({kernel.start, kernel.end, 0});
      } else {
        rank.threads[0].ranges.push_back({kernel.start, kernel.end, op, kernels::kNone});
      }
    }
    rank.kernels.clear();
    rank.launches.clear();
    rank.collectives.clear();
  }
  return ranks;
}

TEST(TracedJob, CollectivesOfTheHostTellWhoIsWaitedFor) {
  const std::vector<Profile> ranks = TwoRanksByGloo(20 * kMillisecond);
  const TracedJob job = DescribeForTest(ranks);
  ASSERT_EQ(job.hold_ups.found.size(), 1U);
  EXPECT_EQ(job.hold_ups.found[0].rank, 1);
  EXPECT_EQ(job.collectives[0].num_complete, 60);
  // Rank 0: steps of an operator that ends as its collective begins, which takes 30 ms.
  const TimeSplit& split = job.ranks[0].split;
  EXPECT_TRUE(split.of_host);
  EXPECT_NEAR(static_cast<double>(split.communication), 60 * 30e6, 1e6);
  EXPECT_EQ(split.exposed_communication, split.communication);
  EXPECT_GT(split.compute, 0);
  const std::string of_host = "of ranks without device activity: operators and collectives of the host\n";
  EXPECT_THAT(FormatSplits(job), HasSubstr(of_host));
  EXPECT_THAT(FormatSplits(DescribeForTest(TwoRanks(0, 0))), Not(HasSubstr(of_host)));
}

TEST(TracedJob, CollectivesOfUnknownGroupsBlameNobody) {
  std::vector<Profile> ranks = TwoRanksByGloo(20 * kMillisecond);
  for (Profile& rank : ranks) rank.collective_kinds[0].group.clear();
  const TracedJob job = DescribeForTest(ranks);
  EXPECT_TRUE(job.hold_ups.found.empty());
  EXPECT_THAT(FormatHoldUps(job), HasSubstr("do not tell which ranks a collective is of"));
}

TEST(TracedJob, OneRankTellsNothingOfOthers) {
  std::vector<Profile> ranks;
  ranks.push_back(EmptyTraceForTest());
  EXPECT_THAT(FormatHoldUps(DescribeForTest(ranks)), HasSubstr("cannot tell"));
  EXPECT_THAT(FormatSplits(DescribeForTest(ranks)), Not(HasSubstr("all")));
}

}  // namespace
}  // namespace ott::waiting
