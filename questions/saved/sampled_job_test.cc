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
#include "ott/questions/saved/saved_answer.h"
#include "ott/questions/saved/what_if.h"
#include "ott/questions/saved/what_if_text.h"

namespace ott::saved {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kMicrosecond = 1000;
constexpr int kIterationsPerBlock = 16;

// A training of some ranks: forward, a reduction, backward, a reduction and a step. Nanoseconds.
struct Training {
  int num_ranks = 4;
  int num_blocks = 8;
  // A rank takes so much longer for forward or backward in an iteration.
  std::function<int64_t(int rank, int iteration)> forward_excess = [](int, int) { return 0; };
  std::function<int64_t(int rank, int iteration)> backward_excess = [](int, int) { return 0; };
  // Standard deviation of each stretch of work, as a share of it.
  double noise = 0;
  int seed = 1;
  // The second reduction does not make ranks wait for each other.
  bool waits_for_nobody = false;
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
                                             {"step", false}}) {
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
      const auto work = [&](int name, int64_t duration, const auto& excess, int iteration) {
        for (int rank = 0; rank < num_ranks; ++rank) {
          now[rank] += kMicrosecond;
          add(rank, name, now[rank] + noisy(duration) + excess(rank, iteration));
        }
      };
      const auto reduce = [&](int name, int group_size) {
        for (int first = 0; first < num_ranks; first += group_size) {
          const int last = std::min(first + group_size, num_ranks);
          const int64_t latest = *std::max_element(now.begin() + first, now.begin() + last);
          for (int rank = first; rank < last; ++rank) {
            add(rank, name, (waits_for_nobody && name == 3 ? now[rank] : latest) + 20 * kMicrosecond);
          }
        }
      };
      for (int i = 0; i < kIterationsPerBlock; ++i) {
        const int iteration = block * kIterationsPerBlock + i;
        work(0, 1000 * kMicrosecond, forward_excess, iteration);
        reduce(1, reduces_in_pairs || is_two_jobs ? 2 : num_ranks);
        work(2, 2000 * kMicrosecond, backward_excess, iteration);
        reduce(3, is_two_jobs ? 2 : num_ranks);
        work(
            4, 100 * kMicrosecond, [](int, int) { return 0; }, iteration);
        for (int rank = 0; rank < num_ranks; ++rank) {
          blocks[rank]->add_iteration_end(now[rank] - last_end[rank]);
          last_end[rank] = now[rank];
        }
      }
    }
    return samples;
  }
};

WhatIfAnswer Ask(Training training) {
  const absl::StatusOr<ReplayJob> job = MakeJob(training.Run());
  EXPECT_TRUE(job.ok()) << job.status();
  return AnswerWhatIf(*job);
}

// Asks about ranks that were watched for so long, and had a CPU for all of their work but what others took
// from each.
WhatIfAnswer AskOnCpu(Training training, double watched_seconds, std::vector<double> taken_seconds = {0, 0}) {
  std::vector<IterationSample> samples = training.Run();
  for (IterationSample& sample : samples) {
    sample.mutable_cpu_of_work()->set_cpu_seconds(3.1e-3);
    sample.mutable_cpu_of_work()->set_watched_seconds(watched_seconds);
    sample.mutable_cpu_of_work()->set_taken_seconds(taken_seconds[sample.rank()]);
  }
  const absl::StatusOr<ReplayJob> job = MakeJob(std::move(samples));
  EXPECT_TRUE(job.ok()) << job.status();
  return AnswerWhatIf(*job);
}

