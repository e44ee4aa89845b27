#include "ott/questions/saved/dependency_graph.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::saved {
namespace {

using ::testing::HasSubstr;

std::string Name(int32_t operation) { return absl::StrCat("operation ", operation); }

// Two steps of ranks whose operations are numbered by chance. An operation comes after that of its rank
// before, and after some of others; those at one place may be a group. The ranks of a part know no other
// part.
struct RandomGraph {
  explicit RandomGraph(std::mt19937_64& random) {
    for (int step = 0; step < 2; ++step) AddStep(random);
    EXPECT_TRUE(graph.Finish(Name).ok());
  }

  void AddStep(std::mt19937_64& random) {
    const size_t num_ranks = 1 + random() % 5, num_places = 1 + random() % 5;
    std::vector<int32_t> order(num_ranks * num_places);
    std::iota(order.begin(), order.end(), graph.num_operations());
    std::shuffle(order.begin(), order.end(), random);
    graph.AddStep();
    const size_t size = part.size() + order.size();
    part.resize(size);
    before.resize(size);
    group.resize(size);
    for (size_t i = 0; i < order.size(); ++i) part[order[i]] = i / num_places < 2 ? 0 : 1;
    for (size_t i = size - order.size(); i < size; ++i) graph.AddOperation(part[i]);
    for (size_t place = 0; place < num_places; ++place) {
      std::vector<int32_t> groups[2];
      for (size_t rank = 0; rank < num_ranks; ++rank) {
        const int32_t operation = order[rank * num_places + place];
        group[operation] = {operation};
        if (random() % 2 == 0) groups[part[operation]].push_back(operation);
        if (place == 0) continue;
        for (size_t other = 0; other < num_ranks; ++other) {
          const int32_t earlier = order[other * num_places + random() % place];
          if (other == rank || (part[earlier] == part[operation] && random() % 4 == 0))
            before[operation].push_back(other == rank ? order[rank * num_places + place - 1] : earlier);
        }
        for (const int32_t earlier : before[operation]) graph.AddDependency(operation, earlier);
      }
      for (const std::vector<int32_t>& members : groups) {
        if (members.empty()) continue;
        graph.AddGroup(members);
        for (const int32_t member : members) group[member] = members;
      }
    }
  }

  // Repeats the definition until nothing changes any more.
  DependencyGraph::Times TimesByDefinition(const std::vector<double>& own,
                                           const std::vector<double>& delays) const {
    DependencyGraph::Times times;
    times.start.resize(own.size());
    times.end.resize(own.size());
    for (size_t pass = 0; pass < own.size(); ++pass) {
      for (size_t i = 0; i < own.size(); ++i) {
        times.start[i] = 0;
        for (const int32_t earlier : before[i]) times.start[i] = std::max(times.start[i], times.end[earlier]);
        times.start[i] += delays.empty() ? 0 : delays[i];
        double all_started = 0;
        for (const int32_t member : group[i]) all_started = std::max(all_started, times.start[member]);
        times.end[i] = all_started + own[i];
      }
    }
    times.seconds.assign(1 + *std::max_element(part.begin(), part.end()), {0, 0});
    for (size_t i = 0; i < own.size(); ++i) {
      double& seconds = times.seconds[part[i]][static_cast<int32_t>(i) >= graph.OperationsOf(1).first];
      seconds = std::max(seconds, times.end[i]);
    }
    const auto sum = [&](size_t of) { return times.seconds[of][0] + times.seconds[of][1]; };
    times.longest_part = times.seconds.size() > 1 && sum(1) > sum(0) ? 1 : 0;
    return times;
  }

