#include "ott/dist/stats/cluster_summary.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/statistics/location.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/stats/cluster_table.h"

namespace ott {
namespace {

constexpr int64_t kMaxListedRanks = 256;
constexpr size_t kMaxGroups = 64;
constexpr size_t kMaxNotes = 32;
TimeOfRank MakeTime(int rank, const std::string& host, double seconds) {
  TimeOfRank time;
  time.set_rank(rank);
  time.set_host(host);
  time.set_seconds(seconds);
  return time;
}

// Which ranks' values are kept as extremes: on a tie the lower rank's, so that the order of merging does not
// matter.
bool IsMoreExtreme(double a, int rank_a, double b, int rank_b) { return a != b ? a > b : rank_a < rank_b; }

// Times a rank may have for its measurements as a share of its iterations: it runs in some of them.
std::optional<SteadyTime> FromProto(const SteadyTimeStats& proto, double share) {
  if (!std::isfinite(proto.seconds()) || !(proto.standard_error() >= 0) ||
      !(proto.degrees_of_freedom() > 0)) {
    return std::nullopt;
  }
  return SteadyTime{share * proto.seconds(), share * proto.standard_error(), proto.degrees_of_freedom()};
}

std::optional<SteadyTime> All(const OwnTimeStats& proto, double share = 1) {
  return proto.has_all() ? FromProto(proto.all(), share) : std::nullopt;
}

std::optional<SteadyTime> Window(const OwnTimeStats& proto, double share = 1) {
  return proto.has_window() ? FromProto(proto.window(), share) : std::nullopt;
}

internal::RankRanges RangesToProto(const RankSet& ranks) {
  internal::RankRanges proto;
  for (const auto& [begin, end] : ranks.ranges()) {
    proto.add_begin(begin);
    proto.add_end(end);
  }
  return proto;
}

absl::StatusOr<RankSet> RangesFromProto(const internal::RankRanges& proto) {
  if (proto.begin_size() != proto.end_size())
    return absl::InvalidArgumentError("ranges of ranks are cut off");
  RankSet ranks;
  for (int i = 0; i < proto.begin_size(); ++i) {
    if (proto.begin(i) < 0 || proto.end(i) <= proto.begin(i)) {
      return absl::InvalidArgumentError(absl::StrCat("ranks ", proto.begin(i), " to ", proto.end(i)));
    }
    ranks.AddRange(proto.begin(i), proto.end(i));
  }
  return ranks;
}

void AddTimesToProto(const std::map<std::string, RankTimes>& times_of_groups,
                     google::protobuf::RepeatedPtrField<internal::LikeTimes>& proto) {
  for (const auto& [group, times] : times_of_groups) {
    internal::LikeTimes& added = *proto.Add();
    added.set_group(group);
    *added.mutable_times() = times.ToProto();
  }
}

absl::StatusOr<std::map<std::string, RankTimes>> TimesFromProto(
    const google::protobuf::RepeatedPtrField<internal::LikeTimes>& proto) {
  std::map<std::string, RankTimes> times_of_groups;
  for (const internal::LikeTimes& times : proto) {
    OTT_ASSIGN_OR_RETURN(times_of_groups[times.group()], RankTimes::FromProto(times.times()));
  }
  return times_of_groups;
}

}  // namespace

absl::StatusOr<RankReport> RankReport::FromStats(const StopwatchStats& stats) {
  if (stats.num_measured_iters() < 0) {
    return absl::InvalidArgumentError(absl::StrCat(stats.num_measured_iters(), " measured iterations"));
  }
  RankReport report;
  report.rank = stats.rank();
  report.host = stats.host();
  report.num_measured_iters = stats.num_measured_iters();
  OTT_ASSIGN_OR_RETURN(report.iterations, DurationStatistics::FromProto(stats.iteration()));
  report.total_seconds = report.iterations.total();
  for (const ott::Measurement& measurement : stats.measurements()) {
    const absl::StatusOr<DurationStatistics> per_iteration =
        DurationStatistics::FromProto(measurement.per_iteration());
    absl::StatusOr<DurationStatistics> intervals = DurationStatistics::FromProto(measurement.per_interval());
    for (const absl::Status& status : {per_iteration.status(), intervals.status()}) {
      if (!status.ok())
        return absl::Status(status.code(), absl::StrCat(measurement.name(), ": ", status.message()));
    }
    // In a mean iteration, also where it runs in few.
    const double share = stats.num_measured_iters() > 0 ? static_cast<double>(per_iteration->count()) /
                                                              static_cast<double>(stats.num_measured_iters())
                                                        : 0;
    Entry entry{measurement.collective(), per_iteration->total(), *std::move(intervals),
                All(measurement.own(), share), Window(measurement.own(), share)};
    if (!report.measurements.emplace(measurement.name(), std::move(entry)).second) {
      return absl::InvalidArgumentError(absl::StrCat(measurement.name(), ": reported twice"));
    }
    report.names.push_back(measurement.name());
  }
  if (stats.has_observer_thread_seconds()) {
    Entry entry;
    entry.total_seconds = stats.observer_thread_seconds();
    if (report.measurements.emplace(kObserverThreads, std::move(entry)).second) {
      report.names.push_back(kObserverThreads);
    }
  }
  if (stats.has_own_work()) {
    const OwnWorkStats& own = stats.own_work();
    report.work_seconds = std::max(0.0, report.total_seconds - own.waiting_seconds());
    report.num_watched_iters = own.num_watched_iters();
    report.cpu_seconds = own.cpu_seconds();
    report.taken_seconds = own.taken_seconds();
    report.own_work = All(own.time());
    report.own_work_in_window = Window(own.time());
  }
  for (const OneTimeMeasurement& one_time : stats.one_time()) {
    if (!one_time.running()) report.one_time.emplace_back(one_time.name(), one_time.seconds());
  }
  return report;
}

void RankReport::Add(const RankReport& other) {
  // One of the two says little about the other; what took longer is compared.
  const bool is_shorter = num_measured_iters < other.num_measured_iters;
  if (is_shorter) own_work = other.own_work;
  if (work_seconds && other.work_seconds) *work_seconds += *other.work_seconds;
  num_watched_iters += other.num_watched_iters;
  cpu_seconds += other.cpu_seconds;
  taken_seconds += other.taken_seconds;
  num_measured_iters += other.num_measured_iters;
  total_seconds += other.total_seconds;
  iterations.Merge(other.iterations);
  for (const std::string& name : other.names) {
    const auto [entry, is_new] = measurements.try_emplace(name);
    if (is_new) names.push_back(name);
    const Entry& theirs = other.measurements.at(name);
    entry->second.collective |= theirs.collective;
    entry->second.total_seconds += theirs.total_seconds;
    entry->second.intervals.Merge(theirs.intervals);
    if (is_new || is_shorter) entry->second.own = theirs.own;
  }
  one_time.insert(one_time.end(), other.one_time.begin(), other.one_time.end());
}

RankReport RankReport::Since(const RankReport& earlier) const {
  if (num_measured_iters < earlier.num_measured_iters) return *this;
  RankReport since = *this;
  since.num_measured_iters -= earlier.num_measured_iters;
  since.total_seconds = std::max(0.0, since.total_seconds - earlier.total_seconds);
  if (since.work_seconds && earlier.work_seconds) {
    since.work_seconds = std::max(0.0, *since.work_seconds - *earlier.work_seconds);
  }
  since.num_watched_iters -= earlier.num_watched_iters;
  since.cpu_seconds -= earlier.cpu_seconds;
  since.taken_seconds -= earlier.taken_seconds;
  since.own_work = own_work_in_window;
  since.iterations = DurationStatistics();
  since.one_time.clear();
  for (auto& [name, entry] : since.measurements) {
    const auto before = earlier.measurements.find(name);
    if (before != earlier.measurements.end()) {
      entry.total_seconds = std::max(0.0, entry.total_seconds - before->second.total_seconds);
    }
    entry.intervals = DurationStatistics();
    entry.own = entry.own_in_window;
  }
  return since;
}

CpuShare RankReport::CpuOfWork() const {
  const double work = WorkSeconds();
  CpuShare cpu;
  cpu.cpu_seconds = work;
  cpu.watched_seconds = total_seconds;
  if (num_watched_iters == 0 || work <= 0) return cpu;
  const auto count = static_cast<double>(num_watched_iters);
  cpu.cpu_seconds = std::min(work, cpu_seconds / count);
  cpu.taken_share = taken_seconds / count / work;
  return cpu;
}

double RankReport::WorkSeconds() const {
  if (work_seconds) return PerIteration(*work_seconds);
  double work = total_seconds;
  for (const auto& [unused_name, entry] : measurements) {
    if (entry.collective) work -= entry.total_seconds;
  }
  return PerIteration(std::max(work, 0.0));
}

void ClusterSummary::Measurement::AddRank(const RankReport& report, double seconds) {
  ranks.Add(report.rank);
  over_ranks.AddSeconds(seconds);
  min = max = MakeTime(report.rank, report.host, seconds);
  iterations.AddSeconds(report.PerIteration(report.total_seconds));
}

void ClusterSummary::Measurement::Merge(const Measurement& other) {
  if (other.ranks.empty()) return;
  const bool is_first = ranks.empty();
  collective |= other.collective;
  ranks.Add(other.ranks);
  over_ranks.Merge(other.over_ranks);
  intervals.Merge(other.intervals);
  if (is_first || IsMoreExtreme(-other.min.seconds(), other.min.rank(), -min.seconds(), min.rank()))
    min = other.min;
  if (is_first || IsMoreExtreme(other.max.seconds(), other.max.rank(), max.seconds(), max.rank()))
    max = other.max;
  iterations.Merge(other.iterations);
  for (const auto& [group, theirs] : other.times) times[group].Merge(theirs);
}

ClusterSummary::ClusterSummary(const RankReport& report) {
  iteration_.name = "iteration";
  ranks_of_iteration_count_[report.num_measured_iters].Add(report.rank);
  RankSummary summary;
  summary.set_rank(report.rank);
  summary.set_host(report.host);
  summary.set_num_measured_iters(report.num_measured_iters);
  for (const auto& [name, seconds] : report.one_time) {
    OneTime& one_time = NamedOneTime(name);
    one_time.over_ranks.AddSeconds(seconds);
    one_time.max = MakeTime(report.rank, report.host, seconds);
  }
  if (report.num_measured_iters == 0) {
    ranks_without_iterations_.Add(report.rank);
    listed_.push_back(summary);
    return;
  }

  ranks_.Add(report.rank);
  iteration_.AddRank(report, report.PerIteration(report.total_seconds));
  iteration_.intervals = report.iterations;
  summary.set_work_seconds(report.WorkSeconds());
  listed_.push_back(summary);
  work_.AddSeconds(summary.work_seconds());
  slowest_ = summary;
  const CpuShare cpu = report.CpuOfWork();
  if (report.num_watched_iters > 0 && report.WorkSeconds() > 0) taken_.Add(cpu.taken_share, report.rank);
  AddCpuOfWork(cpu);
  if (report.own_work) {
    work_times_[report.like_work] = RankTimes({report.rank, {*report.own_work, cpu}});
  }
  for (const std::string& name : report.names) {
    const RankReport::Entry& entry = report.measurements.at(name);
    const double seconds = report.PerIteration(entry.total_seconds);
    Measurement& measurement = Named(name);
    measurement.collective = entry.collective;
    measurement.AddRank(report, seconds);
    measurement.intervals = entry.intervals;
    if (entry.own) {
      measurement.times[report.like_work] = RankTimes({report.rank, {*entry.own, cpu}});
    }
  }
  for (const GroupLabel& group : report.groups) {
    dimensions_[group.dimension].work_of_value[group.value].AddSeconds(summary.work_seconds());
  }
}

void ClusterSummary::AddCpuOfWork(const CpuShare& cpu) {
  cpu_of_work_ = cpu_of_work_ ? LeastCertain(*cpu_of_work_, cpu) : cpu;
}

ClusterSummary::Measurement& ClusterSummary::Named(const std::string& name) {
  const auto [position, is_new] = positions_.emplace(name, measurements_.size());
  if (is_new) {
    measurements_.emplace_back();
    measurements_.back().name = name;
  }
  return measurements_[position->second];
}

ClusterSummary::OneTime& ClusterSummary::NamedOneTime(const std::string& name) {
  const auto found = std::find_if(one_time_.begin(), one_time_.end(),
                                  [&](const auto& one_time) { return one_time.first == name; });
  if (found != one_time_.end()) return found->second;
  return one_time_.emplace_back(name, OneTime()).second;
}

void ClusterSummary::AddNote(std::string note) {
  if (notes_.size() < kMaxNotes) {
    notes_.push_back(std::move(note));
  } else {
    notes_.back() = "further notes are left out";
  }
}

RankSet ClusterSummary::ranks() const {
  RankSet all = ranks_;
  all.Add(ranks_without_iterations_);
  return all;
}

void ClusterSummary::Merge(const ClusterSummary& other) {
  ranks_.Add(other.ranks_);
  ranks_without_iterations_.Add(other.ranks_without_iterations_);
  late_ranks_.Add(other.late_ranks_);
  iteration_.name = "iteration";
  iteration_.Merge(other.iteration_);
  for (const Measurement& measurement : other.measurements_) Named(measurement.name).Merge(measurement);
  work_.Merge(other.work_);
  if (other.slowest_ && (!slowest_ || IsMoreExtreme(other.slowest_->work_seconds(), other.slowest_->rank(),
                                                    slowest_->work_seconds(), slowest_->rank()))) {
    slowest_ = other.slowest_;
  }
  for (const auto& [group, theirs] : other.work_times_) work_times_[group].Merge(theirs);
  taken_.Merge(other.taken_);
  if (other.cpu_of_work_) AddCpuOfWork(*other.cpu_of_work_);
  for (const auto& [count, ranks_with_it] : other.ranks_of_iteration_count_) {
    ranks_of_iteration_count_[count].Add(ranks_with_it);
  }
  for (const auto& [name, theirs] : other.dimensions_) {
    Dimension& dimension = dimensions_[name];
    for (const auto& [value, work] : theirs.work_of_value) dimension.work_of_value[value].Merge(work);
    dimension.too_many |= theirs.too_many || dimension.work_of_value.size() > kMaxGroups;
    if (dimension.too_many) dimension.work_of_value.clear();
  }
  for (const auto& [name, theirs] : other.one_time_) {
    OneTime& one_time = NamedOneTime(name);
    const bool is_first = one_time.over_ranks.count() == 0;
    one_time.over_ranks.Merge(theirs.over_ranks);
    if (is_first ||
        IsMoreExtreme(theirs.max.seconds(), theirs.max.rank(), one_time.max.seconds(), one_time.max.rank())) {
      one_time.max = theirs.max;
    }
  }
  for (const std::string& note : other.notes_) AddNote(note);
  listed_.insert(listed_.end(), other.listed_.begin(), other.listed_.end());
  if (ranks_.size() + ranks_without_iterations_.size() > kMaxListedRanks) listed_.clear();
}

ClusterMeasurement ClusterSummary::FinishMeasurement(const Measurement& measurement, const RankSet& all) {
  ClusterMeasurement finished;
  finished.set_name(measurement.name);
  finished.set_collective(measurement.collective);
  finished.set_num_ranks(measurement.ranks.size());
  const double mean = measurement.over_ranks.mean();
  finished.set_mean(mean);
  finished.set_standard_deviation(measurement.over_ranks.standard_deviation());
  *finished.mutable_min() = measurement.min;
  *finished.mutable_max() = measurement.max;
  finished.set_imbalance(mean > 0 ? std::max(measurement.max.seconds() / mean - 1, 0.0) : 0);
  if (measurement.iterations.total() > 0) {
    finished.set_share_of_iteration(measurement.over_ranks.total() / measurement.iterations.total());
  }
  if (const RankSet without = all.Minus(measurement.ranks); !without.empty()) {
    finished.set_ranks_without(FormatRanks(without.ToVector()));
  }
  if (const std::optional<double> p50 = measurement.intervals.Quantile(0.50)) {
    finished.set_p50(*p50);
    finished.set_p90(*measurement.intervals.Quantile(0.90));
    finished.set_p99(*measurement.intervals.Quantile(0.99));
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
  if (!ranks_without_iterations_.empty()) {
    stats.add_notes(
        absl::StrCat(FormatRanks(ranks_without_iterations_.ToVector()), ": no iteration measured yet"));
  }
  auto counts = ranks_of_iteration_count_;
  counts.erase(0);
  if (counts.size() < 2) return;
  std::string note = "ranks measured different numbers of iterations:";
  for (const auto& [count, ranks_with_it] : counts) {
    absl::StrAppend(&note, counts.begin()->first == count ? " " : "; ", count, " on ",
                    FormatRanks(ranks_with_it.ToVector()));
  }
  stats.add_notes(note);
}

ClusterStats ClusterSummary::Finish(int world_size, double error_share) const {
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
  *stats.mutable_iteration() = FinishMeasurement(iteration_, ranks_);
  for (const Measurement& measurement : measurements_) {
    *stats.add_measurements() = FinishMeasurement(measurement, ranks_);
  }
  for (const auto& [name, one_time] : one_time_) {
    OneTimeOfRanks& finished = *stats.add_one_time();
    finished.set_name(name);
    finished.set_num_ranks(one_time.over_ranks.count());
    finished.set_mean(one_time.over_ranks.mean());
    *finished.mutable_max() = one_time.max;
  }
  FindStraggler(kWorkError * error_share, stats);
  FindSlowMeasurements(kMeasurementError * error_share, stats);
  FinishTaken(stats);
  FinishGroups(stats);
  FinishNotes(stats);
  return stats;
}

internal::MeasurementSummary ClusterSummary::ToProto(const Measurement& measurement, const RankSet& all) {
  internal::MeasurementSummary proto;
  proto.set_name(measurement.name);
  proto.set_collective(measurement.collective);
  if (measurement.ranks != all) *proto.mutable_ranks() = RangesToProto(measurement.ranks);
  *proto.mutable_over_ranks() = measurement.over_ranks.ToProto();
  if (measurement.intervals.count() > 0) *proto.mutable_intervals() = measurement.intervals.ToProto();
  *proto.mutable_min() = measurement.min;
  *proto.mutable_max() = measurement.max;
  *proto.mutable_iterations() = measurement.iterations.ToProto();
  AddTimesToProto(measurement.times, *proto.mutable_times());
  return proto;
}

absl::StatusOr<ClusterSummary::Measurement> ClusterSummary::MeasurementFromProto(
    const internal::MeasurementSummary& proto, const RankSet& all) {
  Measurement measurement;
  measurement.name = proto.name();
  measurement.collective = proto.collective();
  measurement.ranks = all;
  if (proto.has_ranks()) {
    OTT_ASSIGN_OR_RETURN(measurement.ranks, RangesFromProto(proto.ranks()));
  }
  OTT_ASSIGN_OR_RETURN(measurement.over_ranks, DurationStatistics::FromProto(proto.over_ranks()));
  OTT_ASSIGN_OR_RETURN(measurement.intervals, DurationStatistics::FromProto(proto.intervals()));
  if (measurement.over_ranks.count() != measurement.ranks.size()) {
    return absl::InvalidArgumentError(absl::StrCat(proto.name(), ": ", measurement.over_ranks.count(),
                                                   " values of ", measurement.ranks.size(), " ranks"));
  }
  measurement.min = proto.min();
  measurement.max = proto.max();
  OTT_ASSIGN_OR_RETURN(measurement.iterations, DurationStatistics::FromProto(proto.iterations()));
  OTT_ASSIGN_OR_RETURN(measurement.times, TimesFromProto(proto.times()));
  return measurement;
}

internal::ClusterSummary ClusterSummary::ToProto() const {
  internal::ClusterSummary proto;
  *proto.mutable_ranks() = RangesToProto(ranks_);
  *proto.mutable_ranks_without_iterations() = RangesToProto(ranks_without_iterations_);
  *proto.mutable_late_ranks() = RangesToProto(late_ranks_);
  *proto.mutable_iteration() = ToProto(iteration_, ranks_);
  for (const Measurement& measurement : measurements_)
    *proto.add_measurements() = ToProto(measurement, ranks_);
  *proto.mutable_work() = work_.ToProto();
  if (slowest_) *proto.mutable_slowest() = *slowest_;
  AddTimesToProto(work_times_, *proto.mutable_work_times());
  internal::TakenSummary& taken = *proto.mutable_taken();
  taken.set_num_watched(taken_.num_watched);
  taken.set_num_taken(taken_.num_taken);
  for (const auto& [share, rank] : taken_.ranks) {
    taken.add_share(share);
    taken.add_rank(rank);
  }
  if (cpu_of_work_) {
    internal::CpuShare& cpu = *proto.mutable_cpu_of_work();
    cpu.set_cpu_seconds(cpu_of_work_->cpu_seconds);
    cpu.set_taken_share(cpu_of_work_->taken_share);
    cpu.set_watched_seconds(cpu_of_work_->watched_seconds);
  }
  for (const RankSummary& rank : listed_) *proto.add_listed() = rank;
  for (const auto& [count, ranks_with_it] : ranks_of_iteration_count_) {
    internal::IterationCount& iteration_count = *proto.add_iteration_counts();
    iteration_count.set_num_measured_iters(count);
    *iteration_count.mutable_ranks() = RangesToProto(ranks_with_it);
  }
  for (const auto& [name, dimension] : dimensions_) {
    if (dimension.too_many) proto.add_groups()->set_dimension(name);
    for (const auto& [value, work] : dimension.work_of_value) {
      internal::GroupSummary& group = *proto.add_groups();
      group.set_dimension(name);
      group.set_value(value);
      *group.mutable_work() = work.ToProto();
    }
  }
  for (const auto& [name, one_time] : one_time_) {
    internal::OneTimeSummary& summary = *proto.add_one_time();
    summary.set_name(name);
    *summary.mutable_over_ranks() = one_time.over_ranks.ToProto();
    *summary.mutable_max() = one_time.max;
  }
  for (const std::string& note : notes_) proto.add_notes(note);
  return proto;
}

absl::StatusOr<ClusterSummary> ClusterSummary::FromProto(const internal::ClusterSummary& proto) {
  ClusterSummary summary;
  OTT_ASSIGN_OR_RETURN(summary.ranks_, RangesFromProto(proto.ranks()));
  OTT_ASSIGN_OR_RETURN(summary.ranks_without_iterations_, RangesFromProto(proto.ranks_without_iterations()));
  OTT_ASSIGN_OR_RETURN(summary.late_ranks_, RangesFromProto(proto.late_ranks()));
  OTT_ASSIGN_OR_RETURN(summary.iteration_, MeasurementFromProto(proto.iteration(), summary.ranks_));
  for (const internal::MeasurementSummary& measurement_proto : proto.measurements()) {
    OTT_ASSIGN_OR_RETURN(Measurement measurement, MeasurementFromProto(measurement_proto, summary.ranks_));
    summary.Named(measurement.name) = std::move(measurement);
  }
  OTT_ASSIGN_OR_RETURN(summary.work_, DurationStatistics::FromProto(proto.work()));
  if (summary.work_.count() != summary.ranks_.size() || proto.has_slowest() == summary.ranks_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("work of ", summary.work_.count(), " ranks among ", summary.ranks_.size()));
  }
  if (proto.has_slowest()) summary.slowest_ = proto.slowest();
  OTT_ASSIGN_OR_RETURN(summary.work_times_, TimesFromProto(proto.work_times()));
  summary.taken_.num_watched = proto.taken().num_watched();
  summary.taken_.num_taken = proto.taken().num_taken();
  for (int i = 0; i < std::min(proto.taken().rank_size(), proto.taken().share_size()); ++i) {
    summary.taken_.ranks.emplace_back(proto.taken().share(i), proto.taken().rank(i));
  }
  if (proto.has_cpu_of_work()) {
    const internal::CpuShare& cpu = proto.cpu_of_work();
    summary.cpu_of_work_ = {cpu.cpu_seconds(), cpu.taken_share(), cpu.watched_seconds()};
  }
  summary.listed_.assign(proto.listed().begin(), proto.listed().end());
  for (const internal::IterationCount& count : proto.iteration_counts()) {
    OTT_ASSIGN_OR_RETURN(summary.ranks_of_iteration_count_[count.num_measured_iters()],
                         RangesFromProto(count.ranks()));
  }
  for (const internal::GroupSummary& group : proto.groups()) {
    Dimension& dimension = summary.dimensions_[group.dimension()];
    if (!group.has_value()) {
      dimension.too_many = true;
      continue;
    }
    OTT_ASSIGN_OR_RETURN(dimension.work_of_value[group.value()], DurationStatistics::FromProto(group.work()));
  }
  for (const internal::OneTimeSummary& one_time : proto.one_time()) {
    OneTime& mine = summary.NamedOneTime(one_time.name());
    OTT_ASSIGN_OR_RETURN(mine.over_ranks, DurationStatistics::FromProto(one_time.over_ranks()));
    mine.max = one_time.max();
  }
  summary.notes_.assign(proto.notes().begin(), proto.notes().end());
  return summary;
}

}  // namespace ott
