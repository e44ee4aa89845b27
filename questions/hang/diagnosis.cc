#include "ott/questions/hang/diagnosis.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/questions/hang/cause_text.h"
#include "ott/questions/hang/causes.h"
#include "ott/questions/hang/job_waits.h"
#include "ott/questions/hang/rank_rows.h"
#include "ott/questions/hang/termination.h"
#include "ott/questions/hang/wait_graph.h"

namespace ott {
namespace {

using Process = RankState::Process;

// Parts of the first line.
constexpr size_t kMaxCausesInVerdict = 3;

class HangAnalyzer {
 public:
  HangAnalyzer(const JobState& job, const HangOptions& options)
      : job_(job), waits_(job, options.after_seconds), termination_(DescribeTermination(job)) {}

  HangVerdict Run();

 private:
  int size() const { return static_cast<int>(job_.ranks.size()); }
  const WaitGraph& graph() const { return waits_.graph(); }
  HangCause& AddCause(HangCause::Kind kind, const std::vector<int>& ranks, int operation) {
    return ott::AddCause(waits_, kind, ranks, operation, &verdict_);
  }
  // If all that never came are in one place, the cause is what they wait for there.
  void LookOutside();
  // If several never came, one may wait for another in a way that nobody declared. A rank in an earlier
  // iteration waits for none that is ahead; if that does not tell, nobody is blamed and false is returned.
  bool FindFirstRoots();
  bool AllCompute(const std::vector<int>& ranks) const;
  // The ranks are in one place, and their CPU time says that they do not wait there.
  void AnswerThatTheyCompute(const std::vector<int>& ranks, const char* and_others);
  void AddHeldUp();
  // The ranks are in one place.
  void AddOutside(const std::vector<int>& ranks, const char* and_others);
  // If all came and none left, suspects the rank whose host called less than the others. It may as well wait
  // for its device.
  void FindSuspects();
  // Returns true if all have left, which is no hang; the answer is set.
  bool AllHaveLeft();
  void AnswerWithoutWaiters();
  // Answers for a group whose operations do not have the same numbers on all ranks.
  void AnswerThatNumbersDoNotTell(const StandingOperation& operation);
  void Answer();
  // Describes what is not known of the ranks at which waits end.
  std::string DescribeUnknown() const;
  std::string Behind(int rank) const;
  std::string JoinCauses() const;