std::function<int64_t(int, int)> OnRank(int rank, int64_t excess, int every = 1) {
  return [=](int of, int iteration) { return of == rank && iteration % every == 0 ? excess : 0; };
}

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
    std::vector<IterationSample> samples = training.Run();
    std::optional<CpuShare> all;
    double least_taken = INFINITY;
    for (IterationSample& sample : samples) {
      if (random() % 4 == 0) continue;
      const auto draw = [&] { return 1e-3 * static_cast<double>(random() % 100); };
      const CpuShare cpu = {draw(), draw(), 10 * draw(), draw()};
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
    const bool is_staged = training.has_stages && training.num_ranks > 2;
    const auto is_collective = [](const std::string& name) { return name == "loss" || name == "reduce"; };
    using Key = std::tuple<int64_t, size_t, std::string>;  // iteration of the step, rank and name
    std::map<Key, double> own, ideal, found_own, found_ideal;
    for (size_t rank = 0; rank < told.size(); ++rank) {
      for (const Told& one : told[rank]) {
        const int64_t step = one.iteration + (one.name == "reduce" || one.name == "step" ? 1 : 0);
        if (step == 0 || step == training.num_blocks * kIterationsPerBlock) continue;
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
      const bool is_mean = is_staged && !is_collective(std::get<2>(key));
      const double mean =
          std::accumulate(alike.begin(), alike.end(), 0.0) / static_cast<double>(alike.size());
      ideal[key] = is_mean ? mean : Median(alike);
    }
    const absl::StatusOr<ReplayJob> job = MakeJob(samples);
    ASSERT_TRUE(job.ok()) << job.status();
    ASSERT_EQ(job->steps.size(), training.num_blocks * kIterationsPerBlock - 1);
    for (size_t i = 0; i < job->steps.size(); ++i) {
      const ReplayJob::Step& step = job->steps[i];
      EXPECT_EQ(step.number, i + 1);
      EXPECT_EQ(step.num_iterations, 1);
      EXPECT_EQ(step.batch - job->steps[0].batch, i / 5);
      EXPECT_NEAR(step.measured_seconds,
                  (latest[{"reduce", step.number, 0}] - latest[{"reduce", step.number - 1, 0}]), 1e-9);
      const auto [first, last] = job->graph.OperationsOf(static_cast<int>(i));
      for (int32_t at = first; at < last; ++at) {
        const ReplayJob::Operation& operation = job->operations[at];
        const Key key = {step.number, operation.rank, job->kinds[operation.kind].name};
        found_own[key] += operation.own;
        found_ideal[key] += operation.ideal;
      }
    }
    for (const auto& [key, seconds] : own) {
      EXPECT_NEAR(found_own[key], seconds, 1e-8) << trial << " " << std::get<2>(key);
      EXPECT_NEAR(found_ideal[key], ideal[key], 1e-8) << trial << " " << std::get<2>(key);
    }
    for (int rank = 0; rank < training.num_ranks; ++rank) {
      EXPECT_EQ(job->ranks[rank].stage, is_staged ? rank / 2 : -1);
      EXPECT_EQ(job->ranks[rank].replica, is_staged && training.num_ranks == 4 ? rank % 2 : -1);
    }
    EXPECT_DOUBLE_EQ(job->work_spread, all ? std::hypot(ExpectedSpread(*all), SpreadOfTaken(*all)) : 0);
    EXPECT_DOUBLE_EQ(job->taken_difference, all ? all->taken_seconds - least_taken : 0);
    EXPECT_DOUBLE_EQ(job->work_slowdown, all ? SecondsOfOneSlowdown(*all) + job->taken_difference : 0);
    EXPECT_DOUBLE_EQ(job->taken_share, all ? all->taken_share : 0);
    const bool finds_groups = training.reduces_in_pairs && !training.tells_pairs && training.num_ranks > 2;
    EXPECT_EQ(std::count_if(job->notes.begin(), job->notes.end(),
                            [](const std::string& note) {
                              return note.find("not all ranks wait for each other in \"loss\": 2 groups") ==
                                     0;
                            }),
              finds_groups ? 1 : 0);
    EXPECT_LT(AnswerWhatIf(*job).replay_error(), 1e-9);
  }
}

TEST(SampledJob, ARankIsNotBlamedForWhatRanksThatAreAlikeDifferBy) {
  Training training;
  training.num_ranks = 2;
  training.forward_excess = OnRank(1, 200 * kMicrosecond);
  EXPECT_EQ(Ask(training).verdict(), WHAT_IF_RANKS);
  // But that mending it saves something is not excluded.
  EXPECT_EQ(AskOnCpu(training, 100).verdict(), WHAT_IF_CANNOT_TELL);
  EXPECT_THAT(AskOnCpu(training, 100).conclusion(), HasSubstr("saves up to 6 % is not excluded"));
  training.forward_excess = OnRank(1, 600 * kMicrosecond);
  EXPECT_EQ(AskOnCpu(training, 100).verdict(), WHAT_IF_RANKS);
  // Something may slow down a CPU for so long.
  EXPECT_EQ(AskOnCpu(training, 0.1).verdict(), WHAT_IF_CANNOT_TELL);
  // One rank may have waited longer than the other for its CPU, or longer at the wrong time.
  EXPECT_EQ(AskOnCpu(training, 100, {0, 0.5e-3}).verdict(), WHAT_IF_CANNOT_TELL);
  EXPECT_EQ(AskOnCpu(training, 100, {2e-3, 2e-3}).verdict(), WHAT_IF_CANNOT_TELL);
  EXPECT_EQ(AskOnCpu(training, 100, {0.1e-3, 0.1e-3}).verdict(), WHAT_IF_RANKS);
}

