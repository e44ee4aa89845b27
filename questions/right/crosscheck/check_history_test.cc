// Verdicts of random ranks in random iterations, and what is read of their logs.

#include "ott/questions/right/crosscheck/check_history.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/check/verdict.h"
#include "ott/questions/right/crosscheck/run_for_test.h"

namespace ott::crosscheck {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Outcome kOutcomes[] = {BITWISE_EQUAL, WITHIN_TOLERANCE, NOT_COMPARED, DIFFERENT};

TEST(ErrorTrend, IsTheLargestErrorOfAnyRank) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 100; ++trial) {
    ErrorTrend trend;
    std::set<int64_t> iterations;
    std::vector<std::string> names;
    std::map<std::string, std::map<int64_t, double>> errors;  // NaN: not compared
    const int num_tensors = trial % 10 == 0 ? 25 : 4;
    for (int i = 0; i < 20; ++i) {
      CrossCheckVerdict verdict;
      verdict.set_iteration(static_cast<int64_t>(random() % 12));
      iterations.insert(verdict.iteration());
      for (int j = 0; j < num_tensors; ++j) {
        if (random() % 3 != 0) continue;
        TensorError& error = *verdict.add_tensor_errors();
        error.set_tensor("t" + std::to_string(j));
        if (std::find(names.begin(), names.end(), error.tensor()) == names.end())
          names.push_back(error.tensor());
        error.set_max_abs_error(static_cast<double>(random() % 8) / 4);
        if (random() % 6 == 0) error.set_problem("another shape");
        const auto [known, is_new] = errors[error.tensor()].try_emplace(verdict.iteration(), 0);
        if (!error.problem().empty()) {
          known->second = std::nan("");
        } else {
          known->second =
              std::isnan(known->second) ? known->second : std::max(known->second, error.max_abs_error());
        }
      }
      trend.Add(verdict);
    }
    EXPECT_EQ(trend.num_tensors(), names.size());
    const std::vector<int64_t> all = trend.Iterations(100);
    EXPECT_EQ(all, std::vector<int64_t>(iterations.begin(), iterations.end()));
    const std::vector<int64_t> few = trend.Iterations(3);
    if (all.size() > 3) {
      EXPECT_THAT(few, ElementsAre(all[0], all[(all.size() - 1) / 2], all.back()));
    }
    std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
      return errors[a].begin()->first < errors[b].begin()->first;
    });
    const size_t limit = trial % 2 == 0 ? names.size() : 2;
    const std::vector<ErrorTrend::Trend> trends = trend.Trends(all, limit);
    ASSERT_EQ(trends.size(), std::min(limit, names.size()));
    for (size_t i = 0; i < trends.size(); ++i) {
      EXPECT_EQ(trends[i].tensor, names[i]) << trial;
      EXPECT_EQ(trends[i].first_iteration, errors[names[i]].begin()->first) << trial;
      for (size_t j = 0; j < all.size(); ++j) {
        const auto found = errors[names[i]].find(all[j]);
        const double expected = found == errors[names[i]].end() ? 0 : found->second;
        const double is = trends[i].max_abs_error[j];
        EXPECT_TRUE(std::isnan(expected) ? std::isnan(is) : is == expected)
            << trial << " " << is << " " << expected;
      }
    }
    const std::string text = trend.ToString();
    EXPECT_EQ(text.find("and 5 more tensors\n") != std::string::npos, names.size() == 25) << text;
    const bool has_unknown = std::any_of(errors.begin(), errors.end(), [](const auto& of_tensor) {
      return std::any_of(of_tensor.second.begin(), of_tensor.second.end(),
                         [](const auto& error) { return std::isnan(error.second); });
    });
    if (!has_unknown) {
      EXPECT_EQ(text.find("not compared"), std::string::npos) << text;
    }
  }
  EXPECT_EQ(ErrorTrend().ToString(), "");
}

