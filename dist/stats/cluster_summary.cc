#include "ott/dist/stats/cluster_summary.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/quantile_sketch.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

constexpr int64_t kMaxListedRanks = 256;
constexpr size_t kMaxGroups = 64;
constexpr size_t kMaxNotes = 32;
// Of a normal distribution: standard deviation / median absolute deviation.
constexpr double kDeviationOverMad = 1.4826;
constexpr double kNumDeviations = 3;
constexpr double kPicosecond = 1e-12;

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

// Values and how often each occurs, ascending.
using Weighted = std::vector<std::pair<double, uint64_t>>;

// The values that a sketch stands for, in seconds, one of `without` left out.
Weighted ValuesWithout(const QuantileSketch& sketch, double without) {
  const int bucket_without =
      QuantileSketch::BucketOf(static_cast<uint64_t>(std::llround(without / kPicosecond)));
  Weighted values;
  for (const auto& [bucket, count] : sketch.buckets()) {
    const uint64_t left = count - (bucket == bucket_without ? 1 : 0);
    if (left > 0) values.emplace_back(QuantileSketch::ValueOf(bucket) * kPicosecond, left);
  }
  return values;
}

// REQUIRES: values is not empty.
double Median(const Weighted& values) {
  uint64_t count = 0;
  for (const auto& value : values) count += value.second;
  const auto at = [&](uint64_t position) {
    for (const auto& [value, weight] : values) {
      if (position < weight) return value;
      position -= weight;
    }
    OTT_CHECK(false) << "position beyond " << count << " values";
    return 0.0;
  };
  return (at((count - 1) / 2) + at(count / 2)) / 2;
}

double MedianAbsoluteDeviation(Weighted values, double median) {
  for (auto& value : values) value.first = std::abs(value.first - median);
  std::sort(values.begin(), values.end());
  return Median(values);
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
    Entry entry{measurement.collective(), per_iteration->total(), *std::move(intervals)};
    if (!report.measurements.emplace(measurement.name(), std::move(entry)).second) {
      return absl::InvalidArgumentError(absl::StrCat(measurement.name(), ": reported twice"));
    }
    report.names.push_back(measurement.name());
  }
  for (const OneTimeMeasurement& one_time : stats.one_time()) {
    if (!one_time.running()) report.one_time.emplace_back(one_time.name(), one_time.seconds());
  }
  return report;
}

void RankReport::Add(const RankReport& other) {
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
  }
  one_time.insert(one_time.end(), other.one_time.begin(), other.one_time.end());
}

RankReport RankReport::Since(const RankReport& earlier) const {
  if (num_measured_iters < earlier.num_measured_iters) return *this;
  RankReport since = *this;
  since.num_measured_iters -= earlier.num_measured_iters;
  since.total_seconds = std::max(0.0, since.total_seconds - earlier.total_seconds);
  since.iterations = DurationStatistics();
  since.one_time.clear();
  for (auto& [name, entry] : since.measurements) {
    const auto before = earlier.measurements.find(name);
    if (before != earlier.measurements.end()) {
      entry.total_seconds = std::max(0.0, entry.total_seconds - before->second.total_seconds);
    }
    entry.intervals = DurationStatistics();
  }
  return since;
}

double RankReport::WorkSeconds() const {
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
  slowest_.emplace();
  slowest_->rank = summary;
  for (const std::string& name : report.names) {
    const RankReport::Entry& entry = report.measurements.at(name);
    const double seconds = report.PerIteration(entry.total_seconds);
    Measurement& measurement = Named(name);
    measurement.collective = entry.collective;
    measurement.AddRank(report, seconds);
    measurement.intervals = entry.intervals;
    if (!entry.collective) slowest_->measurements.emplace_back(name, seconds);
  }
  for (const GroupLabel& group : report.groups) {
    dimensions_[group.dimension].work_of_value[group.value].AddSeconds(summary.work_seconds());
  }
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
  if (other.slowest_ &&
      (!slowest_ || IsMoreExtreme(other.slowest_->rank.work_seconds(), other.slowest_->rank.rank(),
                                  slowest_->rank.work_seconds(), slowest_->rank.rank()))) {
    slowest_ = other.slowest_;
  }
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

std::optional<Straggler> ClusterSummary::FindStraggler() const {
  if (ranks_.size() < 2) return std::nullopt;
  const double work = slowest_->rank.work_seconds();
  const Weighted others = ValuesWithout(work_.sketch(), work);
  const double median = Median(others);
  const double deviation = kDeviationOverMad * MedianAbsoluteDeviation(others, median);
  const double excess = work - median;
  const double threshold = std::max({kStragglerThreshold * median, kNumDeviations * deviation,
                                     kStragglerIterationShare * iteration_.over_ranks.mean()});
  if (excess <= 0 || excess < threshold) return std::nullopt;

  Straggler straggler;
  straggler.set_rank(slowest_->rank.rank());
  straggler.set_host(slowest_->rank.host());
  straggler.set_work_seconds(work);
  straggler.set_median_work_seconds(median);
  straggler.set_slower_by(median > 0 ? excess / median : 0);
  LocateExcess(straggler);
  return straggler;
}

void ClusterSummary::LocateExcess(Straggler& straggler) const {
  double unexplained = straggler.work_seconds() - straggler.median_work_seconds();
  for (const auto& [name, seconds] : slowest_->measurements) {
    const Measurement& measurement = measurements_[positions_.at(name)];
    const Weighted others = ValuesWithout(measurement.over_ranks.sketch(), seconds);
    const double excess = seconds - (others.empty() ? 0 : Median(others));
    unexplained -= excess;
    if (excess > straggler.measurement_excess_seconds()) {
      straggler.set_measurement(name);
      straggler.set_measurement_excess_seconds(excess);
    }
  }
  if (unexplained > straggler.measurement_excess_seconds()) {
    straggler.clear_measurement();
    straggler.set_measurement_excess_seconds(unexplained);
  }
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
  for (const int rank : all.Minus(measurement.ranks).ToVector()) finished.add_ranks_without(rank);
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
    Weighted means;
    for (const auto& [unused_value, work] : dimension.work_of_value) means.emplace_back(work.mean(), 1);
    std::sort(means.begin(), means.end());
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
  if (std::optional<Straggler> straggler = FindStraggler())
    *stats.mutable_straggler() = *std::move(straggler);
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
  if (slowest_) {
    *proto.mutable_slowest()->mutable_rank() = slowest_->rank;
    for (const auto& [name, seconds] : slowest_->measurements) {
      internal::NamedSeconds& measurement = *proto.mutable_slowest()->add_measurements();
      measurement.set_name(name);
      measurement.set_seconds(seconds);
    }
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
  if (proto.has_slowest()) {
    summary.slowest_.emplace();
    summary.slowest_->rank = proto.slowest().rank();
    for (const internal::NamedSeconds& measurement : proto.slowest().measurements()) {
      if (summary.positions_.count(measurement.name()) == 0) {
        return absl::InvalidArgumentError(absl::StrCat(measurement.name(), ": of the slowest rank only"));
      }
      summary.slowest_->measurements.emplace_back(measurement.name(), measurement.seconds());
    }
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
