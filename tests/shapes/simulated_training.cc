#include "ott/tests/shapes/simulated_training.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/check.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/stats/arrival_summary.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/questions/saved/sampled_job.h"
#include "ott/questions/saved/what_if.h"
#include "ott/questions/saved/what_if_text.h"
#include "ott/questions/slow/cluster_table.h"
#include "ott/questions/slow/merge_stats.h"
#include "ott/questions/waiting/arrival_tracker.h"

namespace ott::shapes {
namespace {

constexpr int kIterationsPerBlock = 16;
// More than a tenth off, where a hundredth of an iteration says nothing.
constexpr double kWrongShare = 0.1;
constexpr double kWrongOfIteration = 0.01;
// A share of an iteration: by so much all wait longer than mending saves, as the next to last rank is late by
// noise.
constexpr double kMaxNoise = 0.04;

int64_t Nanoseconds(double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); }

// The stopwatch that is played to reads these.
std::atomic<uint64_t> now_ns{0};
std::atomic<uint64_t> cpu_ns{0};

Stopwatch::Environment PlayedEnvironment() {
  Stopwatch::Environment environment{Clock([] { return now_ns.load(); })};
  environment.synchronize_device = [] { return absl::UnimplementedError("no device"); };
  environment.steady_clock = environment.clock;
  environment.read_thread_times = []() -> std::optional<ThreadTimes> { return ThreadTimes{cpu_ns, 0}; };
  environment.read_process_cpu_time = [] { return cpu_ns.load(); };
  return environment;
}

}  // namespace

void RankProgram::Work(const std::string& name, double seconds, double excess) {
  const double noisy = seconds * std::exp(noise_ * std::normal_distribution<double>(0, 1)(random_));
  operations_.push_back({Kind::kWork, name, "", noisy + excess * noisy / std::max(seconds, 1e-9)});
  if (seconds == 0) operations_.back().seconds = excess;
}

void RankProgram::Collective(const std::string& name, double seconds, const std::string& label, double late) {
  operations_.push_back({Kind::kCollective, name, label, seconds, late});
}

void RankProgram::Begin(const std::string& name, double seconds, bool measured) {
  operations_.push_back({Kind::kBegin, name, "", seconds, 0, measured});
}

void RankProgram::Wait(const std::string& name, bool measured) {
  operations_.push_back({Kind::kWait, name, "", 0, 0, measured});
}

void RankProgram::Send(const std::string& name, int to) {
  operations_.push_back({Kind::kSend, name, "", 10e-6, 0, false, to});
}

void RankProgram::Receive(const std::string& name, int from, double seconds) {
  operations_.push_back({Kind::kReceive, name, "", seconds, 0, false, from});
}

void RankProgram::EndIteration() { operations_.push_back({Kind::kEndIteration, "", ""}); }

// Runs all ranks' programs against each other.
class Simulation {
 public:
  struct Interval {
    std::string name;
    int64_t start = 0;
    int64_t end = 0;
    bool is_work = false;
  };
  struct Rank {
    std::vector<Interval> intervals;  // by start
    std::vector<int64_t> iteration_ends;
  };

  explicit Simulation(std::vector<RankProgram> programs)
      : programs_(std::move(programs)), states_(programs_.size()), ranks_(programs_.size()) {
    for (const RankProgram& program : programs_) {
      std::set<std::string> labels;
      for (const RankProgram::Operation& operation : program.operations_) {
        if (operation.kind == RankProgram::Kind::kCollective || operation.kind == RankProgram::Kind::kBegin)
          labels.insert(operation.label);
      }
      for (const std::string& label : labels) ++size_of_label_[label];
    }
  }

  std::vector<Rank> Run() {
    for (bool any = true; any;) {
      any = false;
      for (size_t rank = 0; rank < programs_.size(); ++rank) {
        while (Step(rank)) any = true;
      }
    }
    for (size_t rank = 0; rank < programs_.size(); ++rank) {
      OTT_CHECK(states_[rank].next == programs_[rank].operations_.size()) << "rank " << rank << " is stuck";
      std::stable_sort(ranks_[rank].intervals.begin(), ranks_[rank].intervals.end(),
                       [](const Interval& a, const Interval& b) { return a.start < b.start; });
    }
    return std::move(ranks_);
  }