// Logs of ranks; each check is a mode, an iteration and an outcome.
class CheckHistoryTest : public testing::Test {
 protected:
  static CrossCheckVerdict Verdict(CrossCheckMode mode, int64_t iteration, int rank, Outcome outcome) {
    CrossCheckVerdict verdict;
    verdict.set_mode(mode);
    verdict.set_iteration(iteration);
    verdict.set_rank(rank);
    verdict.set_outcome(outcome);
    return verdict;
  }
  void Log(int rank, const std::vector<CrossCheckVerdict>& verdicts) {
    std::filesystem::create_directories(RankDirectory(run_, rank));
    std::ofstream file(RankDirectory(run_, rank) + "/cross_check.jsonl");
    for (const CrossCheckVerdict& verdict : verdicts) file << VerdictToJsonLine(verdict);
  }
  CheckHistories Read(const std::vector<int>& ranks) const {
    return ReadCheckHistories(run_, ranks, info_).value();
  }

  const std::string run_ = MakeRunForTest("run", 3);
  const std::optional<RunInfo> info_ = ReadRunInfo(run_).value();
};

TEST_F(CheckHistoryTest, OfEachIterationTheWorstOfAnyRankIsKept) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 100; ++trial) {
    std::map<CrossCheckMode, std::map<int64_t, Outcome>> worst;
    std::map<CrossCheckMode, double> largest;
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<CrossCheckVerdict> verdicts;
      for (int64_t iteration = 0; iteration < 4; ++iteration) {
        for (const CrossCheckMode mode : {REPLICAS, REFERENCE, DISTINCT}) {
          if (mode == DISTINCT && trial % 2 == 0) continue;
          CrossCheckVerdict verdict = Verdict(mode, 10 * iteration, rank, kOutcomes[random() % 4]);
          if (mode == DISTINCT && verdict.outcome() != DIFFERENT) verdict.set_outcome(ALL_DISTINCT);
          verdict.set_max_abs_error(static_cast<double>(random() % 100));
          largest[mode] = std::max(largest[mode], verdict.max_abs_error());
          const auto [known, is_new] = worst[mode].try_emplace(verdict.iteration(), verdict.outcome());
          if (SeverityOf(verdict.outcome()) > SeverityOf(known->second)) known->second = verdict.outcome();
          verdicts.push_back(verdict);
        }
      }
      Log(rank, verdicts);
    }
    const CheckHistories histories = Read({0, 1, 2});
    EXPECT_THAT(histories.problems, IsEmpty());
    const std::pair<CrossCheckMode, const CheckHistory*> all[] = {
        {REPLICAS, &histories.replicas}, {REFERENCE, &histories.reference}, {DISTINCT, &histories.distinct}};
    for (const auto& [mode, history] : all) {
      std::map<int64_t, Outcome> is;
      for (const CrossCheckVerdict& verdict : history->verdicts)
        is[verdict.iteration()] = OutcomeOfAllRanks(verdict);
      EXPECT_EQ(is, worst[mode]) << trial;
      EXPECT_EQ(history->summary.num_checks, worst[mode].size());
      EXPECT_EQ(history->summary.max_abs_error, largest[mode]) << trial;
      const auto first = std::find_if(worst[mode].begin(), worst[mode].end(),
                                      [](const auto& of) { return of.second == DIFFERENT; });
      ASSERT_EQ(history->first_divergence() == nullptr, first == worst[mode].end()) << trial;
      if (first != worst[mode].end()) {
        EXPECT_EQ(history->first_divergence()->iteration(), first->first);
      }
      const Answer answer = mode == REPLICAS    ? AnswerReplicas(histories)
                            : mode == REFERENCE ? AnswerReference(histories)
                                                : AnswerDistinct(histories);
      if (is.empty()) {
        EXPECT_EQ(answer.finding(), Answer().finding());
        EXPECT_THAT(answer.sentences(0), HasSubstr("Not checked while it ran"));
        EXPECT_THAT(answer.pictures(), IsEmpty());
        continue;
      }
      bool is_known = true;
      for (const auto& [iteration, outcome] : is) is_known = is_known && outcome != NOT_COMPARED;
      EXPECT_EQ(answer.finding(), first != worst[mode].end() ? Answer::BAD
                                  : is_known                 ? Answer::GOOD
                                                             : Answer::CANNOT_TELL)
          << trial;
      EXPECT_THAT(answer.how_sure(), testing::StartsWith("4 checks from iteration 0 to 30"));
      EXPECT_EQ(answer.pictures(0), "checks");
      if (first != worst[mode].end()) {
        EXPECT_THAT(answer.sentences(1), testing::StartsWith("first: "));
      }
    }
  }
}

