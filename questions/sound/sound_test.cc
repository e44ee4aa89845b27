// Verdicts of the records of ranks.

#include "ott/questions/sound/sound.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/sound/sound_answer.h"

namespace ott::sound {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

SoundRecord MakeRecord() {
  SoundRecord record;
  record.set_num_iterations(4);
  SoundRule* const rule = record.add_rules();
  rule->set_name("rates");
  rule->set_must_hold("Rates are equal.");
  rule->set_num_checks(4);
  return record;
}

SoundRecord RecordOf(std::vector<std::string> values, bool is_distinct = false) {
  SoundRecord record = MakeRecord();
  SoundFact* const fact = record.add_facts();
  fact->set_rule("rates");
  fact->set_name("learning rates");
  fact->set_is_distinct(is_distinct);
  for (size_t i = 0; i < values.size(); ++i) {
    fact->add_iterations(static_cast<int64_t>(i));
    fact->add_values(std::move(values[i]));
  }
  return record;
}

SoundRecord ResultsOf(const std::string& name, std::vector<std::string> values) {
  SoundRecord record = RecordOf(std::move(values));
  record.mutable_facts(0)->set_name(name);
  record.mutable_facts(0)->set_is_result(true);
  return record;
}

TEST(Sound, RulesThatHoldAreSoundAndWhatWasNotCheckedIsSaid) {
  SoundRecord record = MakeRecord();
  record.add_rules()->set_name("modes");
  record.mutable_rules(1)->set_num_checks(1);
  record.mutable_rules(1)->set_not_checked("torch.compile() shows no modules");
  const SoundVerdict verdict = JudgeSound({{0, record}}, 1, {});
  EXPECT_EQ(verdict.kind(), SoundVerdict::SOUND);
  EXPECT_EQ(ToText(verdict),
            "sound in what was checked: 2 rules, 4 iterations, 1 rank\n"
            "not checked: modes: torch.compile() shows no modules\n");
}

TEST(Sound, OfListsTheFindingHasThePartsThatDiffer) {
  const auto seen = [](const std::string& a, const std::string& b) {
    return JudgeSound({{0, RecordOf({a})}, {1, RecordOf({b})}, {2, RecordOf({a})}}, 3, {}).findings(0).seen();
  };
  EXPECT_EQ(seen("lr 1, decay 2, eps 3#a", "lr 1, decay 4, eps 3#b"), "ranks 0, 2: decay 2; rank 1: decay 4");
  // All of it where the difference is not shown, and where the lists have other lengths.
  EXPECT_EQ(seen("lr 1, decay 2#a", "lr 1, decay 2#b"), "ranks 0, 2: lr 1, decay 2; rank 1: lr 1, decay 2");
  EXPECT_EQ(seen("lr 1, decay 2", "lr 1"), "rank 1: lr 1; ranks 0, 2: lr 1, decay 2");
  EXPECT_EQ(seen("lr 1, decay 2", "lr 3"), "ranks 0, 2: lr 1, decay 2; rank 1: lr 3");
}

// The definition: to blame are the ranks that are not with the majority, or all.
struct Minority {
  std::vector<int> ranks;
  std::string seen;
};

Minority MinorityOf(const std::map<std::string, std::vector<int>>& ranks_of, const std::string& after = "") {
  Minority minority;
  size_t num_ranks = 0, most = 0;
  for (const auto& [value, ranks] : ranks_of) {
    num_ranks += ranks.size();
    most = std::max(most, ranks.size());
  }
  const bool has_majority = 2 * most > num_ranks;
  for (const auto& [value, ranks] : ranks_of) {
    absl::StrAppend(&minority.seen, minority.seen.empty() ? "" : "; ", ranks.size() == 1 ? "rank " : "ranks ",
                    absl::StrJoin(ranks, ", "), ": ", value);
    if (!has_majority || ranks.size() < most)
      minority.ranks.insert(minority.ranks.end(), ranks.begin(), ranks.end());
  }
  std::sort(minority.ranks.begin(), minority.ranks.end());
  absl::StrAppend(&minority.seen, after,
                  has_majority ? "" : " (no majority: none of them is to blame by itself)");
  return minority;
}

TEST(Sound, WhatEachRankFoundIsJoinedAndWhatNoneLookedAtIsSaid) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 1000; ++trial) {
    const int num_ranks = 1 + static_cast<int>(random() % 4);
    const std::string silenced = random() % 3 == 0 ? "b" : "none";
    SoundConfig config;
    config.add_silence(silenced);
    std::map<int, SoundRecord> records;
    std::vector<int> missing;
    std::map<std::tuple<int64_t, std::string, std::string, std::string>, std::set<int>> ranks_of;
    std::map<std::string, SoundRule> rules;
    int64_t num_iterations = 9;
    for (int rank = 0; rank < num_ranks; ++rank) {
      if (random() % 6 == 0) {
        missing.push_back(rank);
        continue;
      }
      SoundRecord& record = records[rank];
      record.set_num_iterations(random() % 5);
      num_iterations = std::min(num_iterations, record.num_iterations());
      for (const char* const name : {"a", "b"}) {
        if (random() % 4 == 0) continue;
        SoundRule& rule = *record.add_rules();
        rule.set_name(name);
        rule.set_num_checks(random() % 3);
        if (random() % 4 == 0) rule.set_not_checked(absl::StrCat("was off on rank ", rank));
        SoundRule& of_all = rules[name];
        of_all.set_num_checks(silenced == name ? 0 : std::max(of_all.num_checks(), rule.num_checks()));
        if (of_all.not_checked().empty()) of_all.set_not_checked(rule.not_checked());
      }
      for (size_t left = random() % 4 == 0 ? random() % 4 : 0; left > 0; --left) {
        SoundFinding& finding = *record.add_findings();
        finding.set_rule(random() % 2 == 0 ? "a" : "b");
        finding.set_iteration(random() % 2);
        finding.set_place(random() % 2 == 0 ? "" : "step.py");
        finding.add_names(random() % 2 == 0 ? "v" : "w");
        if (silenced == finding.rule()) continue;
        ranks_of[{finding.iteration(), finding.rule(), finding.place(), finding.names(0)}].insert(rank);
      }
    }
    const SoundVerdict verdict = JudgeSound(records, num_ranks, config);
    EXPECT_EQ(verdict.num_ranks(), num_ranks);
    EXPECT_THAT(verdict.silenced(), ElementsAreArray(config.silence()));
    if (records.empty()) {
      EXPECT_EQ(verdict.kind(), SoundVerdict::NOT_LOOKED_AT);
      EXPECT_EQ(AnswerSound(verdict).finding(), Answer::NOT_ASKED);
      continue;
    }
    decltype(ranks_of) found;
    int64_t before = 0;
    for (const SoundFinding& finding : verdict.findings()) {
      EXPECT_GE(finding.iteration(), before) << "the first iteration comes first";
      before = finding.iteration();
      found[{before, finding.rule(), finding.place(), finding.names(0)}].insert(finding.ranks().begin(),
                                                                                finding.ranks().end());
    }
    EXPECT_EQ(found, ranks_of);
    EXPECT_EQ(verdict.findings_size(), static_cast<int>(ranks_of.size())) << "each stands once";
    EXPECT_EQ(verdict.num_iterations(), num_iterations);
    EXPECT_THAT(verdict.missing_ranks(), ElementsAreArray(missing));
    ASSERT_EQ(verdict.rules_size(), static_cast<int>(rules.size()));
    bool looked = false;
    for (const SoundRule& rule : verdict.rules()) {
      looked = looked || (rule.num_checks() > 0 && num_iterations > 0);
      EXPECT_EQ(rule.num_checks(), rules[rule.name()].num_checks());
      EXPECT_EQ(rule.not_checked(), rules[rule.name()].not_checked());
    }
    EXPECT_EQ(verdict.kind(), !ranks_of.empty()           ? SoundVerdict::UNSOUND
                              : looked && missing.empty() ? SoundVerdict::SOUND
                                                          : SoundVerdict::CANNOT_TELL);
  }
}

