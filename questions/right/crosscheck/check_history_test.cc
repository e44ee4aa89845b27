// Verdicts of random ranks in random iterations, and what is read of their logs.

#include "ott/questions/right/crosscheck/check_history.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/check/verdict.h"
#include "ott/dist/comm/rank_list.h"
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
    std::vector<std::string> header = {"max abs error, of all ranks", "from iteration"};
    std::vector<int64_t> columns = all;
    if (all.size() > 6) columns.clear();
    for (size_t i = 0; columns.size() < 6 && all.size() > 6; ++i)
      columns.push_back(all[i * (all.size() - 1) / 5]);
    for (const int64_t iteration : columns) header.push_back(absl::StrCat("at ", iteration));
    TextTable table(header);
    for (size_t i = 0; i < std::min<size_t>(names.size(), 20); ++i) {
      const std::map<int64_t, double>& of_tensor = errors[names[i]];
      std::vector<std::string> cells = {names[i], absl::StrCat(of_tensor.begin()->first)};
      for (const int64_t iteration : columns) {
        const auto found = of_tensor.find(iteration);
        const double error = found == of_tensor.end() ? 0 : found->second;
        cells.push_back(std::isnan(error) ? "not compared" : absl::StrFormat("%.3g", error));
      }
      table.AddRow(cells);
    }
    const std::string more =
        names.size() > 20 ? absl::StrCat("and ", names.size() - 20, " more tensors\n") : "";
    EXPECT_EQ(trend.ToString(), names.empty() ? "" : table.ToString() + more) << trial;
  }
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

// The place of a verdict among those of one check: the worst over all ranks is kept, then the worst of a
// rank.
std::tuple<int, int, int64_t, int> Place(const CrossCheckVerdict& verdict, bool by_own, bool by_position) {
  return {by_own ? 0 : -SeverityOf(OutcomeOfAllRanks(verdict)), -SeverityOf(verdict.outcome()),
          by_position ? verdict.tensor_position() : 0, verdict.rank()};
}

// Returns the verdict that is kept. Against a reference, a rank's own verdict comes before one that it heard,
// and the first tensor before the lowest rank.
CrossCheckVerdict Kept(const std::vector<CrossCheckVerdict>& verdicts) {
  const auto first = [&](bool by_own) {
    return *std::min_element(verdicts.begin(), verdicts.end(), [&](const auto& a, const auto& b) {
      return Place(a, by_own, by_own) < Place(b, by_own, by_own);
    });
  };
  const CrossCheckVerdict heard = first(false), found = first(true);
  const bool is_found = SeverityOf(found.outcome()) == SeverityOf(OutcomeOfAllRanks(heard));
  return heard.mode() == REFERENCE && is_found ? found : heard;
}

