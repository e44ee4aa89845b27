#include "ott/dist/stats/cluster_summary.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/policy.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

constexpr int64_t kMaxListedRanks = 256;
constexpr size_t kMaxGroups = 64;
constexpr size_t kMaxNotes = 32;
constexpr int kMaxTaken = 8;

// Chooses the ranks whose values are kept as extremes: on a tie the lower rank's, so that the order of
// merging does not matter.
bool IsMoreExtreme(double a, int rank_a, double b, int rank_b) { return a != b ? a > b : rank_a < rank_b; }

// Returns the own time in a mean iteration. share: the share of the iterations in which it was measured.
std::optional<SteadyTime> OwnTimeOf(const SteadyTimeStats& proto, double share) {
  // Times of a file are not to be trusted.
  const bool has_blocks =
      proto.block_size() <= SteadyTime::kMaxBlocks && proto.block_iterations() > 0 &&
      proto.count() >= proto.block_iterations() * proto.block_size() &&
      std::all_of(proto.block().begin(), proto.block().end(), [](float x) { return std::isfinite(x); });
  if (!std::isfinite(proto.seconds()) || !(proto.standard_error() >= 0) ||
      !(proto.degrees_of_freedom() >= 1 && proto.degrees_of_freedom() < SteadyTime::kMaxBlocks)) {
    return std::nullopt;
  }
  SteadyTime time;
  time.seconds = share * proto.seconds();
  time.standard_error = share * proto.standard_error();
  time.degrees_of_freedom = proto.degrees_of_freedom();
  time.count = proto.count();
  time.block_iterations = proto.block_iterations();
  if (!has_blocks) return time;
  for (const float block : proto.block()) time.blocks[time.num_blocks++] = static_cast<float>(share) * block;
  return time;
}

// Returns nullopt for a time that is not there: it has no degrees of freedom.
std::optional<SteadyTime> OwnTimeOf(const OwnTimeStats& proto, bool is_window, double share = 1) {
  return OwnTimeOf(is_window ? proto.window() : proto.all(), share);
}

std::optional<SteadyTime> WithTaken(const OwnTimeStats& proto, bool is_window, double share = 1) {
  return OwnTimeOf(is_window ? proto.window_with_taken() : proto.all_with_taken(), share);
}

// Sums over all iterations.
double WaitingSeconds(const StopwatchStats& stats) {
  if (stats.has_own_work()) return stats.own_work().waiting_seconds();
  double seconds = 0;
  for (const Measurement& measurement : stats.measurements()) {
    if (measurement.collective()) seconds += measurement.per_iteration().total();
  }
  return seconds;
}

// The work of a rank since an earlier report of it.
struct RankWork {
  int64_t first_iteration = 0;
  int64_t num_iters = 0;
  // Seconds of a mean iteration, the second without waiting for others.
  double iteration_seconds = 0;
  double seconds = 0;
  CpuShare cpu;
  // True if cpu was seen.
  bool is_watched = false;
};

RankWork WorkSince(const StopwatchStats& earlier, const StopwatchStats& stats) {
  RankWork work;
  work.first_iteration = stats.start_iteration() + stats.num_warmup_iters() + earlier.num_measured_iters();
  work.num_iters = stats.num_measured_iters() - earlier.num_measured_iters();
  if (work.num_iters <= 0) return work;
  const double total = std::max(0.0, stats.iteration().total() - earlier.iteration().total());
  const double waiting = WaitingSeconds(stats) - WaitingSeconds(earlier);
  work.iteration_seconds = total / static_cast<double>(work.num_iters);
  work.seconds = std::max(0.0, total - waiting) / static_cast<double>(work.num_iters);
  work.cpu.cpu_seconds = work.seconds;
  work.cpu.watched_seconds = total;
  const OwnWorkStats& before = earlier.own_work();
  const OwnWorkStats& own = stats.own_work();
  const int64_t num_watched = own.num_watched_iters() - before.num_watched_iters();
  work.is_watched = num_watched > 0 && work.seconds > 0;
  if (!work.is_watched) return work;
  const auto count = static_cast<double>(num_watched);
  work.cpu.cpu_seconds = std::min(work.seconds, (own.cpu_seconds() - before.cpu_seconds()) / count);
  work.cpu.taken_seconds = (own.taken_seconds() - before.taken_seconds()) / count;
  work.cpu.taken_share = work.cpu.taken_seconds / work.seconds;
  return work;
}

