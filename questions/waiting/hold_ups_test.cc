#include "ott/questions/waiting/hold_ups.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/distributions.h"
#include "ott/core/statistics/mean_difference.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/statistics/policy.h"

namespace ott::waiting {
namespace {

// Describes a collective to which all came.
struct Met {
  int64_t step = 0;
  int last_rank = 0;
  int64_t next_to_last = 0;
  int64_t last = 0;
};

struct KindForTest {
  HoldUpFinder::KindName name;
  std::vector<int> ranks;
  std::vector<Met> met;
};

double MeanOf(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double StandardErrorOf(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += std::pow(value - MeanOf(values), 2);
  return std::sqrt(squares / static_cast<double>(values.size() - 1) / static_cast<double>(values.size()));
}

// Returns for how long all waited for the rank, at any of the first so many.
int64_t WaitedFor(int rank, const std::vector<Met>& met, int64_t count) {
  std::vector<std::pair<int64_t, int64_t>> waits;
  for (int64_t i = 0; i < count; ++i) {
    const Met& one = met[static_cast<size_t>(i)];
    if (one.last_rank == rank) waits.emplace_back(one.next_to_last, one.last);
  }
  std::sort(waits.begin(), waits.end());
  int64_t sum = 0, until = std::numeric_limits<int64_t>::min();
  for (const auto& [begin, end] : waits) {
    if (end > until) sum += end - std::max(begin, until);
    until = std::max(until, end);
  }
  return sum;
}

// Applies the rule of hold_ups.h once more: to the costs of a rank, step by step, or of the trace, part by
// part.
TracedHoldUps ByDefinition(const std::vector<KindForTest>& kinds, const HoldUpOptions& options) {
  TracedHoldUps expected;
  expected.detectable_share = std::numeric_limits<double>::infinity();
  double hidden = 0;
  for (const KindForTest& kind : kinds) {
    const auto num_met = static_cast<int64_t>(kind.met.size());
    int64_t num_apart = 0;
    const auto of_others = static_cast<double>(kind.ranks.size() - 1);
    std::map<int, std::map<int64_t, double>> costs_of;  // by rank, by step or part
    std::map<int, double> late_by;                      // by rank, in sum
    for (int64_t i = 0; i < num_met && (options.has_steps || num_met >= 32); ++i) {
      const Met& met = kind.met[static_cast<size_t>(i)];
      const int64_t waited =
          WaitedFor(met.last_rank, kind.met, i + 1) - WaitedFor(met.last_rank, kind.met, i);
      num_apart += waited == met.last - met.next_to_last;
      late_by[met.last_rank] += 1e-9 * static_cast<double>(waited);
      for (const int rank : kind.ranks) {
        costs_of[rank][options.has_steps ? met.step : 16 * i / num_met] +=
            1e-9 * static_cast<double>(waited) * (met.last_rank == rank ? 1 : -1 / of_others);
      }
    }
    const auto num_steps = costs_of.empty() ? 0 : static_cast<int64_t>(costs_of.begin()->second.size());
    expected.most_intervals = std::max(expected.most_intervals, num_met);
    expected.most_steps = std::max(expected.most_steps, num_steps);
    if (num_steps < 10 || of_others < 1) continue;
    const double parts = options.has_steps ? 1 : 16;
    const double per_step = parts * static_cast<double>(num_apart) / static_cast<double>(num_steps);
    const double least = std::max(0.02 * options.step_seconds, 2 * options.clock_error_seconds * per_step);
    const double spread = ExpectedSpread({options.work_seconds, 0, options.watched_seconds});
    const double later = -NormalQuantile((of_others - 0.375) / (of_others + 0.25));
    const double error = kHoldUpError / static_cast<double>(kinds.size()) / (of_others + 1);
    double detectable = std::numeric_limits<double>::infinity();
    TracedHoldUp worst;
    for (const auto& [rank, by_step] : costs_of) {
      std::vector<double> costs, pairs;
      for (const auto& [step, cost] : by_step) costs.push_back(parts * cost);
      for (size_t i = 1; i < costs.size(); i += 2) pairs.push_back((costs[i - 1] + costs[i]) / 2);
      const bool by_pairs = costs.size() >= 20 && StandardErrorOf(pairs) > StandardErrorOf(costs);
      const std::vector<double>& samples = by_pairs ? pairs : costs;
      const Estimate estimate = WithExpectedSpread(
          {MeanOf(costs), StandardErrorOf(samples), static_cast<double>(samples.size() - 1)},
          std::hypot(spread * std::sqrt(1 + 1 / (1 + 0.77 * std::log(of_others))), 2e-6 * per_step));
      const double needed =
          StudentTQuantile(1 - error, estimate.degrees_of_freedom) * estimate.standard_error + later * spread;
      const double of_rank = std::max(least, needed + 0.84 * estimate.standard_error);
      detectable = std::min(detectable, of_rank);
      hidden = std::max(hidden, std::min(of_rank, late_by[rank] * parts / static_cast<double>(num_steps)));
      if (MeanOf(costs) > std::max({least, needed, worst.seconds_per_step}))
        worst = {rank, kind.name.collective, kind.name.group, MeanOf(costs),
                 MeanOf(costs) / options.step_seconds};
    }
    if (worst.rank >= 0) expected.found.push_back(worst);
    expected.detectable_share = std::min(expected.detectable_share, detectable / options.step_seconds);
  }
  expected.detectable_share = std::max(expected.detectable_share, hidden / options.step_seconds);
  std::sort(expected.found.begin(), expected.found.end(),
            [](const auto& a, const auto& b) { return a.seconds_per_step > b.seconds_per_step; });
  return expected;
}

TEST(HoldUpFinder, FindsWhatTheDefinitionFinds) {
  std::mt19937_64 random(1);
  const auto draw = [&](const std::vector<double>& values) { return values[random() % values.size()]; };
  int num_found = 0, num_of_several = 0, num_detectable = 0;
  for (int trial = 0; trial < 600; ++trial) {
    HoldUpOptions options;
    options.has_steps = random() % 2 == 0;
    options.step_seconds = draw({0.01, 0.1, 0.5});
    options.work_seconds = draw({0, 0.2, 0.9}) * options.step_seconds;
    options.watched_seconds = draw({0.1, 100});
    options.clock_error_seconds = draw({0, 1e-5, 1e-3});
    std::vector<KindForTest> kinds(1 + random() % 3);
    HoldUpFinder finder;
    for (size_t i = 0; i < kinds.size(); ++i) {
      KindForTest& kind = kinds[i];
      kind.name = {"sum" + std::to_string(i), i == 1 ? "dp" : "", std::to_string(i)};
      for (size_t rank = 0; rank < 1 + random() % 5; ++rank) kind.ranks.push_back(static_cast<int>(2 * rank));
      const auto num_steps = static_cast<int64_t>(draw({9, 10, 19, 20, 33, 60}));
      // In each step the others wait for the one, or in turn for the one and the other.
      const size_t slow[] = {random() % kind.ranks.size(), random() % kind.ranks.size()};
      const size_t num_slow = 1 + random() % 3 / 2;
      const double late = draw({0, 1e5, 1e6, 1e7}), noise = draw({0, 1e5, 3e6});
      // Collectives overlap if what comes between them is shorter than what the last one is late by.
      const double between = draw({1e5, 1e9});
      double now = 0;
      int64_t before = std::numeric_limits<int64_t>::min();
      for (int64_t step = 0; step < num_steps; ++step) {
        for (size_t again = 0; again < num_slow; ++again) {
          const bool is_slow = random() % 8 != 0;
          const int last = kind.ranks[is_slow ? slow[again] : random() % kind.ranks.size()];
          const double after_next =
              late + noise * static_cast<double>(step % 4 + static_cast<int64_t>(random() % 3));
          now += between + static_cast<double>(random() % 997);
          const auto came = static_cast<int64_t>(now);
          before = std::max(before, came - static_cast<int64_t>(after_next));
          // All may have come to this one before they have to one that began earlier.
          const int64_t end =
              trial % 4 == 0 && random() % 3 == 0 ? std::min<int64_t>(came, before + 50'000) : came;
          kind.met.push_back({step, last, before, end});
          finder.Add(kind.name, step, kind.ranks, last, before, end);
        }
      }
    }
    const TracedHoldUps expected = ByDefinition(kinds, options), found = finder.Find(options);
    EXPECT_EQ(found.most_intervals, expected.most_intervals);
    EXPECT_EQ(found.most_steps, expected.most_steps);
    if (std::isinf(expected.detectable_share)) {
      EXPECT_TRUE(std::isinf(found.detectable_share));
    } else {
      EXPECT_NEAR(found.detectable_share / expected.detectable_share, 1, 1e-6) << trial;
    }
    ASSERT_EQ(found.found.size(), expected.found.size()) << trial;
    for (size_t i = 0; i < found.found.size(); ++i) {
      const TracedHoldUp &a = found.found[i], &b = expected.found[i];
      EXPECT_EQ(std::tie(a.rank, a.collective, a.group), std::tie(b.rank, b.collective, b.group)) << trial;
      EXPECT_NEAR(a.seconds_per_step, b.seconds_per_step, 1e-12);
      EXPECT_NEAR(a.share_of_step, b.share_of_step, 1e-9);
    }
    EXPECT_EQ(found.CanTell(), !expected.found.empty() || expected.detectable_share <= 0.5);
    num_found += found.found.empty() ? 0 : 1;
    num_of_several += found.found.size() > 1 ? 1 : 0;
    num_detectable += found.found.empty() && found.CanTell() ? 1 : 0;
  }
  EXPECT_GT(num_found, 50);
  EXPECT_GT(num_of_several, 10);
  EXPECT_GT(num_detectable, 50);
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
                   static_cast<int>(random() % kRanks), i * 1'000'000, (i + 1) * 1'000'000);
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

}  // namespace
}  // namespace ott::waiting
