#include "ott/dist/stats/cluster_summary.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dist/stats/merge_for_test.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

using testing::HasSubstr;

// Adds times of one to three units, so that ranks often have the same.
void AddTimes(int count, double unit, Random& random, Statistics& sum) {
  DurationStatistics statistics = *DurationStatistics::FromProto(sum);
  for (int i = 0; i < count; ++i) statistics.AddSeconds(unit * (1 + random.Below(3)));
  sum = statistics.ToProto();
}

// Now and then what is no time, or has no blocks.
SteadyTimeStats DrawTime(Random& random) {
  SteadyTimeStats time;
  time.set_seconds(random.OnceIn(20) ? std::numeric_limits<double>::infinity() : 1 + random.Below(9));
  time.set_standard_error(random.OnceIn(10) ? -1 : random.Below(3));
  time.set_degrees_of_freedom(random.OnceIn(10) ? (random.OnceIn(2) ? 0.4 : 1e300) : 1 + random.Below(9));
  time.set_count(random.OnceIn(5) ? 40 : 80);
  time.set_block_iterations(random.OnceIn(5) ? 0 : 5);
  for (int i = random.Below(19); i > 0; --i) time.add_block(static_cast<float>(random.Below(9)));
  if (time.block_size() > 0 && random.OnceIn(5)) time.set_block(0, std::nanf(""));
  return time;
}

OwnTimeStats DrawTimes(Random& random) {
  OwnTimeStats times;
  if (!random.OnceIn(5)) *times.mutable_all() = DrawTime(random);
  if (!random.OnceIn(5)) *times.mutable_window() = DrawTime(random);
  if (random.OnceIn(2)) *times.mutable_all_with_taken() = DrawTime(random);
  if (random.OnceIn(2)) *times.mutable_window_with_taken() = DrawTime(random);
  return times;
}

// A rank's report, and an earlier one.
struct Reports {
  internal::RankReport last;
  StopwatchStats earlier;
  bool is_window = false;

  const StopwatchStats& stats() const { return last.stats(); }
  int64_t Iterations() const { return stats().num_measured_iters() - earlier.num_measured_iters(); }
  Statistics Before(int measurement) const {
    const bool is_new = measurement >= earlier.measurements_size();
    return is_new ? Statistics() : earlier.measurements(measurement).per_iteration();
  }
  // Returns the iterations in which a measurement ran since then.
  int64_t NumRan(int measurement) const {
    return stats().measurements(measurement).per_iteration().count() - Before(measurement).count();
  }
  // Returns the seconds of one measurement in a mean iteration.
  double Seconds(int measurement) const {
    const Measurement& last = stats().measurements(measurement);
    const int64_t count = last.sampled() ? NumRan(measurement) : Iterations();
    return (last.per_iteration().total() - Before(measurement).total()) / static_cast<double>(count);
  }
};

void GoOn(int num_iters, Random& random, StopwatchStats& stats) {
  stats.set_num_measured_iters(stats.num_measured_iters() + num_iters);
  AddTimes(num_iters, 0.01, random, *stats.mutable_iteration());
  for (Measurement& measurement : *stats.mutable_measurements()) {
    const int count = num_iters > 0 ? 1 + random.Below(num_iters) : 0;
    AddTimes(count, 0.001, random, *measurement.mutable_per_iteration());
    AddTimes(2 * count, 0.0005, random, *measurement.mutable_per_interval());
    if (random.OnceIn(9)) measurement.mutable_per_interval()->clear_sketch();
    *measurement.mutable_own() = DrawTimes(random);
  }
  if (stats.has_own_work()) {
    OwnWorkStats& own = *stats.mutable_own_work();
    own.set_waiting_seconds(own.waiting_seconds() + 0.012 * num_iters * random.Below(3));
    if (random.OnceIn(2)) own.set_num_watched_iters(own.num_watched_iters() + num_iters);
    own.set_cpu_seconds(own.cpu_seconds() + 0.003 * num_iters * random.Below(9));
    own.set_taken_seconds(own.taken_seconds() + 0.001 * num_iters * random.Below(3));
    *own.mutable_time() = DrawTimes(random);
  }
  if (stats.has_observer_thread_seconds()) {
    stats.set_observer_thread_seconds(stats.observer_thread_seconds() + 0.001 * random.Below(9));
  }
}

