#include "ott/questions/saved/iteration_sampler.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/stopwatch/stopwatch.h"
#include "ott/dist/comm/local_communicator.h"
#include "ott/questions/saved/sampled_job.h"
#include "ott/questions/saved/what_if.h"

namespace ott::saved {
namespace {

using ::testing::ElementsAre;

// The process's stopwatch can be enabled once.
TEST(IterationSampler, KeepsEverFewerBlocksOfALongRunInBoundedMemory) {
  ASSERT_TRUE(Stopwatch::Get().Enable({}).ok());
  ClockAligner clock(CreateLocalCommunicator());
  ASSERT_TRUE(clock.Measure(1, Deadline::Now()).ok());
  IterationSampler::Options options;
  options.num_warmup_iters = 5;
  options.collective_measurements = {"reduce"};
  IterationSampler sampler(options);
  constexpr int kIterations = 3000;
  // A profiler has the intervals of some iterations for itself.
  const auto is_profiling = [](int iteration) { return iteration >= 40 && iteration < 50; };
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    {
      OTT_STOPWATCH_SCOPE("forward");
      OTT_STOPWATCH_SCOPE("layer");
    }
    { OTT_STOPWATCH_SCOPE("reduce"); }
    Stopwatch::Get().FinishIter();
    sampler.FinishIter(iteration, clock, is_profiling(iteration));
  }
  const IterationSample sample = sampler.Sample();
  EXPECT_EQ(sample.num_iterations(), kIterations);
  EXPECT_EQ(sample.num_iterations_lost(), IterationSampler::kIterationsPerBlock);
  EXPECT_GE(sample.blocks_size(), 8);
  EXPECT_LE(static_cast<size_t>(sample.blocks_size()), IterationSampler::kMaxBlocks);
  EXPECT_THAT(sample.names(), ElementsAre("forward", "layer", "reduce"));
  EXPECT_THAT(sample.collective(), ElementsAre(false, false, true));
  for (const IterationBlock& block : sample.blocks()) {
    EXPECT_EQ((block.first_iteration() - 5) % (8 * IterationSampler::kIterationsPerBlock), 0);
    EXPECT_EQ(block.iteration_end_size(), IterationSampler::kIterationsPerBlock);
    EXPECT_EQ(block.name_size(), 3 * IterationSampler::kIterationsPerBlock);
  }
  // These blocks would be left out last.
  const IterationSample small = sampler.Sample(sample.ByteSizeLong() / 3);
  ASSERT_GE(small.blocks_size(), 1);
  EXPECT_LE(small.ByteSizeLong(), sample.ByteSizeLong() / 3);
  EXPECT_EQ(small.blocks(0).first_iteration(), 5);

  const absl::StatusOr<ReplayJob> job = MakeJob({sample});
  ASSERT_TRUE(job.ok()) << job.status();
  const WhatIfAnswer answer = AnswerWhatIf(*job);
  EXPECT_LT(answer.replay_error(), 1e-9);
}

}  // namespace
}  // namespace ott::saved
