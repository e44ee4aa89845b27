// Checks random runs against a reference, with dumps that are missing, cut, or the reference's own.

#include "ott/questions/right/crosscheck/check_reference.h"

#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/share/processes_for_test.h"
#include "ott/questions/right/crosscheck/run_for_test.h"

namespace ott::crosscheck {
namespace {

using testing::HasSubstr;

absl::StatusOr<std::vector<CrossCheckVerdict>> Check(const std::string& reference, const std::string& current,
                                                     const std::vector<int>& reference_ranks = {}) {
  CrossCheckConfig config;
  config.set_reference_run(reference);
  config.mutable_reference_tolerance()->set_atol(0.25);
  *config.mutable_reference_ranks() = {reference_ranks.begin(), reference_ranks.end()};
  return CheckRunAgainstReference(current, config);
}

// Writes the run, whose hosts are `host`0 and so on, a second time behind a first start with another dump.
// dumping: the one rank that is to dump; -1: all are.
void StartAgain(const std::string& run, const std::string& host, int dumping, bool twice) {
  RunInfo info = ReadRunInfo(run).value();
  for (int rank = 0; rank < info.world_size(); ++rank) info.set_hosts(rank, absl::StrCat(host, rank));
  if (dumping >= 0) info.mutable_config()->mutable_dump()->add_ranks(dumping);
  ASSERT_TRUE(WriteRunInfo(run, info).ok());
  if (!twice) return;
  std::filesystem::remove_all(run + "_latest");
  std::filesystem::rename(run, run + "_latest");
  std::filesystem::create_directories(run);
  ASSERT_TRUE(WriteRunInfo(run, info).ok());
  WriteDumpForTest(run, 0, 77, {9});
  std::filesystem::rename(run + "_latest", run + "/attempt_2");
}

TEST(DumpsNothing, IsOfRanksThatAreNotToAndLeftNone) {
  const std::string run = MakeRunForTest("run", 3);
  WriteDumpForTest(run, 1, 0, {1});
  RunInfo info;
  EXPECT_FALSE(DumpsNothing(run, info, 2));
  info.mutable_config()->mutable_dump()->add_ranks(0);
  for (const int rank : {0, 1, 2}) EXPECT_EQ(DumpsNothing(run, info, rank), rank == 2);
}

TEST(CheckRunAgainstReference, EachRankHasAVerdictOfEachIterationOfEitherRun) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 40; ++trial) {
    const int num_reference_ranks = trial % 3 == 0 ? 1 : 2;
    // The one rank that is to dump, by run, and those that do, whether they are to or not.
    const int dumping[2] = {static_cast<int>(random() % 4) - 1, static_cast<int>(random() % 4) - 1};
    std::set<int> dumped[2];
    // A bit for each rank of each run that leaves no dump, though it may be to.
    const uint64_t nothing = random() % 3 == 0 ? random() % 16 : 0;
    const std::string reference = MakeRunForTest("reference", num_reference_ranks),
                      current = MakeRunForTest("current", 2);
    // Says what each rank dumped, by iteration; of the current, how far its last weight is off.
    std::map<std::pair<int64_t, int>, float> of_reference, of_current;
    std::set<int64_t> iterations;
    for (const int64_t iteration : {0, 10, 20}) {
      for (const int rank : {0, 1}) {
        const float errors[] = {0, 0.25f, 0.5f, 1};
        const auto is_silent = [&](int run) {
          const bool is_to = dumping[run] < 0 || dumping[run] == rank || trial % 4 == 1;
          return !is_to || (nothing >> (2 * run + rank)) % 2 == 1;
        };
        if (rank < num_reference_ranks && !is_silent(0) && random() % 4 != 0) {
          dumped[0].insert(rank);
          WriteDumpForTest(reference, rank, iteration, {1, of_reference[{iteration, rank}] = 2});
          iterations.insert(iteration);
        }
        if (is_silent(1) || random() % 2 == 0) continue;
        dumped[1].insert(rank);
        const float error = of_current[{iteration, rank}] = errors[random() % 4];
        WriteDumpForTest(current, rank, iteration, {1, 2 + error});
        iterations.insert(iteration);
      }
    }
    StartAgain(reference, "other", dumping[0], trial % 4 == 0);
    StartAgain(current, "host", dumping[1], trial % 5 == 0);
    const bool is_turned = num_reference_ranks == 2 && random() % 2 == 0;
    const auto verdicts = Check(reference, current,
                                num_reference_ranks == 1 ? std::vector<int>{0}
                                : is_turned              ? std::vector<int>{1, 0}
                                                         : std::vector<int>());
    std::vector<std::pair<int, int>> ranks;  // and their partners
    for (const int rank : {0, 1}) {
      const int partner = num_reference_ranks == 1 ? 0 : is_turned ? 1 - rank : rank;
      const auto may_dump = [&](int run, int of) {
        return dumping[run] < 0 || dumping[run] == of || dumped[run].count(of) > 0;
      };
      if (may_dump(1, rank) || may_dump(0, partner)) ranks.emplace_back(rank, partner);
    }
    if (iterations.empty() || ranks.empty()) {
      EXPECT_TRUE(absl::IsNotFound(verdicts.status()));
      continue;
    }
    ASSERT_TRUE(verdicts.ok()) << verdicts.status();
    ASSERT_EQ(verdicts->size(), ranks.size() * iterations.size());
    auto verdict = verdicts->begin();
    std::string first;
    for (const int64_t iteration : iterations) {
      int num_different = 0;
      for (const auto& [rank, partner] : ranks) {
        const auto current_dump = of_current.find({iteration, rank});
        const bool is_known =
            current_dump != of_current.end() && of_reference.count({iteration, partner}) > 0;
        const float error = is_known ? current_dump->second : 0;
        EXPECT_EQ(verdict->mode(), REFERENCE);
        EXPECT_EQ(verdict->iteration(), iteration);
        EXPECT_EQ(verdict->rank(), rank);
        EXPECT_EQ(verdict->host(), absl::StrCat("host", rank));
        EXPECT_EQ(verdict->outcome(), !is_known       ? NOT_COMPARED
                                      : error == 0    ? BITWISE_EQUAL
                                      : error <= 0.25 ? WITHIN_TOLERANCE
                                                      : DIFFERENT)
            << trial << " " << iteration << " " << rank;
        EXPECT_EQ(verdict->worst_outcome(), OUTCOME_UNKNOWN);
        if (is_known) {
          EXPECT_EQ(verdict->max_abs_error(), error);
        } else {
          EXPECT_THAT(verdict->reason(), HasSubstr(current_dump == of_current.end()
                                                       ? current
                                                       : absl::StrCat("no dump of rank ", partner,
                                                                      " in iteration ", iteration)));
        }
        if (verdict->outcome() == DIFFERENT) {
          ++num_different;
          EXPECT_EQ(verdict->differences(0).hosts(0), verdict->host());
          if (first.empty())
            first = absl::StrCat("first divergence: iteration ", iteration, ": rank ", rank, " (host", rank,
                                 ") ");
        }
        ++verdict;
      }
      EXPECT_EQ((verdict - 1)->num_different_ranks(), num_different);
    }
    const std::string trend = FormatErrorTrend(*verdicts);
    EXPECT_EQ(trend.find("first divergence"), first.empty() ? trend.npos : 0);
    EXPECT_THAT(trend, HasSubstr(first));
  }
}