  DependencyGraph graph;
  std::vector<int> part;
  std::vector<std::vector<int32_t>> before, group;
};

TEST(DependencyGraph, ReplaysAreAsDefined) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const RandomGraph job(random);
    const auto size = static_cast<size_t>(job.graph.num_operations());
    std::vector<double> own(size), delays(size);
    for (size_t i = 0; i < size; ++i) own[i] = static_cast<double>(1 + random() % 16) / 4;
    for (size_t i = 0; i < size; ++i) delays[i] = static_cast<double>(random() % 4);
    for (const std::vector<double>& some : {std::vector<double>(), delays}) {
      const DependencyGraph::Times times = job.graph.ReplayInFull(own, some);
      const DependencyGraph::Times expected = job.TimesByDefinition(own, some);
      EXPECT_EQ(times.start, expected.start) << trial;
      EXPECT_EQ(times.end, expected.end) << trial;
      EXPECT_EQ(times.seconds, expected.seconds) << trial;
      EXPECT_EQ(times.longest_part, expected.longest_part) << trial;
    }

    // Replay k has own times of k more.
    const int num_replays = trial % (2 * DependencyGraph::kLanes + 2);
    const auto replays =
        job.graph.Replay(num_replays, [&](int replay, int32_t begin, int32_t end, double* out) {
          for (int32_t i = begin; i < end; ++i) {
            for (int lane = 0; lane < DependencyGraph::kLanes; ++lane) *out++ = own[i] + replay + lane;
          }
        });
    ASSERT_EQ(replays.size(), num_replays);
    for (const std::vector<double>& seconds : replays) {
      const DependencyGraph::Times expected = job.TimesByDefinition(own, {});
      EXPECT_EQ(seconds, expected.seconds[expected.longest_part]) << trial;
      for (double& time : own) ++time;
    }
  }
}

// Each operation of it began when the next one ended; or the next one is of its group, and began last.
TEST(DependencyGraph, CriticalPathHasNoGap) {
  std::mt19937_64 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    const RandomGraph job(random);
    std::vector<double> own(job.part.size());
    for (double& time : own) time = static_cast<double>(1 + random() % 1000);
    const DependencyGraph::Times times = job.graph.ReplayInFull(own, {});
    for (int step = 0; step < 2; ++step) {
      const std::vector<int32_t> path = job.graph.CriticalPath(step, times);
      if (path.empty()) {
        EXPECT_EQ(times.seconds[times.longest_part][step], 0) << trial;
        continue;
      }
      EXPECT_EQ(job.part[path[0]], times.longest_part) << trial;
      EXPECT_EQ(times.end[path[0]], times.seconds[times.longest_part][step]) << trial;
      double waited_for = times.end[path[0]];
      for (size_t i = 0; i < path.size(); ++i) {
        EXPECT_EQ(times.end[path[i]], waited_for) << trial;
        const std::vector<int32_t>& members = job.group[path[i]];
        const auto latest = std::max_element(members.begin(), members.end(), [&](int32_t a, int32_t b) {
          return times.start[a] < times.start[b];
        });
        if (times.start[*latest] > times.start[path[i]]) {
          ASSERT_LT(++i, path.size()) << trial;
          EXPECT_EQ(times.start[path[i]], times.start[*latest]) << trial;
        }
        waited_for = times.start[path[i]];
      }
      EXPECT_EQ(waited_for, 0) << trial;
    }
  }
}

// Operation 0 waits for nobody, and the last one for the circle of the others.
TEST(DependencyGraph, CircleIsNamed) {
  for (const int size : {2, 12, 13, 14}) {
    DependencyGraph graph;
    graph.AddStep();
    for (int i = 0; i < size + 2; ++i) graph.AddOperation();
    for (int i = 1; i <= size + 1; ++i) graph.AddDependency(i, i - 1);
    graph.AddDependency(1, size);
    const absl::Status status = graph.Finish(Name);
    std::string circle = "operations wait for each other in a circle: operation 1";
    for (int i = size; i > std::max(1, size - 11); --i)
      absl::StrAppend(&circle, ", which waits for operation ", i);
    if (size > 12)
      absl::StrAppend(&circle, ", which waits for ", size - 12, " more, which wait for operation 1");
    if (size <= 12) absl::StrAppend(&circle, ", which waits for operation 1");
    EXPECT_EQ(status, absl::FailedPreconditionError(circle));
  }
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
