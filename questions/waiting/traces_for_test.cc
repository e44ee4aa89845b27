#include "ott/questions/waiting/traces_for_test.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace ott::waiting {
namespace {

using kernels::Profile;

constexpr double kNanoseconds = 1e9;
constexpr double kTransferSeconds = 3e-4;
constexpr double kDisturbanceSeconds = 0.3;

// A machine's clock, from true seconds.
struct Clock {
  double ahead = 0;
  double drift = 0;

  int64_t operator()(double seconds) const {
    return std::llround(kNanoseconds * (seconds * (1 + drift) + ahead));
  }
};

class Simulation {
 public:
  Simulation(const SimulatedJob& job, uint64_t seed) : job_(job), random_(seed) {
    for (int rank = 0; rank < job.num_ranks; ++rank) {
      Rank& one = ranks_.emplace_back();
      one.trace = EmptyTraceForTest();
      one.trace.collective_kinds[0].group_size = job.num_ranks;
      one.factor = 1 + job.rank_spread * normal_(random_);
      if (rank == job.slow_rank) one.factor *= 1 + job.slowdown;
      one.disturbance = job.disturbance * normal_(random_);
      const int host = rank * job.num_hosts / job.num_ranks;
      one.clock = {1 + 5e-3 * host, 1e-6 * host};
    }
  }

  std::vector<Profile> Run() {
    for (int step = 0; step < job_.num_steps; ++step) {
      for (Rank& rank : ranks_) {
        rank.data = std::exp(job_.uneven_data * normal_(random_));
        rank.step_begin = rank.now;
      }
      for (int i = 0; i < job_.collectives_per_step; ++i) Meet();
      if (!job_.has_steps) continue;
      for (Rank& rank : ranks_)
        AddStepForTest(&rank.trace, step, rank.clock(rank.step_begin), rank.clock(rank.now));
    }
    std::vector<Profile> traces;
    for (Rank& rank : ranks_) traces.push_back(std::move(rank.trace));
    return traces;
  }

 private:
  struct Rank {
    Profile trace;
    Clock clock;
    double factor = 1;
    double data = 1;
    double disturbance = 0;
    double now = 0;
    double step_begin = 0;
    double arrival = 0;
  };

  // All work, come, reduce and leave.
  void Meet() {
    const double stretch = job_.work_seconds / job_.collectives_per_step;
    const double keeps = std::exp(-stretch / kDisturbanceSeconds);
    double meet = 0;
    for (Rank& rank : ranks_) {
      rank.disturbance =
          keeps * rank.disturbance + std::sqrt(1 - keeps * keeps) * job_.disturbance * normal_(random_);
      double work = stretch * rank.factor * rank.data * std::exp(job_.jitter * normal_(random_)) *
                    std::max(0.1, 1 + rank.disturbance);
      if (uniform_(random_) < job_.stall_probability) work += job_.work_seconds / 2;
      rank.arrival = rank.now + work;
      meet = std::max(meet, rank.arrival);
    }
    const double end = meet + kTransferSeconds * (1 + 0.1 * std::abs(normal_(random_)));
    for (Rank& rank : ranks_) {
      const double left = end + 2e-6 * std::abs(normal_(random_));
      AddKernelForTest(&rank.trace, 0, rank.clock(rank.now), rank.clock(rank.now + 1e-6),
                       rank.clock(rank.arrival));
      AddKernelForTest(&rank.trace, 1, rank.clock(rank.now), rank.clock(rank.arrival), rank.clock(left));
      rank.now = left;
    }
  }

  const SimulatedJob job_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  std::vector<Rank> ranks_;
};

}  // namespace

Profile EmptyTraceForTest() {
  Profile profile;
  profile.kernel_names = {"gemm",
                          "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"};
  profile.transfer_names = {"Memcpy HtoD (Pinned -> Device)", "Memset (Device)"};
  profile.threads.emplace_back();
  profile.processes.emplace_back();
  profile.begin_unix_nanoseconds = 0;
  Profile::CollectiveKind kind;
  kind.name = "allreduce";
  kind.dtype = "float32";
  kind.group = "0";
  kind.group_description = "default_pg";
  kind.in_elements = kind.out_elements = 1'000'000;
  kind.group_size = 2;
  profile.collective_kinds = {kind};
  return profile;
}

void AddKernelForTest(Profile* profile, uint32_t name, int64_t call, int64_t start, int64_t end) {
  Profile::Launch launch;
  launch.start = call;
  launch.thread = 0;
  launch.nanoseconds = 1;
  profile->launches.push_back(launch);
  Profile::Kernel kernel{};
  kernel.start = start;
  kernel.end = end;
  kernel.name = name;
  kernel.launch = static_cast<uint32_t>(profile->launches.size() - 1);
  profile->kernels.push_back(kernel);
  if (name == 1) profile->collectives.push_back({static_cast<uint32_t>(profile->kernels.size() - 1), 0, -1});
  if (profile->kernels.size() == 1) profile->first_time = start;
  profile->last_time = std::max(profile->last_time, end);
}

void AddStepForTest(Profile* profile, int number, int64_t start, int64_t end) {
  kernels::OpLabel label;
  label.text = "ProfilerStep#" + std::to_string(number);
  profile->labels.push_back(label);
  profile->threads[0].ranges.push_back(
      {start, end, static_cast<uint32_t>(profile->labels.size() - 1), kernels::kNone});
  ++profile->num_steps;
}

std::vector<Profile> SimulateTraces(const SimulatedJob& job, uint64_t seed) {
  return Simulation(job, seed).Run();
}

TracedJob DescribeForTest(const std::vector<Profile>& profiles) {
  std::vector<RankProfile> traces;
  for (size_t i = 0; i < profiles.size(); ++i) traces.push_back({static_cast<int>(i), &profiles[i]});
  return DescribeJob(traces);
}

}  // namespace ott::waiting
