#include "ott/questions/right/compare/compare_runs.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/compare/compare_answer.h"
#include "ott/questions/right/compare/dump_piece.h"
#include "ott/questions/right/compare/runs_report.h"
#include "ott/questions/right/crosscheck/run_for_test.h"

namespace ott::compare {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Returns "iteration 0", "iterations 0, 10" or "iterations 0, 10, 20, ..., 50 (6 of them)".
std::string Describe(const std::set<int64_t>& iterations) {
  const std::vector<int64_t> all(iterations.begin(), iterations.end());
  if (all.size() == 1) return absl::StrCat("iteration ", all[0]);
  if (all.size() < 5) return absl::StrCat("iterations ", absl::StrJoin(all, ", "));
  return absl::StrCat("iterations ", all[0], ", ", all[1], ", ", all[2], ", ..., ", all.back(), " (",
                      all.size(), " of them)");
}

template <typename Key>
std::set<Key> Without(const std::set<Key>& all, const std::set<Key>& others) {
  std::set<Key> rest;
  for (const Key& key : all) {
    if (others.count(key) == 0) rest.insert(key);
  }
  return rest;
}

TEST(CompareRuns, DumpsOfBothAreComparedAndWhatOneLacksIsNamed) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 15; ++trial) {
    const std::string runs[2] = {crosscheck::MakeRunForTest("reference", 3),
                                 crosscheck::MakeRunForTest("current", trial % 3 == 0 ? 4 : 3)};
    std::map<int, std::set<int64_t>> dumps[2];  // by rank
    std::set<std::pair<int64_t, int>> different;
    std::set<int> ranks[2];
    std::vector<std::string> problems;
    const bool has_few = random() % 3 == 0;
    for (int side = 0; side < 2; ++side) {
      std::vector<int> missing;
      const int world_size = side == 1 && trial % 3 == 0 ? 4 : 3;
      for (int rank = 0; rank < world_size; ++rank) {
        // Not all are missing.
        if (random() % 8 == 0 && (rank > 0 || trial % 3 == 1)) {
          missing.push_back(rank);
          continue;
        }
        ranks[side].insert(rank);
        std::filesystem::create_directories(DumpsDirectory(runs[side], rank));
        for (int64_t iteration = 0; iteration < 70; iteration += 10) {
          const bool has_none = trial % 4 == 0 || (trial % 4 == 1 && side == 1 && rank == 0);
          if (has_none || (iteration >= 20 && has_few) || random() % 3 == 0) continue;
          const bool differs = side == 1 && random() % 20 == 0;
          const float within = random() % 3 == 0 ? 2.25f : 2;
          crosscheck::WriteDumpForTest(runs[side], rank, iteration, {1, differs ? 3.0f : within});
          dumps[side][rank].insert(iteration);
          if (differs) different.insert({iteration, rank});
        }
      }
      if (random() % 8 == 0) {
        std::filesystem::remove(runs[side] + "/run.json");
        problems.emplace_back(ReadRunInfo(runs[side]).status().message());
      } else if (!missing.empty()) {
        problems.push_back(absl::StrCat(runs[side], ": nothing from ", FormatRanks(missing)));
      }
    }
    const char* const where[2] = {" only in the reference", " only in the current run"};
    std::map<std::string, std::vector<int>> lacking;
    std::set<std::pair<int64_t, int>> expected;
    for (int side = 0; side < 2; ++side) {
      const std::set<int> only = Without(ranks[side], ranks[1 - side]);
      if (!only.empty()) problems.push_back(FormatRanks({only.begin(), only.end()}) + where[side]);
      for (const int rank : Without(ranks[side], only)) {
        const std::set<int64_t> rest = Without(dumps[side][rank], dumps[1 - side][rank]);
        if (!rest.empty()) lacking[Describe(rest) + where[side]].push_back(rank);
        for (const int64_t iteration : Without(dumps[side][rank], rest)) expected.insert({iteration, rank});
      }
    }
    for (const auto& [what, of] : lacking) problems.push_back(absl::StrCat(FormatRanks(of), ": ", what));
    CompareRunsOptions options;
    options.keep_results = trial % 2 == 0;
    options.max_failures = 1 + trial % 3;
    options.compare.tensors.tolerance.atol = 0.25;
    options.kinds.add_tensor_kinds()->set_kind(TENSOR_KIND_GRADIENT);
    options.kinds.mutable_tensor_kinds(0)->add_paths(trial % 2 == 0 ? "weights" : "step");
    const auto comparison = CompareRuns(runs[0], runs[1], options).value();
    EXPECT_EQ(comparison.problems, problems) << trial;
    ASSERT_EQ(comparison.dumps.size(), expected.size()) << trial;
    auto dump = comparison.dumps.begin();
    bool differs = false;
    RunsComparison by_dump = {runs[0], runs[1], {}, {}, problems};
    for (const auto& [iteration, rank] : expected) {
      const bool is_other = different.count({iteration, rank}) > 0;
      differs = differs || is_other;
      EXPECT_EQ(dump->verdict, is_other ? Verdict::kDifferent : Verdict::kEqual) << trial;
      // Whichever process compares them, their summary is the same.
      const DumpSummary summary = by_dump.dumps.emplace_back(
          Summarize(CompareDumps(DumpPath(runs[0], rank, iteration), DumpPath(runs[1], rank, iteration),
                                 options.compare),
                    rank, iteration, options));
      EXPECT_EQ(dump->first_failure, summary.first_failure);
      EXPECT_EQ(dump->num_elements, summary.num_elements);
      ++dump;
    }
    EXPECT_EQ(ToJson(comparison), ToJson(by_dump)) << trial;
    EXPECT_EQ(ToCsv(comparison), ToCsv(by_dump)) << trial;
    EXPECT_EQ(comparison.verdict(), differs                                 ? Verdict::kDifferent
                                    : expected.empty() || !problems.empty() ? Verdict::kCouldNotCompare
                                                                            : Verdict::kEqual)
        << trial;
  }
}

