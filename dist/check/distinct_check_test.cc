#include "ott/dist/check/distinct_check.h"

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/simulated_communicator.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Rank {
  std::vector<float> data;
  absl::Status problem = absl::OkStatus();
  std::string path = "data.inputs";
};

// Returns rank 0's verdict.
CrossCheckVerdict Check(const std::vector<Rank>& ranks, const std::vector<int64_t>& groups,
                        const std::string& unmatched = "") {
  auto communicators = CreateSimulatedCommunicators(std::vector<std::string>(ranks.size(), "node"));
  std::vector<CrossCheckVerdict> verdicts(ranks.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < ranks.size(); ++i) {
    threads.emplace_back([&, i] {
      DistinctCheck check(std::move(communicators[i]), std::chrono::seconds(60),
                          std::make_shared<SilentRanks>(), groups);
      std::vector<NamedTensor> tensors;
      if (ranks[i].problem.ok()) {
        const TensorView view(ranks[i].data.data(), {static_cast<int64_t>(ranks[i].data.size())});
        tensors.push_back({ranks[i].path, Tensor{view, nullptr}});
      }
      verdicts[i] = check.Run(30, tensors, unmatched, ranks[i].problem);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CrossCheckVerdict& verdict : verdicts) {
    EXPECT_EQ(verdict.SerializeAsString(), verdicts[0].SerializeAsString());
  }
  return verdicts[0];
}

TEST(DistinctCheck, RanksThatReadTheirOwnShardsPass) {
  const CrossCheckVerdict verdict = Check({{{1, 2}}, {{3, 4}}, {{2, 1}}}, {0, 1, 2});
  EXPECT_EQ(verdict.outcome(), ALL_DISTINCT);
  EXPECT_TRUE(Passed(verdict));
  EXPECT_EQ(FormatVerdict(verdict), "iteration 30: distinct tensors differ on all ranks: 1 tensor\n");
}

TEST(DistinctCheck, RanksThatReadTheSameShardAreNamed) {
  const CrossCheckVerdict verdict = Check({{{1, 2}}, {{3, 4}}, {{5, 6}}, {{3, 4}}}, {0, 1, 2, 3});
  EXPECT_EQ(verdict.outcome(), DIFFERENT);
  EXPECT_THAT(verdict.culprit_ranks(), ElementsAre(1, 3));
  EXPECT_EQ(
      FormatVerdict(verdict),
      "iteration 30: distinct tensors are THE SAME in tensor \"data.inputs\" (float32 [2]), the first of 1 "
      "of 1: rank 1 (node), rank 3 (node)\n");
}

TEST(DistinctCheck, RanksOfOneGroupMayReadTheSame) {
  EXPECT_EQ(Check({{{1}}, {{1}}, {{2}}, {{2}}}, {0, 0, 1, 1}).outcome(), ALL_DISTINCT);
  EXPECT_EQ(Check({{{1}}, {{1}}, {{1}}, {{2}}}, {0, 0, 1, 1}).outcome(), DIFFERENT);
}

TEST(DistinctCheck, RanksWithoutElementsReadNothingTwice) {
  EXPECT_EQ(Check({{{}}, {{}}, {{1}}}, {0, 1, 2}).outcome(), ALL_DISTINCT);
  EXPECT_THAT(Check({{{}}, {{1}}, {{1}}}, {0, 1, 2}).culprit_ranks(), ElementsAre(1, 2));
  const CrossCheckVerdict nothing = Check({{{}}, {{}}}, {0, 1});
  EXPECT_EQ(nothing.outcome(), NOT_COMPARED);
  EXPECT_THAT(nothing.reason(), HasSubstr("data.inputs: no rank has elements of it"));
}

TEST(DistinctCheck, WhatCouldNotBeComparedIsNoPass) {
  EXPECT_THAT(Check({{{1}}}, {0}).reason(), HasSubstr("one rank alone"));
  const CrossCheckVerdict verdict = Check({{{1}}, {{}, absl::InternalError("no copy")}}, {0, 1});
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr("rank 1 (node): no copy"));
  EXPECT_EQ(Check({{{1}}, {{2}, {}, "data.others"}}, {0, 1}).outcome(), NOT_COMPARED);
  EXPECT_EQ(Check({{{1}}, {{2}}}, {0, 1}, "distinct: \"x\" matches no tensor").outcome(), NOT_COMPARED);
}

}  // namespace
}  // namespace ott
