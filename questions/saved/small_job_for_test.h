// Makes a small job of which everything is known.

#ifndef OTT_QUESTIONS_SAVED_SMALL_JOB_FOR_TEST_H_
#define OTT_QUESTIONS_SAVED_SMALL_JOB_FOR_TEST_H_

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/statistics/location.h"
#include "ott/questions/saved/replay_job.h"

namespace ott::saved {

inline constexpr int kStepsOfBatch = 2;
inline constexpr int kCompute = 0, kSave = 1, kReduce = 2, kNumKinds = 3;
inline constexpr int kKindOfPlace[] = {kCompute, kCompute, kSave, kReduce};
inline constexpr int kNumPlaces = 4;

// Ranks compute twice, the last rank saves, and all reduce. Seconds of [place][rank][step]; empty or not a
// number: not done.
using OwnTimes = std::vector<std::vector<std::vector<double>>>;

inline OwnTimes RandomTimes(int num_ranks, int num_steps, double noise, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0, noise);
  OwnTimes own(kNumPlaces, std::vector<std::vector<double>>(num_ranks));
  for (int place = 0; place < kNumPlaces; ++place) {
    for (int rank = 0; rank < num_ranks; ++rank) {
      if (kKindOfPlace[place] == kSave && rank != num_ranks - 1) continue;
      for (int step = 0; step < num_steps; ++step)
        own[place][rank].push_back((place + 1) * std::exp(normal(random)));
    }
  }
  return own;
}

// Returns the variance of the mean, estimated without bias.
inline double VarianceOfMean(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += std::pow(value - Mean(values), 2);
  const auto n = static_cast<double>(values.size());
  return squares / (n - 1) / n;
}

inline double IdealOf(int place, int step) { return place + 0.5 + 0.125 * step; }

inline ReplayJob MakeJob(const OwnTimes& own) {
  const int num_ranks = static_cast<int>(own[0].size()), num_steps = static_cast<int>(own[0][0].size());
  ReplayJob job;
  job.ranks.resize(num_ranks);
  for (int rank = 0; rank < num_ranks; ++rank) job.ranks[rank].rank = rank;
  job.kinds = {{"compute", "compute", false}, {"save", "save", false}, {"reduce", "reduce", true}};
  for (int step = 0; step < num_steps; ++step) {
    job.graph.AddStep();
    job.steps.push_back({step, 1, 1, step / kStepsOfBatch});
    std::vector<int32_t> reduces;
    for (int rank = 0; rank < num_ranks; ++rank) {
      int32_t before = -1;
      for (int place = 0; place < kNumPlaces; ++place) {
        if (own[place][rank].empty() || std::isnan(own[place][rank][step])) continue;
        const int32_t operation = job.graph.AddOperation();
        if (before >= 0) job.graph.AddDependency(operation, before);
        if (kKindOfPlace[place] == kReduce) reduces.push_back(operation);
        ReplayJob::Operation& out = job.operations.emplace_back();
        out.rank = rank;
        out.kind = kKindOfPlace[place];
        out.place = place;
        out.own = own[place][rank][step];
        out.ideal = IdealOf(place, step);
        before = operation;
      }
    }
    job.graph.AddGroup(reduces);
  }
  EXPECT_TRUE(job.graph.Finish([](int32_t i) { return absl::StrCat(i); }).ok());
  return job;
}

}  // namespace ott::saved

#endif  // OTT_QUESTIONS_SAVED_SMALL_JOB_FOR_TEST_H_