// The definition: of the iterations that all ranks have, the first in which they differ.
TEST(Sound, RandomFactsAreJudgedByTheFirstIterationThatAllHave) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 500; ++trial) {
    const int num_ranks = 2 + static_cast<int>(random() % 4);
    const int first = static_cast<int>(random() % 3);
    std::map<int, SoundRecord> records;
    std::vector<std::map<int, std::string>> values(num_ranks);
    for (int rank = 0; rank < num_ranks; ++rank) {
      records[rank] = RecordOf({});
      SoundFact& fact = *records[rank].mutable_facts(0);
      for (int iteration = first; iteration < first + 6; ++iteration) {
        if (random() % 8 == 0) continue;
        values[rank][iteration] = random() % 6 > 0 ? "1" : random() % 2 == 0 ? "2" : "3";
        fact.add_iterations(iteration);
        fact.add_values(values[rank][iteration]);
      }
      // A value without its iteration is none, and the other way round.
      if (random() % 4 == 0) fact.add_values("3");
      if (random() % 4 == 0) fact.add_iterations(first + 6);
    }
    // One that recorded nothing of it leaves the others to be judged.
    const bool is_one_without = random() % 4 == 0;
    if (is_one_without) records[num_ranks] = MakeRecord();
    // The reason that a rank itself gives comes first.
    const bool was_off = random() % 4 == 0;
    if (was_off) records[1].mutable_rules(0)->set_not_checked("it was off");
    SoundConfig silenced;
    silenced.add_silence("rates");
    EXPECT_EQ(JudgeSound(records, num_ranks + is_one_without, silenced).kind(), SoundVerdict::CANNOT_TELL);
    const SoundVerdict verdict = JudgeSound(records, num_ranks + is_one_without, {});
    EXPECT_EQ(verdict.rules(0).not_checked(),
              was_off ? "it was off"
              : is_one_without
                  ? absl::StrCat("only ", num_ranks, " of ", num_ranks + 1, " ranks recorded learning rates")
                  : "");
    int before = -1, iteration = first;
    std::map<std::string, std::vector<int>> ranks_of;
    for (; iteration < first + 6; ++iteration) {
      ranks_of.clear();
      for (int rank = 0; rank < num_ranks; ++rank) {
        const auto found = values[rank].find(iteration);
        if (found != values[rank].end()) ranks_of[found->second].push_back(rank);
      }
      size_t num_there = 0;
      for (const auto& [value, ranks] : ranks_of) num_there += ranks.size();
      if (num_there < values.size()) continue;
      if (ranks_of.size() > 1) break;
      before = iteration;
    }
    if (iteration == first + 6) {
      EXPECT_EQ(verdict.kind(), SoundVerdict::SOUND) << trial;
      continue;
    }
    EXPECT_EQ(verdict.kind(), SoundVerdict::UNSOUND) << trial;
    ASSERT_EQ(verdict.findings_size(), 1) << trial;
    const SoundFinding& finding = verdict.findings(0);
    EXPECT_EQ(finding.rule(), "rates");
    EXPECT_THAT(finding.names(), ElementsAre("learning rates"));
    EXPECT_EQ(finding.iteration(), iteration) << trial;
    const Minority minority = MinorityOf(ranks_of);
    EXPECT_THAT(finding.ranks(), ElementsAreArray(minority.ranks)) << trial;
    EXPECT_EQ(finding.seen(),
              absl::StrCat(minority.seen, before >= 0 && iteration > before + 1
                                              ? absl::StrCat("; looked at last in iteration ", before)
                                              : ""));
  }
}