TEST(CompareRuns, ARankThatTheConfigurationSaysDumpsNothingIsNotMissed) {
  std::vector<std::string> runs;
  for (const char* const name : {"reference", "current"}) {
    const std::string& run = runs.emplace_back(crosscheck::MakeRunForTest(name, 2));
    crosscheck::WriteDumpForTest(run, 0, 0, {1, 2});
    std::filesystem::create_directories(RankDirectory(run, 1));
  }
  EXPECT_EQ(CompareRuns(runs[0], runs[1])->verdict(), Verdict::kCouldNotCompare);
  RunInfo info = ReadRunInfo(runs[0]).value();
  info.mutable_config()->mutable_dump()->add_ranks(0);
  ASSERT_TRUE(WriteRunInfo(runs[0], info).ok());
  EXPECT_THAT(CompareRuns(runs[0], runs[1])->problems, ElementsAre("rank 1 only in the current run"));
  ASSERT_TRUE(WriteRunInfo(runs[1], info).ok());
  EXPECT_THAT(CompareRuns(runs[0], runs[1])->problems, IsEmpty());
  EXPECT_EQ(CompareRuns(runs[0], runs[1])->verdict(), Verdict::kEqual);
  // Dumps of either side that cannot be listed are no pass.
  for (const std::string& run : runs) {
    std::filesystem::rename(DumpsDirectory(run, 0), run + "/moved");
    ASSERT_TRUE(WriteFileAtomically(DumpsDirectory(run, 0), "").ok());
    EXPECT_THAT(CompareRuns(runs[0], runs[1])->problems, ElementsAre(HasSubstr(DumpsDirectory(run, 0))));
    std::filesystem::remove(DumpsDirectory(run, 0));
    std::filesystem::rename(run + "/moved", DumpsDirectory(run, 0));
  }
}

