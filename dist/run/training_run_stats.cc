// What a TrainingRun does with what was measured: files of the rank, and the table of all ranks.

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "ott/core/base/file.h"
#include "ott/core/base/observer_thread.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_files.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/run/configured_names.h"
#include "ott/dist/run/training_run.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/dist/stats/cluster_table.h"
#include "ott/questions/saved/gathered_answer.h"
#include "ott/questions/saved/iteration_sample.pb.h"
#include "ott/questions/saved/what_if_text.h"

namespace ott {
namespace {

constexpr int kPingsAtGather = 8;
// Who is silent for so long costs it once.
constexpr auto kPingTimeout = std::chrono::seconds(1);
// What a run that is killed may lose of its statistics.
constexpr auto kTimeBetweenStats = std::chrono::seconds(1);

// To be written after an IterationSample: protobuf reads both as one.
std::string CpuOfWorkBytes(const StopwatchStats& stats) {
  const std::optional<CpuShare> cpu = CpuShareOfWork(stats);
  if (!cpu) return "";
  IterationSample sample;
  CpuOfWork& of_work = *sample.mutable_cpu_of_work();
  of_work.set_cpu_seconds(cpu->cpu_seconds);
  of_work.set_taken_share(cpu->taken_share);
  of_work.set_watched_seconds(cpu->watched_seconds);
  of_work.set_taken_seconds(cpu->taken_seconds);
  return sample.SerializeAsString();
}

}  // namespace

double TrainingRun::ObserverSeconds() const {
  return std::max(0.0, ObserverThreadSeconds() - observer_seconds_before_);
}

absl::Status TrainingRun::WriteStats() const {
  if (config_.run_dir().empty()) return absl::OkStatus();
  StopwatchFilesOptions options;
  options.dir = RankDirectory(config_.run_dir(), ranks_.rank());
  options.host = ranks_.host(ranks_.rank());
  options.rank = ranks_.rank();
  options.world_size = ranks_.size();
  options.observer_thread_seconds = ObserverSeconds();
  absl::Status status = WriteStopwatchFiles(Stopwatch::Get(), options);
  StopwatchStats stats;
  Stopwatch::Get().Stats(&stats);
  status.Update(WriteFileAtomically(IterationsPath(config_.run_dir(), ranks_.rank()),
                                    iterations_->Sample().SerializeAsString() + CpuOfWorkBytes(stats)));
  return status;
}

absl::Status TrainingRun::WriteStatsSoon() {
  const auto now = std::chrono::steady_clock::now();
  const bool is_busy =
      stats_written_.valid() && stats_written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  if (config_.run_dir().empty() || is_busy || now < next_stats_) return absl::OkStatus();
  next_stats_ = now + kTimeBetweenStats;
  const absl::Status before = stats_written_.valid() ? stats_written_.get() : absl::OkStatus();
  stats_written_ = std::async(std::launch::async, [this] {
    const ObserverThread marked;
    return WriteStats();
  });
  return before;
}

RankArrivals TrainingRun::TakeArrivals() {
  // A rank that does not answer only makes the bound of the error grow.
  clock_->Measure(kPingsAtGather, Deadline::After(std::min<std::chrono::nanoseconds>(timeout_, kPingTimeout)))
      .IgnoreError();
  RankArrivals taken;
  for (StopwatchArrivals& measurement : Stopwatch::Get().TakeArrivals()) {
    if (measurement.name == kObserverMeasurement) continue;
    for (StopwatchArrivals::Arrival& arrival : measurement.arrivals) {
      const absl::StatusOr<AlignedTime> time = clock_->ToRankZero(arrival.nanoseconds);
      if (!time.ok()) return {};
      arrival.nanoseconds = time->nanoseconds;
      taken.error_bound_nanoseconds = std::max(taken.error_bound_nanoseconds, time->error_bound_nanoseconds);
    }
    taken.measurements.push_back(std::move(measurement));
  }
  taken.iterations = iterations_->Sample(whatif::SampleBytesPerRank(ranks_.size())).SerializeAsString();
  return taken;
}

absl::Status TrainingRun::GatherStats() {
  StartGather();
  return AdvanceGather(true);
}

void TrainingRun::StartGather() {
  gather_step_ = GatherStep::kPrepare;
  gather_deadline_ = NextDeadline();
  Stopwatch::Get().CloseWindow();
  gather_work_ = gather_thread_->Run([this, arrivals = TakeArrivals()]() mutable {
    StopwatchStats stats;
    Stopwatch::Get().Stats(&stats);
    if (!arrivals.iterations.empty()) arrivals.iterations += CpuOfWorkBytes(stats);
    stats.set_observer_thread_seconds(ObserverSeconds());
    return stats_gatherer_->Prepare(stats, arrivals);
  });
}

absl::Status TrainingRun::AdvanceGather(bool to_the_end) {
  const Deadline deadline = to_the_end ? gather_deadline_ : Deadline::Now();
  if (gather_step_ == GatherStep::kPrepare) {
    gather_step_ = GatherStep::kNone;
    OTT_RETURN_IF_ERROR(gather_work_.get());
    gather_step_ = GatherStep::kExchange;
  }
  if (gather_step_ == GatherStep::kExchange) {
    OTT_ASSIGN_OR_RETURN(const bool all_came, stats_gatherer_->Exchange(deadline, gather_deadline_));
    if (!all_came) return absl::OkStatus();
    gather_step_ = GatherStep::kNone;
    if (stats_gatherer_->is_leaf()) return absl::OkStatus();
    gather_step_ = GatherStep::kMerge;
    gather_work_ = gather_thread_->Run([this] { return MergeAndPrint(); });
  }
  if (gather_step_ == GatherStep::kMerge) {
    if (!to_the_end && gather_work_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      return absl::OkStatus();
    }
    gather_step_ = GatherStep::kNone;
    OTT_RETURN_IF_ERROR(gather_work_.get());
    OTT_RETURN_IF_ERROR(stats_gatherer_->Post());
  }
  return absl::OkStatus();
}

absl::Status TrainingRun::MergeAndPrint() {
  OTT_ASSIGN_OR_RETURN(ClusterStats cluster, stats_gatherer_->Merge());
  if (ranks_.rank() == 0) {
    for (std::string& note : FindNamesThatNeverRan(config_.stopwatch(), cluster)) {
      cluster.add_notes(std::move(note));
    }
    std::fputs(FormatClusterTable(cluster).c_str(), stdout);
    const auto answer = whatif::AnswerGathered(stats_gatherer_->iterations());
    if (answer.ok() && answer->num_ranks() > 1) {
      std::printf("%s\n", whatif::FormatWhatIfLine(*answer).c_str());
    }
    std::fflush(stdout);
    if (!config_.run_dir().empty()) {
      return WriteFileAtomically(ClusterStatsPath(config_.run_dir()), ClusterStatsToJson(cluster));
    }
  }
  return absl::OkStatus();
}

}  // namespace ott