TEST(Sound, TheAnswerNamesRuleIterationRanksTensorsAndPlace) {
  SoundVerdict verdict;
  verdict.set_kind(SoundVerdict::UNSOUND);
  verdict.set_num_ranks(40);
  verdict.set_num_iterations(1);
  verdict.add_silenced("modes");
  verdict.add_silenced("data");
  SoundRule& rule = *verdict.add_rules();
  rule.set_name("rates");
  rule.set_must_hold("Rates are equal.");
  rule.set_advice("Look.");
  rule.set_num_checks(1);
  SoundFinding& all = *verdict.add_findings();
  all.set_rule("rates");
  for (int rank = 0; rank < 40; ++rank) all.add_ranks(rank);
  SoundFinding& some = *verdict.add_findings();
  some.set_rule("rates");
  some.set_iteration(3);
  for (int rank = 10; rank < 28; ++rank) some.add_ranks(rank);
  for (const char* const name : {"a", "b", "c", "d", "e", "f"}) some.add_names(name);
  some.set_place("step.py:3");
  some.set_seen("they differ");
  SoundFinding& one = *verdict.add_findings();
  one.set_rule("unknown");
  one.add_ranks(30);
  for (const char* const name : {"a", "b", "c", "d"}) one.add_names(name);
  const std::string lines[] = {
      "rates since iteration 0 on all 40 ranks",
      "rates since iteration 3 on ranks 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, "
      "22, 23, 24, 25 and 2 more: a, b, c, d and 2 more, step.py:3: they differ",
      "unknown since iteration 0 on rank 30: a, b, c, d"};
  const std::string meant = "  If it is meant: sound { silence: \"";
  EXPECT_EQ(ToText(verdict), absl::StrCat(lines[0], "\n  Rates are equal.\n  Look.\n", meant,
                                          "rates\" } in the configuration.\n", lines[1], "\n", lines[2], "\n",
                                          meant, "unknown\" } in the configuration.\n",
                                          "checked: 1 rule, 1 iteration, 40 ranks\nsilenced: modes, data\n"));
  const Answer answer = AnswerSound(verdict);
  EXPECT_EQ(answer.evidence(), verdict.SerializeAsString());
  EXPECT_EQ(answer.finding(), Answer::BAD);
  EXPECT_THAT(answer.sentences(), ElementsAre(lines[0], lines[1], lines[2], "silenced: modes, data"));
  EXPECT_EQ(answer.how_sure(), "by rules that hold in every sound step: 1 rule, 1 iteration, 40 ranks");
  // A fault of all ranks singles out none of them.
  std::vector<int> blamed;
  for (int rank = 10; rank < 28; ++rank) blamed.push_back(rank);
  blamed.push_back(30);
  EXPECT_THAT(answer.ranks(), ElementsAreArray(blamed));
  verdict.set_kind(SoundVerdict::CANNOT_TELL);
  EXPECT_EQ(AnswerSound(verdict).finding(), Answer::CANNOT_TELL);
  EXPECT_THAT(ToText(verdict), HasSubstr("cannot tell: no rule was looked at\n"));
  verdict.set_num_iterations(0);
  EXPECT_THAT(ToText(verdict), HasSubstr("cannot tell: no iteration was looked at\n"));
  for (int rank = 7; rank < 9000; ++rank) verdict.add_missing_ranks(rank);
  EXPECT_THAT(ToText(verdict), HasSubstr("cannot tell: not all ranks left a record\n"
                                         "not checked: ranks 7-8999 left no record"));
}

