// From what ranks keep of their iterations to an answer.

#include "ott/questions/saved/sampled_job.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/location.h"
#include "ott/core/statistics/persistent_excess.h"
#include "ott/core/statistics/policy.h"
#include "ott/questions/saved/gathered_answer.h"
#include "ott/questions/saved/iteration_sampler.h"
#include "ott/questions/saved/what_if.h"

namespace ott::saved {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int64_t kMicrosecond = 1000;
constexpr int kIterationsPerBlock = 16;

// A training of some ranks: forward, a reduction, backward, a reduction and a step. Nanoseconds.
struct Training {
  int num_ranks = 4;
  int num_blocks = 8;
  // A rank takes so much longer for forward in an iteration.
  std::function<int64_t(int rank, int iteration)> forward_excess = [](int, int) { return 0; };
  // Standard deviation of each stretch of work, as a share of it.
  double noise = 0;
  int seed = 1;
  // Ranks 0 and 1, and 2 and 3, reduce among themselves; the other reduction is of all.
  bool reduces_in_pairs = false;
  // And the configuration says so.
  bool tells_pairs = false;
  // Both reductions are of pairs, and the configuration says so.
  bool is_two_jobs = false;
  // Ranks 0 and 1 are a stage of a pipeline, 2 and 3 another one, by the configuration.
  bool has_stages = false;
  // Each half of the ranks is a host.
  bool has_hosts = false;
  // The share of the first reduction in which rank 0 measures work inside of it, and further ranks a part of
  // that share. Then ranks leave reductions one after the other.
  double share_inside = 0;
  int num_inside = 1;
  // The last rank does something else instead of the step.
  bool saves_alone = false;

