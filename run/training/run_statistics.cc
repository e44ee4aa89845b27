#include "ott/run/training/run_statistics.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/observer_thread.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_sink.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_files.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/core/trace/profiler.h"
#include "ott/dist/comm/nccl_communicator.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/questions/answer/answer.h"
#include "ott/questions/live_questions.h"
#include "ott/questions/saved/gathered_answer.h"
#include "ott/questions/saved/iteration_sample.pb.h"
#include "ott/questions/slow/cluster_table.h"
#include "ott/run/training/configured_names.h"

namespace ott {
namespace {

constexpr int kPingsAtGather = 8;
// A silent rank costs so long, once.
constexpr auto kPingTimeout = std::chrono::seconds(1);
constexpr auto kTimeBetweenWrites = std::chrono::seconds(1);
// A rank writes its files after so many iterations, and again each time that they are an eighth more: a run
// that is killed loses no more than that, and its ranks, whose means are compared, have the same iterations.
constexpr int64_t kItersAtFirstWrite = 16;

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

std::unique_ptr<saved::IterationSampler> MakeIterationSampler(const RunFrame& frame) {
  const Communicator& ranks = frame.ranks;
  const StopwatchConfig& config = frame.config.stopwatch();
  saved::IterationSampler::Options options;
  options.first_iteration = frame.config.start_iteration();
  options.num_warmup_iters = config.num_warmup_iters();
  options.collective_measurements.assign(config.collective_measurements().begin(),
                                         config.collective_measurements().end());
  options.observer_measurement = kObserverMeasurement;
  options.rank = ranks.rank();
  options.world_size = ranks.size();
  options.host = ranks.host(ranks.rank());
  options.like_work = frame.groups.like_work[ranks.rank()];
  options.collective_groups = frame.groups.collective_groups[ranks.rank()];
  return std::make_unique<saved::IterationSampler>(std::move(options));
}

// Connects NCCL by a first gather, which waits for all ranks. Null if statistics are gathered by messages.
absl::StatusOr<NcclCommunicator*> ConnectToGather(const RunFrame& frame) {
  NcclCommunicator* const nccl = frame.ranks.nccl();
  if (nccl == nullptr) return nullptr;
  const Deadline deadline = frame.NextDeadline();
  absl::Status gathered = nccl->BeginGather("", /*all_wait=*/true, deadline);
  if (gathered.ok()) gathered = nccl->TakeGathered(deadline, deadline).status();
  // NCCL may fail where messages still travel.
  OTT_ASSIGN_OR_RETURN(const std::vector<std::string> problems,
                       frame.ranks.AllGather(std::string(gathered.message()), frame.NextDeadline()));
  for (const std::string& problem : problems) {
    if (problem.empty()) continue;
    if (frame.ranks.rank() == 0) PrintLines(absl::StrCat("ott: statistics go by messages: ", problem, "\n"));
    return nullptr;
  }
  return nccl;
}

}  // namespace

RunStatistics::RunStatistics(const RunFrame& frame)
    : frame_(frame),
      observer_seconds_before_(ObserverThreadSeconds()),
      next_written_iters_(frame.config.stopwatch().num_warmup_iters() + kItersAtFirstWrite) {}

absl::StatusOr<std::unique_ptr<RunStatistics>> RunStatistics::Enable(const RunFrame& frame) {
  std::unique_ptr<RunStatistics> statistics(new RunStatistics(frame));
  Stopwatch::Options options = Stopwatch::FromConfig(frame.config.stopwatch());
  options.print = [made = statistics.get()](const Stopwatch&) { made->report_is_due_ = true; };
  options.collective_measurements.push_back(kObserverMeasurement);
  options.observer_measurement = kObserverMeasurement;
  OTT_RETURN_IF_ERROR(Stopwatch::Get().Enable(options));
  return statistics;
}

RunStatistics::~RunStatistics() {
  thread_.reset();
  if (written_.valid()) written_.wait();
}

absl::Status RunStatistics::Connect(ClockAligner& clock, const RankRecorder* recorder) {
  Communicator& ranks = frame_.ranks;
  clock_ = &clock;
  recorder_ = recorder;
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<Communicator> for_stats, ranks.Split(0, 0, frame_.NextDeadline()));
  StatsGathererOptions options;
  options.like_work = frame_.groups.like_work[ranks.rank()];
  options.collective_groups = frame_.groups.collective_groups[ranks.rank()];
  OTT_ASSIGN_OR_RETURN(options.nccl, ConnectToGather(frame_));
  gatherer_ = std::make_unique<StatsGatherer>(std::move(for_stats), std::move(options));
  thread_ = std::make_unique<WorkerThread>();
  iterations_ = MakeIterationSampler(frame_);
  return absl::OkStatus();
}

absl::Status RunStatistics::GoOn() {
  if (step_ == Step::kNone) return absl::OkStatus();
  OTT_STOPWATCH_SCOPE(kObserverMeasurement);
  return AdvanceGather(false);
}

absl::Status RunStatistics::FinishIter(int64_t iteration) {
  const int64_t num_iters = iteration - frame_.config.start_iteration() + 1;
  if (num_iters == frame_.config.stopwatch().num_warmup_iters()) {
    observer_seconds_before_ = ObserverThreadSeconds();
  }
  iterations_->FinishIter(iteration, *clock_, Profiler::Get().IfRecording() != nullptr);
  if (num_iters >= next_written_iters_) {
    next_written_iters_ = num_iters + num_iters / 8;
    WriteSoon();
  }
  if (!std::exchange(report_is_due_, false)) return absl::OkStatus();
  const RecordedOperation recorded = RankRecorder::InGather(recorder_);
  OTT_STOPWATCH_SCOPE(kObserverMeasurement);
  absl::Status status = AdvanceGather(true);
  StartGather();
  WriteSoon();
  return status;
}

