#include "ott/questions/slow/slow_ranks.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/policy.h"
#include "ott/core/stopwatch/statistics.h"
#include "ott/core/stopwatch/stats_for_test.h"
#include "ott/dist/stats/stats_message.pb.h"
#include "ott/questions/slow/straggler_tracker.h"

namespace ott {
namespace {

constexpr int kIterationsOfJob = 40;
constexpr int kBlockIterations = 5;

Statistics InEachOf(int count, double seconds) {
  DurationStatistics statistics;
  for (int i = 0; i < count; ++i) statistics.AddSeconds(seconds);
  return statistics.ToProto();
}

// Makes ranks with any measurements, of which some take some ranks longer, in all iterations or in a half.
class AnyRanks {
 public:
  explicit AnyRanks(std::mt19937& random) : random_(random) {}

  ClusterSummary Make() {
    const int num_ranks = 2 + Below(5);
    const int slow = Below(num_ranks), also_slow = OnceIn(2) ? (slow + 1) % num_ranks : slow;
    const bool has_collective = !OnceIn(4);
    const double waiting = OnceIn(4) ? 0.2 : 0.01;
    in_half_ = Below(4);
    less_outside_ = Any({0, 0, 0.5, 1.2});
    with_taken_ = OnceIn(3);
    const bool has_iterations = !OnceIn(30);
    const double cpu_share = OnceIn(2) ? 1 : 0.05;
    const double rest = Any({0.001, 0.01});
    const double more_rest = OnceIn(2) ? 0 : Any({0.1, 1.0, 2.0}) * rest;
    const int num_groups = 1 + Below(2);
    MakeMeasurements();
    ClusterSummary summary;
    for (int rank = 0; rank < num_ranks; ++rank) {
      internal::RankReport report;
      report.set_like_work(absl::StrCat("group ", rank % num_groups));
      StopwatchStats& stats = *report.mutable_stats();
      stats.set_rank(rank);
      stats.set_num_measured_iters(kIterationsOfJob);
      stats.set_num_warmup_iters(3);
      const auto slowness = [&] { return rank == slow ? 1 : rank == also_slow ? Any({0, 0.7, 1.3}) : 0; };
      double work = rest, excess = slowness() * more_rest;
      for (const Measured& measured : measured_) {
        const double more = rank == slow || rank == also_slow ? slowness() * measured.more_of_slow
                            : OnceIn(20)                      ? measured.seconds * Any({0.1, 0.5})
                                                              : 0;
        work += measured.measurement.outermost() ? measured.seconds : 0;
        excess += measured.measurement.outermost() ? more : 0;
        if (OnceIn(12)) continue;
        Measurement& measurement = *stats.add_measurements() = measured.measurement;
        const int count = measured.measurement.sampled() ? 8 : kIterationsOfJob;
        *measurement.mutable_per_iteration() = InEachOf(count, measured.seconds + more * Any({0.5, 1, 1.5}));
        SetOwn(measured.seconds, more, measurement.mutable_own());
      }
      if (has_collective) {
        Measurement& wait = *stats.add_measurements();
        wait.set_name("wait");
        wait.set_collective(true);
        *wait.mutable_per_iteration() = InEachOf(kIterationsOfJob, waiting);
      }
      const double iteration = has_iterations ? work + waiting + excess * Any({0.5, 1, 1.5}) : 0;
      *stats.mutable_iteration() = InEachOf(kIterationsOfJob, iteration);
      OwnWorkStats& own = *stats.mutable_own_work();
      own.set_waiting_seconds(kIterationsOfJob * waiting);
      own.set_num_watched_iters(kIterationsOfJob);
      own.set_cpu_seconds(kIterationsOfJob * cpu_share * work);
      if (!OnceIn(20)) SetOwn(work, excess, own.mutable_time());
      summary.Merge(*ClusterSummary::OfRank(report));
    }
    return summary;
  }

 private:
  struct Measured {
    Measurement measurement;
    double seconds = 0;
    double more_of_slow = 0;
  };

  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint32_t>(bound)); }
  bool OnceIn(int times) { return Below(times) == 0; }
  double Any(const std::vector<double>& values) { return values[Below(static_cast<int>(values.size()))]; }