// all_measure: each has iterations.
Reports Draw(int rank, bool is_window, bool all_measure, Random& random) {
  StopwatchStats stats;
  stats.set_rank(rank);
  stats.set_host("node" + std::to_string(rank / 3));
  stats.set_start_iteration(1000 * random.Below(2));
  stats.set_num_warmup_iters(random.Below(3));
  for (const char* const name : {"collective", "sampled", "a", "b"}) {
    if (random.OnceIn(4)) continue;
    Measurement& measurement = *stats.add_measurements();
    measurement.set_name(name);
    measurement.set_collective(measurement.name() == "collective");
    measurement.set_sampled(measurement.name() == "sampled");
    measurement.set_outermost(random.OnceIn(3));
    measurement.set_outer("outer");
  }
  for (int i = random.Below(3); i > 0; --i) {
    OneTimeMeasurement& one_time = *stats.add_one_time();
    one_time.set_name("load" + std::to_string(i));
    one_time.set_seconds(1 + random.Below(3));
    one_time.set_running(random.OnceIn(4));
    Misuse& misuse = *stats.add_misuses();
    misuse.set_kind("End" + std::to_string(i));
    misuse.set_count(1 + random.Below(3));
  }
  if (!random.OnceIn(4)) stats.mutable_own_work();
  if (random.OnceIn(2)) stats.set_observer_thread_seconds(0);
  Reports reports;
  reports.is_window = is_window;
  if (is_window) {
    GoOn(5 * random.Below(3), random, stats);
    reports.earlier = stats;
    if (stats.measurements_size() > 0 && random.OnceIn(3)) {
      reports.earlier.mutable_measurements()->RemoveLast();
    }
  }
  GoOn(!all_measure && random.OnceIn(5) ? 0 : random.OnceIn(4) ? 1 : 5 + 5 * random.Below(2), random, stats);
  *reports.last.mutable_stats() = stats;
  internal::GroupLabel& stage = *reports.last.add_groups();
  stage.set_dimension("stage");
  stage.set_value(std::to_string(rank % 2));
  reports.last.set_like_work(stage.value());
  return reports;
}

// A rank's work in a mean iteration, by its definition.
struct Work {
  double iteration = 0;
  double seconds = 0;
  bool is_watched = false;
  CpuShare cpu;
};

Work WorkOf(const Reports& of) {
  const auto waiting = [](const StopwatchStats& stats) {
    if (stats.has_own_work()) return stats.own_work().waiting_seconds();
    double sum = 0;
    for (const Measurement& measurement : stats.measurements()) {
      if (measurement.collective()) sum += measurement.per_iteration().total();
    }
    return sum;
  };
  const auto iters = static_cast<double>(of.Iterations());
  const double total = of.stats().iteration().total() - of.earlier.iteration().total();
  Work work;
  work.iteration = total / iters;
  work.seconds = std::max(0.0, total - (waiting(of.stats()) - waiting(of.earlier))) / iters;
  const OwnWorkStats& own = of.stats().own_work();
  const OwnWorkStats& before = of.earlier.own_work();
  const auto watched = static_cast<double>(own.num_watched_iters() - before.num_watched_iters());
  work.is_watched = watched > 0 && work.seconds > 0;
  work.cpu = {work.seconds, 0, total, 0};
  if (!work.is_watched) return work;
  work.cpu.cpu_seconds = std::min(work.seconds, (own.cpu_seconds() - before.cpu_seconds()) / watched);
  work.cpu.taken_seconds = (own.taken_seconds() - before.taken_seconds()) / watched;
  work.cpu.taken_share = work.cpu.taken_seconds / work.seconds;
  return work;
}

