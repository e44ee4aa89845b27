#include "ott/dist/directory/run_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class RunDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(run_dir_);
    std::filesystem::create_directories(run_dir_);
  }

  const std::string run_dir_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

RunInfo InfoFrom(int64_t start_iteration, int warmup = 0) {
  RunInfo info;
  info.set_world_size(2);
  info.set_started(absl::StrCat("before ", start_iteration));
  info.add_hosts(absl::StrCat("node", start_iteration));
  info.mutable_config()->set_start_iteration(start_iteration);
  info.mutable_config()->mutable_stopwatch()->set_num_warmup_iters(warmup);
  return info;
}

TEST_F(RunDirectoryTest, TracesOfTheProgramAreListedInTheirOrder) {
  const std::string attempt = run_dir_ + "/attempt_2";
  for (const int rank : {0, 1, 2}) std::filesystem::create_directories(RankDirectory(attempt, rank));
  for (const char* name :
       {"torch_10.rank_00001.json", "torch_2.rank_00001.json.gz", "torch.rank_00001.json",
        "torch_x.rank_00001.json", "torch-4.rank_00001.json", "torchx5.rank_00001.json", "torch", "torch_3",
        "trace.json", "trace_3.rank_00001.json", "these_4.rank_00001.json"}) {
    std::ofstream(RankDirectory(attempt, 1) + "/" + name) << "[]";
  }
  std::filesystem::create_symlink("gone.json", RankDirectory(attempt, 2) + "/torch.rank_00002.json");
  const std::string rank_1 = RankDirectory(attempt, 1) + "/";
  EXPECT_THAT(ListTorchTraces(attempt, 1),
              ElementsAre(rank_1 + "torch.rank_00001.json", rank_1 + "torch_2.rank_00001.json.gz",
                          rank_1 + "torch_10.rank_00001.json"));
  EXPECT_THAT(LatestTorchTraces(run_dir_),
              ElementsAre(Pair(1, rank_1 + "torch_10.rank_00001.json"),
                          Pair(2, RankDirectory(attempt, 2) + "/torch.rank_00002.json")));
  EXPECT_TRUE(LatestTorchTraces(run_dir_ + "/none").empty());
  EXPECT_THAT(TorchTracesOfOneWindow(run_dir_),
              ElementsAre(Pair(1, rank_1 + "torch.rank_00001.json"),
                          Pair(2, RankDirectory(attempt, 2) + "/torch.rank_00002.json")));
  std::filesystem::remove(rank_1 + "torch.rank_00001.json");
  EXPECT_EQ(TorchTracesOfOneWindow(run_dir_), LatestTorchTraces(run_dir_));
  EXPECT_TRUE(TorchTracesOfOneWindow(run_dir_ + "/none").empty());
}

TEST_F(RunDirectoryTest, EachStartGetsAnAttemptOfItsOwnAndTheLatestIsLookedAt) {
  EXPECT_EQ(LatestAttempt(run_dir_), run_dir_);
  std::filesystem::create_directory(run_dir_ + "/attempt_0");
  EXPECT_EQ(LatestAttempt(run_dir_), run_dir_ + "/attempt_0");
  std::filesystem::remove(run_dir_ + "/attempt_0");
  for (int attempt = 1; attempt <= 11; ++attempt) {
    const std::string dir = attempt == 1 ? run_dir_ : absl::StrCat(run_dir_, "/attempt_", attempt);
    if (attempt == 3) {
      // One that was killed before it wrote run.json.
      std::filesystem::create_directories(RankDirectory(dir, 0));
    } else {
      EXPECT_EQ(*ClaimRunDirectory(run_dir_, InfoFrom(0)), dir);
      EXPECT_TRUE(ReadRunInfo(dir).ok());
    }
  }
  EXPECT_EQ(LatestAttempt(run_dir_), run_dir_ + "/attempt_11");
  EXPECT_EQ(LatestAttempt(run_dir_ + "/attempt_2"), run_dir_ + "/attempt_2");
  EXPECT_EQ(LatestAttempt(run_dir_ + "/attempt_1"), run_dir_);
  EXPECT_EQ(LatestAttempt(run_dir_ + "/none"), run_dir_ + "/none");
  std::filesystem::create_directory(run_dir_ + "/attempt_1");
  EXPECT_EQ(LatestAttempt(run_dir_ + "/attempt_1"), run_dir_ + "/attempt_1");
  std::filesystem::remove(run_dir_ + "/attempt_1");
  testing::internal::CaptureStderr();
  SayLatestAttempt("compare", run_dir_ + "/attempt_2");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  SayLatestAttempt("compare", run_dir_);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "ott compare: " + run_dir_ + " was started 11 times: this is of the latest, " + run_dir_ +
                "/attempt_11; " + run_dir_ + "/attempt_1 is the first\n");
}