  void MakeMeasurements() {
    measured_.clear();
    const int count = OnceIn(8) ? 12 : Below(7);
    const bool is_slow_in_all = OnceIn(3), are_inside = OnceIn(2);  // of each other
    for (int i = 0; i < count; ++i) {
      Measured& measured = measured_.emplace_back();
      measured.measurement.set_name(absl::StrCat("m", i));
      measured.measurement.set_sampled(OnceIn(2));
      measured.measurement.set_outermost(OnceIn(2));
      if (OnceIn(2)) measured.measurement.set_outer(absl::StrCat("m", Below(count)));
      measured.seconds = Any({0, 1e-5, 5e-5, 1e-3, 1e-3, 1e-2});
      measured.more_of_slow = measured.seconds * Any({0, 0, 0.03, 0.06, 0.09, 0.15, 0.5, 2});
      if (!is_slow_in_all) continue;
      measured.measurement.set_outermost(!are_inside);
      measured.measurement.set_sampled(are_inside && !OnceIn(6));
      if (are_inside) measured.measurement.set_outer(absl::StrCat("m", i + 1));
      measured.seconds = 1e-3;
      measured.more_of_slow = Any({0.85e-3, 1e-3});
    }
  }

  void SetTime(double seconds, double excess, double noise, SteadyTimeStats* time) {
    time->set_standard_error(seconds * (noise > 0.1 ? noise : 0.001 * Any({1, 1, 10})));
    time->set_degrees_of_freedom(5);
    time->set_count(kIterationsOfJob);
    time->set_block_iterations(kBlockIterations);
    constexpr int kBlocks = kIterationsOfJob / kBlockIterations;
    for (int i = 0; i < kBlocks; ++i) {
      const bool has_it = in_half_ > 1 || (in_half_ == 1) == (i >= kBlocks / 2);
      const double more = has_it ? excess : -less_outside_ * excess;
      time->add_block(static_cast<float>(std::max(0.0, seconds * (1 + noise * Below(5)) + more)));
    }
    time->set_seconds(std::max(0.0, seconds + (in_half_ > 1 ? excess : (1 - less_outside_) * excess / 2)));
  }

  void SetOwn(double seconds, double excess, OwnTimeStats* own) {
    SetTime(seconds, excess, 0.002, own->mutable_all());
    if (with_taken_)
      SetTime(seconds, excess * Any({0.2, 0.5, 1}), Any({0.002, 0.05, 0.5}), own->mutable_all_with_taken());
  }

  std::mt19937& random_;
  int in_half_ = 0;          // 0: the first, 1: the last, or in all
  double less_outside_ = 0;  // of that half, as a share of the excess
  bool with_taken_ = false;
  std::vector<Measured> measured_;
};

// Applies the rules of slow_ranks.h and policy.h once more, in the plainest form.
class RanksByDefinition {
 public:
  RanksByDefinition(const ClusterSummary& summary, double error_share)
      : summary_(summary), stats_(summary.Finish(0)) {
    iteration_ = summary.iteration().over_ranks.mean();
    NameStraggler(error_share * kWorkError);
    NameMeasurements(error_share * kMeasurementError);
  }

  const ClusterStats& stats() const { return stats_; }

 private:
  using Suspect = RankTimes::Suspect;

  static int64_t Compared(const ClusterSummary::TimesOfGroups& times) {
    int64_t ranks = 0;
    for (const auto& [group, of_group] : times) ranks += of_group.num_ranks() == 1 ? 0 : of_group.num_ranks();
    return ranks;
  }

  static double ShareOfOthers(double seconds, const Excess& excess) {
    return excess.of_others > 0 ? seconds / excess.of_others : 0;
  }

  struct Rule {
    double level, least;

    bool IsSure(const Suspect& suspect) const {
      const bool is_large =
          suspect.excess.seconds >= least && suspect.excess.seconds >= 0.05 * suspect.excess.of_others;
      return is_large && suspect.excess.PValue() <= level;
    }
    bool Names(const Suspect& suspect) const {
      return IsSure(suspect) && 3 * suspect.with_taken.seconds >= suspect.excess.seconds;
    }
    double Detectable(const Suspect& suspect) const {
      double seconds = std::max(least, 0.05 * suspect.excess.of_others);
      seconds = std::max(seconds, suspect.excess.Detectable(level));
      // With what others took, a third of it has to be there.
      seconds = std::max(seconds, 0.84 * suspect.with_taken.within_run.standard_error / (1 - 1.0 / 3));
      if (IsSure(suspect)) seconds += suspect.excess.seconds;
      return ShareOfOthers(seconds, suspect.excess);
    }
  };