void AddTaken(double share, int rank, CpuTaken& taken) {
  taken.set_num_watched(taken.num_watched() + 1);
  if (share < kTakenShare) return;
  taken.set_num_taken(taken.num_taken() + 1);
  TakenFromRank& from_rank = *taken.add_ranks();
  from_rank.set_rank(rank);
  from_rank.set_share(share);
}

void MergeTaken(const CpuTaken& other, CpuTaken& taken) {
  taken.set_num_watched(taken.num_watched() + other.num_watched());
  taken.set_num_taken(taken.num_taken() + other.num_taken());
  auto& ranks = *taken.mutable_ranks();
  ranks.MergeFrom(other.ranks());
  std::sort(ranks.begin(), ranks.end(), [](const TakenFromRank& a, const TakenFromRank& b) {
    return IsMoreExtreme(a.share(), a.rank(), b.share(), b.rank());
  });
  if (ranks.size() > kMaxTaken) ranks.DeleteSubrange(kMaxTaken, ranks.size() - kMaxTaken);
}

}  // namespace

std::optional<CpuShare> CpuShareOfWork(const StopwatchStats& stats) {
  const RankWork work = WorkSince(StopwatchStats::default_instance(), stats);
  if (work.num_iters <= 0) return std::nullopt;
  return work.cpu;
}

ClusterSummary::Row::Row(std::string name, const StopwatchStats& rank, double seconds, double iteration)
    : name(std::move(name)) {
  ranks.Add(rank.rank());
  over_ranks.AddSeconds(seconds);
  iterations.AddSeconds(iteration);
  max.set_rank(rank.rank());
  max.set_host(rank.host());
  max.set_seconds(seconds);
  min = max;
}

void ClusterSummary::Row::Merge(const Row& other) {
  if (other.over_ranks.count() == 0) return;
  const bool is_first = over_ranks.count() == 0;
  collective |= other.collective;
  outermost |= other.outermost;
  sampled |= other.sampled;
  if (outer.empty()) outer = other.outer;
  ranks.Add(other.ranks);
  over_ranks.Merge(other.over_ranks);
  iterations.Merge(other.iterations);
  intervals.Merge(other.intervals);
  if (is_first || IsMoreExtreme(-other.min.seconds(), other.min.rank(), -min.seconds(), min.rank()))
    min = other.min;
  if (is_first || IsMoreExtreme(other.max.seconds(), other.max.rank(), max.seconds(), max.rank()))
    max = other.max;
  for (const auto& [group, theirs] : other.times) times[group].Merge(theirs);
}

ClusterSummary::Row& ClusterSummary::Rows::operator[](const std::string& name) {
  const auto [position, is_new] = positions_.emplace(name, rows_.size());
  if (is_new) rows_.emplace_back().name = name;
  return rows_[position->second];
}

void ClusterSummary::Rows::Merge(const Rows& other) {
  for (const Row& row : other.rows_) (*this)[row.name].Merge(row);
}