// The weights are off by a quarter in iterations 0 and 10, which is allowed in 10.
TEST(CompareRuns, TolerancesKindsAndWhatComesNextAreOfTheRun) {
  const std::string reference = crosscheck::MakeRunForTest("reference", 1),
                    current = crosscheck::MakeRunForTest("current", 1);
  const float nan = std::nanf("");
  for (const int iteration : {0, 10}) {
    crosscheck::WriteDumpForTest(reference, 0, iteration, {1, 2, nan});
    crosscheck::WriteDumpForTest(current, 0, iteration, {1, 2.25f, nan});
  }
  const std::string path = testing::TempDir() + "/tolerances.textproto";
  ASSERT_TRUE(WriteFileAtomically(
                  path, "iterations: 0 iterations: 10 tensors { path: \"weights\" atol_at: 0 atol_at: 0.25 }")
                  .ok());
  CompareRunsOptions options;
  options.tolerances = ToleranceFile::Read(path).value();
  options.compare.tensors.tolerance.nan_equal = true;
  const RunsComparison runs = CompareRuns(reference, current, options).value();
  EXPECT_EQ(runs.dumps.at(0).verdict, Verdict::kDifferent);
  EXPECT_EQ(runs.dumps.at(1).verdict, Verdict::kEqual);
  // A single dump's iteration is its manifest's, or else its name.
  const auto single = [&](const std::string& folder, bool has_manifest) {
    const std::string dirs[2] = {reference + "/" + folder, current + "/" + folder};
    for (int side = 0; side < 2; ++side) {
      std::filesystem::remove_all(dirs[side]);
      std::filesystem::copy(DumpPath(side == 0 ? reference : current, 0, 10), dirs[side]);
      if (!has_manifest) std::filesystem::remove(dirs[side] + "/manifest.json");
    }
    return CompareRuns(dirs[0], dirs[1], options);
  };
  EXPECT_EQ(single("named", true)->verdict(), Verdict::kEqual);
  EXPECT_EQ(single("0", true)->verdict(), Verdict::kEqual);
  EXPECT_EQ(single("10", false)->verdict(), Verdict::kEqual);
  EXPECT_EQ(single("10/", false)->verdict(), Verdict::kEqual);
  EXPECT_EQ(single("0", false)->verdict(), Verdict::kDifferent);
  EXPECT_THAT(std::string(single("named", false).status().message()),
              HasSubstr("does not say which it is of"));
  // Kinds are those of the reference, unless some are given.
  CrossCheckConfig kinds;
  TensorsOfKind& of_run = *kinds.add_tensor_kinds();
  of_run.set_kind(TENSOR_KIND_GRADIENT);
  of_run.add_paths("weights");
  for (const std::string& run : {reference, current}) {
    RunInfo info = ReadRunInfo(run).value();
    if (run == reference) *info.mutable_config()->mutable_cross_check() = kinds;
    info.mutable_config()->mutable_op_log();
    EXPECT_THAT(AnswerCompare(CompareRuns(reference, current).value()).next(), IsEmpty());
    ASSERT_TRUE(WriteRunInfo(run, info).ok());
  }
  const auto kind = [&] { return CompareRuns(reference, current, options)->dumps.at(0).kinds.at(1).kind(); };
  EXPECT_EQ(kind(), TENSOR_KIND_GRADIENT);
  options.kinds = kinds;
  options.kinds.mutable_tensor_kinds(0)->set_kind(TENSOR_KIND_OPTIMIZER_STATE);
  EXPECT_EQ(kind(), TENSOR_KIND_OPTIMIZER_STATE);
  // Logs of operations say more than dumps.
  EXPECT_THAT(AnswerCompare(CompareRuns(reference, current).value()).next(),
              ElementsAre(absl::StrCat("ott origin ", reference, " ", current)));
  crosscheck::WriteDumpForTest(current, 0, 0, {1, 2, nan});
  crosscheck::WriteDumpForTest(current, 0, 10, {1, 2, nan});
  EXPECT_THAT(AnswerCompare(CompareRuns(reference, current, options).value()).next(), IsEmpty());
  options.names.emplace();
  EXPECT_THAT(std::string(CompareRuns(reference, current, options).status().message()),
              HasSubstr("names are of checkpoints"));
}

TEST(CompareRuns, FoldersOfDumpsAreComparedWhateverTheirNames) {
  const std::string reference = crosscheck::MakeRunForTest("reference", 1),
                    current = crosscheck::MakeRunForTest("current", 1);
  const std::string name = "a\nverdict: equal\x1b[2J";
  for (const float number : {2.0f, 3.0f}) {
    const std::string& run = number == 2 ? reference : current;
    crosscheck::WriteTreeForTest(
        run, 0, 10, ValueMap{{name, TensorView(&number, {})}, {"text", absl::StrCat(name, number)}});
    // Bit 20 of 3 is a quarter.
    crosscheck::WriteDumpForTest(run, 0, 0, {1, 2, number == 2 ? 3 : 3.25f});
  }
  crosscheck::WriteDumpForTest(reference, 0, 30, {1});
  const std::string moved = current + "/\xff";
  std::filesystem::rename(DumpsDirectory(current, 0), moved);
  const RunsComparison folders = CompareRuns(DumpsDirectory(reference, 0), moved).value();
  EXPECT_EQ(folders.dumps.size(), 2u);
  EXPECT_THAT(folders.problems, ElementsAre("iteration 30 only in the reference"));
  EXPECT_THAT(ToText(folders),
              ContainsRegex("first divergence: iteration 0, weights.* element 2 .*flipped bit 20"));
  EXPECT_THAT(ToJson(folders),
              AllOf(HasSubstr("\"flipped_bits\": ["), HasSubstr("\"verdict\": \"different\"")));
  // Names cannot forge a report.
  const std::string text = ToText(CompareRuns(DumpsDirectory(reference, 0) + "/10", moved + "/10").value());
  EXPECT_THAT(text, AllOf(HasSubstr(" a\\nverdict: equal\\x1b[2J: mismatch"),
                          Not(HasSubstr("\nverdict: equal")), Not(HasSubstr("\x1b"))));
  // A folder of another kind is refused, and so is none.
  EXPECT_EQ(CompareRuns(reference, moved).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(CompareRuns(reference, moved).status().message()),
              HasSubstr("is a run directory, but"));
  for (const std::string& nothing : {reference + "/nothing", std::string(5000, 'x')})
    EXPECT_EQ(CompareRuns(reference, nothing).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace ott::compare