absl::Status RunStatistics::Finish() {
  const RecordedOperation recorded = RankRecorder::InGather(recorder_);
  absl::Status status = AdvanceGather(true);
  if (written_.valid()) written_.wait();
  Write();
  StartGather();
  status.Update(AdvanceGather(true));
  return status;
}

double RunStatistics::ObserverSeconds() const {
  return std::max(0.0, ObserverThreadSeconds() - observer_seconds_before_);
}

void RunStatistics::Write() const {
  if (frame_.config.run_dir().empty()) return;
  StopwatchFilesOptions options;
  options.dir = RankDirectory(frame_.config.run_dir(), frame_.ranks.rank());
  options.host = frame_.ranks.host(frame_.ranks.rank());
  options.rank = frame_.ranks.rank();
  options.world_size = frame_.ranks.size();
  options.start_iteration = frame_.config.start_iteration();
  options.observer_thread_seconds = ObserverSeconds();
  absl::Status status = WriteStopwatchFiles(Stopwatch::Get(), options);
  StopwatchStats stats;
  Stopwatch::Get().Stats(&stats);
  status.Update(WriteFileAtomically(IterationsPath(frame_.config.run_dir(), frame_.ranks.rank()),
                                    iterations_->Sample().SerializeAsString() + CpuOfWorkBytes(stats)));
  frame_.NoteUnwritten(status);
}

void RunStatistics::WriteSoon() {
  const auto now = std::chrono::steady_clock::now();
  const bool is_busy =
      written_.valid() && written_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  if (frame_.config.run_dir().empty() || is_busy || now < next_write_) return;
  next_write_ = now + kTimeBetweenWrites;
  written_ = std::async(std::launch::async, [this] {
    const ObserverThread marked;
    Write();
  });
}

RankArrivals RunStatistics::TakeArrivals() {
  // A rank that does not answer only makes the bound of the error grow.
  clock_
      ->Measure(kPingsAtGather,
                Deadline::After(std::min<std::chrono::nanoseconds>(frame_.timeout, kPingTimeout)))
      .IgnoreError();
  RankArrivals taken;
  for (StopwatchArrivals& measurement : Stopwatch::Get().TakeArrivals()) {
    for (StopwatchArrivals::Arrival& arrival : measurement.arrivals) {
      const absl::StatusOr<AlignedTime> time = clock_->ToRankZero(arrival.nanoseconds);
      if (!time.ok()) return {};
      arrival.nanoseconds = time->nanoseconds;
      // The stopwatch counts from 0.
      arrival.iteration += frame_.config.start_iteration();
      taken.error_bound_nanoseconds = std::max(taken.error_bound_nanoseconds, time->error_bound_nanoseconds);
    }
    taken.measurements.push_back(std::move(measurement));
  }
  taken.iterations = iterations_->Sample(saved::SampleBytesPerRank(frame_.ranks.size())).SerializeAsString();
  return taken;
}

void RunStatistics::StartGather() {
  step_ = Step::kPrepare;
  deadline_ = frame_.NextDeadline();
  Stopwatch::Get().CloseWindow();
  work_ = thread_->Run([this, arrivals = TakeArrivals()]() mutable {
    StopwatchStats stats;
    Stopwatch::Get().Stats(&stats);
    if (!arrivals.iterations.empty()) arrivals.iterations += CpuOfWorkBytes(stats);
    stats.set_start_iteration(frame_.config.start_iteration());
    stats.set_observer_thread_seconds(ObserverSeconds());
    return gatherer_->Prepare(stats, arrivals);
  });
}

absl::Status RunStatistics::AdvanceGather(bool to_the_end) {
  const Deadline deadline = to_the_end ? deadline_ : Deadline::Now();
  if (step_ == Step::kPrepare) {
    step_ = Step::kNone;
    OTT_RETURN_IF_ERROR(work_.get());
    step_ = Step::kExchange;
  }
  if (step_ == Step::kExchange) {
    OTT_ASSIGN_OR_RETURN(const bool all_came, gatherer_->Exchange(deadline, deadline_));
    if (!all_came) return absl::OkStatus();
    step_ = Step::kNone;
    if (gatherer_->is_leaf()) return absl::OkStatus();
    step_ = Step::kMerge;
    work_ = thread_->Run([this] { return MergeAndPrint(); });
  }
  if (step_ == Step::kMerge) {
    if (!to_the_end && work_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      return absl::OkStatus();
    }
    step_ = Step::kNone;
    OTT_RETURN_IF_ERROR(work_.get());
    OTT_RETURN_IF_ERROR(gatherer_->Post());
  }
  return absl::OkStatus();
}

absl::Status RunStatistics::MergeAndPrint() {
  OTT_ASSIGN_OR_RETURN(ClusterStats cluster, gatherer_->Merge());
  if (frame_.ranks.rank() == 0) {
    for (std::string& note : FindNamesThatNeverRan(frame_.config.stopwatch(), cluster)) {
      cluster.add_notes(std::move(note));
    }
    PrintLines(FormatClusterTable(cluster) +
               FormatSentences(AskLiveQuestions({cluster, gatherer_->iterations()})));
    if (!frame_.config.run_dir().empty()) {
      frame_.NoteUnwritten(
          WriteFileAtomically(ClusterStatsPath(frame_.config.run_dir()), ClusterStatsToJson(cluster)));
    }
  }
  return absl::OkStatus();
}

}  // namespace ott