absl::StatusOr<ClusterSummary> ClusterSummary::OfRank(const internal::RankReport& report,
                                                      const StopwatchStats* earlier) {
  const StopwatchStats& stats = report.stats();
  if (stats.num_measured_iters() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(stats.num_measured_iters(), " measured iterations"));
  }
  const OwnWorkStats& own_work = stats.own_work();
  for (const double seconds :
       {own_work.waiting_seconds(), own_work.cpu_seconds(), own_work.taken_seconds()}) {
    if (!std::isfinite(seconds))
      return absl::InvalidArgumentError(absl::StrCat("own work of ", seconds, " s"));
  }
  if (earlier != nullptr && earlier->num_measured_iters() > stats.num_measured_iters()) earlier = nullptr;
  const bool is_window = earlier != nullptr;
  const RankWork work = WorkSince(is_window ? *earlier : StopwatchStats::default_instance(), stats);
  ClusterSummary summary;
  summary.ranks_of_iteration_count_[work.num_iters].Add(stats.rank());
  RankSummary& listed = summary.listed_.emplace_back();
  listed.set_rank(stats.rank());
  listed.set_host(stats.host());
  listed.set_num_measured_iters(work.num_iters);
  for (const OneTimeMeasurement& one_time : stats.one_time()) {
    if (is_window || one_time.running()) continue;
    summary.one_time_[one_time.name()].Merge(Row(one_time.name(), stats, one_time.seconds(), 0));
  }
  for (const Misuse& misuse : stats.misuses()) {
    if (is_window) break;
    Misuses& misuses = summary.misuses_[misuse.kind()];
    misuses.count += misuse.count();
    misuses.ranks.Add(stats.rank());
  }
  OTT_ASSIGN_OR_RETURN(DurationStatistics iterations, DurationStatistics::FromProto(stats.iteration()));
  if (work.num_iters > 0) {
    listed.set_work_seconds(work.seconds);
    summary.iteration_ = Row("iteration", stats, work.iteration_seconds, work.iteration_seconds);
    if (!is_window) summary.iteration_.intervals = std::move(iterations);
    summary.work_ = Row("work", stats, work.seconds, work.iteration_seconds);
    if (const auto own = OwnTimeOf(stats.own_work().time(), is_window)) {
      summary.work_.times[report.like_work()] = RankTimes({stats.rank(),
                                                           {*own, work.cpu},
                                                           work.seconds - work.cpu.taken_seconds,
                                                           work.first_iteration,
                                                           work.num_iters,
                                                           WithTaken(stats.own_work().time(), is_window)});
    }
    if (work.is_watched) AddTaken(work.cpu.taken_share, stats.rank(), summary.taken_);
    summary.cpu_of_work_ = work.cpu;
    summary.dimensions_["host"].work_of_value[stats.host()].AddSeconds(work.seconds);
    for (const internal::GroupLabel& group : report.groups()) {
      summary.dimensions_[group.dimension()].work_of_value[group.value()].AddSeconds(work.seconds);
    }
  }
  OTT_RETURN_IF_ERROR(summary.AddMeasurements(report, earlier, work.cpu));
  return summary;
}

absl::Status ClusterSummary::AddMeasurements(const internal::RankReport& report,
                                             const StopwatchStats* earlier, const CpuShare& cpu) {
  const StopwatchStats& stats = report.stats();
  const StopwatchStats& before = earlier != nullptr ? *earlier : StopwatchStats::default_instance();
  std::unordered_map<std::string_view, const Measurement*> by_name_before;
  for (const Measurement& measurement : before.measurements()) {
    by_name_before[measurement.name()] = &measurement;
  }
  const int64_t num_iters = stats.num_measured_iters() - before.num_measured_iters();
  const int64_t first_iteration =
      stats.start_iteration() + stats.num_warmup_iters() + before.num_measured_iters();
  const auto make_row = [&](const std::string& name, double seconds, int64_t num_iters) {
    return Row(name, stats, std::max(0.0, seconds) / static_cast<double>(std::max<int64_t>(num_iters, 1)),
               iteration_.max.seconds());
  };
  std::unordered_set<std::string_view> names;
  for (const Measurement& measurement : stats.measurements()) {
    const absl::StatusOr<DurationStatistics> per_iteration =
        DurationStatistics::FromProto(measurement.per_iteration());
    absl::StatusOr<DurationStatistics> intervals = DurationStatistics::FromProto(measurement.per_interval());
    for (const absl::Status& status : {per_iteration.status(), intervals.status()}) {
      if (!status.ok())
        return absl::Status(status.code(), absl::StrCat(measurement.name(), ": ", status.message()));
    }
    if (!names.insert(measurement.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(measurement.name(), ": reported twice"));
    }
    if (num_iters == 0) continue;
    const auto found = by_name_before.find(measurement.name());
    const Measurement& same_before =
        found != by_name_before.end() ? *found->second : Measurement::default_instance();
    const int64_t num_ran =
        std::max<int64_t>(0, per_iteration->count() - same_before.per_iteration().count());
    // A sampled one also ran where it was not measured.
    Row row = make_row(measurement.name(),
                       measurement.per_iteration().total() - same_before.per_iteration().total(),
                       measurement.sampled() ? num_ran : num_iters);
    row.collective = measurement.collective();
    row.sampled = measurement.sampled();
    row.outermost = measurement.outermost();
    if (row.sampled) row.outer = measurement.outer();
    if (earlier == nullptr) row.intervals = *std::move(intervals);
    // In a mean iteration, also where it runs in few.
    const double share =
        measurement.sampled() ? 1 : static_cast<double>(num_ran) / static_cast<double>(num_iters);
    if (const auto own = OwnTimeOf(measurement.own(), earlier != nullptr, share)) {
      row.times[report.like_work()] = RankTimes({stats.rank(),
                                                 {*own, cpu},
                                                 row.max.seconds(),
                                                 first_iteration,
                                                 num_iters,
                                                 WithTaken(measurement.own(), earlier != nullptr, share)});
    }
    measurements_[row.name] = std::move(row);
  }
  if (num_iters > 0 && stats.has_observer_thread_seconds() && names.count(kObserverThreads) == 0) {
    measurements_[kObserverThreads] = make_row(
        kObserverThreads, stats.observer_thread_seconds() - before.observer_thread_seconds(), num_iters);
  }
  return absl::OkStatus();
}