// One number of a rank.
struct Number {
  const Reports* of;
  double seconds;
  DurationStatistics intervals;
};

ClusterMeasurement ExpectedRow(const std::vector<Number>& numbers, const std::set<int>& all) {
  ClusterMeasurement row;
  double sum = 0, squares = 0, iterations = 0;
  DurationStatistics intervals;
  std::set<int> without = all;
  for (const Number& number : numbers) {
    const int rank = number.of->stats().rank();
    without.erase(rank);
    sum += number.seconds;
    iterations += WorkOf(*number.of).iteration;
    intervals.Merge(number.intervals);
    TimeOfRank time;
    time.set_rank(rank);
    time.set_host(number.of->stats().host());
    time.set_seconds(number.seconds);
    if (!row.has_min() || number.seconds < row.min().seconds()) *row.mutable_min() = time;
    if (!row.has_max() || number.seconds > row.max().seconds()) *row.mutable_max() = time;
  }
  const auto count = static_cast<double>(numbers.size());
  for (const Number& number : numbers) squares += std::pow(number.seconds - sum / count, 2);
  row.set_num_ranks(static_cast<int64_t>(numbers.size()));
  if (numbers.empty()) return row;
  row.set_mean(sum / count);
  row.set_standard_deviation(std::sqrt(squares / count));
  row.set_imbalance(sum > 0 ? row.max().seconds() / row.mean() - 1 : 0);
  row.set_share_of_iteration(sum / iterations);
  if (!without.empty()) row.set_ranks_without(FormatRanks({without.begin(), without.end()}));
  if (!intervals.Quantile(0.5)) return row;
  row.set_p50(*intervals.Quantile(0.5));
  row.set_p90(*intervals.Quantile(0.9));
  row.set_p99(*intervals.Quantile(0.99));
  return row;
}

