#include "ott/dist/check/verdict_log.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/dist/check/verdict.h"

namespace ott {
namespace {

using ::testing::HasSubstr;

CrossCheckVerdict MakeVerdict(CrossCheckMode mode, int64_t iteration, Outcome outcome) {
  CrossCheckVerdict verdict;
  verdict.set_mode(mode);
  verdict.set_iteration(iteration);
  verdict.set_outcome(outcome);
  return verdict;
}

TEST(VerdictLog, PassesMayWaitForWhatFailsAndForTheEnd) {
  const std::string path = ::testing::TempDir() + "/passes.jsonl";
  const auto num_lines = [&] {
    const std::string text = *ReadFile(path);
    return std::count(text.begin(), text.end(), '\n');
  };
  auto log = VerdictLog::Open(path).value();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(log->Add(MakeVerdict(REPLICAS, i, BITWISE_EQUAL)).ok());
  EXPECT_LT(num_lines(), 3);
  ASSERT_TRUE(log->Add(MakeVerdict(REPLICAS, 3, DIFFERENT)).ok());
  EXPECT_EQ(num_lines(), 4);
  ASSERT_TRUE(log->Add(MakeVerdict(REPLICAS, 4, BITWISE_EQUAL)).ok());
  log.reset();
  EXPECT_EQ(num_lines(), 5);
}

TEST(VerdictLog, CountsTheWorstOutcomeOfAllRanksByMode) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    auto log = *VerdictLog::Open("");
    std::map<CrossCheckMode, std::vector<CrossCheckVerdict>> added;
    for (int64_t iteration = 0; iteration < 8; ++iteration) {
      const CrossCheckMode modes[] = {REPLICAS, SHARDS, REFERENCE, DISTINCT};
      const Outcome outcomes[] = {BITWISE_EQUAL, WITHIN_TOLERANCE, NOT_COMPARED, DIFFERENT, ALL_DISTINCT};
      CrossCheckVerdict verdict = MakeVerdict(modes[random() % 4], iteration, outcomes[random() % 5]);
      if (random() % 2 == 0) verdict.set_worst_outcome(outcomes[random() % 5]);
      verdict.set_max_abs_error(static_cast<double>(random() % 3));
      added[verdict.mode() == SHARDS ? REPLICAS : verdict.mode()].push_back(verdict);
      ASSERT_TRUE(log->Add(verdict).ok());
    }
    for (const CrossCheckMode mode : {REPLICAS, REFERENCE, DISTINCT}) {
      const VerdictSummary& summary = mode == REPLICAS    ? log->replicas()
                                      : mode == REFERENCE ? log->reference()
                                                          : log->distinct();
      std::map<Outcome, int64_t> counts;
      int64_t first = -1;
      double max_abs_error = 0;
      for (const CrossCheckVerdict& verdict : added[mode]) {
        const bool is_told = verdict.worst_outcome() != OUTCOME_UNKNOWN;
        const Outcome outcome = is_told ? verdict.worst_outcome() : verdict.outcome();
        ++counts[outcome];
        max_abs_error = std::max(max_abs_error, verdict.max_abs_error());
        const bool differs = outcome == WITHIN_TOLERANCE || outcome == DIFFERENT;
        if (first < 0 && differs && mode != DISTINCT) first = verdict.iteration();
      }
      EXPECT_EQ(summary.num_checks, added[mode].size());
      EXPECT_EQ(summary.num_bitwise_equal, counts[BITWISE_EQUAL]);
      EXPECT_EQ(summary.num_within_tolerance, counts[WITHIN_TOLERANCE]);
      EXPECT_EQ(summary.num_not_compared, counts[NOT_COMPARED]);
      EXPECT_EQ(summary.num_different, counts[DIFFERENT]);
      EXPECT_EQ(summary.num_distinct, counts[ALL_DISTINCT]);
      EXPECT_EQ(summary.max_abs_error, max_abs_error);
      EXPECT_EQ(summary.first_not_bitwise_equal, first);
      EXPECT_EQ(summary.passed(), counts[NOT_COMPARED] + counts[DIFFERENT] == 0);
      const auto size = static_cast<int64_t>(added[mode].size());
      std::string text = absl::StrCat("x: ", size, size == 1 ? " check" : " checks");
      if (size > 0 && counts[BITWISE_EQUAL] == size) {
        text += ", all equal bit for bit";
      } else if (size > 0 && counts[ALL_DISTINCT] == size) {
        text += ", all ranks have their own";
      } else {
        for (const auto& [outcome, what] :
             {std::pair(DIFFERENT, mode == DISTINCT ? " THE SAME on several ranks" : " DIFFER"),
              {NOT_COMPARED, " NOT COMPARED"},
              {WITHIN_TOLERANCE, " within tolerance"},
              {BITWISE_EQUAL, " equal bit for bit"},
              {ALL_DISTINCT, " of their own on all ranks"}}) {
          if (counts[outcome] > 0) absl::StrAppend(&text, ", ", counts[outcome], what);
        }
        if (first >= 0) absl::StrAppend(&text, "; not bitwise equal from iteration ", first, " on");
        if (max_abs_error > 0) absl::StrAppend(&text, "; max abs error ", max_abs_error);
      }
      EXPECT_EQ(FormatSummary("x", summary), text);
    }
  }
}