void ClusterSummary::AddNote(std::string note) {
  if (notes_.size() < kMaxNotes) {
    notes_.push_back(std::move(note));
  } else {
    notes_.back() = "further notes are left out";
  }
}

RankSet ClusterSummary::ranks() const {
  RankSet all;
  for (const auto& [unused_count, ranks_with_it] : ranks_of_iteration_count_) all.Add(ranks_with_it);
  return all;
}

void ClusterSummary::Merge(const ClusterSummary& other) {
  iteration_.Merge(other.iteration_);
  work_.Merge(other.work_);
  measurements_.Merge(other.measurements_);
  one_time_.Merge(other.one_time_);
  for (const auto& [count, ranks_with_it] : other.ranks_of_iteration_count_) {
    ranks_of_iteration_count_[count].Add(ranks_with_it);
  }
  late_ranks_.Add(other.late_ranks_);
  MergeTaken(other.taken_, taken_);
  if (other.cpu_of_work_) {
    cpu_of_work_ = cpu_of_work_ ? LeastCertain(*cpu_of_work_, *other.cpu_of_work_) : other.cpu_of_work_;
  }
  for (const auto& [name, theirs] : other.dimensions_) {
    Dimension& dimension = dimensions_[name];
    for (const auto& [value, work] : theirs.work_of_value) dimension.work_of_value[value].Merge(work);
    dimension.too_many |= theirs.too_many || dimension.work_of_value.size() > kMaxGroups;
    if (dimension.too_many) dimension.work_of_value.clear();
  }
  for (const auto& [kind, theirs] : other.misuses_) {
    misuses_[kind].count += theirs.count;
    misuses_[kind].ranks.Add(theirs.ranks);
  }
  listed_.insert(listed_.end(), other.listed_.begin(), other.listed_.end());
  if (ranks().size() > kMaxListedRanks) listed_.clear();
  for (const std::string& note : other.notes_) AddNote(note);
}

ClusterMeasurement ClusterSummary::Row::Outline() const {
  ClusterMeasurement outline;
  outline.set_name(name);
  outline.set_collective(collective);
  outline.set_outermost(outermost);
  outline.set_sampled(sampled);
  outline.set_outer(outer);
  *outline.mutable_min() = min;
  *outline.mutable_max() = max;
  return outline;
}

