#include "ott/questions/slow/read_cluster_stats.h"

#include <filesystem>
#include <limits>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/stopwatch/stats_for_test.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::slow {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReadClusterStatsTest : public ::testing::Test {
 protected:
  ReadClusterStatsTest() {
    RunInfo info;
    info.set_world_size(3);
    std::filesystem::create_directories(run_dir_);
    EXPECT_TRUE(WriteRunInfo(run_dir_, info).ok());
    for (int rank = 0; rank < 3; ++rank) WriteStats(rank, rank);
  }

  std::string StatsPath(int rank) const { return RankDirectory(run_dir_, rank) + "/stopwatch.pb"; }

  void WriteStats(int directory, int rank, int world_size = 3) {
    StopwatchStats stats;
    stats.set_rank(rank);
    stats.set_world_size(world_size);
    stats.set_num_measured_iters(10);
    Measurement& forward = *stats.add_measurements();
    forward.set_name("forward");
    for (Statistics* of :
         {stats.mutable_iteration(), forward.mutable_per_iteration(), forward.mutable_per_interval()})
      *of = AlikeForTest(10, 0.1);
    ASSERT_TRUE(MakeDirectories(RankDirectory(run_dir_, directory)).ok());
    ASSERT_TRUE(WriteFileAtomically(StatsPath(directory), stats.SerializeAsString()).ok());
  }

  static ClusterStats Read(const std::string& run) { return ReadClusterStats(run).value(); }

  const std::string run_dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ReadClusterStatsTest, OfAJobThatWasStartedAgainTheLatestStartIsReadAndThatIsSaid) {
  RunInfo info;
  info.set_world_size(2);
  const std::string latest = run_dir_ + "/attempt_2";
  std::filesystem::create_directories(latest);
  std::filesystem::copy(RankDirectory(run_dir_, 0), RankDirectory(latest, 0),
                        std::filesystem::copy_options::recursive);
  ASSERT_TRUE(WriteRunInfo(latest, info).ok());
  const ClusterStats stats = Read(run_dir_);
  EXPECT_EQ(stats.world_size(), 2);
  EXPECT_THAT(stats.notes(), Contains(HasSubstr("was started 2 times: this is of the latest, " + latest)));
  const ClusterStats first = Read(run_dir_ + "/attempt_1");
  EXPECT_EQ(first.world_size(), 3);
}

TEST_F(ReadClusterStatsTest, RanksWithoutAFileOrWithACutOneOrAnothersAreMissing) {
  std::filesystem::remove(StatsPath(1));
  std::filesystem::resize_file(StatsPath(2), std::filesystem::file_size(StatsPath(2)) - 3);
  const ClusterStats stats = Read(run_dir_);
  EXPECT_THAT(stats.missing_ranks(), ElementsAre(1, 2));
  EXPECT_THAT(stats.notes(), ElementsAre(HasSubstr(StatsPath(1)), HasSubstr(StatsPath(2))));
  WriteStats(1, 0);
  WriteStats(2, 1);
  EXPECT_THAT(Read(run_dir_).missing_ranks(), ElementsAre(1, 2));
  EXPECT_THAT(Read(run_dir_).notes(),
              ElementsAre(HasSubstr("says it is rank 0's"), HasSubstr("says it is rank 1's")));
}