// The table by its definition. ranks: in order.
ClusterStats Expected(const std::vector<Reports>& ranks, int world_size) {
  ClusterStats stats;
  stats.set_world_size(world_size);
  stats.set_num_ranks(static_cast<int64_t>(ranks.size()));
  std::set<int> measured;
  std::map<int64_t, std::vector<int>> by_iterations;
  std::map<std::string, std::vector<Number>> rows, one_time;
  std::map<std::string, ClusterMeasurement> flags;
  std::vector<Number> iterations;
  std::map<std::string, std::map<std::string, std::vector<double>>> groups;
  std::map<std::string, std::pair<int64_t, std::vector<int>>> misuses;
  std::set<int> reported;
  std::vector<TakenFromRank> taken;
  for (const Reports& of : ranks) {
    const StopwatchStats& now = of.stats();
    reported.insert(now.rank());
    const int64_t iters = of.Iterations();
    by_iterations[iters].push_back(now.rank());
    RankSummary listed;
    listed.set_rank(now.rank());
    listed.set_host(now.host());
    listed.set_num_measured_iters(iters);
    const Work work = WorkOf(of);
    if (iters > 0) listed.set_work_seconds(work.seconds);
    if (ranks.size() <= 256) *stats.add_ranks() = listed;
    for (int i = 0; i < now.one_time_size() && !of.is_window; ++i) {
      const OneTimeMeasurement& once = now.one_time(i);
      if (!once.running()) one_time[once.name()].push_back({&of, once.seconds(), {}});
      misuses[now.misuses(i).kind()].first += now.misuses(i).count();
      misuses[now.misuses(i).kind()].second.push_back(now.rank());
    }
    if (iters == 0) continue;
    measured.insert(now.rank());
    const auto intervals_of = [&](const Statistics& all) {
      return of.is_window ? DurationStatistics() : *DurationStatistics::FromProto(all);
    };
    iterations.push_back({&of, work.iteration, intervals_of(now.iteration())});
    groups["host"][now.host()].push_back(work.seconds);
    groups["stage"][of.last.like_work()].push_back(work.seconds);
    CpuTaken& cpu_taken = *stats.mutable_cpu_taken();
    cpu_taken.set_num_watched(cpu_taken.num_watched() + work.is_watched);
    if (work.is_watched && work.cpu.taken_share >= 0.1) {
      taken.emplace_back().set_rank(now.rank());
      taken.back().set_share(work.cpu.taken_share);
    }
    for (int i = 0; i < now.measurements_size(); ++i) {
      const Measurement& last = now.measurements(i);
      rows[last.name()].push_back({&of, of.Seconds(i), intervals_of(last.per_interval())});
      ClusterMeasurement& row = flags[last.name()];
      row.set_collective(last.collective());
      row.set_sampled(last.sampled());
      row.set_outermost(row.outermost() || last.outermost());
      if (last.sampled()) row.set_outer(last.outer());
    }
    if (now.has_observer_thread_seconds()) {
      rows["ott's threads"].push_back(
          {&of,
           (now.observer_thread_seconds() - of.earlier.observer_thread_seconds()) /
               static_cast<double>(iters),
           {}});
    }
  }
  for (int rank = 0; rank < world_size; ++rank) {
    if (reported.count(rank) == 0) stats.add_missing_ranks(rank);
  }
  stats.set_min_measured_iters(by_iterations.begin()->first);
  stats.set_max_measured_iters(by_iterations.rbegin()->first);
  *stats.mutable_iteration() = ExpectedRow(iterations, measured);
  stats.mutable_iteration()->set_name("iteration");
  for (const auto& [name, numbers] : rows) {
    ClusterMeasurement& row = *stats.add_measurements() = ExpectedRow(numbers, measured);
    row.MergeFrom(flags[name]);
    row.set_name(name);
  }
  for (const auto& [name, numbers] : one_time) {
    OneTimeOfRanks& once = *stats.add_one_time();
    const ClusterMeasurement row = ExpectedRow(numbers, {});
    once.set_name(name);
    once.set_num_ranks(row.num_ranks());
    once.set_mean(row.mean());
    *once.mutable_max() = row.max();
  }
  for (const auto& [kind, misuse] : misuses) {
    MisuseOfRanks& added = *stats.add_misuses();
    added.set_kind(kind);
    added.set_count(misuse.first);
    added.set_ranks(FormatRanks(misuse.second));
  }
  if (stats.cpu_taken().num_watched() == 0) stats.clear_cpu_taken();
  if (!taken.empty()) stats.mutable_cpu_taken()->set_num_taken(static_cast<int64_t>(taken.size()));
  std::stable_sort(taken.begin(), taken.end(),
                   [](const TakenFromRank& a, const TakenFromRank& b) { return a.share() > b.share(); });
  for (size_t i = 0; i < std::min<size_t>(taken.size(), 8); ++i) {
    *stats.mutable_cpu_taken()->add_ranks() = taken[i];
  }
  for (const auto& [dimension, values] : groups) {
    if (values.size() < 2 || values.size() > 64) continue;
    const auto mean = [](const std::vector<double>& work) {
      double sum = 0;
      for (const double seconds : work) sum += seconds / static_cast<double>(work.size());
      return sum;
    };
    std::vector<double> means;
    for (const auto& [unused, work] : values) means.push_back(mean(work));
    std::sort(means.begin(), means.end());
    const double median = (means[(means.size() - 1) / 2] + means[means.size() / 2]) / 2;
    for (const auto& [value, work] : values) {
      GroupStats& group = *stats.add_groups();
      group.set_dimension(dimension);
      group.set_value(value);
      group.set_num_ranks(static_cast<int64_t>(work.size()));
      group.set_mean_work_seconds(mean(work));
      group.set_max_work_seconds(*std::max_element(work.begin(), work.end()));
      group.set_slower_by(median > 0 ? mean(work) / median - 1 : 0);
    }
  }
  if (by_iterations.count(0) > 0) {
    stats.add_notes(FormatRanks(by_iterations[0]) + ": no iteration measured yet");
    by_iterations.erase(0);
  }
  std::string note;
  for (const auto& [count, of] : by_iterations) {
    note += (note.empty() ? " " : "; ") + std::to_string(count) + " on " + FormatRanks(of);
  }
  if (by_iterations.size() > 1) {
    stats.add_notes("ranks measured different numbers of iterations:" + note);
  }
  return stats;
}

