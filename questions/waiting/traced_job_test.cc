#include "ott/questions/waiting/traced_job.h"

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
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/kernels/collective_cost.h"
#include "ott/questions/waiting/traces_for_test.h"

namespace ott::waiting {
namespace {

using kernels::Profile;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::StartsWith;

constexpr int64_t kMillisecond = 1'000'000;

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
  EXPECT_THAT(std::vector<std::string>(absl::StrSplit(lines[0], "  ", absl::SkipWhitespace())),
              ElementsAre("rank", "time", "compute", "exposed comm", "overlapped comm", "exposed copies",
                          "idle", "host-bound", "in collective", "launch", "queued"));
  for (size_t row = 0; row < 3; ++row) {
    const std::vector<std::string> words = absl::StrSplit(lines[row + 1], ' ', absl::SkipEmpty());
    EXPECT_EQ(absl::StrJoin(words, " "), absl::StrCat(rows[row], " ", shares));
  }
  TracedJob of_host;
  of_host.ranks.emplace_back().split.of_host = true;
  EXPECT_THAT(FormatSplits(of_host),
              EndsWith("-\nof ranks without device activity: operators and collectives of the host\n"));
  EXPECT_EQ(FormatSplits(of_host).find("all"), std::string::npos);
  TracedJob left_out = JobOfSplits();
  left_out.ranks[1].split.num_left_out = 1;
  EXPECT_THAT(FormatSplits(left_out),
              EndsWith("%\n1 kernels and copies do not count, as the traces lack the calls that launched "
                       "them\n"));
}

TEST(TracedJob, FiguresOfEachRankAreALineOfJson) {
  const std::vector<std::string> lines = absl::StrSplit(SplitsToJson(JobOfSplits()), '\n');
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(
      lines[0],
      R"({"rank":3,"computation_time":3.000000,"exposed_comm_time":6.000000,"exposed_memcpy_time":9.000000,)"
      R"("busy_time":12.000000,"idle_time":15.000000,"total_time":60.000000,"total_comm_time":24.000000,)"
      R"("total_memcpy_time":27.000000,"memset_time":30.000000,"idle_host_time":18.000000,)"
      R"("idle_collective_time":21.000000,"idle_launch_time":33.000000,"idle_queued_time":36.000000})");
  EXPECT_THAT(lines[1], StartsWith(R"({"rank":5,"computation_time":5.000000,)"));
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
  job.collectives[2].num_complete = job.collectives[2].num_ranks = 1;
  job.collectives[2].kind.group = "1";
  job.collectives[2].message_bytes = 5e3;
  job.collectives[2].bus_bytes = NAN;
  job.collectives[3].num_complete = job.collectives[3].transfer = job.collectives[3].wait = 0;
  const std::vector<std::string> lines = absl::StrSplit(FormatCollectives(job, 4), '\n');
  ASSERT_EQ(lines.size(), 7U) << FormatCollectives(job, 4);
  const auto words = [&](size_t line) {
    return absl::StrJoin(std::vector<std::string>(absl::StrSplit(lines[line], ' ', absl::SkipEmpty())), " ");
  };
  EXPECT_EQ(words(0), "collective ranks size count transfer algbw GB/s busbw GB/s wait longest wait last");
  EXPECT_EQ(words(1), "allreduce 2 2 MB 5 2 ms 1 2 1 ms 3 ms rank 1 (3 of 4)");
  EXPECT_EQ(words(2), "allreduce 2 2 MB 5 8 ms 0.25 0.5 4 ms 3 ms rank 1 (3 of 1)");
  EXPECT_EQ(words(3), "allreduce of group 1 1 5 kB 5 8 ms 0.000625 na - - -");
  EXPECT_EQ(words(4), "allreduce 2 2 MB 5 - na na - - -");
  EXPECT_EQ(lines[5], "and 2 more");
  EXPECT_EQ(lines[6], "");
  job.num_incomplete = job.num_unlike = 1;
  EXPECT_THAT(
      FormatCollectives(job, 3),
      EndsWith("and 3 more\n1 collectives are missing on a traced rank of their group, and count for nobody\n"
               "1 collectives have another size or type on some rank\n"));
  EXPECT_EQ(FormatCollectives(TracedJob(), 3), "no collectives in the traces\n");
}

// Holds all that is told of a kind of collectives.
std::string ToText(const CollectiveSum& sum) {
  return absl::StrJoin(
      {absl::StrCat(sum.kind.name, " ", sum.kind.group, sum.kind.group_ranks, sum.kind.dtype),
       absl::StrCat(sum.kind.in_elements, " ", sum.kind.out_elements),
       absl::StrCat(sum.count, " of ", sum.num_ranks, ", ", sum.num_complete),
       absl::StrCat(sum.transfer, " ", sum.wait, " ", sum.longest_wait),
       absl::StrCat(sum.message_bytes, " ", sum.bus_bytes),
       absl::StrCat("last ", sum.last_rank, " ", sum.num_last)},
      "; ");
}

std::string ToText(const TracedHoldUps& hold_ups) {
  std::string text =
      absl::StrCat(hold_ups.most_intervals, " ", hold_ups.most_steps, " ", hold_ups.detectable_share);
  for (const TracedHoldUp& one : hold_ups.found)
    absl::StrAppend(&text, "\n", one.rank, one.collective, one.group, " ", one.seconds_per_step);
  return text;
}

// Draws what three or four ranks tell of the same steps: two kinds of collectives in each of two or three
// groups, of which one may be unknown, and one rank may share only broadcasts with the others.
std::vector<TraceSummary> DrawTraces(std::mt19937_64& random) {
  const auto draw = [&](int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  };
  std::vector<TraceSummary> traces(static_cast<size_t>(3 + draw(2)));
  const int64_t num_steps = draw(9) == 0 ? 1 : 12 * draw(3), late = draw(3) * 5 * kMillisecond,
                num_groups = 2 + draw(2);
  const int64_t first_size = draw(4);
  const bool is_alone = draw(4) == 0, is_unknown = draw(4) == 0;
  std::vector<int64_t> ahead;
  for (size_t i = 0; i < traces.size(); ++i) {
    TraceSummary& trace = traces[i];
    trace.rank = static_cast<int>(7 - 2 * i);
    trace.num_steps = num_steps;
    trace.last_time = 2000 * kMillisecond;
    trace.split.total = (1000 + draw(500)) * kMillisecond;
    trace.split.exposed_communication = (500 + draw(500)) * kMillisecond;
    ahead.push_back(draw(2) * 3 * kMillisecond);
    for (int64_t group = 0; group < num_groups; ++group) {
      for (const char* const name : {"allreduce", "broadcast"}) {
        Profile::CollectiveKind& kind = trace.kinds.emplace_back();
        kind.name = name;
        kind.group = is_unknown && group == 0 ? "" : absl::StrCat(group);
        const bool is_apart = is_alone && i == 1 && kind.name == "allreduce";
        kind.group_ranks = is_apart ? "[1]" : draw(2) == 0 ? "[3, 5, 7]" : "[3,5,7]";
        kind.in_elements = kind.out_elements = 1000 + draw(40) / 39;
        kind.group_size = static_cast<int>(2 + (first_size + group) % 4);
        kind.dtype = "float32";
      }
    }
  }
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t which = draw(2 * num_groups), begin = 30 * i * kMillisecond;
    for (size_t trace = 0; trace < traces.size(); ++trace) {
      if (trace < static_cast<size_t>(which / 4) || draw(60) == 0) continue;
      const int64_t start = begin + (trace == 1 ? late : 0) + draw(kMillisecond) + ahead[trace];
      const int64_t end = begin + 6 * kMillisecond + 100'000 * draw(6) + ahead[trace];
      traces[trace].collectives.push_back(
          {static_cast<uint32_t>(which), i, num_steps > 0 ? i * num_steps / 60 : 0, start, end});
    }
  }
  return traces;
}

