#include "ott/tests/shapes/simulated_training.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/stats/arrival_summary.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/questions/saved/iteration_sampler.h"
#include "ott/questions/saved/sampled_job.h"
#include "ott/questions/slow/merge_stats.h"
#include "ott/questions/waiting/arrival_tracker.h"

namespace ott::shapes {
namespace {

constexpr int kIterationsPerBlock = saved::IterationSampler::kIterationsPerBlock;

int64_t Nanoseconds(double seconds) { return static_cast<int64_t>(std::llround(seconds * 1e9)); }

// The stopwatch that is played to reads these.
std::atomic<uint64_t> now_ns{0};
std::atomic<uint64_t> cpu_ns{0};
std::atomic<uint64_t> taken_ns{0};

Stopwatch::Environment PlayedEnvironment() {
  Stopwatch::Environment environment{Clock([] { return now_ns.load(); })};
  environment.synchronize_device = [] { return absl::UnimplementedError("no device"); };
  environment.steady_clock = environment.clock;
  environment.read_thread_times = []() -> std::optional<ThreadTimes> {
    return ThreadTimes{cpu_ns, taken_ns};
  };
  environment.read_process_cpu_time = [] { return cpu_ns.load(); };
  return environment;
}

// Runs all ranks' programs against each other.
class Simulation {
 public:
  struct Interval {
    std::string name;
    int64_t start = 0;
    int64_t end = 0;
    bool is_work = false;
    // The acts with which it began and ended.
    size_t first_act = 0;
    size_t last_act = 0;
  };
  struct Rank {
    std::vector<Interval> intervals;  // by start, then by act
    std::vector<int64_t> iteration_ends;
  };

  Simulation(const Shape& shape, const std::vector<RankProgram>& programs)
      : shape_(shape), programs_(programs), states_(programs.size()), ranks_(programs.size()) {}

  std::vector<Rank> Run() {
    for (bool any = true; any;) {
      any = false;
      for (size_t rank = 0; rank < programs_.size(); ++rank) {
        while (Step(rank)) any = true;
      }
    }
    for (size_t rank = 0; rank < programs_.size(); ++rank) {
      OTT_CHECK(states_[rank].next == programs_[rank].acts().size()) << "rank " << rank << " is stuck";
      std::stable_sort(ranks_[rank].intervals.begin(), ranks_[rank].intervals.end(),
                       [](const Interval& a, const Interval& b) {
                         return std::tie(a.start, a.first_act) < std::tie(b.start, b.first_act);
                       });
    }
    return std::move(ranks_);
  }

 private:
  using Kind = Act::Kind;
  // Who meets, and its lowest rank.
  using Group = std::pair<Among, int>;
  // Name, group, and how many of them the rank had before.
  using Key = std::tuple<std::string, Group, int>;
  struct Meeting {
    size_t num_there = 0;
    double latest = 0;
    double end = 0;
  };
  struct State {
    size_t next = 0;
    double now = 1;
    bool is_waiting = false;
    std::map<std::string, int> count;
    std::map<std::string, std::pair<double, size_t>> begun;  // when, and by which act
    std::map<std::pair<std::string, int>, int> num_messages;
  };

  Meeting& MeetingOf(const Act& act, size_t rank, int number) {
    const std::vector<int> members = Members(act, rank);
    return meetings_[{act.name, {act.among, members.front()}, number}];
  }

  std::vector<int> Members(const Act& act, size_t rank) const {
    return shape_.Members(act.among, static_cast<int>(rank), static_cast<int>(programs_.size()));
  }

  void Come(const Act& act, size_t rank) {
    State& state = states_[rank];
    const std::vector<int> members = Members(act, rank);
    Meeting& meeting = MeetingOf(act, rank, state.count[act.name]++);
    meeting.latest = std::max(meeting.latest, state.now);
    if (++meeting.num_there < members.size()) return;
    double& busy_until = busy_until_[{act.among, members.front()}];
    meeting.end = std::max(meeting.latest, busy_until) + act.seconds;
    busy_until = meeting.end;
  }

  void Add(size_t rank, const std::string& name, double start, double end, bool is_work, size_t act) {
    ranks_[rank].intervals.push_back(
        {name, Nanoseconds(start), Nanoseconds(end), is_work, act, states_[rank].next});
  }