// Empty where they are the same but for rounding and the order of names.
std::string Differences(
    const google::protobuf::Message& expected, const google::protobuf::Message& found,
    const std::vector<std::pair<const google::protobuf::Descriptor*, std::string>>& lists) {
  google::protobuf::util::MessageDifferencer differencer;
  google::protobuf::util::DefaultFieldComparator comparator;
  comparator.set_float_comparison(google::protobuf::util::DefaultFieldComparator::APPROXIMATE);
  comparator.SetDefaultFractionAndMargin(1e-6, 1e-8);
  differencer.set_field_comparator(&comparator);
  differencer.set_message_field_comparison(google::protobuf::util::MessageDifferencer::EQUIVALENT);
  for (const auto& [message, field] : lists) {
    differencer.TreatAsSet(message->FindFieldByName(field));
  }
  std::string differences;
  differencer.ReportDifferencesToString(&differences);
  return differencer.Compare(expected, found) ? "" : differences;
}

// By the definition: nullopt for what is no time.
std::optional<internal::RankTime> ExpectedTime(bool is_there, const SteadyTimeStats& stats, double share) {
  if (!is_there || std::isinf(stats.seconds()) || stats.standard_error() < 0 ||
      stats.degrees_of_freedom() < 1 || stats.degrees_of_freedom() > 15) {
    return std::nullopt;
  }
  internal::RankTime time;
  time.set_seconds(static_cast<float>(share * stats.seconds()));
  time.set_standard_error(static_cast<float>(share * stats.standard_error()));
  time.set_degrees_of_freedom(static_cast<int32_t>(stats.degrees_of_freedom()));
  time.set_count(stats.count());
  time.set_block_iterations(stats.block_iterations());
  if (stats.block_size() > 16 || stats.block_iterations() == 0) return time;
  if (stats.count() < stats.block_iterations() * stats.block_size()) return time;
  if (stats.block_size() > 0 && std::isnan(stats.block(0))) return time;
  for (const float block : stats.block()) time.add_block(static_cast<float>(share) * block);
  return time;
}

internal::RankTimes ExpectedTimes(const std::vector<Reports>& ranks, const std::string& group,
                                  const std::string& measurement) {
  internal::RankTimes times;
  for (const Reports& of : ranks) {
    if (of.last.like_work() != group || of.Iterations() == 0) continue;
    const Work work = WorkOf(of);
    const OwnTimeStats* own = &of.stats().own_work().time();
    double share = 1, mean = work.seconds - work.cpu.taken_seconds;
    if (!measurement.empty()) {
      const auto& all = of.stats().measurements();
      const auto found = std::find_if(all.begin(), all.end(), [&](const Measurement& candidate) {
        return candidate.name() == measurement;
      });
      if (found == all.end()) continue;
      own = &found->own();
      const int index = static_cast<int>(found - all.begin());
      share =
          found->sampled() ? 1 : static_cast<double>(of.NumRan(index)) / static_cast<double>(of.Iterations());
      mean = of.Seconds(index);
    }
    const auto all = ExpectedTime(of.is_window ? own->has_window() : own->has_all(),
                                  of.is_window ? own->window() : own->all(), share);
    if (!all) continue;
    times.set_num_ranks(times.num_ranks() + 1);
    internal::RankTime& time = *times.add_times() = *all;
    time.set_rank(of.stats().rank());
    time.set_cpu_seconds(static_cast<float>(work.cpu.cpu_seconds));
    time.set_taken_share(static_cast<float>(work.cpu.taken_share));
    time.set_watched_seconds(static_cast<float>(work.cpu.watched_seconds));
    time.set_first_iteration(of.stats().start_iteration() + of.stats().num_warmup_iters() +
                             of.earlier.num_measured_iters());
    time.set_num_iterations(of.Iterations());
    time.set_mean_seconds(static_cast<float>(mean));
    const auto with_taken =
        ExpectedTime(of.is_window ? own->has_window_with_taken() : own->has_all_with_taken(),
                     of.is_window ? own->window_with_taken() : own->all_with_taken(), share);
    if (with_taken) *time.mutable_with_taken() = *with_taken;
  }
  return times;
}