  std::vector<IterationSample> Run() {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> normal(0, 1);
    const auto noisy = [&](int64_t duration) {
      return static_cast<int64_t>(static_cast<double>(duration) * std::exp(noise * normal(random)));
    };
    std::vector<IterationSample> samples(num_ranks);
    for (int rank = 0; rank < num_ranks; ++rank) {
      samples[rank].set_rank(rank);
      samples[rank].set_world_size(num_ranks);
      samples[rank].set_host(has_hosts && rank >= num_ranks / 2 ? "node1" : "node0");
      if (has_stages) samples[rank].set_like_work(rank < 2 ? "group 0" : "group 1");
      samples[rank].set_observer(-1);
      for (const auto& [name, collective] : {std::pair("forward", false),
                                             {"loss", true},
                                             {"backward", false},
                                             {"reduce", true},
                                             {"step", false},
                                             {"inside", false},
                                             {"save", false}}) {
        samples[rank].add_names(name);
        samples[rank].add_collective(collective);
        samples[rank].add_group(
            is_two_jobs || (tells_pairs && name == std::string("loss")) ? (rank < 2 ? "a" : "b") : "");
      }
    }
    std::vector<int64_t> now(num_ranks, int64_t{1} << 40);
    for (int block = 0; block < num_blocks; ++block) {
      std::vector<IterationBlock*> blocks;
      std::vector<int64_t> last_start(num_ranks);
      std::vector<int64_t> last_end(now);
      for (int rank = 0; rank < num_ranks; ++rank) {
        blocks.push_back(samples[rank].add_blocks());
        blocks[rank]->set_first_iteration(block * kIterationsPerBlock);
        blocks[rank]->set_begin(now[rank]);
      }
      const auto add = [&](int rank, int name, int64_t end) {
        blocks[rank]->add_name(name);
        blocks[rank]->add_start(now[rank] - blocks[rank]->begin() - last_start[rank]);
        last_start[rank] = now[rank] - blocks[rank]->begin();
        blocks[rank]->add_duration(end - now[rank]);
        now[rank] = end;
      };
      const auto work = [&](int name, int64_t duration, int iteration) {
        for (int rank = 0; rank < num_ranks; ++rank) {
          now[rank] += kMicrosecond;
          add(rank, name == 4 && saves_alone && rank == num_ranks - 1 ? 6 : name,
              now[rank] + noisy(duration) + (name == 0 ? forward_excess(rank, iteration) : 0));
        }
      };
      const auto reduce = [&](int name, int group_size) {
        for (int first = 0; first < num_ranks; first += group_size) {
          const int last = std::min(first + group_size, num_ranks);
          const int64_t latest = *std::max_element(now.begin() + first, now.begin() + last);
          for (int rank = first; rank < last; ++rank) {
            const int64_t start = now[rank], more = share_inside > 0 ? rank : 0;
            const int64_t end = latest + (20 + more) * kMicrosecond;
            add(rank, name, end);
            if (name != 1 || rank >= num_inside || share_inside == 0) continue;
            now[rank] = start;
            const double share = share_inside / (1 + rank);
            add(rank, 5, start + static_cast<int64_t>(share * static_cast<double>(end - start)));
            now[rank] = end;
          }
        }
      };
      for (int i = 0; i < kIterationsPerBlock; ++i) {
        const int iteration = block * kIterationsPerBlock + i;
        work(0, 1000 * kMicrosecond, iteration);
        reduce(1, reduces_in_pairs || is_two_jobs ? 2 : num_ranks);
        work(2, 2000 * kMicrosecond, iteration);
        reduce(3, is_two_jobs ? 2 : num_ranks);
        work(4, 100 * kMicrosecond, iteration);
        for (int rank = 0; rank < num_ranks; ++rank) {
          blocks[rank]->add_iteration_end(now[rank] - last_end[rank]);
          last_end[rank] = now[rank];
        }
      }
    }
    return samples;
  }
};

WhatIfAnswer Ask(Training training) { return AnswerWhatIf(MakeJob(training.Run()).value()); }

// Holds an interval of a rank, as its sample tells it.
struct Told {
  std::string name;
  int64_t iteration;
  double start, end;
};

std::vector<Told> Decode(const IterationSample& sample) {
  std::vector<Told> all;
  for (const IterationBlock& block : sample.blocks()) {
    int64_t start = block.begin(), end = block.begin(), iteration = 0;
    for (int i = 0; i < block.name_size(); ++i) {
      start += block.start(i);
      while (start >= end + block.iteration_end(static_cast<int>(iteration)))
        end += block.iteration_end(static_cast<int>(iteration++));
      all.push_back({sample.names(block.name(i)), block.first_iteration() + iteration,
                     1e-9 * static_cast<double>(start),
                     1e-9 * static_cast<double>(start + block.duration(i))});
    }
  }
  return all;
}

// A step is from the last rank's coming to "reduce" to its coming there in the next iteration. An operation's
// own time is without waiting for the last; it is ideal as the others' median, or in a pipeline their mean.
TEST(SampledJob, HoldsTheTimesThatTheRulesSay) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 40; ++trial) {
    Training training;
    training.num_ranks = 2 + trial % 3;
    training.num_blocks = 3;
    training.noise = 0.2;
    training.seed = trial;
    training.has_stages = random() % 3 == 0;
    training.reduces_in_pairs = random() % 2 == 0;
    training.tells_pairs = training.reduces_in_pairs && random() % 2 == 0;
    training.share_inside = std::vector<double>{0, 0.49, 0.51}[random() % 3];
    training.num_inside = 1 + static_cast<int>(random() % 4);
    training.saves_alone = random() % 3 == 0;
    training.has_hosts = trial % 2 == 0;
    std::vector<IterationSample> samples = training.Run();
    std::vector<bool> is_kept(training.num_blocks, true);
    const size_t lost = random() % 5;
    if (lost < is_kept.size()) {
      is_kept[lost] = false;
      samples.back().mutable_blocks()->DeleteSubrange(static_cast<int>(lost), 1);
    }
    std::optional<CpuShare> all;
    double least_taken = INFINITY;
    for (IterationSample& sample : samples) {
      if (random() % 4 == 0) continue;
      const auto draw = [&] { return 1e-3 * static_cast<double>(random() % 100); };
      const CpuShare cpu = {draw(), draw() + 0.1 * static_cast<double>(random() % 2), 10 * draw(), draw()};
      CpuOfWork& of_work = *sample.mutable_cpu_of_work();
      of_work.set_cpu_seconds(cpu.cpu_seconds);
      of_work.set_taken_share(cpu.taken_share);
      of_work.set_watched_seconds(cpu.watched_seconds);
      of_work.set_taken_seconds(cpu.taken_seconds);
      all = all ? LeastCertain(*all, cpu) : cpu;
      least_taken = std::min(least_taken, cpu.taken_seconds);
    }
    std::vector<std::vector<Told>> told;
    std::map<std::tuple<std::string, int64_t, int>, double> latest;  // by name, iteration and group
    const auto group_of = [&](const std::string& name, size_t rank) {
      return name == "loss" && training.reduces_in_pairs ? static_cast<int>(rank / 2) : 0;
    };
    for (size_t rank = 0; rank < samples.size(); ++rank) {
      for (const Told& one : told.emplace_back(Decode(samples[rank]))) {
        double& last = latest[{one.name, one.iteration, group_of(one.name, rank)}];
        last = std::max(last, one.start);
      }
    }
    const bool is_staged = training.has_stages && training.num_ranks > 2,
               is_held = training.share_inside > 0.5;
    const auto is_collective = [](const std::string& name) { return name == "loss" || name == "reduce"; };
    using Key = std::tuple<int64_t, size_t, std::string>;  // iteration of the step, rank and name
    std::map<Key, double> own, ideal, found_own, found_ideal;
    std::vector<double> inside(told.size());
    std::vector<int64_t> steps;
    // Steps are of two iterations that all ranks kept.
    const auto is_step = [&](int64_t step) {
      const int64_t before = step - 1, end = training.num_blocks * kIterationsPerBlock;
      return before >= 0 && step < end && is_kept[before / kIterationsPerBlock] &&
             is_kept[step / kIterationsPerBlock];
    };
    for (size_t rank = 0; rank < told.size(); ++rank) {
      for (const Told& one : told[rank]) {
        const bool is_of_next = one.name == "reduce" || one.name == "step" || one.name == "save";
        const int64_t step = one.iteration + (is_of_next ? 1 : 0);
        if (one.name == "inside" && is_kept[one.iteration / kIterationsPerBlock])
          inside[rank] += one.end - one.start;
        if (one.name == "inside" || !is_step(step)) continue;
        if (rank == 0 && one.name == "reduce") steps.push_back(step);
        own[{step, rank, one.name}] =
            one.end - (is_collective(one.name) ? latest[{one.name, one.iteration, group_of(one.name, rank)}]
                                               : one.start);
      }
    }
    for (const auto& [key, unused] : own) {
      std::vector<double> alike;
      for (const auto& [other, seconds] : own) {
        if ((is_staged || std::get<0>(other) == std::get<0>(key)) && std::get<2>(other) == std::get<2>(key))
          alike.push_back(seconds);
      }
      const double mean =
          std::accumulate(alike.begin(), alike.end(), 0.0) / static_cast<double>(alike.size());
      const std::string& name = std::get<2>(key);
      ideal[key] = name == "loss" && is_held           ? own[key]
                   : is_staged && !is_collective(name) ? mean
                   : alike.size() == 1                 ? 0
                                                       : Median(alike);
    }
    const ReplayJob job = MakeJob(samples).value();
    ASSERT_EQ(job.steps.size(), steps.size());
    int64_t first_of_batch = -5, batch = 0;
    for (size_t i = 0; i < job.steps.size(); ++i) {
      const ReplayJob::Step& step = job.steps[i];
      EXPECT_EQ(step.number, steps[i]);
      EXPECT_EQ(step.num_iterations, 1);
      if (!is_step(step.number - 1) || step.number >= first_of_batch + 5) {
        first_of_batch = step.number;
        ++batch;
      }
      EXPECT_EQ(step.batch, batch);
      EXPECT_NEAR(step.measured_seconds,
                  (latest[{"reduce", step.number, 0}] - latest[{"reduce", step.number - 1, 0}]), 1e-9);
      const auto [first, last] = job.graph.OperationsOf(static_cast<int>(i));
      for (int32_t at = first; at < last; ++at) {
        const ReplayJob::Operation& operation = job.operations[at];
        const Key key = {step.number, operation.rank, job.kinds[operation.kind].name};
        found_own[key] += operation.own;
        found_ideal[key] += operation.ideal;
      }
    }
    for (const auto& [key, seconds] : own) {
      EXPECT_NEAR(found_own[key], seconds, 1e-8) << trial << " " << std::get<2>(key);
      EXPECT_NEAR(found_ideal[key], ideal[key], 1e-8) << trial << " " << std::get<2>(key);
    }
    for (int rank = 0; rank < training.num_ranks; ++rank) {
      EXPECT_EQ(job.ranks[rank].rank, rank);
      EXPECT_EQ(job.ranks[rank].host, samples[rank].host());
      EXPECT_EQ(job.ranks[rank].stage, is_staged ? rank / 2 : -1);
      EXPECT_EQ(job.ranks[rank].replica, is_staged && training.num_ranks == 4 ? rank % 2 : -1);
    }
    EXPECT_DOUBLE_EQ(job.work_spread, all ? std::hypot(ExpectedSpread(*all), SpreadOfTaken(*all)) : 0);
    EXPECT_DOUBLE_EQ(job.taken_difference, all ? all->taken_seconds - least_taken : 0);
    EXPECT_DOUBLE_EQ(job.work_slowdown, all ? SecondsOfOneSlowdown(*all) + job.taken_difference : 0);
    EXPECT_DOUBLE_EQ(job.taken_share, all ? all->taken_share : 0);
    const auto [least, most] = std::minmax_element(inside.begin(), inside.end());
    EXPECT_NEAR(job.inside_difference,
                (*most - *least) / kIterationsPerBlock / std::count(is_kept.begin(), is_kept.end(), true),
                1e-9);
    for (const ReplayJob::Kind& kind : job.kinds)
      EXPECT_EQ(kind.holds_work, kind.name == "loss" && kind.communicates && is_held);
    std::vector<testing::Matcher<std::string>> notes;
    const bool finds_groups = training.reduces_in_pairs && !training.tells_pairs && training.num_ranks > 2;
    if (finds_groups)
      notes.push_back(StartsWith("not all ranks wait for each other in \"loss\": 2 groups, "));
    if (is_held) notes.push_back(StartsWith("others work inside of \"loss\", "));
    if (all && all->taken_share >= 0.1) {
      notes.push_back(HasSubstr(
          absl::StrFormat("had a rank's CPU for up to %.0f%% of its work", 100 * all->taken_share)));
    }
    EXPECT_THAT(job.notes, testing::UnorderedElementsAreArray(notes)) << trial;
    EXPECT_EQ(job.may_overlap, finds_groups);
    EXPECT_LT(AnswerWhatIf(job).replay_error(), 1e-9);
  }
}

