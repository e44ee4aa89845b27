#include "ott/questions/hang/wait_graph.h"

#include <random>
#include <set>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job_for_test.h"

namespace ott {
namespace {

using Direction = JobOperation::Direction;
using Progress = JobOperation::Progress;

// Who waits for whom, of every pair of ranks by the definition.
class WaitsByDefinition {
 public:
  explicit WaitsByDefinition(const JobState& job) : job_(job) {}

  // True if a rank that has entered the operation waits there for another.
  bool Awaits(int rank, const JobOperation& operation, int other) const {
    const RankState& state = job_.ranks[other];
    if (operation.direction != Direction::kCollective) {
      for (const JobOperation& half : state.operations) {
        if (half.progress == Progress::kEntered && half.group == operation.group && half.peer == rank &&
            half.direction != Direction::kCollective && half.direction != operation.direction) {
          return false;
        }
      }
      return operation.peer == other;
    }
    const std::vector<int>& members = job_.groups[operation.group].ranks;
    if (std::count(members.begin(), members.end(), other) == 0) return false;
    const GroupPosition* const position = state.Position(operation.group);
    if (position == nullptr) return true;
    if (position->entered >= operation.sequence) return false;
    return job_.groups[operation.group].is_declared || !CompletedWithout(operation, position->entered);
  }

  bool Waits(int rank, int other) const {
    if (cut.count(rank) > 0) return false;
    for (const JobOperation& operation : job_.ranks[rank].operations) {
      if (operation.progress == Progress::kEntered && Awaits(rank, operation, other)) return true;
    }
    return false;
  }

  // The ranks that waits lead to from a rank, in at most so many steps.
  std::set<int> Reached(int from, int steps) const {
    std::set<int> reached;
    for (int other = 0; other < size() && steps > 0; ++other) {
      if (!Waits(from, other)) continue;
      reached.insert(other);
      for (const int next : Reached(other, steps - 1)) reached.insert(next);
    }
    return reached;
  }

  // The sets of ranks that are reached from all that they reach.
  std::set<std::vector<int>> Ends(const std::vector<int>& from) const {
    std::set<std::vector<int>> ends;
    for (const int first : from) {
      std::set<int> nodes = Reached(first, size());
      nodes.insert(first);
      for (const int node : nodes) {
        const std::set<int> reached = Reached(node, size());
        bool is_end = true;
        for (const int other : reached) is_end = is_end && Reached(other, size()).count(node) > 0;
        if (is_end)
          ends.insert(reached.empty() ? std::vector<int>{node}
                                      : std::vector<int>(reached.begin(), reached.end()));
      }
    }
    return ends;
  }

  int size() const { return static_cast<int>(job_.ranks.size()); }

  std::set<int> cut;

 private:
  // Others that stand in the operation completed one of its name together that a member never came to.
  bool CompletedWithout(const JobOperation& operation, int64_t entered) const {
    for (const RankState& rank : job_.ranks) {
      if (rank.Entered(operation) == nullptr) continue;
      for (const JobOperation& done : rank.operations) {
        if (done.progress == Progress::kCompleted && done.synchronizes && done.group == operation.group &&
            done.direction == Direction::kCollective && done.name == rank.Entered(operation)->name &&
            done.sequence > entered) {
          return true;
        }
      }
    }
    return false;
  }

  const JobState& job_;
};

TEST(WaitGraph, IsWhoWaitsForWhomAndWhereThatEnds) {
  std::mt19937 random(1);
  int num_cycles = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    const JobState job = AnyJob(random);
    WaitGraph graph(job);
    WaitsByDefinition expected(job);
    std::vector<int> from;
    for (int rank = 0; rank < expected.size(); ++rank) {
      if (random() % 8 == 0) {
        graph.Cut(rank);
        expected.cut.insert(rank);
      }
      if (random() % 2 == 0) from.push_back(rank);
    }
    for (int rank = 0; rank < expected.size(); ++rank) {
      bool waits = false;
      for (int other = 0; other < expected.size(); ++other) {
        waits = waits || expected.Waits(rank, other);
        for (const int i : graph.OperationsOf(rank)) {
          const StandingOperation& operation = graph.operations()[i];
          EXPECT_EQ(std::count(operation.standing.begin(), operation.standing.end(), rank), 1);
          EXPECT_EQ(graph.Awaits(i, other), expected.Awaits(rank, operation.operation, other)) << trial;
        }
      }
      EXPECT_EQ(graph.Waits(rank), waits) << trial << " rank " << rank;
    }
    const std::vector<std::vector<int>> ends = graph.Ends(from);
    EXPECT_THAT(ends, testing::UnorderedElementsAreArray(expected.Ends(from))) << trial;
    for (const std::vector<int>& end : ends) {
      if (end.size() < 2) continue;
      ++num_cycles;
      const std::vector<WaitGraph::Step> cycle = graph.Cycle(end);
      ASSERT_FALSE(cycle.empty());
      EXPECT_EQ(cycle[0].rank, end[0]);
      EXPECT_EQ(expected.Reached(end[0], static_cast<int>(cycle.size())).count(end[0]), 1);
      EXPECT_EQ(expected.Reached(end[0], static_cast<int>(cycle.size()) - 1).count(end[0]), 0);
      for (size_t i = 0; i < cycle.size(); ++i) {
        EXPECT_THAT(graph.OperationsOf(cycle[i].rank), testing::Contains(cycle[i].operation));
        EXPECT_TRUE(graph.Awaits(cycle[i].operation, cycle[(i + 1) % cycle.size()].rank));
      }
    }
  }
  EXPECT_GT(num_cycles, 50);
}

}  // namespace
}  // namespace ott