 private:
  using Kind = RankProgram::Kind;
  // Name, label, and how many of them the rank had before.
  using Key = std::tuple<std::string, std::string, int>;
  struct Meeting {
    int num_there = 0;
    double latest = 0;
    double end = 0;
  };
  struct State {
    size_t next = 0;
    double now = 1;
    bool is_waiting = false;
    std::map<std::pair<std::string, std::string>, int> count;
    std::map<std::string, double> begun;
    std::map<std::pair<std::string, int>, int> num_messages;
  };

  void Come(const RankProgram::Operation& operation, State& state) {
    const int number = state.count[{operation.name, operation.label}]++;
    Meeting& meeting = meetings_[{operation.name, operation.label, number}];
    meeting.latest = std::max(meeting.latest, state.now);
    if (++meeting.num_there < size_of_label_[operation.label]) return;
    double& busy_until = busy_until_[operation.label];
    meeting.end = std::max(meeting.latest, busy_until) + operation.seconds;
    busy_until = meeting.end;
  }

  void Add(size_t rank, const std::string& name, double start, double end, bool is_work) {
    ranks_[rank].intervals.push_back({name, Nanoseconds(start), Nanoseconds(end), is_work});
  }

  // The next operation of the rank; whether it could be done.
  bool Step(size_t rank) {
    State& state = states_[rank];
    if (state.next == programs_[rank].operations_.size()) return false;
    const RankProgram::Operation& operation = programs_[rank].operations_[state.next];
    const double start = state.now;
    switch (operation.kind) {
      case Kind::kWork:
        state.now += operation.seconds;
        Add(rank, operation.name, start, state.now, true);
        break;
      case Kind::kCollective: {
        if (!state.is_waiting) Come(operation, state);
        state.is_waiting = true;
        const int number = state.count[{operation.name, operation.label}] - 1;
        const Meeting& meeting = meetings_[{operation.name, operation.label, number}];
        if (meeting.end == 0) return false;
        state.is_waiting = false;
        state.now = meeting.end + operation.late;
        Add(rank, operation.name, start, state.now, false);
        break;
      }
      case Kind::kBegin:
        Come(operation, state);
        state.begun[operation.name] = state.now;
        break;
      case Kind::kWait: {
        const int number = state.count[{operation.name, ""}] - 1;
        const Meeting& meeting = meetings_[{operation.name, "", number}];
        if (meeting.end == 0) return false;
        state.now = std::max(state.now, meeting.end);
        Add(rank, operation.name, operation.measured ? state.begun[operation.name] : start, state.now, false);
        break;
      }
      case Kind::kSend:
        state.now += operation.seconds;
        Add(rank, operation.name, start, state.now, false);
        messages_[{rank, operation.peer, operation.name}].push_back(state.now);
        break;
      case Kind::kReceive: {
        const auto& sent = messages_[{operation.peer, rank, operation.name}];
        int& number = state.num_messages[{operation.name, operation.peer}];
        if (static_cast<size_t>(number) >= sent.size()) return false;
        state.now = std::max(state.now, sent[static_cast<size_t>(number++)]) + operation.seconds;
        Add(rank, operation.name, start, state.now, false);
        break;
      }
      case Kind::kEndIteration:
        state.now += 2e-6;
        ranks_[rank].iteration_ends.push_back(Nanoseconds(state.now));
        break;
    }
    ++state.next;
    return true;
  }

  std::vector<RankProgram> programs_;
  std::vector<State> states_;
  std::vector<Rank> ranks_;
  std::map<std::string, int> size_of_label_;
  std::map<Key, Meeting> meetings_;
  std::map<std::string, double> busy_until_;
  std::map<std::tuple<size_t, int, std::string>, std::vector<double>> messages_;
};

