#include "ott/dist/check/distinct_check.h"

#include <map>
#include <random>
#include <set>
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
using testing::ElementsAreArray;
using testing::HasSubstr;

struct Rank {
  std::vector<float> data;
  absl::Status problem = absl::OkStatus();
  std::string path = "data.inputs";
  int64_t iteration = 30;
  // Further tensors, by path.
  std::map<std::string, std::vector<float>> more = {};
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
      const auto add = [&](const std::string& path, const std::vector<float>& data) {
        tensors.push_back(
            {path, Tensor{TensorView(data.data(), {static_cast<int64_t>(data.size())}), nullptr}});
      };
      if (!ranks[i].path.empty()) add(ranks[i].path, ranks[i].data);
      for (const auto& [path, data] : ranks[i].more) add(path, data);
      verdicts[i] = check.Run(ranks[i].iteration, tensors, unmatched, ranks[i].problem);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const CrossCheckVerdict& verdict : verdicts) {
    EXPECT_EQ(verdict.SerializeAsString(), verdicts[0].SerializeAsString());
  }
  return verdicts[0];
}

// Two ranks of different groups that have the same elements of a tensor differ in nothing, and a tensor that
// not all have, or none, is not compared.
TEST(DistinctCheck, OfAnyRanksTheVerdictIsThatOfTheDefinition) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<Rank> ranks(2 + random() % 4);
    std::vector<int64_t> groups;
    std::map<std::string, std::vector<int>> ranks_of;  // by path
    bool not_compared = false;
    for (size_t i = 0; i < ranks.size(); ++i) {
      groups.push_back(static_cast<int64_t>(random() % 3));
      ranks[i].path = "";
      for (const char* path : {"a", "b"}) {
        if (random() % 8 == 0) continue;
        ranks[i].more[path] = std::vector<float>(random() % 6 > 0 ? 1 : 0, static_cast<float>(random() % 9));
      }
      if (random() % 9 == 0) ranks[i].problem = absl::InternalError("no copy");
      if (i > 0 && random() % 9 == 0) ranks[i].iteration = 31;
      const bool is_there = ranks[i].problem.ok() && ranks[i].iteration == 30;
      not_compared = not_compared || !is_there;
      for (const auto& [path, unused] : ranks[i].more) {
        if (is_there) ranks_of[path].push_back(static_cast<int>(i));
      }
    }
    std::vector<std::string> different;
    std::vector<int> culprits;
    for (const auto& [path, who] : ranks_of) {
      const auto& name = path;
      const auto data = [&](int rank) { return ranks[static_cast<size_t>(rank)].more.at(name); };
      std::vector<int> alike;
      bool has_elements = false;
      for (const int rank : who) {
        has_elements = has_elements || !data(rank).empty();
        std::vector<int> same;
        std::set<int64_t> of_groups;
        for (const int other : who) {
          if (data(rank).empty() || data(other) != data(rank)) continue;
          same.push_back(other);
          of_groups.insert(groups[static_cast<size_t>(other)]);
        }
        if (alike.empty() && of_groups.size() > 1) alike = same;
      }
      if (!alike.empty()) different.push_back(path);
      if (culprits.empty()) culprits = alike;
      not_compared = not_compared || !has_elements || (alike.empty() && who.size() < ranks.size());
    }
    not_compared = not_compared || ranks_of.empty();
    const CrossCheckVerdict verdict = Check(ranks, groups);
    EXPECT_EQ(verdict.outcome(), !different.empty() ? DIFFERENT
                                 : not_compared     ? NOT_COMPARED
                                                    : ALL_DISTINCT)
        << verdict.DebugString();
    EXPECT_EQ(verdict.worst_outcome(), verdict.outcome());
    EXPECT_EQ(verdict.num_tensors(), ranks_of.size());
    EXPECT_EQ(verdict.num_different_tensors(), different.size());
    if (different.empty()) {
      EXPECT_EQ(verdict.reason().empty(), !not_compared);
      continue;
    }
    // The first is the first that the lowest rank has.
    if (different.size() == 1) {
      EXPECT_EQ(verdict.tensor(), different[0]);
      EXPECT_THAT(verdict.culprit_ranks(), ElementsAreArray(culprits)) << verdict.DebugString();
      EXPECT_EQ(verdict.dtype(), "float32");
    }
  }
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

TEST(DistinctCheck, RanksWithoutElementsReadNothingTwice) {
  const CrossCheckVerdict nothing = Check({{{}}, {{}}}, {0, 1});
  EXPECT_EQ(nothing.outcome(), NOT_COMPARED);
  EXPECT_THAT(nothing.reason(), HasSubstr("data.inputs: no rank has elements of it"));
}

TEST(DistinctCheck, WhatCouldNotBeComparedIsNoPass) {
  EXPECT_THAT(Check({{{1}}}, {0}).reason(), HasSubstr("one rank alone"));
  const CrossCheckVerdict verdict = Check({{{1}}, {{}, absl::InternalError("no copy")}}, {0, 1});
  EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_THAT(verdict.reason(), HasSubstr("rank 1 (node): no copy"));
  EXPECT_THAT(Check({{{1}}, {{2}, {}, "data.inputs", 31}}, {0, 1}).reason(),
              HasSubstr("rank 1 (node): is in iteration 31"));
  EXPECT_THAT(Check({{{1}}, {{2}, {}, "data.others"}}, {0, 1}).reason(),
              HasSubstr("data.inputs: on 1 of 2 ranks only; data.others: on 1 of 2 ranks only"));
  EXPECT_EQ(Check({{{1}}, {{2}}}, {0, 1}, "distinct: \"x\" matches no tensor").outcome(), NOT_COMPARED);
}

}  // namespace
}  // namespace ott