TEST(VerdictLog, AFolderThatIsMissingIsNamedAndAFifoAnErrorAtOnce) {
  const auto log = VerdictLog::Open(::testing::TempDir() + "/no/such/folder/log.jsonl");
  EXPECT_EQ(log.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(log.status().message()), HasSubstr("no/such/folder/log.jsonl"));
  const std::string fifo = ::testing::TempDir() + "/fifo.jsonl";
  std::filesystem::remove(fifo);
  ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
  EXPECT_FALSE(VerdictLog::Open(fifo).ok());
}

TEST(VerdictLog, FullDiskIsAnError) {
  std::error_code error;
  if (!std::filesystem::is_character_file("/dev/full", error)) GTEST_SKIP() << "/dev/full is no device here";
  const auto log = VerdictLog::Open("/dev/full").value();
  const absl::Status status = log->Add(MakeVerdict(REPLICAS, 12, BITWISE_EQUAL));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("iteration 12"));
}

TEST(VerdictLog, EachVerdictIsALineWhileThereIsRoomOfWhichHalfIsForFailuresAndTheRestIsCounted) {
  EXPECT_EQ(OmittedVerdictsPath("a.b/c.d.jsonl"), "a.b/c.d_omitted.json");
  const std::string path = ::testing::TempDir() + "/full.jsonl";
  std::filesystem::remove(path);
  std::filesystem::remove(OmittedVerdictsPath(path));
  constexpr size_t kMaxBytes = 4096;
  std::mt19937 random(1);
  std::vector<CrossCheckVerdict> added;
  // A run that goes on counts on.
  for (int start = 0; start < 3; ++start) {
    auto log = *VerdictLog::Open(path, kMaxBytes);
    for (int i = 0; i < 40; ++i) {
      const Outcome outcomes[] = {BITWISE_EQUAL, WITHIN_TOLERANCE, DIFFERENT, NOT_COMPARED};
      added.push_back(MakeVerdict(REPLICAS, static_cast<int64_t>(added.size()),
                                  outcomes[random() % (start == 0 ? 2 : 4)]));
      ASSERT_TRUE(log->Add(added.back()).ok());
    }
    ASSERT_TRUE(log->Flush().ok());
    std::string lines;
    OmittedVerdicts omitted, found;
    for (const CrossCheckVerdict& verdict : added) {
      const std::string line = VerdictToJsonLine(verdict);
      if (lines.size() + line.size() <= (Passed(verdict) ? kMaxBytes / 2 : kMaxBytes)) {
        lines += line;
        continue;
      }
      if (omitted.num_checks() == 0) omitted.set_first_iteration(verdict.iteration());
      omitted.set_num_checks(omitted.num_checks() + 1);
      omitted.set_num_different(omitted.num_different() + (verdict.outcome() == DIFFERENT));
      omitted.set_num_not_compared(omitted.num_not_compared() + (verdict.outcome() == NOT_COMPARED));
    }
    EXPECT_EQ(*ReadFile(path), lines);
    ASSERT_TRUE(JsonToProto(*ReadFile(OmittedVerdictsPath(path)), &found).ok());
    EXPECT_EQ(found.DebugString(), omitted.DebugString());
    EXPECT_EQ(log->omitted().DebugString(), omitted.DebugString());
  }
}

TEST(VerdictLog, OfManyTensorsTheFirstAreKept) {
  const std::string path = ::testing::TempDir() + "/many.jsonl";
  for (const int num_tensors : {255, 256, 257, 1000}) {
    std::filesystem::remove(path);
    CrossCheckVerdict verdict = MakeVerdict(REFERENCE, 3, DIFFERENT);
    for (int i = 0; i < num_tensors; ++i) verdict.add_tensor_errors()->set_tensor(std::to_string(i));
    ASSERT_TRUE((*VerdictLog::Open(path))->Add(verdict).ok());
    const CrossCheckVerdict kept = *ParseVerdict(*ReadFile(path));
    EXPECT_EQ(kept.tensor_errors_size(), std::min(num_tensors, 256));
    EXPECT_EQ(kept.tensor_errors().rbegin()->tensor(), std::to_string(kept.tensor_errors_size() - 1));
  }
}

}  // namespace
}  // namespace ott