void ExpectTimes(const std::vector<Reports>& ranks, const ClusterMeasurement& row, const std::string& name) {
  std::map<std::string, internal::RankTimes> found;
  for (const internal::LikeTimes& times : row.times()) found[times.group()] = times.times();
  for (const std::string group : {"0", "1"}) {
    const internal::RankTimes expected = ExpectedTimes(ranks, group, name);
    EXPECT_EQ(found.count(group), expected.num_ranks() > 0 ? 1 : 0);
    if (expected.num_ranks() <= static_cast<int64_t>(RankTimes::kMaxSample)) {
      EXPECT_EQ(Differences(expected, found[group], {{expected.GetDescriptor(), "times"}}), "") << name;
    }
  }
}

TEST(ClusterSummary, IsThatOfTheDefinitionInWhateverOrderItIsMerged) {
  for (uint32_t trial = 0; trial < 200; ++trial) {
    Random random(trial);
    // Around the most hosts and ranks that are listed; those beyond may travel before the last are merged.
    const int large[] = {192, 193, 256, 257, 257, 257, 257, 257};
    const bool is_large = trial < std::size(large);
    const int num_ranks = is_large ? large[trial] : 1 + random.Below(9);
    const bool is_window = random.OnceIn(3);
    std::vector<Reports> ranks;
    std::vector<ClusterSummary> summaries;
    std::vector<int> late;
    std::vector<std::string> notes;
    CpuShare cpu = {0, 0, std::numeric_limits<double>::max(), 0};
    for (int rank = 0; rank < num_ranks; ++rank) {
      if (!is_large && rank > 0 && random.OnceIn(5)) continue;
      const Reports& of = ranks.emplace_back(Draw(rank, is_window, is_large, random));
      StopwatchStats before_restart = of.stats();
      before_restart.set_num_measured_iters(of.stats().num_measured_iters() + 1);
      const auto summary = ClusterSummary::OfRank(of.last, is_window          ? &of.earlier
                                                           : random.OnceIn(3) ? &before_restart
                                                                              : nullptr)
                               .value();
      summaries.push_back(summary);
      if (random.OnceIn(4)) {
        summaries.back().SetLate();
        late.push_back(rank);
      }
      if (!is_large && random.OnceIn(4)) {
        notes.push_back("note of rank " + std::to_string(rank));
        summaries.back().AddNote(notes.back());
      }
      if (of.Iterations() > 0) cpu = LeastCertain(cpu, WorkOf(of).cpu);
      const std::optional<CpuShare> own = CpuShareOfWork(of.stats());
      ASSERT_EQ(own.has_value(), of.stats().num_measured_iters() > 0);
      if (own && !is_window) {
        EXPECT_DOUBLE_EQ(own->taken_seconds, WorkOf(of).cpu.taken_seconds);
      }
    }
    const ClusterSummary merged = MergeInAnyOrder(std::move(summaries), random);
    const int world_size = num_ranks + random.Below(3);
    ClusterStats expected = Expected(ranks, world_size);
    for (const int rank : late) expected.add_late_ranks(rank);
    for (const std::string& note : notes) expected.add_notes(note);
    const ClusterStats finished = merged.Finish(world_size);
    const auto* const stats = ClusterStats::descriptor();
    EXPECT_EQ(
        Differences(expected, finished, {{stats, "measurements"}, {stats, "one_time"}, {stats, "notes"}}), "")
        << "trial " << trial;
    const ClusterStats travels = merged.ToProto();
    ExpectTimes(ranks, travels.work(), "");
    for (const ClusterMeasurement& row : travels.measurements()) {
      ExpectTimes(ranks, row, row.name());
    }
    const bool any_measures = expected.max_measured_iters() > 0;
    ASSERT_EQ(travels.has_cpu_of_work(), any_measures);
    if (!any_measures) continue;
    EXPECT_DOUBLE_EQ(merged.cpu_of_work().cpu_seconds, cpu.cpu_seconds);
    EXPECT_DOUBLE_EQ(merged.cpu_of_work().taken_share, cpu.taken_share);
    EXPECT_DOUBLE_EQ(merged.cpu_of_work().watched_seconds, cpu.watched_seconds);
    EXPECT_DOUBLE_EQ(merged.cpu_of_work().taken_seconds, cpu.taken_seconds);
  }
}