TEST(SampledJob, SlowRankIsBlamedAndWhatItsRepairSavesIsWhatItCosts) {
  Training training;
  training.forward_excess = OnRank(1, 3000 * kMicrosecond);
  const WhatIfAnswer answer = Ask(training);
  EXPECT_EQ(answer.verdict(), WHAT_IF_RANKS) << answer.conclusion();
  EXPECT_THAT(answer.blamed_ranks(), ElementsAre(1));
  ASSERT_GT(answer.repairs_size(), 0);
  EXPECT_NEAR(answer.repairs(0).seconds(), Ask({}).measured_seconds(), 2e-6);
  EXPECT_EQ(FormatWhatIfLine(answer),
            "what if: without rank 1 (node0)'s excess in \"forward\" an iteration takes 3.143 ms instead of "
            "6.143 ms "
            "(-49 %, 95 %: 49 to 49)");
}

TEST(SampledJob, WorkThatIsEvenOrUnevenIsNobodysFault) {
  for (const int num_ranks : {2, 4}) {
    for (int seed = 0; seed < 50; ++seed) {
      const bool is_uneven = seed % 10 == 9;
      Training training;
      training.num_ranks = num_ranks;
      training.noise = is_uneven ? 0.5 : 0.05;
      training.seed = seed;
      const WhatIfAnswer answer = Ask(training);
      EXPECT_EQ(answer.verdict(), is_uneven ? WHAT_IF_UNEVEN : WHAT_IF_EVEN)
          << seed << ": " << answer.conclusion();
      EXPECT_EQ(answer.repairs_size(), 0);
      if (!is_uneven) continue;
      EXPECT_THAT(answer.conclusion(),
                  HasSubstr(absl::StrFormat("saves less than %.1f %%", 100 * answer.not_excluded())));
      EXPECT_EQ(AnswerSaved(answer).finding(),
                answer.not_excluded() < 0.05 ? Answer::GOOD : Answer::CANNOT_TELL)
          << seed << ": " << answer.conclusion();
    }
  }
}

