#include "ott/questions/hang/causes.h"

#include <algorithm>
#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job_for_test.h"
#include "ott/questions/hang/diagnosis.h"
#include "scenarios_for_test.h"

namespace ott {
namespace {

using testing::Contains;
using testing::HasSubstr;
using Process = RankState::Process;
using Progress = JobOperation::Progress;

constexpr int64_t kSecond = JobForTest::kSecond;

struct Scenario {
  std::vector<std::string> groups;
  std::vector<std::string> ranks;
  std::string judged;
  std::string says;
  std::string note;
};

std::vector<Scenario> ReadScenarios() {
  std::vector<Scenario> scenarios;
  for (const absl::string_view line : absl::StrSplit(kScenarios, '\n', absl::SkipEmpty())) {
    absl::string_view words = line;
    if (words[0] == '#') continue;
    if (absl::ConsumePrefix(&words, "  says ")) {
      scenarios.back().says = std::string(words);
    } else if (absl::ConsumePrefix(&words, "  note ")) {
      scenarios.back().note = std::string(words);
    } else if (absl::ConsumePrefix(&words, "  ")) {
      scenarios.back().judged = std::string(words);
    } else {
      std::vector<std::string> cells = absl::StrSplit(words, '|');
      Scenario& scenario = scenarios.emplace_back();
      scenario.groups = absl::StrSplit(cells[0], ' ', absl::SkipEmpty());
      scenario.ranks.assign(cells.begin() + 1, cells.end());
    }
  }
  return scenarios;
}

// Rank i of a scenario is rank to[i] of the job.
class JobInWords {
 public:
  JobInWords(const Scenario& scenario, std::vector<int> to)
      : test_(static_cast<int>(to.size())), to_(std::move(to)) {
    for (const std::string& word : scenario.groups) AddGroup(word);
    for (size_t rank = 0; rank < scenario.ranks.size(); ++rank) {
      for (const absl::string_view word : absl::StrSplit(scenario.ranks[rank], ' ', absl::SkipEmpty())) {
        Add(to_[rank], std::string(word));
      }
    }
  }

  const JobState& job() const { return test_.job; }

 private:
  void AddGroup(const std::string& word) {
    if (word == "untimed") test_.job.has_times = false;
    if (word == "no_entry") test_.job.records_entry = false;
    static const std::regex format(R"((\w+)=(\d+)\.?(\d*))");
    std::smatch match;
    if (!std::regex_match(word, match, format)) return;
    std::vector<int> members;
    for (const char digit : match[2].str()) members.push_back(to_[digit - '0']);
    std::sort(members.begin(), members.end());
    const int group = test_.Group(match[1], members);
    group_[match[1]] = group;
    for (const int member : members)
      test_.Complete(member, group, match[3].length() > 0 ? std::stoi(match[3]) : 0);
  }

  void AddOperations(int rank, const std::smatch& match) {
    const std::string last = match[4].matched ? match[4] : match[3];
    for (int64_t i = std::stoi(match[3]); i <= std::stoi(last); ++i) {
      JobOperation& called =
          test_.Call(rank, group_.at(match[2]), i, match[1].matched ? match[1].str() : "sum",
                     match[7] == "c"   ? Progress::kCompleted
                     : match[7] == "q" ? Progress::kEnqueued
                                       : Progress::kEntered);
      if (match[5].matched) called.iteration = std::stoi(match[5]);
      if (match[6].matched) called.size = std::stoi(match[6]);
      called.synchronizes = match[8].length() == 0;
    }
  }

  void Add(int rank, const std::string& word) {
    static const std::regex operation(
        R"((?:(\w+):)?(\w+)#(\d+)(?:-(\d+))?(?:/(-?\d+))?(?:=(\d+))?([cq]?)(!?))");
    static const std::map<std::string, Process> processes = {{"dead", Process::kDead},
                                                             {"stopped", Process::kStopped},
                                                             {"silent", Process::kSilent},
                                                             {"ended", Process::kUnknown}};
    RankState& state = test_.job.ranks[rank];
    std::smatch match;
    if (std::regex_match(word, match, operation)) {
      AddOperations(rank, match);
    } else if (const auto process = processes.find(word); process != processes.end()) {
      state.process = process->second;
    } else if (word == "left" || word == "finished") {
      (word == "left" ? state.left : state.finished) = true;
    } else if (word == "killed") {
      state.terminated_ns = kSecond;
    } else if (word == "unread") {
      state = RankState();
    } else if (word == "unplaced") {
      state.positions.clear();
    } else if (word.substr(0, 3) == "cpu") {
      state.cpu_share = std::stoi(word.substr(3)) / 100.0;
    } else if (word == "moves") {
      state.last_event_ns = 999 * kSecond;
    } else if (word[0] == 's' || word[0] == 'r') {
      test_.Send(rank, 0, to_[word[5] - '0'],
                 word[0] == 's' ? JobOperation::Direction::kSend : JobOperation::Direction::kReceive);
      if (word.back() == 'q') state.operations.back().progress = Progress::kEnqueued;
    } else if (word[0] == '@') {
      state.place = word.substr(1);
    } else if (word[0] == 'i') {
      state.iteration = std::stoi(word.substr(1));
    } else if (word[0] == 't') {
      state.now_ns = std::stoi(word.substr(1)) * kSecond;
    } else if (word[0] == 'h') {
      state.host = word;
    }
  }