TEST_F(CheckHistoryTest, WhatIsMissingIsSaid) {
  const auto equal = [](int rank, int64_t iteration) {
    return Verdict(REPLICAS, iteration, rank, BITWISE_EQUAL);
  };
  Log(0, {equal(0, 0), equal(0, 10), equal(0, 20)});
  Log(1, {equal(1, 0), equal(1, 10)});  // a check behind
  EXPECT_THAT(Read({0, 1}).problems, IsEmpty());
  EXPECT_EQ(AnswerReplicas(Read({0, 1})).how_sure(),
            "3 checks from iteration 0 to 20, by 128-bit digests of every tensor that is compared");
  Log(1, {equal(1, 0)});
  Log(2, {});
  EXPECT_THAT(Read({0, 1, 2}).problems,
              ElementsAre("verdicts of rank 2 end before the first, those of others at 20",
                          "verdicts of rank 1 end at iteration 0, those of others at 20"));
  // Without run.json all ranks that have a folder are meant.
  std::filesystem::remove(RankDirectory(run_, 1) + "/cross_check.jsonl");
  EXPECT_THAT(ReadCheckHistories(run_, {0, 1, 2}, std::nullopt)->problems,
              testing::Contains("verdicts of 2 of 3 ranks, those of ranks 0, 2"));
  RunInfo info = *info_;
  EXPECT_THAT(ReadCheckHistories(run_, {0, 1, 2}, info)->problems,
              testing::Not(testing::Contains(HasSubstr("of 3 ranks"))));
  info.mutable_config()->mutable_cross_check();
  EXPECT_THAT(ReadCheckHistories(run_, {0, 1, 2}, info)->problems,
              testing::Contains("verdicts of 2 of 3 ranks, those of ranks 0, 2"));
  // A line that was cut, and one of another version.
  std::ofstream(RankDirectory(run_, 2) + "/cross_check.jsonl")
      << VerdictToJsonLine(equal(2, 20))
      << "{\"iteration\": 30, \"future\": 1}\n{\"iteration\": 30, \"future\": 1}\n{\"itera";
  EXPECT_THAT(Read({0, 2}).problems,
              ElementsAre(HasSubstr("of another version: "), HasSubstr("cross_check.jsonl: line 4: ")));
  std::ofstream(OmittedVerdictsPath(RankDirectory(run_, 0) + "/cross_check.jsonl"))
      << R"({"first_iteration": 7, "num_checks": 3, "num_different": 2, "num_not_compared": 1})";
  EXPECT_EQ(Read({0}).problems.at(0),
            "rank 0: cross_check.jsonl was full; from iteration 7 on 3 checks are only counted, of which 2 "
            "DIFFER and "
            "1 are NOT COMPARED");
}

TEST(FindingOfOutcome, IsGoodOnlyIfItIsKnown) {
  for (const Outcome outcome : {BITWISE_EQUAL, WITHIN_TOLERANCE, ALL_DISTINCT})
    EXPECT_EQ(FindingOfOutcome(outcome), Answer::GOOD);
  EXPECT_EQ(FindingOfOutcome(DIFFERENT), Answer::BAD);
  EXPECT_EQ(FindingOfOutcome(NOT_COMPARED), Answer::CANNOT_TELL);
}

}  // namespace
}  // namespace ott::crosscheck