// It may be of another stage of a pipeline.
TEST_F(ReadClusterStatsTest, NoRankIsSlowWhereItIsNotKnownWhichDoLikeWork) {
  for (int rank = 0; rank < 3; ++rank) {
    StopwatchStats stats;
    ASSERT_TRUE(stats.ParseFromString(*ReadFile(StatsPath(rank))));
    stats.mutable_measurements(0)->set_collective(true);
    *stats.mutable_own_work()->mutable_time()->mutable_all() = SteadyForTest(rank == 2 ? 0.09 : 0.01, 1e-6);
    ASSERT_TRUE(WriteFileAtomically(StatsPath(rank), stats.SerializeAsString()).ok());
  }
  EXPECT_EQ(Read(run_dir_).straggler().rank(), 2);
  RunInfo no_axis, bad_mesh;
  no_axis.mutable_config()->mutable_stopwatch()->add_work_differs_along("no axis");
  DeviceMesh& mesh = *bad_mesh.mutable_config()->add_mesh();
  mesh.add_axes()->set_name("data");
  mesh.mutable_axes(0)->set_size(2);
  for (auto& [info, why] : {std::pair(&no_axis, "no axis"), {&bad_mesh, "mesh"}}) {
    info->set_world_size(3);
    ASSERT_TRUE(WriteRunInfo(run_dir_, *info).ok());
    EXPECT_FALSE(Read(run_dir_).has_straggler());
    EXPECT_THAT(Read(run_dir_).notes(), ElementsAre(HasSubstr(why)));
  }
  std::filesystem::remove(run_dir_ + "/run.json");
  EXPECT_FALSE(Read(run_dir_).has_straggler());
  EXPECT_FALSE(Read(run_dir_).has_detectable());
}

// So a last rank that left nothing is missed.
TEST_F(ReadClusterStatsTest, WithoutRunJsonTheWorldIsAsLargeAsAnyRankOrFolderSays) {
  ASSERT_TRUE(WriteFileAtomically(run_dir_ + "/run.json", "{").ok());
  for (const auto& [said, expected] :
       {std::pair(0, 3), {2, 3}, {4, 4}, {std::numeric_limits<int>::max(), kMaxWorldSize}}) {
    WriteStats(1, 1, said);
    for (const int rank : {0, 2}) WriteStats(rank, rank, 0);
    std::vector<std::string> problems;
    const auto stats = ReadClusterStats(run_dir_, &problems).value();
    EXPECT_EQ(stats.world_size(), expected);
    EXPECT_EQ(stats.missing_ranks_size(), expected - 3);
    EXPECT_THAT(problems, ElementsAre(AllOf(HasSubstr("guessed"), HasSubstr("run.json"))));
  }
}

TEST_F(ReadClusterStatsTest, AllRanksAreMergedAndArrivalsAreThoseOfTheLatestGather) {
  ASSERT_TRUE(WriteFileAtomically(ClusterStatsPath(run_dir_), "{}").ok());
  const ClusterStats without_history = Read(run_dir_);
  ASSERT_TRUE(WriteFileAtomically(ClusterStatsPath(run_dir_),
                                  R"({"arrivals": [{"name": "loss"}], "history": {"persistent": true}})")
                  .ok());
  const ClusterStats stats = Read(run_dir_);
  ASSERT_EQ(stats.arrivals_size(), 1);
  EXPECT_EQ(stats.arrivals(0).name(), "loss");
  EXPECT_TRUE(stats.history().persistent());
  EXPECT_FALSE(without_history.has_history());
  EXPECT_EQ(stats.ranks_size(), 3);
  EXPECT_THAT(stats.missing_ranks(), ElementsAre());
  EXPECT_EQ(stats.measurements(0).name(), "forward");
  ASSERT_TRUE(WriteFileAtomically(ClusterStatsPath(run_dir_), R"({"arrivals": [{)").ok());
  EXPECT_THAT(Read(run_dir_).notes(), Contains(HasSubstr(ClusterStatsPath(run_dir_))));
}

TEST_F(ReadClusterStatsTest, OtherFoldersAndRunsWithoutStatisticsAreErrors) {
  const auto stats = ReadClusterStats(::testing::TempDir() + "/nothing");
  EXPECT_EQ(stats.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(stats.status().message()), HasSubstr("cannot be listed"));
  for (int rank = 0; rank < 3; ++rank) ASSERT_TRUE(WriteFileAtomically(StatsPath(rank), "cut").ok());
  EXPECT_THAT(std::string(ReadClusterStats(run_dir_).status().message()),
              HasSubstr(run_dir_ + ": no rank has statistics: " + StatsPath(2)));
  for (int rank = 0; rank < 3; ++rank) std::filesystem::remove_all(RankDirectory(run_dir_, rank));
  EXPECT_EQ(ReadClusterStats(run_dir_).status().message(), run_dir_ + ": no rank has statistics");
}

}  // namespace
}  // namespace ott::slow
