#include "ott/questions/slow/slow_ranks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ott/core/statistics/policy.h"
#include "ott/dist/stats/rank_times.h"

namespace ott {
namespace {

constexpr size_t kMaxSlowMeasurements = 8;

// Returns true if a suspect's excess is sure by its own times, and of a size that is worth a name.
bool IsSure(const Excess& excess, double level, double min_seconds) {
  return excess.seconds >= std::max(kMinExcess * excess.of_others, min_seconds) && excess.PValue() <= level;
}

// Returns true if it is there with what others took of the CPU, too. That makes times noisy, so it need not
// be sure; but if only the others' own times sank, it is not there.
bool IsThereWithTaken(const RankTimes::Suspect& suspect) {
  return suspect.with_taken.seconds >= kMinShareWithTaken * suspect.excess.seconds;
}

bool StandsOut(const RankTimes::Suspect& suspect, double level, double min_seconds) {
  return IsSure(suspect.excess, level, min_seconds) && IsThereWithTaken(suspect);
}

// Returns the excess that would have stood out in four of five runs. One that is sure, but not there with
// what others took, is not excluded.
double Detectable(const RankTimes::Suspect& suspect, double level, double min_seconds) {
  const Excess& excess = suspect.excess;
  const double not_there =
      kPowerQuantile * suspect.with_taken.within_run.standard_error / (1 - kMinShareWithTaken);
  const double seconds =
      std::max({excess.Detectable(level), kMinExcess * excess.of_others, min_seconds, not_there});
  return IsSure(excess, level, min_seconds) ? seconds + excess.seconds : seconds;
}

// Returns the excess as a share of the others' median; 0 if that is nothing.
double Relative(double seconds, const Excess& excess) {
  return excess.of_others > 0 ? seconds / excess.of_others : 0;
}

// The verdict's slower_by, slower_by_low and slower_by_high, and in which iterations that is.
template <typename Verdict>
void SetSlowerBy(const RankTimes::Suspect& suspect, Verdict& verdict) {
  const Excess& excess = suspect.excess;
  if (excess.begin > 0) verdict.set_since_iteration(suspect.entry.IterationAt(excess.begin));
  if (excess.end < 1) verdict.set_until_iteration(suspect.entry.IterationAt(excess.end));
  const Interval interval = excess.within_run.IntervalAt(kIntervalError);
  verdict.set_slower_by(Relative(excess.seconds, excess));
  verdict.set_slower_by_low(Relative(interval.low, excess));
  verdict.set_slower_by_high(Relative(interval.high, excess));
}

template <typename Times>
int64_t NumCompared(const Times& times_of_groups) {
  int64_t count = 0;
  for (const auto& [unused_group, times] : times_of_groups) {
    if (times.num_ranks() > 1) count += times.num_ranks();
  }
  return count;
}

// Names the shortest of measurements inside of each other that has most of the excess; or the outermost ones,
// if none has half of it but they have together.
void LocateExcess(const ClusterSummary& summary, const std::string& group, const Excess& excess_of_work,
                  Straggler& straggler) {
  struct Part {
    const ClusterSummary::Row* row;
    double excess = 0;
    double seconds = 0;
  };
  std::vector<Part> parts;
  std::vector<Part> outermost;
  double largest = 0;
  double explained = 0;
  double hidden = 0;  // at most
  for (const ClusterSummary::Row& measurement : summary.measurements()) {
    const auto times = measurement.times.find(group);
    if (times == measurement.times.end()) continue;
    const std::optional<double> excess = times->second.ExcessOf(straggler.rank());
    if (!excess) {
      const bool is_measured = measurement.outermost && measurement.ranks.Contains(straggler.rank());
      if (is_measured) hidden += times->second.MostExcessOfOthers();
      continue;
    }
    largest = std::max(largest, *excess);
    const std::optional<RankTimes::Suspect> suspect = times->second.Of(straggler.rank());
    parts.push_back({&measurement, *excess, suspect ? suspect->entry.time.time.seconds : *excess});
    if (!measurement.outermost) continue;
    explained += *excess;
    outermost.push_back(parts.back());
  }
  const double all = excess_of_work.seconds_of_run;
  // Measurements are known by their means over the run. If the rank is as much faster in the rest of the run,
  // they do not show what it takes longer.
  if (2 * all < excess_of_work.seconds * (excess_of_work.end - excess_of_work.begin)) {
    straggler.set_place_is_unknown(true);
    return;
  }
  // If only a part of the run has the excess, scales to what is there.
  const double scale = excess_of_work.seconds / all;
  if (2 * largest >= all) {
    double shortest = 0;
    for (const Part& part : parts) {
      if (part.excess < kMostOfExcess * largest) continue;
      if (!straggler.measurement().empty() && part.seconds >= shortest) continue;
      shortest = part.seconds;
      straggler.set_measurement(part.row->name);
      straggler.set_measurement_excess_seconds(scale * part.excess);
    }
    return;
  }
  if (2 * explained < all) {
    if (2 * (explained + hidden) >= all) {
      straggler.set_place_is_unknown(true);
      return;
    }
    straggler.set_measurement_excess_seconds(scale * (all - std::max(explained, 0.0)));
    return;
  }
  std::stable_sort(outermost.begin(), outermost.end(),
                   [](const Part& a, const Part& b) { return a.excess > b.excess; });
  if (outermost.size() > kMaxSlowMeasurements) outermost.resize(kMaxSlowMeasurements);
  for (const Part& part : outermost) {
    if (part.excess < kMinExcess * all) continue;
    StragglerPart& out = *straggler.add_parts();
    out.set_measurement(part.row->name);
    out.set_excess_seconds(scale * part.excess);
  }
}

bool HasCollectives(const ClusterStats& stats) {
  return std::any_of(stats.measurements().begin(), stats.measurements().end(),
                     [](const ClusterMeasurement& measurement) { return measurement.collective(); });
}

void FindStraggler(const ClusterSummary& summary, double error, ClusterStats& stats) {
  const double level = error / static_cast<double>(NumCompared(summary.work().times));
  const double min_seconds = kMinWorkShare * summary.iteration().over_ranks.mean();
  int64_t num_known = 0;
  std::optional<RankTimes::Suspect> most;
  std::string group_of_most;
  std::optional<double> detectable;
  for (const auto& [group, times] : summary.work().times) {
    num_known += times.num_ranks();
    for (const RankTimes::Suspect& suspect : times.Suspects()) {
      detectable =
          std::max(detectable.value_or(0), Relative(Detectable(suspect, level, min_seconds), suspect.excess));
      if (!StandsOut(suspect, level, min_seconds)) continue;
      if (most && most->excess.seconds_of_run >= suspect.excess.seconds_of_run) continue;
      most = suspect;
      group_of_most = group;
    }
  }
  if (!most) {
    // If no waiting is known, it counts as work, and all work as long. Ranks of which too little was measured
    // may be slow.
    if (detectable && num_known == stats.num_ranks() && HasCollectives(stats)) {
      stats.set_detectable(*detectable);
    }
    return;
  }
  Straggler& straggler = *stats.mutable_straggler();
  straggler.set_rank(most->entry.rank);
  straggler.set_work_seconds(most->excess.of_others + most->excess.seconds);
  straggler.set_median_work_seconds(most->excess.of_others);
  SetSlowerBy(*most, straggler);
  if (!most->excess.is_of_part() &&
      std::abs(most->mean_excess - most->excess.seconds) > kOffInMean * most->excess.seconds) {
    straggler.set_mean_excess_seconds(most->mean_excess);
  }
  LocateExcess(summary, group_of_most, most->excess, straggler);
}

// Leaves out modules that are slow only by what is slow inside of them.
void RemoveOuter(const ClusterSummary::Rows& rows, std::vector<SlowMeasurement>* found) {
  std::unordered_map<std::string_view, std::string_view> outer_of;
  for (const ClusterSummary::Row& row : rows) {
    if (row.sampled) outer_of[row.name] = row.outer;
  }
  const auto is_inside = [&outer_of](std::string_view inner, const std::string& outer) {
    // Names of several ranks may lie inside of each other.
    for (size_t depth = 0; depth < outer_of.size(); ++depth) {
      const auto next = outer_of.find(inner);
      if (next == outer_of.end()) return false;
      inner = next->second;
      if (inner == outer) return outer_of.count(outer) > 0;
    }
    return false;
  };
  const auto is_explained = [&, all = *found](const SlowMeasurement& outer) {
    return std::any_of(all.begin(), all.end(), [&](const SlowMeasurement& inner) {
      return inner.rank() == outer.rank() && is_inside(inner.name(), outer.name()) &&
             inner.share_of_iteration() >= kMostOfExcess * outer.share_of_iteration();
    });
  };
  found->erase(std::remove_if(found->begin(), found->end(), is_explained), found->end());
}

void FindSlowMeasurements(const ClusterSummary& summary, double error, ClusterStats& stats) {
  int64_t num_compared = 0;
  for (const ClusterSummary::Row& measurement : summary.measurements())
    num_compared += NumCompared(measurement.times);
  const double level = error / static_cast<double>(num_compared);
  const double iteration = summary.iteration().over_ranks.mean();
  const double of_straggler = stats.straggler().work_seconds() - stats.straggler().median_work_seconds();
  std::vector<SlowMeasurement> found;
  for (const ClusterSummary::Row& measurement : summary.measurements()) {
    const double min_share = measurement.sampled ? kMinSampledExcess : kMinMeasurementShare;
    const double min_seconds = std::max(min_share * iteration, kMinShareOfStraggler * of_straggler);
    for (const auto& [unused_group, times] : measurement.times) {
      // A smaller excess may be surer, and hides no larger one.
      std::optional<RankTimes::Suspect> suspect;
      for (const RankTimes::Suspect& other : times.Suspects()) {
        if (!StandsOut(other, level, min_seconds)) continue;
        if (!suspect || other.excess.seconds_of_run > suspect->excess.seconds_of_run) suspect = other;
      }
      if (!suspect) continue;
      // The verdict on the work says it already.
      if (stats.straggler().measurement() == measurement.name &&
          stats.straggler().rank() == suspect->entry.rank) {
        continue;
      }
      SlowMeasurement& slow = found.emplace_back();
      slow.set_name(measurement.name);
      slow.set_rank(suspect->entry.rank);
      slow.set_seconds(suspect->excess.of_others + suspect->excess.seconds);
      slow.set_median_seconds(suspect->excess.of_others);
      SetSlowerBy(*suspect, slow);
      slow.set_share_of_iteration(iteration > 0 ? suspect->excess.seconds / iteration : 0);
    }
  }
  RemoveOuter(summary.measurements(), &found);
  std::stable_sort(found.begin(), found.end(), [](const SlowMeasurement& a, const SlowMeasurement& b) {
    return a.share_of_iteration() > b.share_of_iteration();
  });
  if (found.size() > kMaxSlowMeasurements) found.resize(kMaxSlowMeasurements);
  for (SlowMeasurement& slow : found) *stats.add_slow_measurements() = std::move(slow);
}

}  // namespace

ClusterStats JudgeRanks(const ClusterSummary& summary, int world_size, double error_share) {
  ClusterStats stats = summary.Finish(world_size);
  FindStraggler(summary, kWorkError * error_share, stats);
  FindSlowMeasurements(summary, kMeasurementError * error_share, stats);
  return stats;
}

}  // namespace ott
