// Checks runs whose ranks hold what they should, or not.

#include "ott/questions/right/crosscheck/check_replicas.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/no_threads_for_test.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/crosscheck/run_for_test.h"

namespace ott::crosscheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Says what a verdict is on, what it is, and whom it names.
std::string Describe(const CrossCheckVerdict& verdict) {
  std::string text = absl::StrCat(verdict.iteration(), " ", CrossCheckMode_Name(verdict.mode()), " of ",
                                  verdict.rank(), ": ", Outcome_Name(verdict.outcome()));
  for (const int rank : verdict.missing_ranks()) absl::StrAppend(&text, " without ", rank);
  for (int i = 0; i < verdict.culprit_ranks_size(); ++i)
    absl::StrAppend(&text, " by ", verdict.culprit_ranks(i), verdict.culprit_hosts(i));
  return text;
}

// Returns what is said of ranks that should hold the same: those that are not like the most are named.
// Without the first of them nobody says what is compared.
std::string DescribeSame(int iteration, const char* mode, const std::vector<int>& ranks, int missing,
                         const std::map<int, int>& numbers) {
  std::map<int, int> counts;
  for (const int rank : ranks) {
    if (rank != missing) ++counts[numbers.at(rank)];
  }
  const bool is_missing = std::count(ranks.begin(), ranks.end(), missing) > 0;
  std::string text = absl::StrCat(iteration, " ", mode, " of ", ranks[0], ": ",
                                  counts.size() > 1 && missing != ranks[0] ? "DIFFERENT"
                                  : is_missing                             ? "NOT_COMPARED"
                                                                           : "BITWISE_EQUAL");
  if (is_missing) absl::StrAppend(&text, " without ", missing);
  const auto most = std::max_element(counts.begin(), counts.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (missing == ranks[0] || 2 * most->second <= static_cast<int>(ranks.size())) return text;
  for (const int rank : ranks) {
    if (rank != missing && numbers.at(rank) != most->first)
      absl::StrAppend(&text, " by ", rank, "node", rank);
  }
  return text;
}

// Four ranks, two by two: `all` is to be the same on all of them, `part` on those of a column, and `own` on
// none.
TEST(CheckReplicasOfRun, EachCheckHasOneVerdictByItsDefinition) {
  std::mt19937 random(1);
  CrossCheckConfig config;
  config.add_replicated("all");
  config.add_distinct("own");
  config.add_sharded()->add_paths("part");
  config.mutable_sharded(0)->add_along("column");
  // What is said of a reference is another check's.
  config.set_reference_run("nowhere");
  config.set_reference_tolerances("nowhere");
  for (const int rank : {8, 9}) config.add_reference_ranks(rank);
  for (int trial = 0; trial < 25; ++trial) {
    const std::string run = MakeRunForTest("run", 4);
    RunInfo info = ReadRunInfo(run).value();
    DeviceMesh& mesh = *info.mutable_config()->add_mesh();
    for (const char* const name : {"row", "column"}) {
      mesh.add_axes()->set_name(name);
      mesh.mutable_axes(mesh.axes_size() - 1)->set_size(2);
    }
    ASSERT_TRUE(WriteRunInfo(run, info).ok());
    std::vector<std::string> expected, is;
    for (const int iteration : {0, 10}) {
      const int missing = random() % 2 == 0 ? static_cast<int>(random() % 4) : -1;
      std::map<int, int> all, part, own;
      for (int rank = 0; rank < 4; ++rank) {
        all[rank] = random() % 4 == 0 ? 2 : 1;
        part[rank] = random() % 3 == 0 ? 2 : 1;
        own[rank] = static_cast<int>(random() % 8);
        if (rank == missing) continue;
        WriteTreeForTest(run, rank, iteration,
                         ValueMap{{"all", all[rank]}, {"part", part[rank]}, {"own", own[rank]}});
      }
      expected.push_back(DescribeSame(iteration, "REPLICAS", {0, 1, 2, 3}, missing, all));
      for (const int column : {0, 1})
        expected.push_back(DescribeSame(iteration, "SHARDS", {column, column + 2}, missing, part));
      std::string twice;
      for (int rank = 3; rank >= 0; --rank) {
        std::vector<int> alike;
        for (int other = 0; other < 4; ++other) {
          if (own[other] == own[rank] && rank != missing && other != missing) alike.push_back(other);
        }
        if (alike.size() < 2) continue;
        twice.clear();
        for (const int of : alike) absl::StrAppend(&twice, " by ", of, "node", of);
      }
      expected.push_back(absl::StrCat(iteration, " DISTINCT of 0: ",
                                      !twice.empty() ? "DIFFERENT"
                                      : missing < 0  ? "ALL_DISTINCT"
                                                     : "NOT_COMPARED",
                                      twice));
    }
    const auto verdicts = CheckReplicasOfRun(run, config).value();
    for (const CrossCheckVerdict& verdict : verdicts) is.push_back(Describe(verdict));
    EXPECT_EQ(is, expected) << trial;
  }
}

// Three ranks that hold the same weights in iteration 0; in iteration 10 rank 1 has others.
class CheckReplicasOfRunTest : public testing::Test {
 protected:
  CheckReplicasOfRunTest() {
    for (int rank = 0; rank < 3; ++rank) {
      for (const int iteration : {0, 10})
        WriteDumpForTest(run_, rank, iteration, {1, rank == 1 && iteration == 10 ? 3.0f : 2});
    }
  }

  std::string Dump(int rank, int iteration) const { return DumpPath(run_, rank, iteration); }

  absl::Status Error(const CrossCheckConfig& config = {}) const {
    return CheckReplicasOfRun(run_, config).status();
  }

  std::vector<CrossCheckVerdict> Check(const std::string& replicated) const {
    CrossCheckConfig config;
    config.add_replicated(replicated);
    return CheckReplicasOfRun(run_, config).value();
  }

  const std::string run_ = MakeRunForTest("run", 3);
};

TEST_F(CheckReplicasOfRunTest, ARankWithoutAManifestOrWithACutDumpIsNamedAndNotBlamed) {
  std::filesystem::remove(run_ + "/run.json");
  EXPECT_EQ(Check("weights")[0].outcome(), BITWISE_EQUAL);
  std::filesystem::remove(Dump(2, 0) + "/manifest.json");
  std::filesystem::resize_file(Dump(2, 10) + "/tensors.json", 5);
  const std::vector<CrossCheckVerdict> verdicts = Check("*");
  EXPECT_EQ(verdicts[0].outcome(), NOT_COMPARED);
  EXPECT_THAT(verdicts[0].missing_ranks(), ElementsAre(2));
  EXPECT_THAT(verdicts[0].reason(), HasSubstr("is not there, and other ranks' dumps have one"));
  EXPECT_EQ(verdicts[1].outcome(), DIFFERENT);
  EXPECT_THAT(verdicts[1].reason(), HasSubstr("tensors.json"));
  for (const int rank : {0, 1}) std::filesystem::remove(Dump(rank, 0) + "/manifest.json");
  EXPECT_EQ(Check("weights")[0].outcome(), BITWISE_EQUAL) << "no dump is ours";
}

TEST_F(CheckReplicasOfRunTest, ADumpThatLinksToThatOfAnotherRankIsNoPass) {
  std::filesystem::remove_all(Dump(2, 0));
  std::filesystem::create_directory_symlink(Dump(0, 0), Dump(2, 0));
  std::filesystem::remove(Dump(1, 10) + "/tensors.json");
  std::filesystem::create_symlink(Dump(0, 10) + "/tensors.json", Dump(1, 10) + "/tensors.json");
  for (const int i : {0, 1}) {
    const CrossCheckVerdict verdict = Check("weights")[i];
    EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
    EXPECT_THAT(verdict.missing_ranks(), ElementsAre(2 - i));
    EXPECT_THAT(verdict.reason(), HasSubstr("links to the dump of rank 0"));
  }
}

TEST_F(CheckReplicasOfRunTest, FewerFreeThreadsThanRanksAreAnError) {
  const NoThreads no_threads;
  EXPECT_TRUE(absl::IsResourceExhausted(Error()));
}

TEST_F(CheckReplicasOfRunTest, WhatCannotBeCheckedIsAnError) {
  CrossCheckConfig config;
  config.set_reference_run(run_);
  const std::string alone = MakeRunForTest("alone", 1);
  WriteDumpForTest(alone, 0, 0, {1});
  EXPECT_EQ(CheckReplicasOfRun(alone, config)->at(0).outcome(), NOT_COMPARED);
  config.add_same_data_along("nothing");
  EXPECT_THAT(std::string(Error(config).message()), HasSubstr("same_data_along: there is no axis"));
  std::ofstream(run_ + "/run.json") << R"({"world_size": 2000000000})";
  EXPECT_TRUE(absl::IsDataLoss(Error()));
  std::ofstream(run_ + "/run.json") << R"({"world_size": 100000})";
  EXPECT_TRUE(absl::IsInvalidArgument(Error()));
  std::filesystem::remove(run_ + "/run.json");
  std::filesystem::create_directories(run_ + "/run.json");
  EXPECT_THAT(std::string(Error().message()), HasSubstr("run.json"));
  for (int rank = 0; rank < 3; ++rank) std::filesystem::remove_all(DumpsDirectory(run_, rank));
  EXPECT_TRUE(absl::IsNotFound(Error()));
  std::filesystem::remove_all(run_);
  EXPECT_TRUE(absl::IsNotFound(Error()));
}

}  // namespace
}  // namespace ott::crosscheck