namespace {

// Returns true if the rank has what is planted, first of all on `planted`.
bool IsPlanted(const Shape& shape, int rank, int num_ranks, int planted) {
  return planted >= 0 && (rank - planted + num_ranks) % num_ranks < shape.num_planted;
}

std::vector<Simulation::Rank> Simulate(const Shape& shape, int num_ranks, int seed, int planted) {
  std::mt19937_64 random(static_cast<uint64_t>(seed) * 7919 + 17);
  std::vector<double> phases;
  for (int i = 0; i < shape.num_iterations; ++i) {
    phases.push_back(std::vector<double>{1, 2, 0.5}[std::uniform_int_distribution<size_t>(0, 2)(random)]);
  }
  std::uniform_real_distribution<double> chance;
  std::vector<double> shared_chances;
  for (int i = 0; i < shape.num_iterations; ++i) shared_chances.push_back(chance(random));
  std::vector<RankProgram> programs;
  for (int rank = 0; rank < num_ranks; ++rank) {
    RankProgram& program = programs.emplace_back(static_cast<uint64_t>(seed) * 1000 + rank, shape.noise);
    std::mt19937_64 random_of_rank(static_cast<uint64_t>(seed) * 1000 + rank + 500);
    for (int i = 0; i < shape.num_iterations; ++i) {
      const bool has_begun = i >= shape.late * shape.num_iterations;
      const auto number = static_cast<size_t>(i);
      shape.iterate(
          {rank, num_ranks, i, shape.num_iterations, has_begun && IsPlanted(shape, rank, num_ranks, planted),
           phases[number], chance(random_of_rank), shared_chances[number]},
          program);
      program.EndIteration();
    }
  }
  return Simulation(std::move(programs)).Run();
}

bool IsCollective(const Shape& shape, const std::string& name) {
  return std::find(shape.collectives.begin(), shape.collectives.end(), name) != shape.collectives.end();
}

struct Measured {
  StopwatchStats stats;
  RankArrivals arrivals;
};

// Returns what a stopwatch of the rank says, by playing to it what the rank did.
Measured Play(const Shape& shape, const Simulation::Rank& did, int rank, int num_ranks) {
  now_ns = 1'000'000'000;
  cpu_ns = 0;
  Stopwatch stopwatch(PlayedEnvironment());
  Stopwatch::Options options;
  options.collective_measurements = shape.collectives;
  options.watch_cpu = true;
  options.arrivals_limit = 100000;
  OTT_CHECK(stopwatch.Enable(options).ok());
  // At one time, ends before the ends of iterations, and these before starts.
  struct Event {
    int64_t when;
    int order;
    size_t which;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < did.intervals.size(); ++i) {
    events.push_back({did.intervals[i].start, 2, i});
    events.push_back({std::max(did.intervals[i].end, did.intervals[i].start + 1), 0, i});
  }
  for (const int64_t end : did.iteration_ends) events.push_back({end, 1, 0});
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.when, a.order) < std::tie(b.when, b.order);
  });
  for (const Event& event : events) {
    now_ns = static_cast<uint64_t>(event.when);
    const Simulation::Interval& interval = did.intervals[event.which];
    if (event.order == 1) {
      stopwatch.FinishIter();
    } else if (event.order == 2) {
      stopwatch.Start(interval.name);
    } else {
      if (interval.is_work)
        cpu_ns += static_cast<uint64_t>(shape.cpu_share * static_cast<double>(interval.end - interval.start));
      stopwatch.End(interval.name);
    }
  }
  Measured measured;
  measured.arrivals.measurements = stopwatch.TakeArrivals();
  stopwatch.CloseWindow();
  stopwatch.Stats(&measured.stats);
  measured.stats.set_rank(rank);
  measured.stats.set_world_size(num_ranks);
  measured.stats.set_host("node0");
  if (shape.like_work) measured.arrivals.like_work = shape.like_work(rank, num_ranks);
  if (shape.group) {
    for (const std::string& name : shape.collectives) {
      measured.arrivals.groups[name] = shape.group(name, rank, num_ranks);
    }
  }
  return measured;
}

// Returns what the rank keeps of its iterations.
IterationSample Sample(const Shape& shape, const Simulation::Rank& did, const StopwatchStats& stats) {
  IterationSample sample;
  sample.set_rank(stats.rank());
  sample.set_world_size(stats.world_size());
  sample.set_host(stats.host());
  sample.set_observer(-1);
  sample.set_num_iterations(static_cast<int64_t>(did.iteration_ends.size()));
  if (shape.like_work) sample.set_like_work(shape.like_work(stats.rank(), stats.world_size()));
  if (const std::optional<CpuShare> cpu = CpuShareOfWork(stats)) {
    sample.mutable_cpu_of_work()->set_cpu_seconds(cpu->cpu_seconds);
    sample.mutable_cpu_of_work()->set_taken_share(cpu->taken_share);
    sample.mutable_cpu_of_work()->set_watched_seconds(cpu->watched_seconds);
    sample.mutable_cpu_of_work()->set_taken_seconds(cpu->taken_seconds);
  }
  std::map<std::string, int> index;
  for (const Simulation::Interval& interval : did.intervals) {
    if (!index.emplace(interval.name, static_cast<int>(index.size())).second) continue;
    sample.add_names(interval.name);
    sample.add_collective(IsCollective(shape, interval.name));
    const bool is_told = shape.group && IsCollective(shape, interval.name);
    sample.add_group(is_told ? shape.group(interval.name, stats.rank(), stats.world_size()) : "");
  }
  size_t next = 0;
  for (size_t first = 0; first + kIterationsPerBlock <= did.iteration_ends.size();
       first += kIterationsPerBlock) {
    IterationBlock& block = *sample.add_blocks();
    block.set_first_iteration(static_cast<int64_t>(first));
    const int64_t begin = first == 0 ? did.intervals.front().start : did.iteration_ends[first - 1];
    block.set_begin(begin);
    int64_t before = begin;
    for (size_t i = first; i < first + kIterationsPerBlock; ++i) {
      block.add_iteration_end(did.iteration_ends[i] - before);
      before = did.iteration_ends[i];
    }
    int64_t last_start = begin;
    for (; next < did.intervals.size() && did.intervals[next].start < before; ++next) {
      const Simulation::Interval& interval = did.intervals[next];
      block.add_name(index[interval.name]);
      block.add_start(interval.start - last_start);
      block.add_duration(interval.end - interval.start);
      last_start = interval.start;
    }
  }
  return sample;
}