  template <typename Verdict>
  static void SetExcess(const Suspect& suspect, Verdict& verdict) {
    const Excess& excess = suspect.excess;
    const auto iteration = [](double share) { return 3 + std::llround(share * kIterationsOfJob); };
    verdict.set_rank(suspect.entry.rank);
    verdict.set_slower_by(ShareOfOthers(excess.seconds, excess));
    verdict.set_slower_by_low(ShareOfOthers(excess.within_run.IntervalAt(0.05).low, excess));
    verdict.set_slower_by_high(ShareOfOthers(excess.within_run.IntervalAt(0.05).high, excess));
    if (excess.begin > 0) verdict.set_since_iteration(iteration(excess.begin));
    if (excess.end < 1) verdict.set_until_iteration(iteration(excess.end));
  }

  void NameStraggler(double error) {
    const int64_t compared = Compared(summary_.work().times);
    const Rule rule = {error / static_cast<double>(compared), 0.01 * iteration_};
    std::vector<std::pair<std::string, Suspect>> named;
    std::optional<double> detectable;
    int64_t without_times = stats_.num_ranks();
    for (const auto& [group, times] : summary_.work().times) {
      without_times -= times.num_ranks();
      for (const Suspect& suspect : times.Suspects()) {
        detectable = std::max(detectable.value_or(0), rule.Detectable(suspect));
        if (rule.Names(suspect)) named.emplace_back(group, suspect);
      }
    }
    const bool any_collective = std::any_of(stats_.measurements().begin(), stats_.measurements().end(),
                                            [](const auto& row) { return row.collective(); });
    if (named.empty()) {
      if (detectable && any_collective && without_times == 0) stats_.set_detectable(*detectable);
      return;
    }
    const auto& [group, most] =
        *std::max_element(named.begin(), named.end(), [](const auto& a, const auto& b) {
          return a.second.excess.seconds_of_run < b.second.excess.seconds_of_run;
        });
    Straggler& straggler = *stats_.mutable_straggler();
    SetExcess(most, straggler);
    straggler.set_median_work_seconds(most.excess.of_others);
    straggler.set_work_seconds(most.excess.of_others + most.excess.seconds);
    const bool of_all = most.excess.begin == 0 && most.excess.end == 1;
    if (of_all && std::abs(most.mean_excess - most.excess.seconds) > 0.2 * most.excess.seconds)
      straggler.set_mean_excess_seconds(most.mean_excess);
    Locate(group, most.excess, straggler);
  }

  void Locate(const std::string& group, const Excess& work, Straggler& straggler) {
    struct Part {
      std::string name;
      double excess, seconds;
    };
    std::vector<Part> all, outermost;
    double largest = 0, explained = 0;
    for (const ClusterSummary::Row& row : summary_.measurements()) {
      if (row.times.count(group) == 0) continue;
      const RankTimes& times = row.times.at(group);
      if (!times.ExcessOf(straggler.rank())) continue;
      const double excess = *times.ExcessOf(straggler.rank());
      const std::optional<Suspect> of_rank = times.Of(straggler.rank());
      all.push_back({row.name, excess, of_rank ? of_rank->entry.time.time.seconds : excess});
      largest = std::max(largest, excess);
      if (row.outermost) outermost.push_back(all.back());
      if (row.outermost) explained += excess;
    }
    const double of_run = work.seconds_of_run, scale = work.seconds / of_run;
    if (of_run < work.seconds * (work.end - work.begin) / 2) {
      straggler.set_place_is_unknown(true);
    } else if (largest >= of_run / 2) {
      const Part* shortest = nullptr;
      for (const Part& part : all) {
        if (part.excess >= 0.8 * largest && (shortest == nullptr || part.seconds < shortest->seconds))
          shortest = &part;
      }
      straggler.set_measurement(shortest->name);
      straggler.set_measurement_excess_seconds(scale * shortest->excess);
    } else if (explained < of_run / 2) {
      straggler.set_measurement_excess_seconds(scale * (of_run - std::max(0.0, explained)));
    } else {
      std::stable_sort(outermost.begin(), outermost.end(),
                       [](const Part& a, const Part& b) { return a.excess > b.excess; });
      for (size_t i = 0; i < std::min<size_t>(8, outermost.size()); ++i) {
        if (outermost[i].excess < 0.05 * of_run) break;
        StragglerPart& part = *straggler.add_parts();
        part.set_measurement(outermost[i].name);
        part.set_excess_seconds(scale * outermost[i].excess);
      }
    }
  }

