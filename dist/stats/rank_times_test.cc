#include "ott/dist/stats/rank_times.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dist/stats/merge_for_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/location.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

RankTimes::Entry Draw(int rank, Random& random) {
  RankTimes::Entry entry;
  entry.rank = rank;
  entry.time.time = {
      1 + 0.25 * random.Below(6), 0.01 * (1 + random.Below(3)), 1.0 + random.Below(9), 100, 5, 16};
  // Some take longer in the second half alone.
  const double later = random.Below(2);
  for (int i = 0; i < 16; ++i) {
    entry.time.time.blocks[i] =
        static_cast<float>(entry.time.time.seconds + 0.01 * random.Below(9) + (i < 8 ? 0 : later));
  }
  entry.time.cpu = {0.5 * random.Below(3), 0.125 * random.Below(3), 1.0 + random.Below(9)};
  entry.mean_seconds = 1.0 + random.Below(6);
  entry.first_iteration = random.Below(9);
  entry.num_iterations = 100 + random.Below(9);
  if (random.OnceIn(2)) {
    entry.with_taken = entry.time.time;
    entry.with_taken->seconds += 1;
  }
  return entry;
}

std::vector<int> RanksOf(const internal::RankTimes& times, size_t begin, size_t end) {
  std::vector<int> ranks;
  for (size_t i = begin; i < std::min<size_t>(end, times.times_size()); ++i) {
    ranks.push_back(times.times(static_cast<int>(i)).rank());
  }
  return ranks;
}

TEST(RankTimes, ComparesEachRankThatIsKeptWithTheOthersOfTheSample) {
  std::set<std::vector<int>> samples_of_20;
  for (uint32_t trial = 0; trial < 60; ++trial) {
    Random random(trial);
    const int num_ranks = trial < 10 ? 20 : 1 + static_cast<int>(trial % 20);
    std::vector<RankTimes> each;
    std::vector<RankTimes::Entry> longest;
    for (int rank = 0; rank < num_ranks; ++rank) {
      longest.push_back(Draw(rank, random));
      each.emplace_back(longest.back());
    }
    each.emplace_back();
    const RankTimes times = MergeInAnyOrder(std::move(each), random);
    EXPECT_EQ(times.num_ranks(), num_ranks);
    const internal::RankTimes proto = times.ToProto();
    const size_t num_sampled = std::min(num_ranks, 8);
    const std::vector<int> sampled = RanksOf(proto, 0, num_sampled);
    const std::vector<int> longest_kept = RanksOf(proto, num_sampled, 99);
    if (num_ranks == 20) samples_of_20.insert(sampled);
    std::stable_sort(longest.begin(), longest.end(),
                     [](const RankTimes::Entry& a, const RankTimes::Entry& b) {
                       return a.time.time.seconds > b.time.time.seconds;
                     });
    if (num_ranks <= 8) {
      EXPECT_THAT(longest_kept, ElementsAre());
    } else {
      EXPECT_THAT(longest_kept, ElementsAre(longest[0].rank, longest[1].rank));
    }
    EXPECT_FALSE(times.Of(num_ranks).has_value());
    EXPECT_EQ(times.MostExcessOfOthers(),
              num_ranks <= 8 ? 0 : std::max(0.0, *times.ExcessOf(longest_kept.back())));
    if (num_ranks == 1) {
      EXPECT_FALSE(!times.Suspects().empty() || times.Of(0).has_value());
      EXPECT_EQ(times.ExcessOf(0), static_cast<float>(longest[0].time.time.seconds));
      EXPECT_FALSE(times.ExcessOf(1).has_value());
      continue;
    }
    std::vector<int> suspects;
    for (const RankTimes::Suspect& suspect : times.Suspects()) {
      suspects.push_back(suspect.entry.rank);
      EXPECT_EQ(suspect.excess.PValue(), times.Of(suspect.entry.rank)->excess.PValue());
    }
    EXPECT_EQ(suspects, num_ranks <= 8 ? sampled : longest_kept);
    for (const RankTimes::Entry& drawn : longest) {
      const std::optional<RankTimes::Suspect> suspect = times.Of(drawn.rank);
      const bool is_sampled = std::count(sampled.begin(), sampled.end(), drawn.rank) > 0;
      const bool is_longest = std::count(longest_kept.begin(), longest_kept.end(), drawn.rank) > 0;
      ASSERT_EQ(suspect.has_value(), is_sampled || is_longest);
      EXPECT_EQ(times.ExcessOf(drawn.rank).has_value(), suspect.has_value());
      if (!suspect) continue;
      const RankTimes::Entry& entry = suspect->entry;
      EXPECT_EQ(entry.rank, drawn.rank);
      EXPECT_EQ(entry.IterationAt(0.25), entry.first_iteration + std::llround(0.25 * drawn.num_iterations));
      EXPECT_EQ(entry.with_taken.has_value(), drawn.with_taken.has_value());
      std::vector<ProcessTime> others, others_with_taken;
      std::vector<double> means;
      const auto with_taken = [](const RankTimes::Entry& of) {
        return ProcessTime{of.with_taken ? *of.with_taken : of.time.time, of.time.cpu};
      };
      for (const int other : sampled) {
        if (other == entry.rank) continue;
        const RankTimes::Entry of = times.Of(other)->entry;
        others.push_back(of.time);
        others_with_taken.push_back(with_taken(of));
        means.push_back(of.mean_seconds);
      }
      const Excess excess = ExcessOver(others, entry.time);
      EXPECT_EQ(suspect->excess.PValue(), excess.PValue());
      EXPECT_EQ(times.ExcessOf(entry.rank), excess.seconds_of_run);
      EXPECT_EQ(suspect->with_taken.PValue(), ExcessOver(others_with_taken, with_taken(entry)).PValue());
      EXPECT_DOUBLE_EQ(suspect->mean_excess, entry.mean_seconds - Median(means));
    }
  }
  EXPECT_EQ(samples_of_20.size(), 1) << "the sample has nothing to do with the times";
}