TEST_F(CheckHistoryTest, OfEachIterationTheWorstOfAnyRankIsKept) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 100; ++trial) {
    std::map<CrossCheckMode, std::map<int64_t, std::vector<CrossCheckVerdict>>> all;
    std::map<CrossCheckMode, double> largest;
    std::map<int64_t, std::vector<int>> ends;  // the ranks whose verdicts end there
    std::set<int64_t> iterations;
    bool has_errors = false;
    for (int rank = 0; rank < 3; ++rank) {
      std::vector<CrossCheckVerdict> log;
      int64_t last = -1;
      for (int64_t i = 0; i < static_cast<int64_t>(trial % 2 == 0 ? 4 : random() % 5); ++i) {
        for (const CrossCheckMode mode : {REPLICAS, REFERENCE, DISTINCT}) {
          if (random() % 5 == 0 || (mode == DISTINCT && trial % 3 == 0)) continue;
          CrossCheckVerdict verdict = Verdict(mode, 10 * i, rank, kOutcomes[random() % 4]);
          if (mode == DISTINCT && Passed(verdict)) verdict.set_outcome(ALL_DISTINCT);
          if (random() % 2 == 0) verdict.set_worst_outcome(random() % 3 == 0 ? DIFFERENT : verdict.outcome());
          verdict.set_tensor_position(static_cast<int64_t>(random() % 2));
          verdict.set_atol(static_cast<double>(random() % 8));
          verdict.set_rtol(static_cast<double>(random() % 8));
          verdict.set_max_abs_error(static_cast<double>(random() % 100));
          if (random() % 20 == 0) verdict.add_tensor_errors()->set_tensor("w");
          has_errors = has_errors || (mode == REFERENCE && verdict.tensor_errors_size() > 0);
          largest[mode] = std::max(largest[mode], verdict.max_abs_error());
          all[mode][verdict.iteration()].push_back(verdict);
          iterations.insert(verdict.iteration());
          last = std::max(last, verdict.iteration());
          log.push_back(verdict);
        }
      }
      std::shuffle(log.begin(), log.end(), random);
      ends[last].push_back(rank);
      Log(rank, log);
    }
    const CheckHistories histories = Read({0, 1, 2});
    std::vector<std::string> problems;
    for (const auto& [end, ranks] : ends) {
      if (iterations.size() < 2 || end >= *std::next(iterations.rbegin())) continue;
      problems.push_back(absl::StrCat("verdicts of ", FormatRanks(ranks), " end ",
                                      end < 0 ? "before the first" : absl::StrCat("at iteration ", end),
                                      ", those of others at ", *iterations.rbegin()));
    }
    EXPECT_EQ(histories.problems, problems) << trial;
    for (const auto& [name, history] : NamedHistories(histories)) {
      const CrossCheckMode mode = name == "replicas" ? REPLICAS : name == "distinct" ? DISTINCT : REFERENCE;
      const Answer answer = mode == REPLICAS    ? AnswerReplicas(histories)
                            : mode == REFERENCE ? AnswerReference(histories)
                                                : AnswerDistinct(histories);
      EXPECT_EQ(history->summary.num_checks, all[mode].size());
      ASSERT_EQ(history->verdicts.size(), all[mode].size());
      if (all[mode].empty()) {
        EXPECT_EQ(answer.finding(), Answer().finding());
        EXPECT_THAT(answer.sentences(0), HasSubstr("Not checked while it ran"));
        EXPECT_EQ(answer.how_sure(), "");
        EXPECT_THAT(answer.pictures(), IsEmpty());
        continue;
      }
      EXPECT_EQ(history->summary.max_abs_error, largest[mode]) << trial;
      const CrossCheckVerdict* first = nullptr;
      Answer::Finding finding = Answer::GOOD;
      auto verdict = history->verdicts.begin();
      for (const auto& [iteration, of_ranks] : all[mode]) {
        const CrossCheckVerdict expected = Kept(of_ranks);
        EXPECT_EQ(verdict->iteration(), iteration);
        EXPECT_EQ(verdict->rank(), expected.rank()) << trial;
        EXPECT_EQ(verdict->outcome(), expected.outcome()) << trial;
        EXPECT_EQ(verdict->tensor_errors_size(), 0);
        const Outcome outcome = OutcomeOfAllRanks(*verdict);
        EXPECT_EQ(SeverityOf(outcome), -std::get<0>(Place(expected, false, false))) << trial;
        if (outcome == DIFFERENT && first == nullptr) first = &*verdict;
        if (outcome == NOT_COMPARED && first == nullptr) finding = Answer::CANNOT_TELL;
        if (outcome == DIFFERENT) finding = Answer::BAD;
        ++verdict;
      }
      EXPECT_EQ(history->first_divergence(), first);
      EXPECT_EQ(answer.finding(), finding) << trial;
      Answer evidence;
      SetEvidence(first != nullptr ? *first : history->verdicts.back(), &evidence);
      EXPECT_EQ(answer.evidence(), evidence.evidence());
      if (first != nullptr) {
        EXPECT_THAT(answer.sentences(1), testing::StartsWith("first: "));
      }
      const CrossCheckVerdict& last = history->verdicts.back();
      const auto num_checks = all[mode].size();
      const int64_t begin = all[mode].begin()->first;
      EXPECT_EQ(answer.how_sure(),
                absl::StrCat(num_checks, num_checks == 1 ? " check" : " checks",
                             begin == last.iteration()
                                 ? absl::StrCat(" at iteration ", begin)
                                 : absl::StrCat(" from iteration ", begin, " to ", last.iteration()),
                             mode == REPLICAS    ? ", by 128-bit digests of every tensor that is compared"
                             : mode == REFERENCE ? absl::StrCat(", of every element, within atol ",
                                                                last.atol(), " and rtol ", last.rtol())
                                                 : ""));
      EXPECT_EQ(answer.pictures(0), "checks");
      EXPECT_EQ(answer.pictures_size(), mode == REFERENCE && has_errors ? 2 : 1);
    }
  }
}

TEST_F(CheckHistoryTest, WhatIsMissingIsSaid) {
  const auto equal = [](int rank, int64_t iteration) {
    return Verdict(REPLICAS, iteration, rank, BITWISE_EQUAL);
  };
  Log(0, {equal(0, 0)});
  Log(2, {equal(2, 0)});
  // Without run.json all ranks that have a folder are meant.
  EXPECT_THAT(ReadCheckHistories(run_, {0, 1, 2}, std::nullopt)->problems,
              ElementsAre("verdicts of 2 of 3 ranks, those of ranks 0, 2"));
  RunInfo info = *info_;
  EXPECT_THAT(ReadCheckHistories(run_, {0, 1, 2}, info)->problems, IsEmpty());
  info.mutable_config()->mutable_cross_check();
  info.set_world_size(4);
  EXPECT_THAT(ReadCheckHistories(run_, {0, 1, 2}, info)->problems,
              ElementsAre("verdicts of 2 of 4 ranks, those of ranks 0, 2"));
  // A line that was cut, and one of another version.
  std::ofstream(RankDirectory(run_, 2) + "/cross_check.jsonl")
      << VerdictToJsonLine(equal(2, 20))
      << "{\"iteration\": 30, \"future\": 1}\n{\"iteration\": 30, \"future\": 1}\n{\"itera";
  EXPECT_THAT(Read({0, 2}).problems,
              ElementsAre(HasSubstr("of another version: "), HasSubstr("cross_check.jsonl: line 4: "),
                          HasSubstr("verdicts of rank 0 end at iteration 0, ")));
  // Verdicts that had no room, or cannot be read, are noted.
  const std::string omitted = OmittedVerdictsPath(RankDirectory(run_, 0) + "/cross_check.jsonl");
  std::ofstream(omitted)
      << R"({"first_iteration": 7, "num_checks": 3, "num_different": 2, "num_not_compared": 1})";
  EXPECT_EQ(Read({0}).problems.at(0),
            "rank 0: cross_check.jsonl was full; from iteration 7 on 3 checks are only counted, of which 2 "
            "DIFFER and 1 are NOT COMPARED");
  std::ofstream(omitted) << "{";
  EXPECT_THAT(Read({0}).problems, ElementsAre(HasSubstr(omitted + ": ")));
  for (const std::string& path : {omitted, RankDirectory(run_, 0) + "/cross_check.jsonl"}) {
    std::filesystem::remove(path);
    std::filesystem::create_directories(path);
  }
  EXPECT_THAT(Read({0}).problems, ElementsAre(HasSubstr(omitted), HasSubstr("cross_check.jsonl: ")));
}

}  // namespace
}  // namespace ott::crosscheck