  void NameMeasurements(double error) {
    int64_t compared = 0;
    for (const ClusterSummary::Row& row : summary_.measurements()) compared += Compared(row.times);
    const Straggler& straggler = stats_.straggler();
    const double of_straggler = straggler.work_seconds() - straggler.median_work_seconds();
    std::vector<SlowMeasurement> named;
    for (const ClusterSummary::Row& row : summary_.measurements()) {
      const Rule rule = {error / static_cast<double>(compared),
                         std::max((row.sampled ? 0.05 : 0.001) * iteration_, 0.05 * of_straggler)};
      for (const auto& [group, times] : row.times) {
        std::vector<Suspect> suspects = times.Suspects();
        suspects.erase(std::remove_if(suspects.begin(), suspects.end(),
                                      [&](const Suspect& suspect) { return !rule.Names(suspect); }),
                       suspects.end());
        if (suspects.empty()) continue;
        const auto suspect =
            std::max_element(suspects.begin(), suspects.end(), [](const Suspect& a, const Suspect& b) {
              return a.excess.seconds_of_run < b.excess.seconds_of_run;
            });
        if (row.name == straggler.measurement() && suspect->entry.rank == straggler.rank()) continue;
        SlowMeasurement& slow = named.emplace_back();
        slow.set_name(row.name);
        SetExcess(*suspect, slow);
        slow.set_median_seconds(suspect->excess.of_others);
        slow.set_seconds(suspect->excess.of_others + suspect->excess.seconds);
        slow.set_share_of_iteration(iteration_ > 0 ? suspect->excess.seconds / iteration_ : 0);
      }
    }
    std::vector<SlowMeasurement> kept;
    for (const SlowMeasurement& slow : named) {
      const bool is_explained = std::any_of(named.begin(), named.end(), [&](const SlowMeasurement& inner) {
        return inner.rank() == slow.rank() && IsInside(inner.name(), slow.name()) &&
               inner.share_of_iteration() >= 0.8 * slow.share_of_iteration();
      });
      if (!is_explained) kept.push_back(slow);
    }
    std::stable_sort(kept.begin(), kept.end(), [](const SlowMeasurement& a, const SlowMeasurement& b) {
      return a.share_of_iteration() > b.share_of_iteration();
    });
    for (size_t i = 0; i < std::min<size_t>(8, kept.size()); ++i) *stats_.add_slow_measurements() = kept[i];
  }

  // Returns true if sampled measurements say that it runs inside of the other.
  bool IsInside(const std::string& inner, const std::string& outer) const {
    std::map<std::string, std::string> outer_of;
    for (const ClusterSummary::Row& row : summary_.measurements()) {
      if (row.sampled) outer_of[row.name] = row.outer;
    }
    if (outer_of.count(outer) == 0) return false;
    std::string at = inner;
    for (size_t i = 0; i < outer_of.size() && outer_of.count(at) > 0; ++i) {
      at = outer_of[at];
      if (at == outer) return true;
    }
    return false;
  }

  const ClusterSummary& summary_;
  ClusterStats stats_;
  double iteration_ = 0;
};