std::string WhyNot(const absl::StatusOr<ClusterSummary>& summary) {
  EXPECT_TRUE(absl::IsInvalidArgument(summary.status())) << summary.status();
  return std::string(summary.status().message());
}

TEST(ClusterSummary, WhatCannotBeIsRefusedAndNamed) {
  internal::RankReport good;
  good.mutable_stats()->set_num_measured_iters(1);
  good.mutable_stats()->add_measurements()->set_name("a");
  internal::RankReport bad = good;
  bad.mutable_stats()->set_num_measured_iters(-1);
  EXPECT_THAT(WhyNot(ClusterSummary::OfRank(bad)), HasSubstr("-1 measured iterations"));
  bad = good;
  bad.mutable_stats()->add_measurements()->set_name("a");
  EXPECT_THAT(WhyNot(ClusterSummary::OfRank(bad)), HasSubstr("a: reported twice"));
  for (const bool per_interval : {false, true}) {
    bad = good;
    Measurement& measurement = *bad.mutable_stats()->mutable_measurements(0);
    (per_interval ? measurement.mutable_per_interval() : measurement.mutable_per_iteration())->set_count(-1);
    EXPECT_THAT(WhyNot(ClusterSummary::OfRank(bad)), HasSubstr("a: statistics"));
  }
  const ClusterStats whole = ClusterSummary::OfRank(good)->ToProto();
  ASSERT_TRUE(ClusterSummary::FromProto(whole).ok());
  ClusterStats damaged = whole;
  damaged.mutable_late()->add_begin(3);
  EXPECT_THAT(WhyNot(ClusterSummary::FromProto(damaged)), HasSubstr("cut off"));
  damaged.mutable_late()->add_end(3);
  EXPECT_THAT(WhyNot(ClusterSummary::FromProto(damaged)), HasSubstr("ranks 3 to 3"));
  damaged.mutable_late()->set_begin(0, -1);
  EXPECT_THAT(WhyNot(ClusterSummary::FromProto(damaged)), HasSubstr("ranks -1 to 3"));
  damaged = whole;
  damaged.mutable_measurements(0)->mutable_ranks()->add_begin(0);
  damaged.mutable_measurements(0)->mutable_ranks()->add_end(2);
  EXPECT_THAT(WhyNot(ClusterSummary::FromProto(damaged)), HasSubstr("a: 1 values of 2 ranks"));
}

TEST(ClusterSummary, OfManyNotesTheFirstAreKept) {
  ClusterSummary summary;
  for (int i = 0; i < 40; ++i) summary.AddNote(std::to_string(i));
  const ClusterStats stats = summary.Finish(0);
  ASSERT_EQ(stats.notes_size(), 32);
  EXPECT_EQ(stats.notes(30), "30");
  EXPECT_EQ(stats.notes(31), "further notes are left out");
}

}  // namespace
}  // namespace ott