// All that a run of many ranks merges must choose the same ones: those that come first by MurmurHash3's
// finalizer of the rank and 0x9e3779b9.
TEST(RankTimes, TheSampleIsByAHashOfTheRanks) {
  Random random(1);
  RankTimes times;
  for (int rank = 0; rank < 1000; ++rank) times.Merge(RankTimes(Draw(rank, random)));
  EXPECT_THAT(RanksOf(times.ToProto(), 0, 8), ElementsAre(174, 583, 133, 520, 509, 211, 890, 772));
}

TEST(RankTimes, WhatIsNoTimeIsRefusedAndTheRankNamed) {
  Random random(2);
  RankTimes times;
  for (int rank = 0; rank < 9; ++rank) times.Merge(RankTimes(Draw(rank, random)));
  const internal::RankTimes whole = times.ToProto();
  ASSERT_TRUE(RankTimes::FromProto(whole).ok());
  const std::vector<void (*)(internal::RankTime&)> damages = {
      [](internal::RankTime& time) { time.set_seconds(std::numeric_limits<float>::quiet_NaN()); },
      [](internal::RankTime& time) { time.set_standard_error(-1); },
      [](internal::RankTime& time) { time.set_standard_error(std::numeric_limits<float>::quiet_NaN()); },
      [](internal::RankTime& time) { time.set_degrees_of_freedom(0); },
      [](internal::RankTime& time) { time.set_block(7, std::numeric_limits<float>::infinity()); },
      [](internal::RankTime& time) { time.set_block_iterations(0); },
      [](internal::RankTime& time) { time.set_count(39); }};
  for (size_t i = 0; i < damages.size(); ++i) {
    for (const int at : {0, 7, 8, 9}) {
      internal::RankTimes damaged = whole;
      damages[i](*damaged.mutable_times(at));
      const absl::Status status = RankTimes::FromProto(damaged).status();
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << i;
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr("rank " + std::to_string(whole.times(at).rank()) + ": "));
      damaged = whole;
      *damaged.mutable_times(at)->mutable_with_taken() = whole.times(at);
      EXPECT_TRUE(RankTimes::FromProto(damaged).ok());
      damages[i](*damaged.mutable_times(at)->mutable_with_taken());
      EXPECT_TRUE(absl::IsInvalidArgument(RankTimes::FromProto(damaged).status())) << i;
    }
  }
  internal::RankTimes few = whole;
  few.mutable_times()->DeleteSubrange(7, 3);
  EXPECT_THAT(std::string(RankTimes::FromProto(few).status().message()), HasSubstr("times of 7 ranks of 9"));
  few.set_num_ranks(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(RankTimes::FromProto(few).status()));
}

}  // namespace
}  // namespace ott