TEST(TracedJob, SumsAndHoldUpsAreThoseOfTheDefinition) {
  std::mt19937_64 random(1);
  int num_named = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const std::vector<TraceSummary> traces = DrawTraces(random);
    const TracedJob job = DescribeJob(traces);
    const std::vector<Collective> collectives = MatchCollectives(traces);
    const std::vector<ClockOffset> clocks = AlignClocks(traces, collectives);
    const auto group_of = [](const Profile::CollectiveKind& kind) {
      return kind.group + absl::StrReplaceAll(kind.group_ranks, {{" ", ""}});
    };
    std::map<std::string, size_t> ranks_of;
    for (const Collective& one : collectives)
      ranks_of[group_of(*one.kind)] = std::max(ranks_of[group_of(*one.kind)], one.parts.size());
    std::map<std::string, CollectiveSum> sums;
    std::map<std::string, std::map<int, int64_t>> last_of;
    HoldUpFinder finder;
    int64_t num_matched = 0, num_incomplete = 0, num_unlike = 0, num_partly_traced = 0;
    for (const Collective& one : collectives) {
      const size_t expected = ranks_of[group_of(*one.kind)];
      const std::string key =
          absl::StrCat(group_of(*one.kind), one.kind->name, one.kind->in_elements, one.kind->out_elements);
      CollectiveSum& sum = sums[key];
      sum.kind = *one.kind;
      ++sum.count;
      sum.num_ranks = static_cast<int64_t>(expected);
      num_matched += expected >= 2;
      num_unlike += !one.same_message;
      num_incomplete += one.parts.size() < expected;
      if (one.parts.size() < expected) continue;
      std::vector<std::pair<int64_t, int>> came;  // when, and which rank
      int64_t end = INT64_MIN, waited = 0;
      bool is_known = true;
      std::vector<int> ranks;
      for (const auto& [trace, start, left] : one.parts) {
        came.emplace_back(OnFirstClock(traces[trace], clocks[trace], start), traces[trace].rank);
        end = std::max(end, OnFirstClock(traces[trace], clocks[trace], left));
        is_known &= clocks[trace].is_known;
        ranks.push_back(traces[trace].rank);
      }
      std::sort(came.begin(), came.end());
      for (const auto& [when, rank] : came) waited += came.back().first - when;
      ++sum.num_complete;
      sum.transfer += std::max<int64_t>(0, end - came.back().first);
      sum.wait += waited / static_cast<int64_t>(came.size());
      sum.longest_wait = std::max(sum.longest_wait, came.back().first - came[0].first);
      ++last_of[key][came.back().second];
      const bool all_are_traced = one.kind->group_size <= static_cast<int>(came.size());
      num_partly_traced += !all_are_traced;
      if (is_known && all_are_traced && came.size() >= 2 && !one.kind->group.empty())
        finder.Add({one.kind->name, one.kind->group_name(), group_of(*one.kind)}, one.step, ranks,
                   came.back().second, came[came.size() - 2].first, came.back().first);
    }
    std::multiset<std::string> expected, found;
    for (auto& [key, sum] : sums) {
      for (const auto& [rank, count] : last_of[key]) {
        if (count <= sum.num_last) continue;
        sum.last_rank = rank;
        sum.num_last = count;
      }
      const OpCost cost = kernels::CostOfCollective(sum.kind);
      sum.message_bytes = *cost.message_bytes;
      sum.bus_bytes = *cost.bus_bytes;
      expected.insert(ToText(sum));
    }
    for (const CollectiveSum& sum : job.collectives) found.insert(ToText(sum));
    EXPECT_EQ(found, expected) << trial;
    EXPECT_TRUE(std::is_sorted(
        job.collectives.begin(), job.collectives.end(),
        [](const auto& a, const auto& b) { return a.transfer + a.wait > b.transfer + b.wait; }));
    EXPECT_EQ(std::tie(job.num_matched, job.num_incomplete, job.num_unlike, job.num_partly_traced),
              std::tie(num_matched, num_incomplete, num_unlike, num_partly_traced));
    HoldUpOptions options;
    int64_t num_steps = 0;
    double work = 0;
    for (size_t i = 0; i < traces.size(); ++i) {
      EXPECT_EQ(job.ranks[i].rank, traces[i].rank);
      if (!clocks[i].is_known) continue;
      const TimeSplit& split = traces[i].split;
      num_steps = std::max(num_steps, traces[i].num_steps);
      options.watched_seconds = std::max(options.watched_seconds, 1e-9 * static_cast<double>(split.total));
      work = std::max(work, 1e-9 * static_cast<double>(split.total - split.exposed_communication));
      options.clock_error_seconds =
          std::max(options.clock_error_seconds, 1e-9 * static_cast<double>(clocks[i].error_bound));
    }
    options.has_steps = num_steps > 0;
    const double parts = num_steps > 0 ? static_cast<double>(num_steps) : 1;
    options.step_seconds = options.watched_seconds / parts;
    options.work_seconds = work / parts;
    EXPECT_EQ(job.has_steps, options.has_steps);
    EXPECT_EQ(ToText(job.hold_ups), ToText(finder.Find(options))) << trial;
    num_named += job.hold_ups.found.empty() ? 0 : 1;
  }
  EXPECT_GT(num_named, 30);
}