// As where gradients are accumulated.
TEST(SampledJob, WhereRanksMeetInEachFourthIterationStepsAreOfFourIterationsOfTheRun) {
  std::vector<IterationSample> samples = Training().Run();
  for (IterationSample& sample : samples) {
    for (IterationBlock& block : *sample.mutable_blocks()) {
      const int per_iteration = block.name_size() / kIterationsPerBlock;
      for (int i = 0; i < block.name_size(); ++i) {
        if (sample.collective(block.name(i)) && i / per_iteration % 4 != 3) block.set_name(i, 0);
      }
    }
  }
  const ReplayJob job = MakeJob(samples).value();
  EXPECT_EQ(job.steps[0].num_iterations, 4);
  const WhatIfAnswer answer = AnswerWhatIf(job);
  EXPECT_EQ(answer.first_step(), 4);
  EXPECT_EQ(answer.last_step(), 8 * kIterationsPerBlock - 1);
  EXPECT_EQ(answer.num_steps(), answer.last_step() - answer.first_step() + 1);
}

TEST(SampledJob, ARankIsNotBlamedForWhatRanksThatAreAlikeDifferBy) {
  Training training;
  training.num_ranks = 2;
  int64_t excess = 0;
  training.forward_excess = [&](int rank, int) { return rank * excess * kMicrosecond; };
  const auto verdict = [&](double watched_seconds, const std::vector<double>& taken_seconds = {0, 0}) {
    std::vector<IterationSample> samples = training.Run();
    for (IterationSample& sample : samples) {
      sample.mutable_cpu_of_work()->set_cpu_seconds(3.1e-3);
      sample.mutable_cpu_of_work()->set_watched_seconds(watched_seconds);
      sample.mutable_cpu_of_work()->set_taken_seconds(taken_seconds[sample.rank()]);
    }
    return AnswerWhatIf(*MakeJob(samples)).verdict();
  };
  excess = 200;
  EXPECT_EQ(Ask(training).verdict(), WHAT_IF_RANKS);
  // But that mending it saves something is not excluded.
  EXPECT_EQ(verdict(100), WHAT_IF_CANNOT_TELL);
  excess = 600;
  EXPECT_EQ(verdict(100), WHAT_IF_RANKS);
  // Something may slow down a CPU for so long.
  EXPECT_EQ(verdict(0.1), WHAT_IF_CANNOT_TELL);
  // One rank may have waited longer than the other for its CPU, or longer at the wrong time.
  EXPECT_EQ(verdict(100, {0, 0.5e-3}), WHAT_IF_CANNOT_TELL);
  EXPECT_EQ(verdict(100, {2e-3, 2e-3}), WHAT_IF_CANNOT_TELL);
  EXPECT_EQ(verdict(100, {0.1e-3, 0.1e-3}), WHAT_IF_RANKS);
}

