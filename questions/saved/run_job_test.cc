// Reads runs whose ranks' samples are whole, missing or damaged.

#include "ott/questions/saved/run_job.h"

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/saved/iteration_sample.pb.h"
#include "ott/questions/saved/iteration_sample_for_test.h"
#include "ott/questions/saved/sampled_job.h"

namespace ott::saved {
namespace {

// Returns a sample of two iterations, in which the rank works and then all reduce.
IterationSample SampleOf(int rank) {
  IterationSample sample = WorkAndReduce(rank, 3);
  IterationBlock& block = *sample.add_blocks();
  for (int iteration = 0; iteration < 2; ++iteration) {
    block.add_iteration_end(2000);
    for (const int name : {0, 1}) {
      block.add_name(name);
      block.add_start(iteration == 0 && name == 0 ? 0 : 1000);
      block.add_duration(name == 0 ? 500 + 100 * rank : 900);
    }
  }
  return sample;
}

TEST(ReadRunJob, TellsOfEachRankWhatIsMissing) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    SCOPED_TRACE(trial);
    const std::string run = absl::StrCat(testing::TempDir(), "/run_", trial);
    const bool has_attempts = trial % 4 == 0;
    const std::string run_dir = has_attempts ? run + "/attempt_2" : run;
    std::vector<IterationSample> samples;
    std::vector<std::string> notes;
    bool is_damaged = false;
    for (int rank = 0; rank < 3; ++rank) {
      const unsigned state = trial == 0 ? 0 : random() % 4;
      const std::string path = IterationsPath(run_dir, rank);
      std::filesystem::create_directories(RankDirectory(run_dir, rank));
      if (state == 0) {
        samples.push_back(SampleOf(rank));
        ASSERT_TRUE(WriteFileAtomically(path, samples.back().SerializeAsString()).ok());
        continue;
      }
      is_damaged |= state > 1;
      if (state == 1) {
        notes.emplace_back(ReadFile(path).status().message());
      } else if (state == 2) {
        ASSERT_TRUE(WriteFileAtomically(path, "\xff\xff").ok());
        notes.push_back(path + ": no IterationSample in its 2 bytes");
      } else {
        const int other = (rank + 1) % 3;
        ASSERT_TRUE(WriteFileAtomically(path, SampleOf(other).SerializeAsString()).ok());
        notes.push_back(absl::StrCat(path, ": says it is rank ", other, "'s; was it copied here?"));
      }
    }
    const absl::StatusOr<ReplayJob> job = ReadRunJob(run);
    const absl::StatusOr<ReplayJob> expected = MakeJob(samples);
    ASSERT_EQ(job.ok(), expected.ok()) << job.status();
    if (!job.ok()) {
      EXPECT_EQ(job.status().code(), is_damaged ? absl::StatusCode::kDataLoss : expected.status().code());
      EXPECT_EQ(job.status().message(),
                absl::StrCat(run_dir, ": ", expected.status().message(), "; ", notes.at(0)));
      continue;
    }
    EXPECT_EQ(job->incomplete, expected->incomplete || !notes.empty());
    EXPECT_EQ(job->ranks.size(), samples.size());
    EXPECT_EQ(job->operations.size(), expected->operations.size());
    notes.insert(notes.begin(), expected->notes.begin(), expected->notes.end());
    if (has_attempts) {
      notes.push_back(absl::StrCat(run, " was started 2 times: this is of the latest, ", run, "/attempt_2; ",
                                   run, "/attempt_1 is the first"));
    }
    EXPECT_THAT(job->notes, testing::ElementsAreArray(notes));
  }
  EXPECT_EQ(ReadRunJob(testing::TempDir() + "/nothing").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ott::saved