  // The next operation of the rank; whether it could be done.
  bool Step(size_t rank) {
    State& state = states_[rank];
    if (state.next == programs_[rank].acts().size()) return false;
    const Act& operation = programs_[rank].acts()[state.next];
    const double start = state.now;
    switch (operation.kind) {
      case Kind::kWork:
        state.now += operation.seconds;
        Add(rank, operation.name, start, state.now, true, state.next);
        break;
      case Kind::kCollective: {
        if (!state.is_waiting) Come(operation, rank);
        const Meeting& meeting = MeetingOf(operation, rank, state.count[operation.name] - 1);
        state.is_waiting = meeting.end == 0;
        if (state.is_waiting) return false;
        state.now = meeting.end + operation.late;
        Add(rank, operation.name, start, state.now, false, state.next);
        break;
      }
      case Kind::kBroadcast: {
        const auto number = static_cast<size_t>(state.count[operation.name]);
        std::vector<double>& sent = messages_[{operation.peer, -1, operation.name}];
        const bool is_root = static_cast<int>(rank) == operation.peer;
        if (!is_root && number >= sent.size()) return false;
        ++state.count[operation.name];
        if (is_root) sent.push_back(state.now);
        state.now = std::max(state.now, sent[number]) + operation.seconds;
        Add(rank, operation.name, start, state.now, false, state.next);
        break;
      }
      case Kind::kBegin:
        Come(operation, rank);
        state.begun[operation.name] = {state.now, state.next};
        break;
      case Kind::kWait: {
        const Meeting& meeting = MeetingOf(operation, rank, state.count[operation.name] - 1);
        if (meeting.end == 0) return false;
        state.now = std::max(state.now, meeting.end);
        const auto [begin, act] =
            operation.measured ? state.begun[operation.name] : std::pair(start, state.next);
        Add(rank, operation.name, begin, state.now, false, act);
        break;
      }
      case Kind::kSend:
        state.now += operation.seconds;
        Add(rank, operation.name, start, state.now, false, state.next);
        messages_[{static_cast<int>(rank), operation.peer, operation.name}].push_back(state.now);
        break;
      case Kind::kReceive: {
        const auto& sent = messages_[{operation.peer, static_cast<int>(rank), operation.name}];
        int& number = state.num_messages[{operation.name, operation.peer}];
        if (static_cast<size_t>(number) >= sent.size()) return false;
        state.now = std::max(state.now, sent[static_cast<size_t>(number++)]) + operation.seconds;
        Add(rank, operation.name, start, state.now, false, state.next);
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

  const Shape& shape_;
  const std::vector<RankProgram>& programs_;
  std::vector<State> states_;
  std::vector<Rank> ranks_;
  std::map<Key, Meeting> meetings_;
  std::map<Group, double> busy_until_;
  // When what one rank sent to another (-1: to all) under a name was there.
  std::map<std::tuple<int, int, std::string>, std::vector<double>> messages_;
};

bool IsCollective(const Shape& shape, const std::string& name) {
  return std::find(shape.collectives.begin(), shape.collectives.end(), name) != shape.collectives.end();
}

std::string LikeWork(const Shape& shape, int rank, int num_ranks) {
  return shape.is_pipeline ? absl::StrCat("part ", shape.PartOf(rank, num_ranks)) : "";
}

// Returns "" for a measurement that no group is declared for.
std::string GroupOf(const Shape& shape, const std::string& name, int rank, int num_ranks) {
  const auto declared = shape.groups.find(name);
  if (declared == shape.groups.end()) return "";
  return absl::StrCat("group ", static_cast<int>(declared->second), " of rank ",
                      shape.Members(declared->second, rank, num_ranks).front());
}

struct Measured {
  StopwatchStats stats;
  RankArrivals arrivals;
};

// Returns what a stopwatch of the rank says, by playing to it what the rank did.
Measured Play(const Shape& shape, const Simulation::Rank& did, int rank, int num_ranks) {
  now_ns = 1'000'000'000;
  cpu_ns = 0;
  taken_ns = 0;
  const double taken_share = rank == 0 ? shape.taken_share : 0;
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
    size_t act;
  };
  std::vector<Event> events;
  for (size_t i = 0; i < did.intervals.size(); ++i) {
    const Simulation::Interval& interval = did.intervals[i];
    events.push_back({interval.start, 2, i, interval.first_act});
    events.push_back({std::max(interval.end, interval.start + 1), 0, i, interval.last_act});
  }
  for (const int64_t end : did.iteration_ends) events.push_back({end, 1, 0, 0});
  std::stable_sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::tie(a.when, a.order, a.act) < std::tie(b.when, b.order, b.act);
  });
  for (const Event& event : events) {
    now_ns = static_cast<uint64_t>(event.when);
    const Simulation::Interval& interval = did.intervals[event.which];
    if (event.order == 1) {
      stopwatch.FinishIter();
    } else if (event.order == 2) {
      stopwatch.Start(interval.name);
    } else {
      if (interval.is_work) {
        const auto took = static_cast<double>(interval.end - interval.start);
        cpu_ns += static_cast<uint64_t>(shape.cpu_share * took);
        taken_ns += static_cast<uint64_t>(taken_share * took);
      }
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
  measured.arrivals.like_work = LikeWork(shape, rank, num_ranks);
  for (const auto& [name, unused] : shape.groups) {
    measured.arrivals.groups[name] = GroupOf(shape, name, rank, num_ranks);
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
  sample.set_like_work(LikeWork(shape, stats.rank(), stats.world_size()));
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
    sample.add_group(GroupOf(shape, interval.name, stats.rank(), stats.world_size()));
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

// Returns the ends of iterations on the job's clock, in seconds.
std::vector<double> EndsOf(const std::vector<Simulation::Rank>& ranks) {
  std::vector<double> ends(ranks[0].iteration_ends.size());
  for (const Simulation::Rank& rank : ranks) {
    for (size_t i = 0; i < ends.size(); ++i) {
      ends[i] = std::max(ends[i], 1e-9 * static_cast<double>(rank.iteration_ends[i] - Nanoseconds(1)));
    }
  }
  return ends;
}

}  // namespace

Loss LossOf(const Shape& shape, const std::vector<RankProgram>& programs) {
  std::vector<RankProgram> clean;
  for (const RankProgram& program : programs) clean.push_back(program.WithoutPlanted());
  const std::vector<double> ends = EndsOf(Simulation(shape, programs).Run());
  const std::vector<double> mended = EndsOf(Simulation(shape, clean).Run());
  const size_t last = ends.size() - 1;
  const auto loss_from = [&](size_t first) {
    return MeanIteration(ends, first, last) - MeanIteration(mended, first, last);
  };
  return {loss_from(0), loss_from(ends.size() * 3 / 4)};
}

Told RunAndAsk(const Shape& shape, int num_ranks, int seed, int planted) {
  const std::vector<RankProgram> programs = shape.Programs(num_ranks, seed, planted);
  const std::vector<Simulation::Rank> ranks = Simulation(shape, programs).Run();
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
    like_work.push_back(LikeWork(shape, rank, num_ranks));
    stats.push_back(std::move(measured.stats));
  }
  ClusterStats merged = MergeStats(stats, num_ranks, like_work);
  ArrivalTracker tracker;
  tracker.Add(arrivals);
  const CpuShare share = cpu.value_or(CpuShare());
  const ArrivalTracker::MeanIteration iteration = {merged.iteration().mean(), share};
  for (const ArrivalStats& of : tracker.Finish(iteration, iteration)) {
    *merged.add_arrivals() = of;
  }
  const absl::StatusOr<saved::ReplayJob> job = saved::MakeJob(std::move(samples));
  return Ask(std::move(merged), job.ok() ? &*job : nullptr, EndsOf(ranks));
}

Rates RatesOf(const Shape& shape, int num_ranks, bool is_planted, int num_runs) {
  Rates rates;
  for (int run = 0; run < num_runs; ++run) {
    const int rank = shape.planted_rank >= 0 ? shape.planted_rank : run % num_ranks;
    const int planted = is_planted ? rank : -1;
    const Loss loss = LossOf(shape, shape.Programs(num_ranks, run, planted));
    rates.Add(shape, num_ranks, planted, loss, RunAndAsk(shape, num_ranks, run, planted),
              absl::StrCat("run ", run));
  }
  return rates;
}

}  // namespace ott::shapes