TEST(SampledJob, SlowRankOrHostIsBlamedAndWhatItsRepairSavesIsWhatItCosts) {
  Training training;
  training.forward_excess = [](int rank, int) { return rank == 1 ? 3000 * kMicrosecond : 0; };
  const WhatIfAnswer answer = Ask(training);
  EXPECT_EQ(answer.verdict(), WHAT_IF_RANKS) << answer.conclusion();
  EXPECT_THAT(answer.blamed_ranks(), ElementsAre(1));
  ASSERT_GT(answer.repairs_size(), 0);
  EXPECT_NEAR(answer.repairs(0).seconds(), Ask({}).measured_seconds(), 2e-6);
  training.has_hosts = true;
  training.forward_excess = [](int rank, int) { return rank >= 2 ? 3000 * kMicrosecond : 0; };
  const WhatIfAnswer of_host = Ask(training);
  EXPECT_THAT(of_host.blamed_ranks(), ElementsAre(2, 3));
  EXPECT_THAT(of_host.conclusion(), HasSubstr("host node1: like the others"));
}

TEST(SampledJob, OfRanksThatNeverMeetThoseThatTakeLongestInSumAreTheJobsTime) {
  Training training;
  training.is_two_jobs = true;
  training.forward_excess = [](int rank, int) { return rank >= 2 ? 3000 * kMicrosecond : 0; };
  EXPECT_THAT(Ask(training).blamed_ranks(), ElementsAre(2, 3));
  training.forward_excess = [](int rank, int iteration) {
    return rank / 2 == iteration / kIterationsPerBlock % 2 ? 300 * kMicrosecond : 0;
  };
  int64_t longest = 0;
  for (const IterationSample& sample : training.Run()) {
    int64_t of_rank = 0;
    for (const IterationBlock& block : sample.blocks()) {
      for (const int64_t iteration : block.iteration_end()) of_rank += iteration;
    }
    longest = std::max(longest, of_rank);
  }
  const WhatIfAnswer answer = Ask(training);
  EXPECT_NEAR(answer.measured_seconds() * static_cast<double>(answer.num_steps()),
              1e-9 * static_cast<double>(longest), 1e-4);
  EXPECT_LT(answer.replay_error(), 1e-9);
  EXPECT_THAT(answer.blamed_ranks(), IsEmpty());
}

