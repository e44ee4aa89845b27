#include "ott/questions/saved/dependency_graph.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::saved {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Name(int32_t operation) { return absl::StrCat("operation ", operation); }

// Two ranks: work (0, 1), a collective (2, 3), work (4, 5).
DependencyGraph TwoRanks() {
  DependencyGraph graph;
  graph.AddStep();
  for (int i = 0; i < 6; ++i) graph.AddOperation();
  for (int i = 2; i < 6; ++i) graph.AddDependency(i, i - 2);
  graph.AddGroup({2, 3});
  EXPECT_TRUE(graph.Finish(Name).ok());
  return graph;
}

TEST(DependencyGraph, MembersOfAGroupWaitForTheLast) {
  const DependencyGraph::Times times = TwoRanks().ReplayInFull({1, 5, 0.5, 0.25, 1, 1}, {});
  EXPECT_THAT(times.start, ElementsAre(0, 0, 1, 5, 5.5, 5.25));
  EXPECT_THAT(times.end, ElementsAre(1, 5, 5.5, 5.25, 6.5, 6.25));
}

TEST(DependencyGraph, DelaysComeBeforeTheStart) {
  const DependencyGraph::Times times = TwoRanks().ReplayInFull({1, 1, 1, 1, 1, 1}, {0, 3, 0, 0, 0.5, 0});
  EXPECT_THAT(times.end, ElementsAre(1, 4, 5, 5, 6.5, 6));
}

TEST(DependencyGraph, CriticalPathLeadsOverTheRankThatCameLast) {
  const DependencyGraph graph = TwoRanks();
  EXPECT_THAT(graph.CriticalPath(0, graph.ReplayInFull({1, 5, 0.5, 0.25, 1, 1}, {})),
              ElementsAre(4, 2, 3, 1));
}

TEST(DependencyGraph, ManyReplaysAreEachLikeOneInFull) {
  DependencyGraph graph;
  // Two steps of three ranks, each a chain with a collective at every third operation.
  constexpr int kOperations = 12;
  for (int step = 0; step < 2; ++step) {
    graph.AddStep();
    std::vector<std::vector<int32_t>> groups(kOperations);
    for (int rank = 0; rank < 3; ++rank) {
      for (int i = 0; i < kOperations; ++i) {
        const int32_t operation = graph.AddOperation();
        if (i > 0) graph.AddDependency(operation, operation - 1);
        if (i % 3 == 2) groups[i].push_back(operation);
      }
    }
    for (const auto& group : groups) {
      if (!group.empty()) graph.AddGroup(group);
    }
  }
  ASSERT_TRUE(graph.Finish(Name).ok());
  const auto own = [](int replay, int32_t operation) { return (operation * 7 + replay * 5) % 11 + 0.5; };
  constexpr int kReplays = DependencyGraph::kLanes + 3;
  const auto seconds = graph.Replay(kReplays, [&](int replay, int32_t begin, int32_t end, double* out) {
    for (int32_t i = begin; i < end; ++i) {
      for (int lane = 0; lane < DependencyGraph::kLanes; ++lane) *out++ = own(replay + lane, i);
    }
  });
  ASSERT_EQ(seconds.size(), kReplays);
  for (int replay = 0; replay < kReplays; ++replay) {
    std::vector<double> times;
    for (int32_t i = 0; i < graph.num_operations(); ++i) times.push_back(own(replay, i));
    const DependencyGraph::Times full = graph.ReplayInFull(times, {});
    for (int step = 0; step < 2; ++step) {
      const auto [first, last] = graph.OperationsOf(step);
      EXPECT_DOUBLE_EQ(seconds[replay][step],
                       *std::max_element(full.end.begin() + first, full.end.begin() + last));
    }
  }
}

TEST(DependencyGraph, CircleIsNamed) {
  DependencyGraph graph;
  graph.AddStep();
  for (int i = 0; i < 4; ++i) graph.AddOperation();
  graph.AddDependency(1, 0);
  graph.AddDependency(2, 1);
  graph.AddDependency(1, 3);
  graph.AddDependency(3, 2);
  const absl::Status status = graph.Finish(Name);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("operation 1, which waits for operation 3, which waits for operation 2, which waits "
                        "for operation 1"));
}

TEST(DependencyGraph, CircleThroughGroupsIsNamed) {
  DependencyGraph graph;
  graph.AddStep();
  for (int i = 0; i < 4; ++i) graph.AddOperation();
  // Rank 0 sends (0) before it receives (1), and so does rank 1 (2, 3), each for the other's receive.
  graph.AddDependency(1, 0);
  graph.AddDependency(3, 2);
  graph.AddGroup({0, 3});
  graph.AddGroup({2, 1});
  const absl::Status status = graph.Finish(Name);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("operation 1, which waits for operation 3, which waits for operation 1"));
}

}  // namespace
}  // namespace ott::saved