TEST(SlowRanks, AreWhatTheRulesSay) {
  std::mt19937 random(1);
  std::map<std::string, int> seen;
  for (int job = 0; job < 600; ++job) {
    const ClusterSummary summary = AnyRanks(random).Make();
    const double error_share = job % 2 == 0 ? 1 : kWindowErrorShare;
    const ClusterStats stats = JudgeRanks(summary, 0, error_share);
    ASSERT_EQ(stats.DebugString(), RanksByDefinition(summary, error_share).stats().DebugString()) << job;
    ++seen[stats.has_straggler() ? "straggler" : stats.has_detectable() ? "nobody" : "cannot tell"];
    seen["parts"] += stats.straggler().parts_size() > 0;
    seen["somewhere"] += !stats.straggler().measurement().empty();
    seen["not known where"] += stats.straggler().place_is_unknown();
    seen["since"] += stats.straggler().has_since_iteration();
    seen["until"] += stats.straggler().has_until_iteration();
    seen["off in the mean"] += stats.straggler().has_mean_excess_seconds();
    seen["measurements"] += stats.slow_measurements_size();
    if (job % 2 == 0) continue;
    constexpr int64_t kFirst = 7;
    const StragglerHistory window = StragglerTracker().Add(summary, kFirst);
    EXPECT_EQ(window.num_iterations(), stats.max_measured_iters());
    EXPECT_EQ(window.straggler().DebugString(), stats.straggler().DebugString()) << job;
    if (!stats.has_straggler()) continue;
    EXPECT_EQ(window.since_iteration(),
              stats.straggler().has_since_iteration() ? stats.straggler().since_iteration() : kFirst);
  }
  for (const auto& [what, times] : seen) EXPECT_GE(times, 8) << what;
}

// Rank 9 of 12 is in no sample of 8. Two others take longer than it in "a", and as much less in "b".
TEST(SlowRanks, APlaceThatTheSampleHidesIsNotCalledOutsideAllMeasurements) {
  struct Scene {
    double in_a, in_c, outside;  // the excess of rank 9
    bool measures_a, is_outermost, is_unknown;
  };
  for (const auto& [in_a, in_c, outside, measures_a, is_outermost, is_unknown] :
       {Scene{0, 0, 0.006, true, true, false},
        {0.006, 0, 0, true, true, true},
        {0.008, 0.006, 0.006, true, true, true},  // what is known of c is too little
        {0.006, 0, 0, false, true, false},
        {0.006, 0, 0, true, false, false}}) {
    ClusterSummary summary;
    for (int rank = 0; rank < 12; ++rank) {
      const bool is_other_way = in_a > 0 && rank < 2;
      const double is_slow = rank == 9 ? 1 : 0, all = 0.021 + is_slow * (in_a + in_c + outside);
      internal::RankReport report;
      StopwatchStats& stats = *report.mutable_stats();
      stats.set_rank(rank);
      stats.set_num_measured_iters(kIterationsOfJob);
      *stats.mutable_iteration() = InEachOf(kIterationsOfJob, all);
      const auto set_own = [&](double seconds, OwnTimeStats* own) {
        *own->mutable_all() = SteadyForTest(seconds, 1e-5);
        own->mutable_all()->set_count(kIterationsOfJob);
      };
      stats.mutable_own_work()->set_num_watched_iters(kIterationsOfJob);
      stats.mutable_own_work()->set_cpu_seconds(kIterationsOfJob * 0.001);
      set_own(all, stats.mutable_own_work()->mutable_time());
      for (const auto& [name, seconds] : {std::pair("a", (is_other_way ? 0.019 : 0.01) + is_slow * in_a),
                                          {"b", is_other_way ? 0.001 : 0.01},
                                          {"c", 0.001 + is_slow * in_c}}) {
        if (!measures_a && rank == 9 && *name == 'a') continue;
        Measurement& measurement = *stats.add_measurements();
        measurement.set_name(name);
        measurement.set_outermost(is_outermost || *name != 'a');
        *measurement.mutable_per_iteration() = InEachOf(kIterationsOfJob, seconds);
        set_own(seconds, measurement.mutable_own());
      }
      summary.Merge(*ClusterSummary::OfRank(report));
    }
    ASSERT_FALSE(in_a > 0 && summary.measurements().begin()->times.at("").Of(9).has_value());
    const Straggler straggler = JudgeRanks(summary, 12).straggler();
    EXPECT_EQ(straggler.rank(), 9);
    EXPECT_EQ(straggler.measurement(), "");
    EXPECT_EQ(straggler.place_is_unknown(), is_unknown) << in_a << " " << in_c;
    EXPECT_NEAR(straggler.measurement_excess_seconds(), is_unknown ? 0 : 0.006, 1e-4);
  }
}

}  // namespace
}  // namespace ott