// In "loss", rank 0 waits for rank 1 but leaves before rank 2 comes, and has the more time for "backward".
// Once may be an error of the clocks; always, the replay does not fit.
TEST(SampledJob, WhoLeavesBeforeAllCameMakesTheReplayTakeAnotherTime) {
  Training training;
  training.num_ranks = 3;
  training.forward_excess = [](int rank, int) { return rank * rank * 1000 * kMicrosecond; };
  constexpr int64_t kEarlier = 2500 * kMicrosecond;
  for (const bool is_once : {true, false}) {
    std::vector<IterationSample> samples = training.Run();
    int iteration = 0;
    for (IterationBlock& block : *samples[0].mutable_blocks()) {
      for (int i = 0; i + 2 < block.name_size(); ++i) {
        if (block.name(i) != 1 || (++iteration != 50 && is_once)) continue;
        block.set_duration(i, block.duration(i) - kEarlier);
        block.set_start(i + 1, block.start(i + 1) - kEarlier);
        block.set_duration(i + 1, block.duration(i + 1) + kEarlier);
        block.set_start(i + 2, block.start(i + 2) + kEarlier);
      }
    }
    const absl::StatusOr<ReplayJob> job = MakeJob(samples);
    EXPECT_EQ(AnswerWhatIf(*job).replay_error() > kMaxReplayError, !is_once);
    for (const ReplayJob::Operation& operation : job->operations) EXPECT_GE(operation.own, 0);
  }
}

