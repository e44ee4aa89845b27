#include "ott/questions/hang/undeclared_group.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "job_for_test.h"

namespace ott {
namespace {

using Progress = JobOperation::Progress;

bool IsOf(const JobOperation& operation, int32_t group) {
  return operation.group == group && operation.direction == JobOperation::Direction::kCollective &&
         operation.progress == Progress::kCompleted && operation.synchronizes;
}

// True if one of the two completed what the other never came to, as far as is known of both.
bool AreApart(const JobState& job, int32_t group, int a, int b) {
  const GroupPosition* const positions[] = {job.ranks[a].Position(group), job.ranks[b].Position(group)};
  if (positions[0] == nullptr || positions[1] == nullptr) return false;
  bool apart = false;
  for (const JobOperation& operation : job.ranks[a].operations) {
    apart = apart || (IsOf(operation, group) && operation.sequence > positions[1]->entered);
  }
  for (const JobOperation& operation : job.ranks[b].operations) {
    apart = apart || (IsOf(operation, group) && operation.sequence > positions[0]->entered);
  }
  return apart;
}

TEST(UndeclaredGroup, IsDividedWhereTwoMembersCannotBeInOneGroup) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 1000; ++trial) {
    const JobState job = AnyJob(random);
    for (int32_t group = 0; group < static_cast<int32_t>(job.groups.size()); ++group) {
      const std::vector<int>& members = job.groups[group].ranks;
      bool any_apart = false;
      for (const int rank : members) {
        std::vector<int> meeting;
        for (const int other : members) {
          if (!AreApart(job, group, rank, other)) meeting.push_back(other);
        }
        EXPECT_EQ(MayMeet(job, group, rank), meeting) << trial;
        any_apart = any_apart || meeting.size() < members.size();
        int64_t together = 0;
        for (const JobOperation& operation : job.ranks[rank].operations) {
          if (IsOf(operation, group) && operation.name == 0)
            together = std::max(together, operation.sequence);
        }
        EXPECT_EQ(CompletedTogether(job.ranks[rank], group, 0), together) << trial;
      }
      const std::optional<Contradiction> found = FindContradiction(job, group);
      ASSERT_EQ(found.has_value(), any_apart && !job.groups[group].is_declared) << trial;
      if (!found.has_value()) continue;
      EXPECT_TRUE(IsOf(found->completed, group));
      int64_t last = 0;
      for (const JobOperation& operation : job.ranks[found->rank].operations) {
        if (IsOf(operation, group)) last = operation.sequence;
      }
      EXPECT_EQ(found->completed.sequence, last) << trial;
      for (const int member : members) {
        const GroupPosition* const position = job.ranks[member].Position(group);
        EXPECT_TRUE(position == nullptr ||
                    position->entered >= job.ranks[found->without].Position(group)->entered);
      }
      EXPECT_GT(last, job.ranks[found->without].Position(group)->entered) << trial;
    }
  }
}

// Returns ranks that call "sum" so often in each of so many iterations, or in every second one if less than
// once.
std::string UnlikeUse(const std::vector<double>& calls, int num_iterations) {
  JobForTest test(static_cast<int>(calls.size()));
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(calls.size()); ++rank) ranks.push_back(rank);
  const int group = test.Group("world", ranks);
  const int other = test.Group("other", ranks);
  for (const int rank : ranks) {
    int64_t sequence = 0;
    for (int iteration = 0; iteration < num_iterations; ++iteration) {
      // Those of the first and last iteration are not known from begin to end.
      const bool is_whole = iteration > 0 && iteration < num_iterations - 1;
      const double due =
          is_whole ? calls[rank] * (iteration + 1) - std::floor(calls[rank] * iteration + 1e-9) : 1;
      for (int i = 1; i <= due + 1e-9; ++i) {
        test.Call(rank, group, ++sequence, "sum", Progress::kCompleted).iteration = iteration;
        test.Call(rank, group, ++sequence, "barrier", Progress::kCompleted).iteration = iteration;
      }
      test.Call(rank, other, iteration, "sum", Progress::kCompleted).iteration = iteration;
    }
  }
  return DescribeUnlikeUse(test.job, group, 0);
}

TEST(UndeclaredGroup, IsSaidToBeUsedUnlikeFromHalfAsManyCallsAgainOn) {
  const std::string unlike = "the name sum is used for unlike collectives: ";
  EXPECT_EQ(UnlikeUse({1, 2, 1}, 6),
            unlike + "rank 1 calls it 2 times, ranks 0, 2 call it once an iteration");
  EXPECT_EQ(UnlikeUse({1, 2, 1}, 5), "") << "four iterations are to be known from begin to end";
  EXPECT_EQ(UnlikeUse({2, 3}, 8), unlike + "rank 1 calls it 3 times, rank 0 calls it 2 times an iteration");
  EXPECT_EQ(UnlikeUse({3, 4}, 8), "");
  EXPECT_EQ(UnlikeUse({2, 2}, 8), "");
  EXPECT_EQ(UnlikeUse({1, 1.5}, 8), unlike + "rank 1 calls it 1.5 times, rank 0 calls it once an iteration");
}

}  // namespace
}  // namespace ott