TEST(CheckRunAgainstReference, WhatAnotherProcessCannotDoIsNotCompared) {
  const std::string reference = MakeRunForTest("reference", 2), current = MakeRunForTest("current", 2);
  for (const std::string& run : {reference, current}) {
    for (int i = 0; i < 6; ++i) WriteDumpForTest(run, i % 2, i / 2, {1, 2});
  }
  const auto fails = [](const std::string&, int) -> absl::StatusOr<std::string> {
    return absl::DataLossError("its disk is full");
  };
  const ProcessesForTest processes(kCheckAgainstReference, {kCheckAgainstReference.name, fails},
                                   {reference, current});
  const auto verdicts = Check(reference, current);
  ASSERT_EQ(verdicts->size(), 6);
  int num_failed = 0;
  for (int i = 0; i < 6; ++i) {
    const CrossCheckVerdict& verdict = verdicts->at(i);
    EXPECT_EQ(verdict.mode(), REFERENCE);
    EXPECT_EQ(verdict.iteration(), i / 2);
    EXPECT_EQ(verdict.rank(), i % 2);
    const bool failed = verdict.reason() == "its disk is full";
    EXPECT_EQ(verdict.outcome(), failed ? NOT_COMPARED : BITWISE_EQUAL);
    num_failed += failed;
  }
  EXPECT_GT(num_failed, 0);
}

TEST(CheckRunAgainstReference, TheFirstTensorOfAnyRankComesBeforeTheLowestRank) {
  const std::string reference = MakeRunForTest("reference", 2), current = MakeRunForTest("current", 2);
  for (const int rank : {0, 1}) WriteDumpForTest(reference, rank, 10, {1, 2});
  WriteDumpForTest(current, 0, 10, {1, 3});
  // "step" comes before "weights".
  WriteTreeForTest(current, 1, 10, ValueMap{{"step", 11}});
  const std::string trend = FormatErrorTrend(Check(reference, current).value());
  EXPECT_THAT(trend, HasSubstr("first divergence: iteration 10: rank 1 (node1) against "));
  EXPECT_THAT(trend, HasSubstr("\"step\""));
  EXPECT_THAT(trend, HasSubstr("; first on rank 1 alone; 2 of 2 ranks differ\n"));
}

TEST(CheckRunAgainstReference, ACutFileAndADumpAgainstItselfAreNotCompared) {
  const std::string reference = MakeRunForTest("reference", 2), current = MakeRunForTest("current", 2);
  for (const int rank : {0, 1}) {
    for (const std::string& run : {reference, current}) WriteDumpForTest(run, rank, 0, {1, 2, 4});
  }
  const CrossCheckVerdict itself = Check(current, current, {0}).value()[0];
  EXPECT_EQ(itself.outcome(), NOT_COMPARED);
  EXPECT_THAT(itself.reason(), HasSubstr("always agrees"));
  EXPECT_EQ(Check(current, current, {0}).value()[1].outcome(), BITWISE_EQUAL);
  std::filesystem::resize_file(DumpsDirectory(reference, 0) + "/0/[tensors.json]weights.bin", 3);
  EXPECT_EQ(Check(reference, current).value()[0].outcome(), NOT_COMPARED);
  EXPECT_THAT(Check(reference, current).value()[0].reason(), HasSubstr("weights.bin"));
  EXPECT_THAT(std::string(Check(current + "/.", current).status().message()),
              HasSubstr("would be compared with itself"));
  for (const CrossCheckVerdict& verdict : Check(MakeRunForTest("of_one_rank", 1), current).value())
    EXPECT_EQ(verdict.outcome(), NOT_COMPARED);
  EXPECT_TRUE(absl::IsNotFound(Check(reference, current + "/nothing").status()));
}

}  // namespace
}  // namespace ott::crosscheck