TEST(SampledJob, MissingRankIsNamed) {
  std::vector<IterationSample> samples = Training().Run();
  samples.erase(samples.begin() + 2);
  const ReplayJob job = MakeJob(samples).value();
  EXPECT_TRUE(job.incomplete);
  EXPECT_THAT(job.notes, Contains(HasSubstr("1 of 4 ranks left no iterations: 2")));
  for (const auto& [world_size, missing] : {std::pair(10, "2, 4, 5, 6, 7, 8, 9"),
                                            {11, "2, 4, 5, 6, 7, 8, 9, 10"},
                                            {12, "2, 4, 5, 6, 7, 8, 9, 10, ..."}}) {
    samples[0].set_world_size(world_size);  // the largest counts
    EXPECT_EQ(MakeJob(samples)->notes[0],
              absl::StrFormat("%d of %d ranks left no iterations: %s", world_size - 3, world_size, missing));
  }
}

TEST(SampleBytesPerRank, AreFewMegabytesOfAllRanks) {
  for (const auto& [num_ranks, bytes] : {std::pair(0, 65536), {64, 65536}, {4096, 1024}})
    EXPECT_EQ(SampleBytesPerRank(num_ranks), bytes);
}

TEST(SampledJob, DamagedSamplesAreRefused) {
  const std::vector<IterationSample> good = Training().Run();
  std::vector<std::vector<IterationSample>> damaged(2, good);
  damaged[0][1].mutable_blocks(0)->set_error_bound(-1);
  // One rank has a block twice, and another one does not have it.
  *damaged[1][1].add_blocks() = good[1].blocks(7);
  damaged[1][2].mutable_blocks()->RemoveLast();
  for (const std::vector<IterationSample>& samples : damaged) {
    EXPECT_EQ(MakeJob(samples).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(MakeJob({}).status().code(), absl::StatusCode::kNotFound);
  std::vector<IterationSample> none = good;
  none[3].clear_blocks();
  EXPECT_EQ(MakeJob(none).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(AnswerGathered({"no bytes of a sample"}).status().code(), absl::StatusCode::kInternal);
}

TEST(SampledJob, RanksThatComeFarMoreOftenAreNotMatched) {
  for (const int num_left_out : {42, 43}) {
    std::vector<IterationSample> samples = Training().Run();
    int num_left = num_left_out;
    for (IterationBlock& block : *samples[2].mutable_blocks()) {
      for (int32_t& name : *block.mutable_name()) {
        if (name == 1 && num_left-- > 0) name = 0;
      }
    }
    // The others come 128 times.
    EXPECT_EQ(MakeJob(samples)->unmatched, num_left_out == 42 ? "" : "loss");
  }
}

}  // namespace
}  // namespace ott::saved
