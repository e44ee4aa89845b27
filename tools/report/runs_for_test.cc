#include "tools/report/runs_for_test.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "ott/core/base/check.h"
#include "ott/core/base/file.h"
#include "ott/core/nvtx/op_observer.h"
#include "ott/core/op_log/op_log.h"
#include "ott/core/stopwatch/iteration_series.h"
#include "ott/core/stopwatch/stats_for_test.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/core/tensor/tensor_view.h"
#include "ott/dist/check/cross_check.pb.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/dist/stats/cluster_stats.pb.h"
#include "ott/questions/saved/iteration_sample.pb.h"
#include "ott/questions/slow/cluster_table.h"

namespace ott::report {
namespace {

constexpr int kWarmUp = 5;
constexpr size_t kSeriesLimit = 1000;  // of the stopwatch

void Write(const std::string& path, const std::string& contents) {
  const absl::Status status = WriteFileAtomically(path, contents);
  OTT_CHECK(status.ok()) << status.message();
}

class Planter {
 public:
  Planter(const std::string& run_dir, const PlantedRun& planted) : run_dir_(run_dir), planted_(planted) {}

  void Plant() const {
    RunInfo info;
    info.set_world_size(planted_.num_ranks);
    for (int rank = 0; rank < planted_.num_ranks; ++rank) info.add_hosts(Host());
    info.mutable_config()->mutable_stopwatch();
    if (planted_.with_checks) info.mutable_config()->mutable_cross_check();
    OTT_CHECK(MakeDirectories(run_dir_).ok());
    OTT_CHECK(WriteRunInfo(run_dir_, info).ok());
    for (int rank = 0; rank < planted_.num_ranks; ++rank) {
      const std::string directory = RankDirectory(run_dir_, rank);
      OTT_CHECK(MakeDirectories(directory).ok());
      Write(directory + "/stopwatch.pb", Stats(rank).SerializeAsString());
      if (planted_.with_checks) Write(directory + "/cross_check.jsonl", Checks(rank));
      if (planted_.with_op_log) WriteOpLog(rank);
      if (planted_.with_sample) Write(directory + "/iterations.pb", Sample(rank).SerializeAsString());
    }
    Write(ClusterStatsPath(run_dir_), ClusterStatsToJson(Gathered()));
  }

 private:
  std::string Host() const { return "node1" + planted_.suffix; }
  std::string Forward() const { return "forward" + planted_.suffix; }
  std::string SumLoss() const { return "sum_loss" + planted_.suffix; }
  // Seconds.
  double Work(int rank) const { return rank == planted_.slow_rank ? 3e-3 : 1e-3; }
  double Iteration(int index) const {
    return index + kWarmUp == planted_.long_iteration ? 20e-3 : planted_.iteration_seconds;
  }

  Statistics Alike(double seconds) const { return AlikeForTest(planted_.num_iterations, seconds); }

  static void FillSeries(const IterationSeries& from, Series* series) {
    series->set_stride(from.stride());
    series->mutable_seconds()->Add(from.values().begin(), from.values().end());
  }