TEST(Sound, RecordsOfARunAreReadAndThoseThatCannotBeAreNamed) {
  const std::string run = testing::TempDir() + "/sound_run";
  std::filesystem::remove_all(run);
  RunInfo info;
  info.set_world_size(4);
  const auto write = [&](int rank, const std::string& json) {
    std::filesystem::create_directories(RankDirectory(run, rank));
    std::ofstream(SoundPath(run, rank)) << json;
  };
  std::vector<std::string> problems;
  EXPECT_EQ(JudgeSoundOf(run, &problems).kind(), SoundVerdict::NOT_LOOKED_AT);
  EXPECT_EQ(problems.size(), 2);
  std::filesystem::create_directories(run);
  ASSERT_TRUE(WriteRunInfo(run, info).ok());
  const std::string rule = R"("rules": [{"name": "rates", "num_checks": 3}]})";
  write(0, R"({"num_iterations": 3, )" + rule);
  write(1, R"({"num_iterations": 2, "colour": 1, )" + rule);
  write(2, "{");
  std::filesystem::create_directories(RankDirectory(run, 3));
  problems.clear();
  const SoundVerdict verdict = JudgeSoundOf(run, &problems);
  EXPECT_EQ(verdict.kind(), SoundVerdict::CANNOT_TELL);
  EXPECT_EQ(verdict.num_ranks(), 4);
  EXPECT_EQ(verdict.num_iterations(), 2);
  EXPECT_THAT(verdict.missing_ranks(), ElementsAre(2, 3));
  EXPECT_THAT(problems,
              ElementsAre(HasSubstr(SoundPath(run, 1) + ": "), HasSubstr(SoundPath(run, 2) + ": ")));
  for (const int rank : {2, 3}) write(rank, R"({"num_iterations": 3, )" + rule);
  problems.clear();
  EXPECT_EQ(JudgeSoundOf(run, &problems).kind(), SoundVerdict::SOUND);
  info.mutable_config()->mutable_sound()->add_silence("rates");
  ASSERT_TRUE(WriteRunInfo(run, info).ok());
  EXPECT_EQ(JudgeSoundOf(run, &problems).kind(), SoundVerdict::CANNOT_TELL);
  info.mutable_config()->mutable_sound()->set_off(true);
  ASSERT_TRUE(WriteRunInfo(run, info).ok());
  EXPECT_EQ(JudgeSoundOf(run, &problems).kind(), SoundVerdict::NOT_LOOKED_AT);
}

