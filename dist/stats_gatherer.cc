#include "ott/dist/stats_gatherer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/rank_list.h"

namespace ott {
namespace {

constexpr int kToParent = 0;

}  // namespace

StatsGatherer::StatsGatherer(std::unique_ptr<Communicator> ranks, StatsGathererOptions options)
    : ranks_(std::move(ranks)), options_(std::move(options)) {
  OTT_CHECK(options_.fan_out >= 2) << options_.fan_out;
  for (int64_t child = int64_t{ranks_->rank()} * options_.fan_out + 1;
       child <= (int64_t{ranks_->rank()} + 1) * options_.fan_out && child < ranks_->size(); ++child) {
    children_.emplace_back().rank = static_cast<int>(child);
  }
}

absl::Status StatsGatherer::Receive(Child& child, Deadline deadline) {
  while (true) {
    const bool wait = child.round < round_ && child.answers;
    absl::StatusOr<std::string> bytes =
        ranks_->Receive(child.rank, kToParent, wait ? deadline : Deadline::Now());
    if (absl::IsDeadlineExceeded(bytes.status())) {
      if (wait) child.answers = false;
      return absl::OkStatus();
    }
    if (!bytes.ok()) return bytes.status();
    num_bytes_received_ += static_cast<int64_t>(bytes->size());
    OTT_RETURN_IF_ERROR(Take(*bytes, child));
  }
}

absl::Status StatsGatherer::Take(const std::string& bytes, Child& child) {
  internal::StatsMessage message;
  if (!message.ParseFromString(bytes)) {
    return absl::InternalError(absl::StrCat(bytes.size(), " bytes that are no statistics"));
  }
  if (message.has_leaf()) {
    OTT_ASSIGN_OR_RETURN(RankReport report, RankReport::FromStats(message.leaf().stats()));
    std::vector<GroupLabel> groups;
    for (const internal::GroupLabel& group : message.leaf().groups()) {
      groups.push_back({group.dimension(), group.value()});
    }
    Identify(child.rank, std::move(groups), report);
    child.total = ClusterSummary(report);
    child.interval = ClusterSummary(child.report ? report.Since(*child.report) : report);
    child.report = std::move(report);
  } else {
    OTT_ASSIGN_OR_RETURN(child.total, ClusterSummary::FromProto(message.total()));
    OTT_ASSIGN_OR_RETURN(child.interval, ClusterSummary::FromProto(message.interval()));
  }
  OTT_ASSIGN_OR_RETURN(child.arrivals, ArrivalSummary::FromProto(message.arrivals()));
  child.answers = true;
  child.round = message.round();
  return absl::OkStatus();
}

void StatsGatherer::Identify(int rank, std::vector<GroupLabel> groups, RankReport& report) const {
  report.rank = rank;
  report.host = ranks_->host(rank);
  report.groups = std::move(groups);
  report.groups.push_back({"host", report.host});
}

void StatsGatherer::MergeChild(Child& child, Deadline deadline, ClusterSummary& total,
                               ClusterSummary& interval, ArrivalSummary& arrivals) {
  if (const absl::Status status = Receive(child, deadline); !status.ok()) {
    total.AddNote(absl::StrCat("rank ", child.rank, ": ", status.message()));
    return;
  }
  if (child.round < round_) child.total.SetLate();
  total.Merge(child.total);
  if (child.round < round_) return;
  interval.Merge(child.interval);
  arrivals.Merge(child.arrivals);
}

int StatsGatherer::Depth(int rank) const {
  int depth = 0;
  for (; rank > 0; rank = (rank - 1) / options_.fan_out) ++depth;
  return depth;
}

bool StatsGatherer::IsBelow(int rank, int ancestor) const {
  while (rank > ancestor) rank = (rank - 1) / options_.fan_out;
  return rank == ancestor;
}

void StatsGatherer::NoteSilence(const ClusterSummary& total, ClusterStats& stats) const {
  const RankSet heard = total.ranks();
  for (const Child& child : children_) {
    if (heard.Contains(child.rank)) continue;
    std::vector<int> behind;
    for (const int rank : stats.missing_ranks()) {
      if (rank != child.rank && IsBelow(rank, child.rank)) behind.push_back(rank);
    }
    if (!behind.empty()) {
      stats.add_notes(
          absl::StrCat(FormatRanks(behind), " report through rank ", child.rank, ", which is silent"));
    }
  }
}

void StatsGatherer::AddArrivals(const ArrivalSummary& arrivals, ClusterStats& stats) {
  arrivals_.Add(arrivals);
  for (ArrivalStats& measurement : arrivals_.Finish(stats.iteration().mean())) {
    for (LastArrival& last : *measurement.mutable_last()) last.set_host(ranks_->host(last.rank()));
    if (measurement.has_hold_up()) {
      measurement.mutable_hold_up()->set_host(ranks_->host(measurement.hold_up().rank()));
    }
    *stats.add_arrivals() = std::move(measurement);
  }
}

absl::StatusOr<ClusterStats> StatsGatherer::Gather(const StopwatchStats& mine, Deadline deadline,
                                                   const RankArrivals& my_arrivals) {
  ++round_;
  ArrivalSummary arrivals(ranks_->rank(), my_arrivals);
  if (children_.empty() && ranks_->rank() != 0) {
    OTT_RETURN_IF_ERROR(PostLeaf(mine, arrivals));
    return ClusterStats();
  }
  OTT_ASSIGN_OR_RETURN(RankReport report, RankReport::FromStats(mine));
  Identify(ranks_->rank(), options_.groups, report);
  ClusterSummary total(report);
  ClusterSummary interval(previous_ ? report.Since(*previous_) : report);
  const int64_t first_iteration = mine.num_warmup_iters() + (previous_ ? previous_->num_measured_iters : 0);
  previous_ = std::move(report);

  // Each level leaves half of its time to those above.
  const Deadline for_children = Deadline::After(deadline.Remaining() / (1 << Depth(ranks_->rank())));
  for (Child& child : children_) MergeChild(child, for_children, total, interval, arrivals);

  if (ranks_->rank() != 0) {
    internal::StatsMessage message;
    *message.mutable_total() = total.ToProto();
    *message.mutable_interval() = interval.ToProto();
    *message.mutable_arrivals() = arrivals.ToProto();
    OTT_RETURN_IF_ERROR(PostToParent(message));
    return ClusterStats();
  }
  ClusterStats stats = total.Finish(ranks_->size());
  NoteSilence(total, stats);
  *stats.mutable_history() = tracker_.Add(interval, first_iteration);
  AddArrivals(arrivals, stats);
  return stats;
}

absl::Status StatsGatherer::PostLeaf(const StopwatchStats& mine, const ArrivalSummary& arrivals) {
  internal::StatsMessage message;
  *message.mutable_arrivals() = arrivals.ToProto();
  *message.mutable_leaf()->mutable_stats() = mine;
  for (const GroupLabel& group : options_.groups) {
    internal::GroupLabel& label = *message.mutable_leaf()->add_groups();
    label.set_dimension(group.dimension);
    label.set_value(group.value);
  }
  return PostToParent(message);
}

absl::Status StatsGatherer::PostToParent(internal::StatsMessage& message) {
  // The next report holds all that is in this one, so one that is not taken is enough.
  if (absl::IsDeadlineExceeded(ranks_->Flush(kToParent, Deadline::Now()))) return absl::OkStatus();
  message.set_round(round_);
  return ranks_->Post((ranks_->rank() - 1) / options_.fan_out, kToParent, message.SerializeAsString());
}

}  // namespace ott
