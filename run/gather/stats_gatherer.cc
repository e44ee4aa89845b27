#include "ott/run/gather/stats_gatherer.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/base/status_macros.h"
#include "ott/dist/comm/nccl_communicator.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/questions/slow/slow_ranks.h"

namespace ott {
namespace {

constexpr int kToParent = 0;
constexpr int kMaxNotTaken = 4;  // reports

// Without most of what follows from the exact sums and the sketch.
Statistics Compact(const Statistics& statistics) {
  if (!statistics.has_exact()) return statistics;
  Statistics kept;
  kept.set_count(statistics.count());
  kept.set_total(statistics.total());
  *kept.mutable_exact() = statistics.exact();
  if (statistics.has_sketch()) *kept.mutable_sketch() = statistics.sketch();
  return kept;
}

// Keeps what ClusterSummary::OfRank() reads of it. The rest is many times as much, and grows with the run.
StopwatchStats ForSummary(const StopwatchStats& stats) {
  StopwatchStats kept;
  kept.set_start_iteration(stats.start_iteration());
  kept.set_num_warmup_iters(stats.num_warmup_iters());
  kept.set_num_measured_iters(stats.num_measured_iters());
  *kept.mutable_iteration() = Compact(stats.iteration());
  for (const Measurement& measurement : stats.measurements()) {
    Measurement& kept_measurement = *kept.add_measurements();
    kept_measurement.set_name(measurement.name());
    kept_measurement.set_collective(measurement.collective());
    kept_measurement.set_sampled(measurement.sampled());
    kept_measurement.set_outermost(measurement.outermost());
    if (measurement.sampled()) kept_measurement.set_outer(measurement.outer());
    *kept_measurement.mutable_per_interval() = Compact(measurement.per_interval());
    *kept_measurement.mutable_per_iteration() = Compact(measurement.per_iteration());
    kept_measurement.mutable_per_iteration()->clear_sketch();
    if (measurement.has_own()) *kept_measurement.mutable_own() = measurement.own();
  }
  *kept.mutable_one_time() = stats.one_time();
  *kept.mutable_misuses() = stats.misuses();
  if (stats.has_own_work()) *kept.mutable_own_work() = stats.own_work();
  if (stats.has_observer_thread_seconds()) {
    kept.set_observer_thread_seconds(stats.observer_thread_seconds());
  }
  return kept;
}

StatsGathererOptions ForSize(StatsGathererOptions options, int size) {
  // A gather of NCCL has no tree.
  if (options.nccl != nullptr) options.fan_out = std::max(options.fan_out, size);
  return options;
}

}  // namespace

StatsGatherer::StatsGatherer(std::unique_ptr<Communicator> ranks, StatsGathererOptions options)
    : ranks_(std::move(ranks)), options_(ForSize(std::move(options), ranks_->size())), nccl_(options_.nccl) {
  OTT_CHECK(options_.fan_out >= 2) << options_.fan_out;
  for (int64_t child = int64_t{ranks_->rank()} * options_.fan_out + 1;
       child <= (int64_t{ranks_->rank()} + 1) * options_.fan_out && child < ranks_->size(); ++child) {
    children_.emplace_back().rank = static_cast<int>(child);
  }
}

absl::Status StatsGatherer::Receive(Child& child, Deadline deadline) {
  // A later report of a rank that is ahead is left for the next round.
  while (child.round < round_) {
    absl::StatusOr<std::string> bytes =
        ranks_->Receive(child.rank, kToParent, child.answers ? deadline : Deadline::Now());
    if (absl::IsDeadlineExceeded(bytes.status())) return absl::OkStatus();
    if (!bytes.ok()) return bytes.status();
    OTT_RETURN_IF_ERROR(Accept(child, *std::move(bytes)));
  }
  return absl::OkStatus();
}

absl::Status StatsGatherer::Accept(Child& child, std::string bytes) {
  num_bytes_received_ += static_cast<int64_t>(bytes.size());
  if (bytes.size() < sizeof(child.round)) {
    return absl::InternalError(absl::StrCat(bytes.size(), " bytes that are no statistics"));
  }
  std::memcpy(&child.round, bytes.data(), sizeof(child.round));
  child.bytes = std::move(bytes);
  child.answers = true;
  return absl::OkStatus();
}

absl::Status StatsGatherer::Take(Child& child) {
  internal::StatsMessage message;
  if (!message.ParseFromArray(child.bytes.data() + sizeof(child.round),
                              static_cast<int>(child.bytes.size() - sizeof(child.round)))) {
    return absl::InternalError(absl::StrCat(child.bytes.size(), " bytes that are no statistics"));
  }
  if (message.has_report()) {
    OTT_RETURN_IF_ERROR(Summarize(child.rank, std::move(*message.mutable_report()), child.stats, child.total,
                                  child.interval));
  } else {
    OTT_ASSIGN_OR_RETURN(child.total, ClusterSummary::FromProto(message.total()));
    OTT_ASSIGN_OR_RETURN(child.interval, ClusterSummary::FromProto(message.interval()));
  }
  OTT_ASSIGN_OR_RETURN(child.arrivals, ArrivalSummary::FromProto(message.arrivals()));
  child.iterations.assign(std::make_move_iterator(message.mutable_iterations()->begin()),
                          std::make_move_iterator(message.mutable_iterations()->end()));
  return absl::OkStatus();
}

absl::Status StatsGatherer::Summarize(int rank, internal::RankReport report,
                                      std::optional<StopwatchStats>& previous, ClusterSummary& total,
                                      ClusterSummary& interval) const {
  report.mutable_stats()->set_rank(rank);
  report.mutable_stats()->set_host(ranks_->host(rank));
  OTT_ASSIGN_OR_RETURN(total, ClusterSummary::OfRank(report));
  OTT_ASSIGN_OR_RETURN(interval, ClusterSummary::OfRank(report, previous ? &*previous : nullptr));
  previous = std::move(*report.mutable_stats());
  return absl::OkStatus();
}

void StatsGatherer::MergeChild(Child& child) {
  if (!child.bytes.empty()) {
    const absl::Status status = Take(child);
    child.bytes.clear();
    if (!status.ok()) {
      total_.AddNote(absl::StrCat("rank ", child.rank, ": ", status.message()));
      return;
    }
  }
  if (child.round < round_) child.total.SetLate();
  total_.Merge(child.total);
  if (child.round < round_) return;
  interval_.Merge(child.interval);
  interval_arrivals_.Merge(child.arrivals);
  std::move(child.iterations.begin(), child.iterations.end(), std::back_inserter(iterations_));
  child.iterations.clear();
}

int StatsGatherer::Depth(int rank) const {
  int depth = 0;
  for (; rank > 0; rank = Parent(rank)) ++depth;
  return depth;
}

bool StatsGatherer::IsBelow(int rank, int ancestor) const {
  while (rank > ancestor) rank = Parent(rank);
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

void StatsGatherer::AddArrivals(ClusterStats& stats) {
  arrivals_.Add(interval_arrivals_);
  const auto mean_iteration = [](const ClusterSummary& summary) {
    return ArrivalTracker::MeanIteration{summary.iteration().over_ranks.mean(), summary.cpu_of_work()};
  };
  // The gather at the end of a run may have no new ones.
  if (!interval_.iteration().ranks.empty()) recent_iteration_ = mean_iteration(interval_);
  for (ArrivalStats& measurement : arrivals_.Finish(mean_iteration(total_), recent_iteration_)) {
    for (LastArrival& last : *measurement.mutable_last()) last.set_host(ranks_->host(last.rank()));
    if (measurement.has_hold_up()) {
      measurement.mutable_hold_up()->set_host(ranks_->host(measurement.hold_up().rank()));
    }
    for (Hiccups& hiccups : *measurement.mutable_hiccups()) hiccups.set_host(ranks_->host(hiccups.rank()));
    *stats.add_arrivals() = std::move(measurement);
  }
}

absl::StatusOr<ClusterStats> StatsGatherer::Gather(const StopwatchStats& mine, Deadline deadline,
                                                   const RankArrivals& arrivals) {
  OTT_RETURN_IF_ERROR(Prepare(mine, arrivals));
  // Each level leaves half of its time to those above.
  const Deadline for_children = Deadline::After(deadline.Remaining() / (1 << Depth(ranks_->rank())));
  for (bool done = false; !done;) {
    OTT_ASSIGN_OR_RETURN(done, Exchange(for_children, for_children));
  }
  if (is_leaf()) return ClusterStats();
  OTT_ASSIGN_OR_RETURN(ClusterStats stats, Merge());
  OTT_RETURN_IF_ERROR(Post());
  return stats;
}

absl::Status StatsGatherer::Prepare(const StopwatchStats& mine, const RankArrivals& arrivals) {
  ++round_;
  RankArrivals grouped = arrivals;
  grouped.groups = options_.collective_groups;
  grouped.like_work = options_.like_work;
  interval_arrivals_ = ArrivalSummary(ranks_->rank(), grouped);
  iterations_.clear();
  if (!arrivals.iterations.empty()) iterations_.push_back(arrivals.iterations);
  internal::RankReport report;
  *report.mutable_stats() = ForSummary(mine);
  for (const GroupLabel& group : options_.groups) {
    internal::GroupLabel& label = *report.add_groups();
    label.set_dimension(group.dimension);
    label.set_value(group.value);
  }
  report.set_like_work(options_.like_work);
  if (is_leaf()) {
    internal::StatsMessage message;
    *message.mutable_report() = std::move(report);
    SetMessage(std::move(message));
    return absl::OkStatus();
  }
  first_iteration_ =
      mine.start_iteration() + mine.num_warmup_iters() + (previous_ ? previous_->num_measured_iters() : 0);
  return Summarize(ranks_->rank(), std::move(report), previous_, total_, interval_);
}

absl::StatusOr<bool> StatsGatherer::ExchangeByNccl(Deadline deadline, Deadline last) {
  absl::Status begun;
  if (!nccl_gathers_until_) {
    // The other half is for messages.
    nccl_gathers_until_ = Deadline::After(last.Remaining() / 2);
    // A rank that only looks here does so like all ranks.
    const bool all_wait = !deadline.Passed();
    begun = nccl_->BeginGather(is_leaf() ? message_ : "", all_wait, *nccl_gathers_until_);
  }
  using Gathered = std::optional<std::vector<std::string>>;
  absl::StatusOr<Gathered> gathered =
      begun.ok() ? nccl_->TakeGathered(deadline, *nccl_gathers_until_) : absl::StatusOr<Gathered>(begun);
  if (gathered.ok() && !*gathered) return false;
  nccl_gathers_until_.reset();
  if (!gathered.ok()) {
    nccl_ = nullptr;
    problems_.push_back(absl::StrCat("NCCL gathers no more, messages do: ", gathered.status().message()));
    return Exchange(deadline, last);
  }
  for (Child& child : children_) {
    // There was no room for it, and will be the next time.
    if ((**gathered)[child.rank].empty()) continue;
    const absl::Status status = Accept(child, std::move((**gathered)[child.rank]));
    if (!status.ok()) problems_.push_back(absl::StrCat("rank ", child.rank, ": ", status.message()));
  }
  return true;
}

absl::StatusOr<bool> StatsGatherer::Exchange(Deadline deadline, Deadline last) {
  if (nccl_ != nullptr) return ExchangeByNccl(deadline, last);
  if (is_leaf()) {
    OTT_RETURN_IF_ERROR(Post());
    return true;
  }
  bool all_came = true;
  for (Child& child : children_) {
    if (const absl::Status status = Receive(child, deadline); !status.ok()) {
      problems_.push_back(absl::StrCat("rank ", child.rank, ": ", status.message()));
      child.answers = false;
    }
    if (child.round >= round_ || !child.answers) continue;
    all_came = false;
    if (last.Passed()) child.answers = false;
  }
  return all_came || last.Passed();
}

absl::StatusOr<ClusterStats> StatsGatherer::Merge() {
  for (Child& child : children_) MergeChild(child);
  for (const std::string& problem : problems_) total_.AddNote(problem);
  problems_.clear();
  if (ranks_->rank() != 0) {
    internal::StatsMessage message;
    *message.mutable_total() = total_.ToProto();
    *message.mutable_interval() = interval_.ToProto();
    SetMessage(std::move(message));
    return ClusterStats();
  }
  ClusterStats stats = JudgeRanks(total_, ranks_->size());
  NoteSilence(total_, stats);
  *stats.mutable_history() = tracker_.Add(interval_, first_iteration_);
  AddArrivals(stats);
  AddHosts(stats, [this](int rank) { return ranks_->host(rank); });
  return stats;
}

void StatsGatherer::SetMessage(internal::StatsMessage message) {
  *message.mutable_arrivals() = interval_arrivals_.ToProto();
  for (const std::string& iterations : iterations_) message.add_iterations(iterations);
  message_.assign(reinterpret_cast<const char*>(&round_), sizeof(round_));
  message.AppendToString(&message_);
}

absl::Status StatsGatherer::Post() {
  if (ranks_->rank() == 0) return absl::OkStatus();
  // A rank that takes nothing is not to fill this one's memory. The next report holds all that is in this
  // one.
  const bool all_taken = !absl::IsDeadlineExceeded(ranks_->Flush(kToParent, Deadline::Now()));
  num_not_taken_ = all_taken ? 0 : num_not_taken_ + 1;
  if (num_not_taken_ > kMaxNotTaken) return absl::OkStatus();
  return ranks_->Post(Parent(ranks_->rank()), kToParent, message_);
}

}  // namespace ott
