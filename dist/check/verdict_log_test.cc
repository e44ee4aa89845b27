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

TEST(VerdictLog, EachVerdictIsALine) {
  const std::string path = ::testing::TempDir() + "/verdicts.jsonl";
  auto log = VerdictLog::Open(path);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Add(MakeVerdict(REPLICAS, 3, BITWISE_EQUAL)).ok());
  ASSERT_TRUE((*log)->Add(MakeVerdict(REFERENCE, 3, DIFFERENT)).ok());
  const auto text = ReadFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  const size_t newline = text->find('\n');
  ASSERT_NE(newline, std::string::npos);
  EXPECT_EQ(ParseVerdict(text->substr(0, newline))->outcome(), BITWISE_EQUAL);
  EXPECT_EQ(ParseVerdict(text->substr(newline + 1))->outcome(), DIFFERENT);
}

TEST(VerdictLog, PassesMayWaitForWhatFailsAndForTheEnd) {
  const std::string path = ::testing::TempDir() + "/passes.jsonl";
  const auto num_lines = [&] {
    const std::string text = *ReadFile(path);
    return std::count(text.begin(), text.end(), '\n');
  };
  auto log = VerdictLog::Open(path);
  ASSERT_TRUE(log.ok()) << log.status();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE((*log)->Add(MakeVerdict(REPLICAS, i, BITWISE_EQUAL)).ok());
  EXPECT_LT(num_lines(), 3);
  ASSERT_TRUE((*log)->Add(MakeVerdict(REPLICAS, 3, DIFFERENT)).ok());
  EXPECT_EQ(num_lines(), 4);
  ASSERT_TRUE((*log)->Add(MakeVerdict(REPLICAS, 4, BITWISE_EQUAL)).ok());
  log->reset();
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

TEST(VerdictLog, FolderThatIsMissingIsNamed) {
  const auto log = VerdictLog::Open(::testing::TempDir() + "/no/such/folder/log.jsonl");
  EXPECT_EQ(log.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(log.status().message()), HasSubstr("no/such/folder/log.jsonl"));
}

TEST(VerdictLog, FullDiskIsAnError) {
  std::error_code error;
  if (!std::filesystem::is_character_file("/dev/full", error)) GTEST_SKIP() << "/dev/full is no device here";
  auto log = VerdictLog::Open("/dev/full");
  ASSERT_TRUE(log.ok()) << log.status();
  const absl::Status status = (*log)->Add(MakeVerdict(REPLICAS, 12, BITWISE_EQUAL));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("iteration 12"));
}

TEST(VerdictLog, AFileThatIsFullKeepsRoomForFailuresAndCountsTheRest) {
  const std::string path = ::testing::TempDir() + "/full.jsonl";
  std::filesystem::remove(path);
  std::filesystem::remove(OmittedVerdictsPath(path));
  constexpr int64_t kMaxBytes = 4096;
  auto log = VerdictLog::Open(path, kMaxBytes);
  ASSERT_TRUE(log.ok()) << log.status();
  CrossCheckVerdict verdict;
  verdict.set_mode(REPLICAS);
  for (int iteration = 0; iteration < 1000; ++iteration) {
    verdict.set_iteration(iteration);
    verdict.set_outcome(iteration < 900 ? BITWISE_EQUAL : DIFFERENT);
    ASSERT_TRUE((*log)->Add(verdict).ok());
  }
  ASSERT_TRUE((*log)->Flush().ok());
  EXPECT_EQ((*log)->replicas().num_checks, 1000);
  EXPECT_EQ((*log)->replicas().num_different, 100);
  const std::string lines = *ReadFile(path);
  EXPECT_LE(static_cast<int64_t>(lines.size()), kMaxBytes);
  const int64_t num_lines = std::count(lines.begin(), lines.end(), '\n');
  EXPECT_NE(lines.find("\"900\""), std::string::npos) << lines;
  OmittedVerdicts omitted;
  ASSERT_TRUE(JsonToProto(*ReadFile(OmittedVerdictsPath(path)), &omitted).ok());
  EXPECT_EQ(omitted.num_checks(), 1000 - num_lines);
  EXPECT_GT(omitted.num_different(), 0);
  EXPECT_LT(omitted.num_different(), 100);

  // A run that goes on counts on.
  log = VerdictLog::Open(path, kMaxBytes);
  ASSERT_TRUE(log.ok()) << log.status();
  ASSERT_TRUE((*log)->Add(verdict).ok());
  ASSERT_TRUE((*log)->Flush().ok());
  OmittedVerdicts more;
  ASSERT_TRUE(JsonToProto(*ReadFile(OmittedVerdictsPath(path)), &more).ok());
  EXPECT_EQ(more.num_checks(), omitted.num_checks() + 1);
  EXPECT_EQ(more.first_iteration(), omitted.first_iteration());
}

TEST(VerdictLog, OfManyTensorsTheFirstAreKept) {
  const std::string path = ::testing::TempDir() + "/many.jsonl";
  std::filesystem::remove(path);
  auto log = VerdictLog::Open(path);
  CrossCheckVerdict verdict;
  verdict.set_outcome(DIFFERENT);
  for (int i = 0; i < 100000; ++i) verdict.add_tensor_errors()->set_tensor("tensor" + std::to_string(i));
  ASSERT_TRUE((*log)->Add(verdict).ok());
  EXPECT_LT(ReadFile(path)->size(), 30000u);
}

TEST(VerdictLog, AFifoIsAnErrorAtOnce) {
  const std::string path = ::testing::TempDir() + "/fifo.jsonl";
  std::filesystem::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0666), 0);
  EXPECT_FALSE(VerdictLog::Open(path).ok());
}

}  // namespace
}  // namespace ott