TEST_F(RunDirectoryTest, ARunThatLinksToAnythingOfAnotherIsThatRun) {
  const auto make = [this](const char* name) {
    std::string run = run_dir_ + name;
    for (const int rank : {0, 3}) {
      std::filesystem::create_directories(DumpPath(run, rank, 10));
      std::ofstream(DumpPath(run, rank, 10) + "/tensors.json") << "{}";
      std::ofstream(OpLogPath(run, rank)) << "operations";
    }
    std::filesystem::create_directory(RankDirectory(run, 5));
    return run;
  };
  const std::string a = make("/a");
  EXPECT_TRUE(IsSameRun(a, a + "/."));
  EXPECT_FALSE(IsSameRun(a, run_dir_ + "/nothing"));
  EXPECT_TRUE(IsSameDump(run_dir_ + "/nothing", run_dir_ + "/nothing"));
  const std::string dumps = DumpsDirectory("", 3), dump = DumpPath("", 3, 10);
  for (const auto& [place, has_dump] : {std::pair(RankDirectory("", 5), false),
                                        {OpLogPath("", 3), false},
                                        {RankDirectory("", 3), true},
                                        {dumps, true},
                                        {dump, true},
                                        {dump + "/tensors.json", true}}) {
    const std::string b = make("/b");
    EXPECT_FALSE(IsSameRun(a, b)) << place;
    std::filesystem::remove_all(b + place);
    std::filesystem::create_symlink(a + place, b + place);
    EXPECT_TRUE(IsSameRun(a, b)) << place;
    EXPECT_EQ(IsSameRun(a + dumps, b + dumps), has_dump) << place;
    EXPECT_EQ(IsSameDump(a + dump, b + dump), has_dump) << place;
    std::filesystem::remove_all(b);
  }
}

TEST_F(RunDirectoryTest, AResumedRunGoesOnInTheLatestDirectoryOfItsJob) {
  EXPECT_EQ(*ClaimRunDirectory(run_dir_, InfoFrom(1000)), run_dir_);
  EXPECT_EQ(*ClaimRunDirectory(run_dir_, InfoFrom(2000)), run_dir_);
  RunInfo expected = InfoFrom(1000);
  expected.set_hosts(0, "node2000");
  expected.add_resumptions()->set_started("before 2000");
  expected.mutable_resumptions(0)->set_start_iteration(2000);
  EXPECT_EQ(ReadRunInfo(run_dir_)->SerializeAsString(), expected.SerializeAsString());
  EXPECT_EQ(*ClaimRunDirectory(run_dir_, InfoFrom(0)), run_dir_ + "/attempt_2");
  EXPECT_EQ(*ClaimRunDirectory(run_dir_, InfoFrom(10)), run_dir_ + "/attempt_2");
  // Another configuration is another job.
  EXPECT_EQ(*ClaimRunDirectory(run_dir_, InfoFrom(10, 5)), run_dir_ + "/attempt_3");
  // So is one of more ranks, or of fewer.
  for (const int world_size : {1, 4}) {
    RunInfo info = InfoFrom(10, 5);
    info.set_world_size(world_size);
    EXPECT_EQ(*ClaimRunDirectory(run_dir_, info), run_dir_ + (world_size == 1 ? "/attempt_4" : "/attempt_5"));
  }
}

TEST_F(RunDirectoryTest, ARankThatCannotBeMadeIsNamedWithTheReason) {
  std::filesystem::create_symlink("gone", RankDirectory(run_dir_, 0));
  EXPECT_EQ(ClaimRunDirectory(run_dir_, InfoFrom(0)).status(),
            absl::UnavailableError(RankDirectory(run_dir_, 0) + ": File exists"));
}

TEST_F(RunDirectoryTest, WhatRanksOfTheLatestStartLeftIsFound) {
  for (const char* start : {"", "/attempt_2"}) {
    const std::string attempt = run_dir_ + start;
    for (const int rank : {0, 3}) std::filesystem::create_directories(RankDirectory(attempt, rank));
    EXPECT_FALSE(HasDumps(run_dir_));
    EXPECT_FALSE(HasOpLogs(run_dir_));
    std::filesystem::create_directories(DumpsDirectory(attempt, 0));
    EXPECT_FALSE(HasDumps(run_dir_));
    std::filesystem::create_directories(DumpPath(attempt, 3, 20));
    EXPECT_TRUE(HasDumps(run_dir_));
    std::ofstream(OpLogPath(attempt, 3)) << "operations";
    EXPECT_TRUE(HasOpLogs(run_dir_));
    std::set<int64_t> iterations = {7};
    for (const int rank : {0, 3}) AddDumpedIterations(attempt, rank, &iterations);
    EXPECT_THAT(iterations, ElementsAre(7, 20));
  }
}