  const JobState& job_;
  JobWaits waits_;
  WaitEnds ends_;
  // Who ended the job from outside; empty: nobody is known to have.
  const std::string termination_;
  HangVerdict verdict_;
};

void HangAnalyzer::LookOutside() {
  std::set<std::string> places;
  std::vector<int> roots;
  for (const HangCause& cause : verdict_.causes()) {
    if (cause.kind() != HangCause::NEVER_CAME || cause.place().empty()) return;
    places.insert(cause.place());
    roots.insert(roots.end(), cause.ranks().begin(), cause.ranks().end());
  }
  if (places.size() != 1 || roots.size() < 2 || 2 * roots.size() <= job_.ranks.size()) return;
  const bool compute = AllCompute(roots);
  if (ends_.unknown.empty() && compute) return AnswerThatTheyCompute(roots, ", and the others wait for them");
  verdict_.clear_causes();
  if (!compute) AddOutside(roots, ", and the others wait for them");
}

bool HangAnalyzer::AllCompute(const std::vector<int>& ranks) const {
  return std::all_of(ranks.begin(), ranks.end(), [this](int rank) { return job_.ranks[rank].computes(); });
}

void HangAnalyzer::AnswerThatTheyCompute(const std::vector<int>& ranks, const char* and_others) {
  double least = std::numeric_limits<double>::infinity();
  for (const int rank : ranks) least = std::min(least, job_.ranks[rank].cpu_share);
  const RankState& first = job_.ranks[ranks[0]];
  verdict_.clear_causes();
  verdict_.set_answer(HangVerdict::NOT_HANGING);
  verdict_.set_verdict(absl::StrCat(
      "not hanging: ", DescribeRanks(job_, ranks), ranks.size() == 1 ? " computes" : " compute", " in \"",
      first.place, "\" since ", DescribeSeconds(SecondsSince(first, first.place_since_ns)), " (",
      absl::StrFormat("%.0f", 100 * std::min(least, 1.0)), " % of a CPU or more)", and_others,
      "; if it is a wait that spins, say who waits for whom there"));
}

bool HangAnalyzer::FindFirstRoots() {
  if (job_.is_of_gloo ? verdict_.causes_size() < 2 : !job_.has_times) return true;
  std::map<int64_t, std::map<std::string, std::vector<int>>> by_iteration;
  std::set<std::string> places;
  for (const HangCause& cause : verdict_.causes()) {
    if (cause.kind() != HangCause::NEVER_CAME || cause.ranks_size() != 1) return true;
    const RankState& state = job_.ranks[cause.ranks(0)];
    const std::string place = job_.is_of_gloo ? DescribePlace(job_, cause.ranks(0)) : cause.place();
    by_iteration[state.iteration][place].push_back(cause.ranks(0));
    places.insert(place);
  }
  if (places.size() < 2 && !job_.is_of_gloo) return true;
  const auto& [iteration, of_first] = *by_iteration.begin();
  if (of_first.size() > 1 || iteration < 0) {
    std::vector<std::string> where;
    std::vector<int> suspects;
    for (const auto& [later, by_place] : by_iteration) {
      for (const auto& [place, ranks] : by_place) {
        where.push_back(absl::StrCat(DescribeRanks(job_, ranks), " ", DescribePlace(job_, ranks[0])));
        suspects.insert(suspects.end(), ranks.begin(), ranks.end());
      }
    }
    std::sort(suspects.begin(), suspects.end());
    const HangCause awaited = verdict_.causes(0);
    verdict_.clear_causes();
    *verdict_.mutable_suspects() = {suspects.begin(), suspects.end()};
    verdict_.set_verdict(absl::StrCat(
        "cannot tell: ", absl::StrJoin(where, ", "), ", where others wait for them at ", awaited.operation(),
        " #", awaited.sequence(), "; one of them may wait for another in a ",
        job_.is_of_gloo ? "send or receive, which Gloo does not record" : "way that is not declared"));
    return false;
  }
  const std::vector<int> first = of_first.begin()->second;
  std::vector<int> later;
  for (int i = verdict_.causes_size() - 1; i >= 0; --i) {
    const int rank = verdict_.causes(i).ranks(0);
    if (std::binary_search(first.begin(), first.end(), rank)) continue;
    later.push_back(rank);
    verdict_.mutable_causes()->DeleteSubrange(i, 1);
  }
  verdict_.add_notes(absl::StrCat(DescribeRanks(job_, later), later.size() == 1 ? " is" : " are",
                                  " missed as well, but ahead: whatever is not declared there may wait for ",
                                  DescribeRanks(job_, first)));
  return true;
}

void HangAnalyzer::AddHeldUp() {
  std::set<int> culprits;
  for (const HangCause& cause : verdict_.causes()) {
    culprits.insert(cause.ranks().begin(), cause.ranks().end());
  }
  for (const std::vector<int>& end : graph().Ends(waits_.waiters())) {
    if (end.size() != 1 || culprits.count(end[0]) == 0) return;
  }
  std::vector<int> held_up;
  for (const int rank : waits_.waiters()) {
    const std::vector<int>& operations = graph().OperationsOf(rank);
    const bool waits_for_them = std::any_of(operations.begin(), operations.end(), [&](int i) {
      return std::any_of(culprits.begin(), culprits.end(),
                         [&](int culprit) { return graph().Awaits(i, culprit); });
    });
    if (graph().Waits(rank) && !waits_for_them) held_up.push_back(rank);
  }
  if (held_up.empty()) return;
  *verdict_.mutable_held_up() = {held_up.begin(), held_up.end()};
  verdict_.set_verdict(absl::StrCat(verdict_.verdict(), "; ", FormatRanks(held_up),
                                    held_up.size() == 1 ? " waits" : " wait", " for those that wait for ",
                                    culprits.size() == 1 ? "it" : "them"));
}

void HangAnalyzer::AddOutside(const std::vector<int>& ranks, const char* and_others) {
  const RankState& first = job_.ranks[ranks[0]];
  HangCause& cause = AddCause(HangCause::OUTSIDE, {}, -1);
  cause.set_place(first.place);
  cause.set_place_seconds(SecondsSince(first, first.place_since_ns));
  cause.set_text(absl::StrCat("everybody waits for what is outside of the job: ", DescribeRanks(job_, ranks),
                              " are in \"", first.place, "\" since ", DescribeSeconds(cause.place_seconds()),
                              and_others));
}

void HangAnalyzer::FindSuspects() {
  std::set<int> suspects;
  for (const int i : ends_.all_came) {
    std::map<int32_t, std::vector<std::pair<int64_t, int>>> enqueued;
    for (const int rank : graph().operations()[i].standing) {
      for (const GroupPosition& position : job_.ranks[rank].positions) {
        enqueued[position.group].emplace_back(position.enqueued, rank);
      }
    }
    for (auto& [group, of_ranks] : enqueued) {
      if (of_ranks.size() < 2) continue;
      std::sort(of_ranks.begin(), of_ranks.end());
      if (of_ranks[0].first < of_ranks[1].first) suspects.insert(of_ranks[0].second);
    }
  }
  *verdict_.mutable_suspects() = {suspects.begin(), suspects.end()};
}

std::string HangAnalyzer::DescribeUnknown() const {
  const RankState& first = job_.ranks[ends_.unknown[0]];
  return absl::StrCat(DescribeRanks(job_, ends_.unknown),
                      first.known() ? ", and where it is in that group is not recorded"
                                    : ", of which nothing is known: " + first.problem);
}

std::string HangAnalyzer::Behind(int rank) const {
  int64_t most = -1;
  for (const RankState& state : job_.ranks) most = std::max(most, state.iteration);
  const int64_t behind = most - job_.ranks[rank].iteration;
  if (job_.ranks[rank].iteration >= 0 && behind > 0) {
    return absl::StrCat(", ", behind, behind == 1 ? " iteration" : " iterations", " behind");
  }
  return "";
}

std::string HangAnalyzer::JoinCauses() const {
  // Causes of single ranks that say the same are one.
  std::map<std::tuple<int, std::string, std::string, uint32_t>, std::vector<const HangCause*>> alike;
  std::vector<std::string> texts;
  for (const HangCause& cause : verdict_.causes()) {
    if (!cause.text().empty()) {
      texts.push_back(cause.text());
    } else {
      alike[{cause.kind(), cause.group(), cause.operation(), cause.sequence()}].push_back(&cause);
    }
  }
  for (const auto& [key, causes] : alike) texts.push_back(DescribeCauses(job_, causes));
  const size_t shown = std::min(texts.size(), kMaxCausesInVerdict);
  std::string joined = absl::StrJoin(texts.begin(), texts.begin() + shown, "; and ");
  if (texts.size() > shown) absl::StrAppend(&joined, "; and ", texts.size() - shown, " more");
  return joined;
}

void HangAnalyzer::AnswerWithoutWaiters() {
  std::map<std::string, std::vector<int>> places;
  std::vector<int> unknown;
  int num_working = 0;
  int num_ended = 0;
  bool all_stand = job_.has_times;
  for (int rank = 0; rank < size(); ++rank) {
    const RankState& state = job_.ranks[rank];
    if (!state.known()) {
      unknown.push_back(rank);
    } else if (!state.finished) {
      ++num_working;
      if (job_.has_times && state.process == Process::kUnknown) ++num_ended;
      all_stand = all_stand && waits_.Stands(rank);
      places[state.place].push_back(rank);
    }
  }
  if (!unknown.empty()) {
    *verdict_.mutable_unknown() = {unknown.begin(), unknown.end()};
    verdict_.set_verdict(absl::StrCat("cannot tell: no rank that can be read waits for long, but ",
                                      DescribeRanks(job_, unknown),
                                      " cannot: ", job_.ranks[unknown[0]].problem));
  } else if (num_working == size() && all_stand && places.size() == 1 && !places.begin()->first.empty() &&
             AllCompute(places.begin()->second)) {
    AnswerThatTheyCompute(places.begin()->second, "");
  } else if (num_working > 1 && all_stand && places.size() == 1 && !places.begin()->first.empty()) {
    AddOutside(places.begin()->second, "");
    verdict_.set_answer(HangVerdict::HANGING);
    verdict_.set_verdict(verdict_.causes(0).text());
  } else if (num_working > 0 && all_stand) {
    verdict_.set_verdict(absl::StrCat(
        "cannot tell: nothing ", num_ended > 0 ? "moved before the end" : "moves", ", and no rank ",
        num_ended > 0 ? "waited" : "waits", " in a measurement that is known to be collective; ",
        DescribeRanks(job_, places.begin()->second), " ", DescribePlace(job_, places.begin()->second[0])));
  } else if (num_ended > 0 && !termination_.empty()) {
    verdict_.set_answer(HangVerdict::NOT_HANGING);
    verdict_.set_verdict(absl::StrCat("not hanging: ", termination_, ", and no rank had waited for long"));
  } else if (num_ended > 0) {
    verdict_.set_verdict(
        "cannot tell: the job ended before its training did, all ranks fell silent together, and none had "
        "waited for long");
  } else if (!job_.has_times && size() < 2) {
    verdict_.set_verdict("cannot tell: the dump of one rank does not say what others wait for");
  } else {
    verdict_.set_answer(HangVerdict::NOT_HANGING);
    verdict_.set_verdict(
        num_working == 0
            ? "not hanging: all ranks have finished"
            : absl::StrCat("not hanging: ", job_.has_times
                                                ? absl::StrCat("no rank has waited for more than ",
                                                               DescribeSeconds(waits_.longest()), " (limit ",
                                                               DescribeSeconds(waits_.limit()), ")")
                                                : "no rank waits for another"));
  }
}

void HangAnalyzer::AnswerThatNumbersDoNotTell(const StandingOperation& operation) {
  for (const int rank : job_.groups[operation.operation.group].ranks) {
    const RankState& state = job_.ranks[rank];
    if (state.known() && !state.finished && graph().OperationsOf(rank).empty() && waits_.Stands(rank)) {
      verdict_.add_suspects(rank);
    }
  }
  std::string text =
      absl::StrCat("cannot tell: ", DescribeRanks(job_, operation.standing),
                   operation.standing.size() == 1 ? " waits in " : " wait in ",
                   DescribeOperation(job_, operation.operation),
                   ", and numbers do not tell who is missing, as they do not count the same on all ranks");
  if (verdict_.suspects_size() > 0) {
    absl::StrAppend(
        &text, "; ", DescribeRanks(job_, {verdict_.suspects().begin(), verdict_.suspects().end()}), " ",
        verdict_.suspects_size() == 1 ? DescribePlace(job_, verdict_.suspects(0)) : "wait for nobody");
  }
  verdict_.set_verdict(text);
}

void HangAnalyzer::Answer() {
  *verdict_.mutable_unknown() = {ends_.unknown.begin(), ends_.unknown.end()};
  if (verdict_.causes_size() > 0) LookOutside();
  if (verdict_.answer() == HangVerdict::NOT_HANGING) return;
  if (verdict_.causes_size() > 0) {
    if (!FindFirstRoots()) return;
    verdict_.set_answer(HangVerdict::HANGING);
    verdict_.set_verdict(JoinCauses());
    AddHeldUp();
    if (!ends_.unknown.empty()) {
      verdict_.add_notes(absl::StrCat("others wait for ", DescribeUnknown()));
    }
  } else if (!ends_.unknown.empty()) {
    verdict_.set_verdict(absl::StrCat("cannot tell: the waits lead to ", DescribeUnknown()));
  } else if (!ends_.moving.empty()) {
    for (const int rank : ends_.moving) AddCause(HangCause::SLOW, {rank}, waits_.OperationThatAwaits(rank));
    verdict_.set_answer(HangVerdict::NOT_HANGING);
    verdict_.set_verdict(absl::StrCat("not hanging: ", JoinCauses(), Behind(ends_.moving[0])));
  } else if (!ends_.all_came.empty() &&
             ends_.divided.count(graph().operations()[*ends_.all_came.begin()].operation.group) > 0) {
    AnswerThatNumbersDoNotTell(graph().operations()[*ends_.all_came.begin()]);
  } else if (!ends_.all_came.empty()) {
    const StandingOperation& operation = graph().operations()[*ends_.all_came.begin()];
    verdict_.set_verdict(absl::StrCat("cannot tell: ", DescribeRanks(job_, operation.standing),
                                      " all came to ", DescribeOperation(job_, operation.operation),
                                      ", and none left it: the network, a device or the library stands"));
    FindSuspects();
    if (verdict_.suspects_size() > 0) {
      verdict_.add_notes(
          absl::StrCat(DescribeRanks(job_, {verdict_.suspects().begin(), verdict_.suspects().end()}),
                       " called less since than the others there: look there first, though it may only wait "
                       "for its device"));
    }
  } else {
    verdict_.set_verdict("cannot tell: ranks wait, and for whom is not recorded");
  }
}

bool HangAnalyzer::AllHaveLeft() {
  if (!waits_.waiters().empty()) return false;
  std::vector<int> left;
  for (int rank = 0; rank < size(); ++rank) {
    if (!job_.ranks[rank].left && !job_.ranks[rank].finished) return false;
    if (job_.ranks[rank].left) left.push_back(rank);
  }
  if (left.empty()) return false;
  const int first = *std::min_element(
      left.begin(), left.end(), [this](int a, int b) { return job_.ranks[a].now_ns < job_.ranks[b].now_ns; });
  verdict_.set_answer(HangVerdict::NOT_HANGING);
  verdict_.set_verdict(absl::StrCat("not hanging: ", DescribeRanks(job_, left),
                                    left.size() == 1 ? " has" : " have", " left training without ending it",
                                    left.size() == 1 ? "" : absl::StrCat(", rank ", first, " first"),
                                    ", in iteration ", job_.ranks[first].iteration));
  return true;
}

HangVerdict HangAnalyzer::Run() {
  if (!AllHaveLeft()) {
    ends_ = FindCauses(&waits_, &verdict_);
    const bool any_gone = std::any_of(job_.ranks.begin(), job_.ranks.end(), IsGone);
    if (verdict_.causes_size() == 0 && waits_.waiters().empty() && !any_gone) {
      AnswerWithoutWaiters();
    } else {
      Answer();
    }
  }
  std::set<int> culprits;
  if (verdict_.answer() == HangVerdict::HANGING) {
    for (const HangCause& cause : verdict_.causes()) {
      culprits.insert(cause.ranks().begin(), cause.ranks().end());
    }
  }
  *verdict_.mutable_culprits() = {culprits.begin(), culprits.end()};
  for (HangCause& cause : *verdict_.mutable_causes()) {
    if (cause.text().empty()) cause.set_text(DescribeCauses(job_, {&cause}));
    cause.set_text(EscapeControlCharacters(cause.text()));
  }
  verdict_.set_verdict(EscapeControlCharacters(verdict_.verdict()));
  if (verdict_.answer() != HangVerdict::NOT_HANGING && !termination_.empty()) {
    verdict_.add_notes(termination_);
  }
  for (const std::string& note : job_.notes) verdict_.add_notes(note);
  AddRankRows(job_, graph(), &verdict_);
  return verdict_;
}

}  // namespace

HangVerdict DiagnoseHang(const JobState& job, const HangOptions& options) {
  return HangAnalyzer(job, options).Run();
}

}  // namespace ott
