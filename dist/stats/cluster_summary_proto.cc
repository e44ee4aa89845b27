// A ClusterSummary as it travels between ranks.

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/stats/cluster_summary.h"

namespace ott {
namespace {

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

// Without what follows from the sums, and without quantiles, which nobody asks for where samples are ranks.
Statistics SumsToProto(const DurationStatistics& statistics) {
  Statistics all = statistics.ToProto();
  Statistics sums;
  sums.set_count(all.count());
  if (all.has_exact()) *sums.mutable_exact() = all.exact();
  return sums;
}

}  // namespace

ClusterMeasurement ClusterSummary::Row::ToProto(const RankSet& all) const {
  ClusterMeasurement proto = Outline();
  if (ranks != all) *proto.mutable_ranks() = RangesToProto(ranks);
  *proto.mutable_over_ranks() = SumsToProto(over_ranks);
  *proto.mutable_iterations() = SumsToProto(iterations);
  if (intervals.count() > 0) *proto.mutable_intervals() = intervals.ToProto();
  for (const auto& [group, times_of_group] : times) {
    internal::LikeTimes& added = *proto.add_times();
    added.set_group(group);
    *added.mutable_times() = times_of_group.ToProto();
  }
  return proto;
}

absl::StatusOr<ClusterSummary::Row> ClusterSummary::Row::FromProto(const ClusterMeasurement& proto,
                                                                   const RankSet& all) {
  Row row;
  row.name = proto.name();
  row.collective = proto.collective();
  row.outermost = proto.outermost();
  row.sampled = proto.sampled();
  row.outer = proto.outer();
  row.ranks = all;
  if (proto.has_ranks()) {
    OTT_ASSIGN_OR_RETURN(row.ranks, RangesFromProto(proto.ranks()));
  }
  OTT_ASSIGN_OR_RETURN(row.over_ranks, DurationStatistics::FromProto(proto.over_ranks()));
  OTT_ASSIGN_OR_RETURN(row.iterations, DurationStatistics::FromProto(proto.iterations()));
  OTT_ASSIGN_OR_RETURN(row.intervals, DurationStatistics::FromProto(proto.intervals()));
  if (row.over_ranks.count() != row.ranks.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(proto.name(), ": ", row.over_ranks.count(), " values of ", row.ranks.size(), " ranks"));
  }
  row.min = proto.min();
  row.max = proto.max();
  for (const internal::LikeTimes& times : proto.times()) {
    OTT_ASSIGN_OR_RETURN(row.times[times.group()], RankTimes::FromProto(times.times()));
  }
  return row;
}

ClusterStats ClusterSummary::ToProto() const {
  ClusterStats proto;
  *proto.mutable_iteration() = iteration_.ToProto(RankSet());
  *proto.mutable_work() = work_.ToProto(iteration_.ranks);
  for (const Row& row : measurements_) *proto.add_measurements() = row.ToProto(iteration_.ranks);
  for (const Row& row : one_time_) {
    OneTimeOfRanks& one_time = *proto.add_one_time();
    one_time.set_name(row.name);
    *one_time.mutable_over_ranks() = SumsToProto(row.over_ranks);
    *one_time.mutable_max() = row.max;
  }
  for (const auto& [count, ranks_with_it] : ranks_of_iteration_count_) {
    internal::IterationCount& iteration_count = *proto.add_iteration_counts();
    iteration_count.set_num_measured_iters(count);
    *iteration_count.mutable_ranks() = RangesToProto(ranks_with_it);
  }
  *proto.mutable_late() = RangesToProto(late_ranks_);
  *proto.mutable_cpu_taken() = taken_;
  if (cpu_of_work_) {
    internal::CpuShare& cpu = *proto.mutable_cpu_of_work();
    cpu.set_cpu_seconds(cpu_of_work_->cpu_seconds);
    cpu.set_taken_share(cpu_of_work_->taken_share);
    cpu.set_watched_seconds(cpu_of_work_->watched_seconds);
    cpu.set_taken_seconds(cpu_of_work_->taken_seconds);
  }
  for (const auto& [name, dimension] : dimensions_) {
    if (dimension.too_many) proto.add_groups()->set_dimension(name);
    for (const auto& [value, work] : dimension.work_of_value) {
      GroupStats& group = *proto.add_groups();
      group.set_dimension(name);
      group.set_value(value);
      *group.mutable_work() = SumsToProto(work);
    }
  }
  for (const auto& [kind, misuses] : misuses_) {
    MisuseOfRanks& added = *proto.add_misuses();
    added.set_kind(kind);
    added.set_count(misuses.count);
    *added.mutable_rank_ranges() = RangesToProto(misuses.ranks);
  }
  proto.mutable_ranks()->Add(listed_.begin(), listed_.end());
  proto.mutable_notes()->Add(notes_.begin(), notes_.end());
  return proto;
}

absl::StatusOr<ClusterSummary> ClusterSummary::FromProto(const ClusterStats& proto) {
  ClusterSummary summary;
  OTT_ASSIGN_OR_RETURN(summary.iteration_, Row::FromProto(proto.iteration(), RankSet()));
  const RankSet& all = summary.iteration_.ranks;
  OTT_ASSIGN_OR_RETURN(summary.work_, Row::FromProto(proto.work(), all));
  for (const ClusterMeasurement& measurement : proto.measurements()) {
    OTT_ASSIGN_OR_RETURN(summary.measurements_[measurement.name()], Row::FromProto(measurement, all));
  }
  for (const OneTimeOfRanks& one_time : proto.one_time()) {
    Row& row = summary.one_time_[one_time.name()];
    OTT_ASSIGN_OR_RETURN(row.over_ranks, DurationStatistics::FromProto(one_time.over_ranks()));
    row.max = one_time.max();
  }
  for (const internal::IterationCount& count : proto.iteration_counts()) {
    OTT_ASSIGN_OR_RETURN(summary.ranks_of_iteration_count_[count.num_measured_iters()],
                         RangesFromProto(count.ranks()));
  }
  OTT_ASSIGN_OR_RETURN(summary.late_ranks_, RangesFromProto(proto.late()));
  summary.taken_ = proto.cpu_taken();
  if (proto.has_cpu_of_work()) {
    const internal::CpuShare& cpu = proto.cpu_of_work();
    summary.cpu_of_work_ = {cpu.cpu_seconds(), cpu.taken_share(), cpu.watched_seconds(), cpu.taken_seconds()};
  }
  for (const GroupStats& group : proto.groups()) {
    Dimension& dimension = summary.dimensions_[group.dimension()];
    if (!group.has_work()) {
      dimension.too_many = true;
      continue;
    }
    OTT_ASSIGN_OR_RETURN(dimension.work_of_value[group.value()], DurationStatistics::FromProto(group.work()));
  }
  for (const MisuseOfRanks& misuses : proto.misuses()) {
    OTT_ASSIGN_OR_RETURN(RankSet ranks, RangesFromProto(misuses.rank_ranges()));
    summary.misuses_[misuses.kind()] = {misuses.count(), std::move(ranks)};
  }
  summary.listed_.assign(proto.ranks().begin(), proto.ranks().end());
  summary.notes_.assign(proto.notes().begin(), proto.notes().end());
  return summary;
}

}  // namespace ott