TEST_F(RunDirectoryTest, WhatAnotherVersionWroteAndDamagedInfoAreNamedWithTheFile) {
  const auto read = [this](const std::string& json) {
    std::ofstream(run_dir_ + "/run.json") << json;
    std::string unknown;
    const absl::Status status = ReadRunInfo(run_dir_, &unknown).status();
    EXPECT_TRUE(unknown.empty() || absl::StartsWith(unknown, run_dir_ + "/run.json: ")) << unknown;
    return std::pair(status, unknown);
  };
  EXPECT_EQ(read(R"({"world_size": 2})"), std::pair(absl::OkStatus(), std::string()));
  EXPECT_THAT(read(R"({"world_size": 2, "moons": 3})"), Pair(absl::OkStatus(), HasSubstr("moons")));
  for (const int size : {0, -3, kMaxWorldSize, kMaxWorldSize + 1}) {
    const std::string none = absl::StrCat("world_size is ", size, ", which is no number of ranks");
    EXPECT_EQ(
        read(absl::StrCat("{\"world_size\": ", size, "}")).first,
        size == kMaxWorldSize ? absl::OkStatus() : absl::DataLossError(run_dir_ + "/run.json: " + none));
  }
  EXPECT_EQ(read("{}").first.code(), absl::StatusCode::kDataLoss);
  const absl::Status cut = read("{\"world_size\": 4, \"hos").first;
  EXPECT_EQ(cut.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(cut.message()),
              AllOf(HasSubstr(run_dir_ + "/run.json: "), Not(HasSubstr("world_size is"))));
}

TEST_F(RunDirectoryTest, InfoThatIsAFifoALoopOrHugeIsAnErrorAtOnce) {
  const std::string info = run_dir_ + "/run.json";
  ASSERT_EQ(mkfifo(info.c_str(), 0666), 0);
  EXPECT_EQ(ReadRunInfo(run_dir_).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(IsRunDirectory(run_dir_));
  std::filesystem::remove(info);
  ASSERT_EQ(symlink(info.c_str(), info.c_str()), 0);
  EXPECT_FALSE(ReadRunInfo(run_dir_).ok());
  EXPECT_TRUE(IsRunDirectory(run_dir_));
  std::filesystem::remove(info);
  std::ofstream(info) << "{";
  std::filesystem::resize_file(info, uintmax_t{8} << 40);
  EXPECT_EQ(ReadRunInfo(run_dir_).status().code(), absl::StatusCode::kResourceExhausted);
  std::filesystem::remove(info);
  EXPECT_FALSE(ListRanks(std::string(100000, 'x')).ok());
}

TEST_F(RunDirectoryTest, RanksAndDumpsAreListedByNumber) {
  for (const int rank : {10, 2, kMaxWorldSize - 1, kMaxWorldSize, 2147483647})
    std::filesystem::create_directories(RankDirectory(run_dir_, rank));
  for (const char* const name : {"/rank_x", "/rank_-1", "/rank_2"})
    std::filesystem::create_directories(run_dir_ + name);
  std::ofstream(run_dir_ + "/rank_00007") << "a file";
  EXPECT_EQ(RankDirectory("run", 3), "run/rank_00003");
  EXPECT_THAT(*ListRanks(run_dir_), ElementsAre(2, 10, kMaxWorldSize - 1));
  const std::string dumps = DumpsDirectory(run_dir_, 2);
  for (const char* const name : {"100", "20", "3", "latest"})
    std::filesystem::create_directories(dumps + "/" + name);
  EXPECT_THAT(*ListDumps(dumps), ElementsAre(3, 20, 100));
  EXPECT_EQ(ListDumps(dumps + "/none").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(RunDirectoryTest, FolderOfDumpsIsNoRun) {
  std::filesystem::create_directories(run_dir_ + "/12");
  EXPECT_FALSE(IsRunDirectory(run_dir_));
  EXPECT_EQ(CheckRunDirectory(run_dir_),
            absl::NotFoundError(run_dir_ + ": no run directory: it has neither run.json nor rank_* folders"));
  EXPECT_THAT(CheckRunDirectory(run_dir_ + "/none").message(),
              HasSubstr("/none: cannot be listed: No such file"));
  std::filesystem::create_directories(RankDirectory(run_dir_, 0));
  EXPECT_TRUE(IsRunDirectory(run_dir_));
  EXPECT_TRUE(CheckRunDirectory(run_dir_).ok());
}

}  // namespace
}  // namespace ott