// The definition: ranks that have the same in two iterations in a row, between which it changed, and that
// were not all together in such a group before. 'd' is no data.
std::set<std::pair<int, std::vector<int>>> GroupsThatShare(const std::vector<std::string>& data) {
  std::set<std::pair<int, std::vector<int>>> groups;
  for (int i = 0; i + 1 < static_cast<int>(data[0].size()); ++i) {
    for (char first = 'a'; first <= 'c'; ++first) {
      for (char second = 'a'; second <= 'd'; ++second) {
        std::vector<int> ranks;
        for (size_t rank = 0; rank < data.size(); ++rank) {
          if (data[rank][i] == first && data[rank][i + 1] == second) ranks.push_back(static_cast<int>(rank));
        }
        const bool is_known = std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
          return group.first < i &&
                 std::includes(group.second.begin(), group.second.end(), ranks.begin(), ranks.end());
        });
        if (first != second && ranks.size() > 1 && !is_known) groups.insert({i, ranks});
      }
    }
  }
  return groups;
}

TEST(Sound, AllGroupsOfRanksWithTheSameDataAreNamed) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<std::string> data(2 + random() % 6);
    std::map<int, SoundRecord> records;
    for (std::string& of_rank : data) {
      std::vector<std::string> values;
      for (int i = 0; i < 4; ++i) {
        of_rank += static_cast<char>('a' + random() % 4);
        values.emplace_back(of_rank.back() == 'd' ? 0 : 1, of_rank.back());
      }
      records[static_cast<int>(&of_rank - data.data())] = RecordOf(values, /*is_distinct=*/true);
    }
    std::map<int, std::pair<std::set<int>, std::vector<std::string>>> expected;
    for (const auto& [iteration, ranks] : GroupsThatShare(data)) {
      auto& [all_ranks, seen] = expected[iteration];
      all_ranks.insert(ranks.begin(), ranks.end());
      seen.push_back(absl::StrCat("ranks ", absl::StrJoin(ranks, ", "), ": the same in iterations ",
                                  iteration, " and ", iteration + 1));
    }
    const SoundVerdict verdict = JudgeSound(records, static_cast<int>(data.size()), {});
    ASSERT_EQ(verdict.findings_size(), static_cast<int>(expected.size()));
    auto finding = verdict.findings().begin();
    for (const auto& [iteration, ranks_and_seen] : expected) {
      EXPECT_EQ(finding->iteration(), iteration);
      EXPECT_THAT(finding->ranks(), ElementsAreArray(ranks_and_seen.first));
      const std::vector<std::string> seen = absl::StrSplit(finding->seen(), "; ");
      EXPECT_THAT(seen, UnorderedElementsAreArray(ranks_and_seen.second));
      ++finding;
    }
  }
}