void FindNamed(Told& told) {
  std::set<int> named;
  if (told.stats.has_straggler()) named.insert(told.stats.straggler().rank());
  for (const SlowMeasurement& slow : told.stats.slow_measurements()) named.insert(slow.rank());
  for (const ArrivalStats& arrivals : told.stats.arrivals()) {
    if (arrivals.has_hold_up()) named.insert(arrivals.hold_up().rank());
    for (const Hiccups& hiccups : arrivals.hiccups()) {
      if (!hiccups.is_pause()) named.insert(hiccups.rank());
    }
  }
  told.named_by_table.assign(named.begin(), named.end());
  named.insert(told.what_if.blamed_ranks().begin(), told.what_if.blamed_ranks().end());
  told.named.assign(named.begin(), named.end());
}

// For how long all wait for a rank, as a share of an iteration, by the table; 0 if it names none.
double LongestWait(const ClusterStats& stats) {
  double most = 0;
  const double seconds = stats.iteration().mean() * static_cast<double>(stats.max_measured_iters());
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    most = std::max(most, arrivals.hold_up().share_of_iteration());
    for (const Hiccups& hiccups : arrivals.hiccups()) {
      if (!hiccups.is_pause()) most = std::max(most, hiccups.seconds() / seconds);
    }
  }
  return most;
}

double ClockOf(const std::vector<Simulation::Rank>& ranks) {
  int64_t end = 0;
  for (const Simulation::Rank& rank : ranks) end = std::max(end, rank.iteration_ends.back());
  return static_cast<double>(end - Nanoseconds(1)) * 1e-9 /
         static_cast<double>(ranks[0].iteration_ends.size());
}

bool IsOff(double said, double truth, double iteration) {
  const double off = std::abs(said - truth);
  return off > kWrongShare * std::abs(truth) && off > kWrongOfIteration * iteration;
}

}  // namespace

Told RunAndAsk(const Shape& shape, int num_ranks, int seed, int planted) {
  const std::vector<Simulation::Rank> ranks = Simulate(shape, num_ranks, seed, planted);
  const int num_present = shape.num_present > 0 ? shape.num_present : num_ranks;
  std::vector<StopwatchStats> stats;
  std::vector<std::string> like_work;
  std::vector<IterationSample> samples;
  ArrivalSummary arrivals;
  std::optional<CpuShare> cpu;
  for (int rank = 0; rank < num_present; ++rank) {
    const Simulation::Rank& did = ranks[static_cast<size_t>(rank)];
    Measured measured = Play(shape, did, rank, num_ranks);
    samples.push_back(Sample(shape, did, measured.stats));
    arrivals.Merge(ArrivalSummary(rank, measured.arrivals));
    const std::optional<CpuShare> of_rank = CpuShareOfWork(measured.stats);
    if (of_rank) cpu = cpu ? LeastCertain(*cpu, *of_rank) : *of_rank;
    like_work.push_back(shape.like_work ? shape.like_work(rank, num_ranks) : "");
    stats.push_back(std::move(measured.stats));
  }
  Told told;
  told.truth = ClockOf(ranks);
  told.stats = MergeStats(stats, num_ranks, like_work);
  ArrivalTracker tracker;
  tracker.Add(arrivals);
  const CpuShare share = cpu.value_or(CpuShare());
  for (const ArrivalStats& of : tracker.Finish(told.stats.iteration().mean(), {share, share})) {
    *told.stats.add_arrivals() = of;
  }
  const absl::StatusOr<saved::ReplayJob> job = saved::MakeJob(std::move(samples));
  if (job.ok()) told.what_if = saved::AnswerWhatIf(*job);
  FindNamed(told);
  told.text = absl::StrCat(FormatClusterTable(told.stats),
                           job.ok() ? saved::FormatWhatIf(told.what_if) : job.status().ToString(), "\n");
  return told;
}