  StopwatchStats Stats(int rank) const {
    StopwatchStats stats;
    stats.set_rank(rank);
    stats.set_host(Host());
    stats.set_world_size(planted_.num_ranks);
    stats.set_num_warmup_iters(kWarmUp);
    stats.set_num_measured_iters(planted_.num_iterations);
    *stats.mutable_iteration() = Alike(planted_.iteration_seconds);
    IterationSeries iterations(kSeriesLimit);
    IterationSeries works(kSeriesLimit);
    IterationSeries waits(kSeriesLimit);
    for (int i = 0; i < planted_.num_iterations; ++i) {
      iterations.Append(static_cast<float>(Iteration(i)));
      works.Append(static_cast<float>(Work(rank)));
      waits.Append(static_cast<float>(Iteration(i) - Work(rank)));
    }
    FillSeries(iterations, stats.mutable_iteration_series());
    Measurement& forward = *stats.add_measurements();
    forward.set_name(Forward());
    *forward.mutable_per_iteration() = Alike(Work(rank));
    FillSeries(works, forward.mutable_series());
    Measurement& sum_loss = *stats.add_measurements();
    sum_loss.set_name(SumLoss());
    sum_loss.set_collective(true);
    *sum_loss.mutable_per_iteration() = Alike(planted_.iteration_seconds - Work(rank));
    FillSeries(waits, sum_loss.mutable_series());
    const auto add_scope = [this](double seconds, const std::string& name, auto* scopes) {
      ScopeStats* const scope = scopes->Add();
      scope->set_name(name);
      scope->set_count(planted_.num_iterations);
      scope->set_inclusive(seconds * planted_.num_iterations);
      scope->set_exclusive(scope->inclusive());
      return scope;
    };
    ScopeStats* const outer = add_scope(Work(rank), Forward(), stats.mutable_scopes());
    outer->set_exclusive(outer->inclusive() / 2);
    add_scope(Work(rank) / 2, "attention" + planted_.suffix, outer->mutable_inner());
    add_scope(planted_.iteration_seconds - Work(rank), SumLoss(), stats.mutable_scopes());
    // Ranks wait for a device for most of it, so that even a short run shows who is slow.
    stats.mutable_own_work()->set_num_watched_iters(planted_.num_iterations);
    stats.mutable_own_work()->set_cpu_seconds(0.1 * Work(rank) * planted_.num_iterations);
    *stats.mutable_own_work()->mutable_time()->mutable_all() = SteadyForTest(Work(rank), 1e-3 * Work(rank));
    return stats;
  }

  std::string Checks(int rank) const {
    std::string lines;
    const int every = planted_.check_every;
    for (int iteration = 0; iteration < planted_.num_iterations; iteration += every) {
      CrossCheckVerdict verdict;
      verdict.set_iteration(iteration);
      verdict.set_rank(rank);
      verdict.set_host(Host());
      verdict.set_num_ranks(planted_.num_ranks);
      verdict.set_num_tensors(2);
      CrossCheckVerdict replicas = verdict;
      replicas.set_mode(REPLICAS);
      replicas.set_outcome(iteration < 2 * every ? BITWISE_EQUAL : DIFFERENT);
      if (iteration >= 2 * every) {
        replicas.set_tensor("weights.w1" + planted_.suffix);
        replicas.set_num_different_tensors(1);
        replicas.set_has_majority(true);
        replicas.add_culprit_ranks(2);
        replicas.add_culprit_hosts(Host());
      }
      lines += VerdictToJsonLine(replicas);
      verdict.set_mode(REFERENCE);
      verdict.set_outcome(iteration == 0 ? BITWISE_EQUAL : WITHIN_TOLERANCE);
      verdict.set_atol(1e-4);
      if (iteration > 0) {
        TensorError& error = *verdict.add_tensor_errors();
        error.set_tensor("loss" + planted_.suffix);
        error.set_max_abs_error(1e-8 * std::pow(10, std::min(6, iteration / every)));
      }
      lines += VerdictToJsonLine(verdict);
      CrossCheckVerdict distinct = replicas;
      distinct.set_mode(DISTINCT);
      distinct.set_outcome(iteration == 3 * every ? DIFFERENT : ALL_DISTINCT);
      distinct.set_tensor(iteration == 3 * every ? "data.tokens" + planted_.suffix : "");
      distinct.clear_culprit_ranks();
      distinct.clear_culprit_hosts();
      for (const int alike : {0, 3}) {
        if (iteration != 3 * every) continue;
        distinct.add_culprit_ranks(alike);
        distinct.add_culprit_hosts(Host());
      }
      lines += VerdictToJsonLine(distinct);
    }
    return lines;
  }

  void WriteOpLog(int rank) const {
    OpLog::Options options;
    options.path = OpLogPath(run_dir_, rank);
    options.kept_dir = OpTensorsDirectory(run_dir_, rank);
    options.keep = {"*"};
    options.rank = rank;
    options.world_size = planted_.num_ranks;
    const absl::StatusOr<std::unique_ptr<OpLog>> log = OpLog::Create(options);
    OTT_CHECK(log.ok() && (*log)->BeginIteration(0).ok()) << log.status().message();
    const bool is_wrong = planted_.with_wrong_norm && rank == 1;
    const auto value = [is_wrong](float right, float wrong) { return is_wrong ? wrong : right; };
    LogOp("linear", {10}, 20, **log);
    LogOp("norm", {20}, value(30, 36), **log);
    LogOp("gelu", {value(30, 36)}, value(40, 44), **log);
    LogOp("argmax", {value(40, 44)}, 3, **log);
    LogOp("residual", {20, value(30, 36)}, value(50, 56), **log);
    LogOp("head", {value(40, 44), value(50, 56)}, value(60, 66), **log);
    OTT_CHECK((*log)->Finish().ok());
  }