TEST(Sound, EachGroupOfAFactSaysWhatItsRanksHave) {
  std::map<int, SoundRecord> records;
  for (const int rank : {0, 1, 2, 3}) {
    records[rank] = RecordOf({absl::StrCat(rank)});
    for (const int other : {0, 2}) records[rank].mutable_facts(0)->add_group(rank % 2 + other);
  }
  const SoundVerdict verdict = JudgeSound(records, 4, {});
  ASSERT_EQ(verdict.findings_size(), 1);
  EXPECT_THAT(verdict.findings(0).ranks(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(verdict.findings(0).seen(),
              AllOf(HasSubstr("rank 0: 0; rank 2: 2"), HasSubstr("rank 1: 1; rank 3: 3")));
}

// The definition: the first iteration in which ranks that were given the same have other results.
TEST(Sound, RanksHaveTheSameResultsOfTheSame) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<std::vector<std::string>> values(2 + random() % 4);
    std::optional<Minority> expected;
    int iteration = -1;
    for (int i = 0; i < 3; ++i) {
      std::map<std::string, std::map<std::string, std::vector<int>>> by_given;
      for (size_t rank = 0; rank < values.size(); ++rank) {
        const std::string given = std::vector<std::string>{"", "a", "a", "b"}[random() % 4];
        const std::string result = random() % 3 > 0 ? "1 of it" : absl::StrCat(random() % 3);
        values[rank].push_back(absl::StrCat(given, " ", result));
        if (!given.empty()) by_given[given][result].push_back(static_cast<int>(rank));
      }
      for (const auto& [given, ranks_of] : by_given) {
        if (expected || ranks_of.size() < 2) continue;
        expected = MinorityOf(ranks_of, ", of the same");
        iteration = i;
      }
    }
    std::map<int, SoundRecord> records;
    for (const std::vector<std::string>& of_rank : values)
      records[static_cast<int>(records.size())] = ResultsOf("norm.weight", of_rank);
    const SoundVerdict verdict = JudgeSound(records, static_cast<int>(records.size()), {});
    ASSERT_EQ(verdict.findings_size(), expected ? 1 : 0);
    if (!expected) continue;
    EXPECT_EQ(verdict.findings(0).iteration(), iteration);
    EXPECT_THAT(verdict.findings(0).ranks(), ElementsAreArray(expected->ranks));
    EXPECT_EQ(verdict.findings(0).seen(), expected->seen);
  }
}

TEST(Sound, OtherResultsOfSeveralTensorsAreOneFindingAndOtherFactsAreSeveral) {
  SoundRecord one = ResultsOf("norm.weight", {"a 1"});
  SoundRecord two = ResultsOf("norm.weight", {"a 2"});
  one.mutable_facts()->Add()->CopyFrom(ResultsOf("norm.bias", {"d 1"}).facts(0));
  two.mutable_facts()->Add()->CopyFrom(ResultsOf("norm.bias", {"d 2"}).facts(0));
  const SoundVerdict verdict = JudgeSound({{0, one}, {1, two}}, 2, {});
  ASSERT_EQ(verdict.findings_size(), 1);
  EXPECT_THAT(verdict.findings(0).names(), ElementsAre("norm.bias", "norm.weight"));
  for (SoundRecord* record : {&one, &two}) {
    for (SoundFact& fact : *record->mutable_facts()) fact.set_is_result(false);
  }
  EXPECT_EQ(JudgeSound({{0, one}, {1, two}}, 2, {}).findings_size(), 2);
}

