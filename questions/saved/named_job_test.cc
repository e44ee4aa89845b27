#include "questions/saved/named_job.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott::saved {
namespace {

using testing::ElementsAre;

// Returns a job of ranks 10, 11, ... of these hosts, each of which does an operation of each kind but the
// last.
ReplayJob Job(const std::vector<std::string>& hosts) {
  ReplayJob job;
  job.kinds = {{"a", "reduce", true}, {"b", "compute"}, {"c", "compute"}, {"d", "save"}};
  job.graph.AddStep();
  job.steps.resize(2);
  job.steps[0].num_iterations = 3;
  job.steps[1].num_iterations = 4;
  for (size_t rank = 0; rank < hosts.size(); ++rank) {
    ReplayJob::Rank& of = job.ranks.emplace_back();
    of.rank = 10 + static_cast<int>(rank);
    of.host = hosts[rank];
    for (int kind = 2; kind >= 0; --kind) {
      job.graph.AddOperation();
      job.operations.emplace_back().kind = kind;
      job.operations.back().rank = static_cast<int>(rank);
    }
  }
  EXPECT_TRUE(job.graph.Finish([](int32_t) { return "operation"; }).ok());
  job.steps.resize(1);
  return job;
}

TEST(NamedJob, NamesRanksByTheirHostWhereTheyAreAllOfIt) {
  const ReplayJob job = Job({"a", "a", "b", "", "c", "c", "c"});
  const NamedJob named(job);
  EXPECT_EQ(named.NameOf(0), "rank 10 (a)");
  EXPECT_EQ(named.NameOf(3), "rank 13");
  EXPECT_EQ(named.NameOf({2}), "rank 12 (b)");
  EXPECT_EQ(named.NameOf({1, 0}), "host a");
  EXPECT_EQ(named.NameOf({2, 0}), "ranks 10, 12");
  EXPECT_EQ(named.NameOf({4, 5}), "ranks 14, 15");
  EXPECT_EQ(named.NameOf({6, 4, 5}), "host c");
  EXPECT_EQ(named.NameOf({0, 1, 2}), "ranks 10, 11, 12");
  EXPECT_EQ(named.NameOf({3, 0}), "ranks 10, 13");
  const ReplayJob of_one_host = Job({"a", "a"});
  EXPECT_EQ(NamedJob(of_one_host).NameOf({0, 1}), "ranks 10, 11");
}

TEST(NamedJob, HasWhatRanksAndOperationsAreThere) {
  ReplayJob job = Job({"a", "a", "b", "b"});
  job.ranks[1].stage = 0;
  job.ranks[2].stage = 2;
  job.ranks[3].replica = 1;
  job.step_word = "step";
  const NamedJob named(job);
  EXPECT_THAT(named.stages, ElementsAre(0, 2));
  EXPECT_THAT(named.replicas, ElementsAre(1));
  EXPECT_THAT(named.operations, ElementsAre("reduce", "compute"));
  EXPECT_EQ(named.num_iterations, 3);
  EXPECT_EQ(named.AStep(), "a step");
  job.step_word = "iteration";
  EXPECT_EQ(NamedJob(job).AStep(), "an iteration");
  EXPECT_THAT(Indices(3), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace ott::saved