  JobForTest test_;
  const std::vector<int> to_;
  std::map<std::string, int> group_;
};

HangVerdict Diagnose(const Scenario& scenario, const std::vector<int>& to) {
  return DiagnoseHang(JobInWords(scenario, to).job(), {30});
}

std::vector<int> NumbersOf(const Scenario& scenario) {
  std::vector<int> numbers;
  for (size_t i = 0; i < scenario.ranks.size(); ++i) numbers.push_back(static_cast<int>(i));
  return numbers;
}

// The words of a verdict in which rank to[i] is rank i.
std::string InWords(const HangVerdict& verdict, const std::vector<int>& to) {
  const auto list = [&](const char* what, const auto& ranks) {
    std::vector<std::ptrdiff_t> of;
    for (const int rank : ranks) of.push_back(std::find(to.begin(), to.end(), rank) - to.begin());
    std::sort(of.begin(), of.end());
    return of.empty() ? "" : absl::StrCat(what, " ", absl::StrJoin(of, " "));
  };
  std::vector<std::string> causes;
  for (const HangCause& cause : verdict.causes()) {
    causes.push_back(absl::StrCat(HangCause::Kind_Name(cause.kind()), list("", cause.ranks())));
  }
  std::sort(causes.begin(), causes.end());
  return absl::StrCat(HangVerdict::Answer_Name(verdict.answer()), causes.empty() ? "" : " ",
                      absl::StrJoin(causes, ", "), list("; suspects", verdict.suspects()),
                      list("; unknown", verdict.unknown()), list("; held up", verdict.held_up()));
}

TEST(Scenarios, AreJudgedTheSameWhicheverRankIsWhich) {
  for (const Scenario& scenario : ReadScenarios()) {
    std::vector<int> to = NumbersOf(scenario);
    const HangVerdict first = Diagnose(scenario, to);
    SCOPED_TRACE(absl::StrCat(absl::StrJoin(scenario.groups, " "), " |", absl::StrJoin(scenario.ranks, "|"),
                              ": ", first.verdict()));
    EXPECT_THAT(first.verdict(), HasSubstr(scenario.says));
    EXPECT_THAT(absl::StrJoin(first.notes(), "; "), HasSubstr(scenario.note));
    const std::string any_note =
        scenario.note.empty() ? "may be a consequence|others wait for|in a circle" : "";
    EXPECT_THAT(first.notes(), testing::Each(testing::ContainsRegex(any_note)));
    // The text of a cause is in the verdict, and says so if nobody is to blame.
    for (const HangCause& cause : first.causes()) {
      EXPECT_THAT(first.causes_size() > 1 ? cause.text() : first.verdict(), HasSubstr(cause.text()));
      EXPECT_FALSE(cause.operation().empty() && HangCause::Kind_Name(cause.kind()).find("DIFFERENT") == 0);
      EXPECT_EQ(cause.ranks().empty(),
                std::regex_search(cause.text(), std::regex("nobody|nothing|everybody|^$")));
    }
    do {
      const HangVerdict verdict = Diagnose(scenario, to);
      ASSERT_EQ(InWords(verdict, to), scenario.judged) << "as ranks " << absl::StrJoin(to, " ");
      for (const HangCause& cause : verdict.causes()) {
        for (const int rank : cause.ranks()) EXPECT_THAT(cause.waiting(), testing::Not(Contains(rank)));
      }
    } while (std::next_permutation(to.begin(), to.end()));
  }
}

TEST(Scenarios, BlameNoInnocentWhicheverRecorderIsMissing) {
  for (const Scenario& scenario : ReadScenarios()) {
    const std::vector<int> to = NumbersOf(scenario);
    const HangVerdict whole = Diagnose(scenario, to);
    // Who is ahead is excused by one that is behind, where that is known.
    if (absl::StrContains(scenario.note, "missed as well, but ahead")) continue;
    for (size_t missing = 0; missing < to.size() && whole.culprits_size() > 0; ++missing) {
      Scenario less = scenario;
      less.ranks[missing] = "unread";
      const HangVerdict verdict = Diagnose(less, to);
      for (const int culprit : verdict.culprits()) {
        EXPECT_THAT(whole.culprits(), Contains(culprit)) << scenario.judged << " without " << missing;
      }
    }
  }
}

}  // namespace
}  // namespace ott