// The definition: the first iteration, of the same calls on all ranks, in which one got another sum than all
// gave, by more than the errors of all. Figures that are no sum end it, and so does a rank that is missing.
TEST(Sound, RanksGetTheSumOfWhatAllGave) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 1000; ++trial) {
    const int num_ranks = 2 + static_cast<int>(random() % 3);
    const bool is_one_missing = random() % 8 == 0;
    bool ends = is_one_missing;
    std::vector<std::vector<std::string>> values(num_ranks);
    std::vector<int> wrong;
    std::string seen;
    int iteration = -1;
    for (int i = 0; i < 4; ++i) {
      std::vector<int> gave(num_ranks), errors(num_ranks), wrong_now;
      for (int& of_rank : gave) of_rank = static_cast<int>(random() % 5) - 2;
      for (int& of_rank : errors) of_rank = static_cast<int>(random() % 2);
      const int sum = std::accumulate(gave.begin(), gave.end(), 0);
      const int error = std::accumulate(errors.begin(), errors.end(), 0);
      std::set<std::string> calls;
      std::vector<std::string> got;
      for (int rank = 0; rank < num_ranks; ++rank) {
        const int off = random() % 3 > 0 ? 0 : error + static_cast<int>(random() % 2);
        const int of_rank = random() % 2 == 0 ? sum + off : sum - off;
        const std::string& call = *calls.insert(random() % 8 == 0 ? "0-2" : "0-1").first;
        values[rank].push_back(absl::StrCat(gave[rank], " ", of_rank, " ", errors[rank], " ", call));
        if (off > error) {
          wrong_now.push_back(rank);
          got.push_back(absl::StrCat("rank ", rank, " got ", of_rank));
        }
        if (random() % 40 > 0) continue;
        const char* const no_sums[] = {"1 9 0", "1 9 0 0-1 x", "1 inf 0 0-1", "x 9 0 0-1", "1 9 nan 0-1"};
        values[rank].back() = no_sums[random() % 5];
        ends = true;
      }
      if (ends || calls.size() > 1 || wrong_now.empty()) continue;
      ends = true;
      iteration = i;
      wrong = wrong_now;
      seen = absl::StrCat(absl::StrJoin(got, ", "), "; all gave ", sum, ", as a weighted sum of elements");
    }
    std::map<int, SoundRecord> records;
    for (int rank = 0; rank < num_ranks; ++rank) {
      SoundFact& fact = *(records[rank] = RecordOf(values[rank])).mutable_facts(0);
      fact.set_is_sum(true);
      for (int member = 0; member < num_ranks + is_one_missing; ++member) fact.add_group(member);
    }
    const SoundVerdict verdict = JudgeSound(records, num_ranks, {});
    ASSERT_EQ(verdict.findings_size(), wrong.empty() ? 0 : 1);
    EXPECT_EQ(verdict.rules(0).not_checked(),
              is_one_missing
                  ? absl::StrCat("only ", num_ranks, " of ", num_ranks + 1, " ranks recorded learning rates")
                  : "");
    if (wrong.empty()) continue;
    EXPECT_EQ(verdict.findings(0).iteration(), iteration);
    EXPECT_THAT(verdict.findings(0).ranks(), ElementsAreArray(wrong));
    EXPECT_EQ(verdict.findings(0).seen(), seen);
  }
}

}  // namespace
}  // namespace ott::sound