// Steps have the same numbers in both windows, as in those of two profilers.
TEST(TracedJob, WindowsOfARankAreTakenTogether) {
  for (const bool has_steps : {true, false}) {
    SimulatedJob simulated;
    simulated.num_hosts = 2;
    simulated.num_steps = 8;
    simulated.has_steps = has_steps;
    simulated.slow_rank = 1;
    simulated.slowdown = 0.5;
    const std::vector<Profile> windows[] = {SimulateTraces(simulated, 1), SimulateTraces(simulated, 2)};
    std::vector<TraceSummary> traces;
    for (int rank = 0; rank < simulated.num_ranks; ++rank) {
      for (const int window : {0, 1}) {
        TraceSummary& trace = traces.emplace_back(SummarizeTrace({rank, &windows[window][rank]}));
        for (TraceSummary::Part& part : trace.collectives) {
          part.sequence_number = 1000 * window + (&part - trace.collectives.data());
          part.start += window * 3600'000 * kMillisecond;
          part.end += window * 3600'000 * kMillisecond;
        }
        trace.first_time += window * 3600'000 * kMillisecond;
        trace.last_time += window * 3600'000 * kMillisecond;
      }
    }
    const TracedJob job = DescribeJob(traces);
    EXPECT_EQ(job.hold_ups.most_steps, 16);
    EXPECT_EQ(job.hold_ups.most_intervals, 128);
    ASSERT_EQ(job.hold_ups.found.size(), 1U) << FormatHoldUps(job);
    EXPECT_EQ(job.hold_ups.found[0].rank, 1);
    EXPECT_NEAR(job.hold_ups.found[0].share_of_step, 0.3, 0.05);
    const std::vector<TraceSummary> of_rank(traces.begin(), traces.begin() + 2);
    EXPECT_EQ(AnswerHoldUps(DescribeJob(of_rank)).finding(), Answer::NOT_ASKED);
  }
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

}  // namespace
}  // namespace ott::waiting