TEST(SampledJob, CollectiveThatNobodyWaitsInLeavesNothingToBeTold) {
  Training training;
  training.noise = 0.3;
  training.waits_for_nobody = true;
  training.reduces_in_pairs = true;
  const WhatIfAnswer answer = Ask(training);
  EXPECT_THAT(answer.notes(), Contains(HasSubstr("not all ranks wait for each other in \"reduce\"")));
  EXPECT_TRUE(answer.replay_error() < kMaxReplayError || answer.verdict() == WHAT_IF_CANNOT_TELL);
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

TEST(SampledJob, SlowHostIsBlamed) {
  Training training;
  training.has_hosts = true;
  training.noise = 0.05;
  training.forward_excess = [](int rank, int) { return rank >= 2 ? 3000 * kMicrosecond : 0; };
  const WhatIfAnswer answer = Ask(training);
  EXPECT_THAT(answer.blamed_ranks(), ElementsAre(2, 3));
  EXPECT_THAT(answer.conclusion(), HasSubstr("host node1: like the others"));
  // Its name cannot forge a line of the answer.
  std::vector<IterationSample> samples = training.Run();
  for (const int rank : {2, 3}) samples[rank].set_host("node1\nverdict: nothing to mend");
  EXPECT_THAT(FormatWhatIf(AnswerWhatIf(*MakeJob(samples))),
              HasSubstr("\nverdict: host node1\\nverdict: nothing to mend: like the others"));
  ASSERT_EQ(answer.by_host_size(), 2);
  EXPECT_EQ(answer.by_host(1).name(), "node1");
  EXPECT_GT(answer.by_host(1).saved(), 0.4);
}

// Ranks on a CPU differ by chance by more than it takes longer, so it is not blamed, and its stage is not
// either.
TEST(SampledJob, SlowRankOfTheLastStageIsNoLongLastStage) {
  Training training;
  training.has_stages = true;
  training.noise = 0.05;
  training.forward_excess = OnRank(2, 2000 * kMicrosecond);
  std::vector<IterationSample> samples = training.Run();
  for (IterationSample& sample : samples) {
    sample.mutable_cpu_of_work()->set_cpu_seconds(10e-3);
    sample.mutable_cpu_of_work()->set_watched_seconds(0.1);
  }
  const WhatIfAnswer answer = AnswerWhatIf(*MakeJob(samples));
  EXPECT_EQ(answer.verdict(), WHAT_IF_UNEVEN) << answer.conclusion();
  EXPECT_THAT(answer.conclusion(), HasSubstr("mending rank 2 (node0) saves less than"));
}

TEST(SampledJob, ReplayThatTakesAnotherTimeIsNoAnswer) {
  Training training;
  training.num_ranks = 3;
  training.forward_excess = [](int rank, int) { return rank * rank * 1000 * kMicrosecond; };
  std::vector<IterationSample> samples = training.Run();
  // In "loss", rank 0 waits for rank 1 but leaves before rank 2 comes, and has the more time for "backward".
  constexpr int64_t kEarlier = 2500 * kMicrosecond;
  for (IterationBlock& block : *samples[0].mutable_blocks()) {
    for (int i = 0; i + 2 < block.name_size(); ++i) {
      if (block.name(i) != 1) continue;
      block.set_duration(i, block.duration(i) - kEarlier);
      block.set_start(i + 1, block.start(i + 1) - kEarlier);
      block.set_duration(i + 1, block.duration(i + 1) + kEarlier);
      block.set_start(i + 2, block.start(i + 2) + kEarlier);
    }
  }
  const absl::StatusOr<ReplayJob> job = MakeJob(samples);
  ASSERT_TRUE(job.ok()) << job.status();
  const WhatIfAnswer answer = AnswerWhatIf(*job);
  EXPECT_GT(answer.replay_error(), kMaxReplayError);
  EXPECT_EQ(answer.verdict(), WHAT_IF_CANNOT_TELL);
  EXPECT_THAT(answer.conclusion(), HasSubstr("cannot tell: a replay of what was measured is"));
}

TEST(SampledJob, MissingRankIsNamed) {
  std::vector<IterationSample> samples = Training().Run();
  samples.erase(samples.begin() + 2);
  const absl::StatusOr<ReplayJob> job = MakeJob(samples);
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_TRUE(job->incomplete);
  EXPECT_THAT(job->notes, Contains(HasSubstr("1 of 4 ranks left no iterations: 2")));
  for (const int world_size : {11, 12}) {
    for (IterationSample& sample : samples) sample.set_world_size(world_size);
    EXPECT_EQ(MakeJob(samples)->notes[0],
              absl::StrFormat("%d of %d ranks left no iterations: 2, 4, 5, 6, 7, 8, 9, 10, ...",
                              world_size - 3, world_size));
  }
  for (IterationSample& sample : samples) sample.set_world_size(10);
  EXPECT_EQ(MakeJob(samples)->notes[0], "7 of 10 ranks left no iterations: 2, 4, 5, 6, 7, 8, 9");
  // The one that is missing may be the slow one.
  const WhatIfAnswer answer = AnswerWhatIf(*job);
  EXPECT_EQ(answer.verdict(), WHAT_IF_CANNOT_TELL);
  EXPECT_THAT(answer.conclusion(), HasSubstr("the 3 ranks that are there are alike, and others are missing"));
}

TEST(SampledJob, RanksWhoseCpuWasTakenAreSaidToSaveMore) {
  std::vector<IterationSample> samples = Training().Run();
  for (const double share : {0.02, 0.4}) {
    for (IterationSample& sample : samples) {
      sample.mutable_cpu_of_work()->set_cpu_seconds(3.1e-3);
      sample.mutable_cpu_of_work()->set_watched_seconds(100);
    }
    samples[1].mutable_cpu_of_work()->set_taken_share(share);
    const absl::StatusOr<ReplayJob> job = MakeJob(samples);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(std::count_if(job->notes.begin(), job->notes.end(),
                            [](const std::string& note) {
                              return note.find("had a rank's CPU for up to 40% of its work") != note.npos;
                            }),
              share > 0.1 ? 1 : 0);
  }
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
  EXPECT_EQ(AnswerGathered({"no bytes of a sample"}).status().code(), absl::StatusCode::kInternal);
}

TEST(SampledJob, BlocksThatDoNotFollowEachOtherAreNotJoined) {
  Training training;
  std::vector<IterationSample> samples = training.Run();
  for (IterationSample& sample : samples) sample.mutable_blocks()->DeleteSubrange(3, 1);
  const WhatIfAnswer answer = AnswerWhatIf(*MakeJob(samples));
  EXPECT_EQ(answer.num_steps(), 7 * kIterationsPerBlock - 2);
  EXPECT_LT(answer.replay_error(), 1e-9);
}

TEST(SampledJob, IterationsThatNotAllRanksKeptAreLeftOut) {
  std::vector<IterationSample> samples = Training().Run();
  samples[3].mutable_blocks()->DeleteSubrange(0, 7);
  EXPECT_EQ(AnswerWhatIf(*MakeJob(samples)).num_steps(), kIterationsPerBlock - 1);
  samples[3].clear_blocks();
  EXPECT_EQ(MakeJob(samples).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ott::saved