  // Each value is a tensor of one element.
  void LogOp(const std::string& name, const std::vector<float>& inputs, float output, OpLog& log) const {
    const std::string full_name = name + planted_.suffix;
    std::vector<TensorView> views;
    for (const float& input : inputs) views.emplace_back(&input, absl::Span<const int64_t>({1}));
    const std::vector<OpArg> args(views.begin(), views.end());
    ObservedOp op;
    op.name = full_name;
    op.args = args;
    void* const handle = log.Begin(op);
    const TensorView written(&output, absl::Span<const int64_t>({1}));
    const OpArg outputs[] = {written};
    log.AddOutputs(handle, outputs);
    log.End(handle);
  }

  // The last 16 iterations: forward, attention in it, sum_loss.
  IterationSample Sample(int rank) const {
    IterationSample sample;
    sample.set_rank(rank);
    sample.set_world_size(planted_.num_ranks);
    sample.set_host(Host());
    for (const std::string& name : {Forward(), "attention" + planted_.suffix, SumLoss()})
      sample.add_names(name);
    for (const bool collective : {false, false, true}) sample.add_collective(collective);
    sample.set_observer(-1);
    sample.set_num_iterations(planted_.num_iterations + kWarmUp);
    IterationBlock& block = *sample.add_blocks();
    const int num_kept = std::min(16, planted_.num_iterations);
    block.set_first_iteration(planted_.num_iterations + kWarmUp - num_kept);
    constexpr int64_t kIteration = 4'000'000;
    const auto work = static_cast<int64_t>(Work(rank) * 1e9);
    int64_t last = 0;
    const auto add = [&](int name, int64_t start, int64_t duration) {
      block.add_name(name);
      block.add_start(start - last);
      block.add_duration(duration);
      last = start;
    };
    for (int i = 0; i < num_kept; ++i) {
      block.add_iteration_end(kIteration);
      add(0, i * kIteration, work);
      add(1, i * kIteration + work / 4, work / 2);
      add(2, i * kIteration + work, kIteration - work);
    }
    return sample;
  }

  ClusterStats Gathered() const {
    ClusterStats stats;
    stats.set_world_size(planted_.num_ranks);
    ArrivalStats& arrivals = *stats.add_arrivals();
    arrivals.set_name(SumLoss());
    arrivals.set_num_ranks(planted_.num_ranks);
    arrivals.set_num_intervals(planted_.num_iterations);
    arrivals.set_first_iteration(kWarmUp);
    arrivals.set_last_iteration(kWarmUp + planted_.num_iterations - 1);
    arrivals.set_mean_wait(1.5e-3);
    arrivals.set_max_wait(2e-3);
    LastArrival& last = *arrivals.add_last();
    last.set_rank(planted_.slow_rank);
    last.set_host(Host());
    last.set_num_intervals(planted_.num_iterations);
    last.set_after_next(2e-3);
    last.set_mean_wait_of_others(2e-3);
    HoldUp& hold_up = *arrivals.mutable_hold_up();
    hold_up.set_rank(planted_.slow_rank);
    hold_up.set_host(Host());
    hold_up.set_seconds_per_iteration(2e-3);
    hold_up.set_seconds_low(1.9e-3);
    hold_up.set_seconds_high(2.1e-3);
    hold_up.set_share_of_iteration(0.5);
    return stats;
  }

  const std::string run_dir_;
  const PlantedRun planted_;
};

}  // namespace

void WritePlantedRun(const std::string& run_dir, const PlantedRun& planted) {
  Planter(run_dir, planted).Plant();
}

}  // namespace ott::report