ClusterMeasurement ClusterSummary::Row::Finish(const RankSet& all) const {
  ClusterMeasurement finished = Outline();
  finished.set_num_ranks(ranks.size());
  const double mean = over_ranks.mean();
  finished.set_mean(mean);
  finished.set_standard_deviation(over_ranks.standard_deviation());
  finished.set_imbalance(mean > 0 ? std::max(max.seconds() / mean - 1, 0.0) : 0);
  if (iterations.total() > 0) finished.set_share_of_iteration(over_ranks.total() / iterations.total());
  if (const RankSet without = all.Minus(ranks); !without.empty()) {
    finished.set_ranks_without(FormatRanks(without.ToVector()));
  }
  if (const std::optional<double> p50 = intervals.Quantile(0.50)) {
    finished.set_p50(*p50);
    finished.set_p90(*intervals.Quantile(0.90));
    finished.set_p99(*intervals.Quantile(0.99));
  }
  return finished;
}

void ClusterSummary::FinishGroups(ClusterStats& stats) const {
  for (const auto& [name, dimension] : dimensions_) {
    if (dimension.too_many || dimension.work_of_value.size() < 2) continue;
    std::vector<double> means;
    for (const auto& [unused_value, work] : dimension.work_of_value) means.push_back(work.mean());
    const double median = Median(means);
    for (const auto& [value, work] : dimension.work_of_value) {
      GroupStats& group = *stats.add_groups();
      group.set_dimension(name);
      group.set_value(value);
      group.set_num_ranks(work.count());
      group.set_mean_work_seconds(work.mean());
      group.set_max_work_seconds(work.max());
      group.set_slower_by(median > 0 ? work.mean() / median - 1 : 0);
    }
  }
}

void ClusterSummary::FinishNotes(ClusterStats& stats) const {
  for (const std::string& note : notes_) stats.add_notes(note);
  auto counts = ranks_of_iteration_count_;
  if (const auto none = counts.find(0); none != counts.end()) {
    stats.add_notes(absl::StrCat(FormatRanks(none->second.ToVector()), ": no iteration measured yet"));
    counts.erase(none);
  }
  if (counts.size() < 2) return;
  std::string note = "ranks measured different numbers of iterations:";
  for (const auto& [count, ranks_with_it] : counts) {
    absl::StrAppend(&note, counts.begin()->first == count ? " " : "; ", count, " on ",
                    FormatRanks(ranks_with_it.ToVector()));
  }
  stats.add_notes(note);
}

ClusterStats ClusterSummary::Finish(int world_size) const {
  ClusterStats stats;
  stats.set_world_size(world_size);
  const RankSet reported = ranks();
  stats.set_num_ranks(reported.size());
  for (const int rank : RankSet(0, world_size).Minus(reported).ToVector()) stats.add_missing_ranks(rank);
  for (const int rank : late_ranks_.ToVector()) stats.add_late_ranks(rank);
  std::vector<RankSummary> listed = listed_;
  std::sort(listed.begin(), listed.end(),
            [](const RankSummary& a, const RankSummary& b) { return a.rank() < b.rank(); });
  for (const RankSummary& rank : listed) *stats.add_ranks() = rank;
  if (!ranks_of_iteration_count_.empty()) {
    stats.set_min_measured_iters(ranks_of_iteration_count_.begin()->first);
    stats.set_max_measured_iters(ranks_of_iteration_count_.rbegin()->first);
  }
  *stats.mutable_iteration() = iteration_.Finish(iteration_.ranks);
  stats.mutable_iteration()->set_name("iteration");
  for (const Row& measurement : measurements_) {
    *stats.add_measurements() = measurement.Finish(iteration_.ranks);
  }
  for (const Row& one_time : one_time_) {
    OneTimeOfRanks& finished = *stats.add_one_time();
    finished.set_name(one_time.name);
    finished.set_num_ranks(one_time.over_ranks.count());
    finished.set_mean(one_time.over_ranks.mean());
    *finished.mutable_max() = one_time.max;
  }
  if (taken_.num_watched() > 0) *stats.mutable_cpu_taken() = taken_;
  FinishGroups(stats);
  for (const auto& [kind, misuses] : misuses_) {
    MisuseOfRanks& finished = *stats.add_misuses();
    finished.set_kind(kind);
    finished.set_count(misuses.count);
    finished.set_ranks(FormatRanks(misuses.ranks.ToVector()));
  }
  FinishNotes(stats);
  return stats;
}

}  // namespace ott