Rates RatesOf(const Shape& shape, int num_ranks, bool is_planted, int num_runs) {
  Rates rates;
  for (int run = 0; run < num_runs; ++run) {
    const int rank = shape.planted_rank >= 0 ? shape.planted_rank : run % num_ranks;
    const int planted = is_planted ? rank : -1;
    const Told told = RunAndAsk(shape, num_ranks, run, planted);
    std::string why;
    const bool says_good = told.what_if.verdict() == WHAT_IF_EVEN;
    const double iteration = told.what_if.measured_seconds();
    if (shape.cannot_be_told ? says_good || !told.named.empty()
                             : std::any_of(told.named.begin(), told.named.end(), [&](int named) {
                                 return !IsPlanted(shape, named, num_ranks, planted);
                               })) {
      ++rates.num_false;
      absl::StrAppend(&why, "false ");
    } else if (planted < 0 && told.what_if.verdict() == WHAT_IF_UNEVEN && shape.noise < 0.1 &&
               !shape.is_uneven) {
      ++rates.num_false;
      absl::StrAppend(&why, "false(uneven) ");
    }
    double loss = 0;
    if (planted >= 0) loss = told.truth - ClockOf(Simulate(shape, num_ranks, run, -1));
    if (planted >= 0 && (told.named.empty() || (says_good && loss > 0.05 * told.truth) ||
                         (told.named_by_table.empty() && !shape.is_of_replay_alone))) {
      ++rates.num_missed;
      absl::StrAppend(&why, "missed ");
    }
    const Straggler& straggler = told.stats.straggler();
    bool is_wrong = planted >= 0 && told.stats.has_straggler() &&
                    std::abs(static_cast<double>(straggler.since_iteration()) / shape.num_iterations -
                             shape.late) > kWrongShare;
    is_wrong |= iteration > 0 && IsOff(iteration, told.truth, told.truth);
    for (const ArrivalStats& arrivals : told.stats.arrivals()) {
      if (arrivals.has_hold_up()) {
        is_wrong |= arrivals.hold_up().seconds_per_iteration() >
                    loss + (shape.is_uneven ? 2 : 1) * kMaxNoise * told.truth;
      }
    }
    if (planted >= 0 && told.what_if.repairs_size() > 0) {
      const WhatIfPart& best = told.what_if.has_best_repairs_together() ? told.what_if.best_repairs_together()
                                                                        : told.what_if.repairs(0);
      // The answer says that it is a bound.
      const bool is_bound = std::any_of(
          told.what_if.notes().begin(), told.what_if.notes().end(),
          [](const auto& note) { return note.find("saves more than is predicted") != note.npos; });
      const bool is_within = best.saved_low() * iteration <= loss && loss <= best.saved_high() * iteration;
      is_wrong |= IsOff(best.saved() * iteration, loss, told.truth) && !is_within &&
                  !(is_bound && best.saved() * iteration < loss);
    }
    if (is_wrong && !shape.cannot_be_told) {
      ++rates.num_wrong;
      absl::StrAppend(&why, "wrong ");
    }
    if (LongestWait(told.stats) > 1.2 * told.what_if.not_excluded() + kWrongOfIteration &&
        (told.what_if.verdict() == WHAT_IF_EVEN || told.what_if.verdict() == WHAT_IF_UNEVEN)) {
      ++rates.num_contradicted;
      absl::StrAppend(&why, "contradicted ");
    }
    ++rates.num_runs;
    if (!why.empty() && (rates.first.empty() || (why.find("false") != why.npos &&
                                                 rates.first.find(": false") == std::string::npos))) {
      rates.first =
          absl::StrCat(shape.name, ", ", num_ranks, " ranks, run ", run, ", planted on ", planted, ": ", why,
                       "\na mean iteration takes ", told.truth * 1e3, " ms, of which ", loss * 1e3,
                       " are planted; named: ", absl::StrJoin(told.named, ", "), "\n", told.text);
    }
  }
  return rates;
}

}  // namespace ott::shapes
