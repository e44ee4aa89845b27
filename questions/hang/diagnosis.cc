#include "ott/questions/hang/diagnosis.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
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
#include "ott/questions/hang/mismatch.h"
#include "ott/questions/hang/opposite_order.h"
#include "ott/questions/hang/rank_rows.h"
#include "ott/questions/hang/termination.h"
#include "ott/questions/hang/undeclared_group.h"
#include "ott/questions/hang/wait_graph.h"

namespace ott {
namespace {

using Process = RankState::Process;
using Progress = JobOperation::Progress;

// Parts of the first line.
constexpr size_t kMaxCausesInVerdict = 3;
// The last signs of life of two ranks are so uncertain: heartbeats come each second, and clocks of hosts may
// be apart.
constexpr int64_t kDoubtHere = 1500000000;
constexpr int64_t kDoubtElsewhere = 10000000000;

bool IsGone(const RankState& rank) {
  return rank.known() && !rank.finished &&
         (rank.left || rank.process == Process::kDead || rank.process == Process::kStopped ||
          rank.process == Process::kSilent);
}

// Returns true if, for all that their last signs of life tell, the first of two that are gone went earlier.
bool WentBefore(const RankState& a, const RankState& b) {
  if (a.left != b.left) return a.left;
  const int64_t doubt = a.host == b.host ? kDoubtHere : kDoubtElsewhere;
  return a.now_ns + doubt < b.now_ns;
}

class HangAnalyzer {
 public:
  HangAnalyzer(const JobState& job, const HangOptions& options)
      : job_(job), graph_(job), limit_(options.after_seconds), termination_(DescribeTermination(job)) {}

  HangVerdict Run();

 private:
  int size() const { return static_cast<int>(job_.ranks.size()); }
  // Returns true if the rank has done nothing for so long that it stands.
  bool Stands(int rank) const;
  double Waited(int rank, const JobOperation& operation) const;
  void FindWaiters();
  bool FindMismatches(const std::map<int32_t, std::set<std::vector<int>>>& parts_of_groups);
  void AddMismatch(const Mismatch& mismatch);
  // Returns, for each group whose operations show its members to be apart, the parts that some ranks stand
  // in.
  std::map<int32_t, std::set<std::vector<int>>> PartsOfGroups();
  void NoteContradiction(const Contradiction& contradiction);
  // A rank that is gone waited for one that is still there and stands: that may be why it is gone.
  bool IsConsequence(int rank) const;
  void FollowWaits();
  void AddEnd(int rank);
  void AddFinished(int rank);
  void AddCycle(const std::vector<int>& ranks);
  // A culprit may wait in a check or a gather of this library, which comes after all collectives of an
  // iteration: then it never came to the other's. Returns true if it was so.
  bool AddThoseAtTheObserver(const std::vector<WaitGraph::Step>& cycle, const std::vector<int>& culprits);
  std::vector<int> CulpritsOfCycle(const std::vector<WaitGraph::Step>& cycle) const;
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
  // Ranks that have not completed what other members of the group completed, which these could not have done
  // without them: each with the first such operation.
  void FindNeverLeft();
  void FindNeverLeft(int32_t group);
  // If all came and none left, suspects the rank whose host called less than the others. It may as well wait
  // for its device.
  void FindSuspects();
  // The operation in which most ranks wait for the rank; -1: none.
  int OperationThatAwaits(int rank) const;
  HangCause& AddCause(HangCause::Kind kind, const std::vector<int>& ranks, int operation);
  void SetOperation(const JobOperation& operation, HangCause* cause) const;
  void Judge();
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
  WaitGraph graph_;
  const double limit_;
  // Who ended the job from outside; empty: nobody is known to have.
  const std::string termination_;
  HangVerdict verdict_;
  // Ranks that have waited for long enough.
  std::vector<int> waiters_;
  double longest_wait_ = 0;
  std::vector<int> moving_;
  std::vector<int> unknown_;
  std::map<int, size_t> never_left_;  // by rank the index of the operation
  // Indices of operations that ranks wait in for those that have finished.
  std::set<int> said_of_finished_;
  // Indices of operations that all members entered and none completed.
  std::set<int> all_came_;
  // Groups that are several, as what ranks completed proves, or whose numbers do not count the same on all
  // ranks.
  std::set<int32_t> divided_;
};

bool HangAnalyzer::Stands(int rank) const {
  const RankState& state = job_.ranks[rank];
  return !job_.has_times || state.finished || IsGone(state) ||
         SecondsSince(state, state.last_event_ns) >= limit_;
}

double HangAnalyzer::Waited(int rank, const JobOperation& operation) const {
  const JobOperation* const own = job_.ranks[rank].Entered(operation);
  return own == nullptr ? 0 : SecondsSince(job_.ranks[rank], own->entered_ns);
}

void HangAnalyzer::FindWaiters() {
  for (int rank = 0; rank < size(); ++rank) {
    if (job_.ranks[rank].finished) graph_.Cut(rank);
    double waited = -1;
    for (const int i : graph_.OperationsOf(rank)) {
      waited = std::max(waited, Waited(rank, graph_.operations()[i].operation));
    }
    if (waited < 0 || job_.ranks[rank].finished) continue;
    longest_wait_ = std::max(longest_wait_, waited);
    if (!job_.has_times || waited >= limit_) waiters_.push_back(rank);
  }
}

std::map<int32_t, std::set<std::vector<int>>> HangAnalyzer::PartsOfGroups() {
  std::map<int32_t, std::set<std::vector<int>>> parts;
  for (const int rank : waiters_) {
    for (const int i : graph_.OperationsOf(rank)) {
      const int32_t group = graph_.operations()[i].operation.group;
      if (parts.count(group) == 0) {
        const std::optional<Contradiction> contradiction = FindContradiction(job_, group);
        if (contradiction.has_value()) {
          divided_.insert(group);
          NoteContradiction(*contradiction);
        }
      }
      parts[group].insert(divided_.count(group) > 0 ? MayMeet(job_, group, rank) : job_.groups[group].ranks);
    }
  }
  return parts;
}

void HangAnalyzer::NoteContradiction(const Contradiction& contradiction) {
  const std::string unlike =
      DescribeUnlikeUse(job_, contradiction.completed.group, contradiction.completed.name);
  verdict_.add_notes(absl::StrCat(
      "rank ", contradiction.rank, " completed ", DescribeOperation(job_, contradiction.completed),
      " without rank ", contradiction.without, ", so that they are in different groups",
      unlike.empty() ? "" : "; " + unlike, "; say who waits for whom (stopwatch { collective_groups })"));
}

bool HangAnalyzer::FindMismatches(const std::map<int32_t, std::set<std::vector<int>>>& parts_of_groups) {
  for (const auto& [group, parts] : parts_of_groups) {
    for (const std::vector<int>& members : parts) {
      const std::optional<Mismatch> mismatch = FindMismatch(job_, group, members);
      if (!mismatch.has_value()) continue;
      const std::string unlike = mismatch->of == Mismatch::Of::kIteration
                                     ? DescribeUnlikeUse(job_, group, mismatch->operations[0].name)
                                     : "";
      if (unlike.empty()) {
        AddMismatch(*mismatch);
      } else if (divided_.insert(group).second) {
        verdict_.add_notes(unlike);
      }
    }
  }
  return verdict_.causes_size() > 0;
}

void HangAnalyzer::AddMismatch(const Mismatch& mismatch) {
  std::vector<int> culprits;
  if (mismatch.has_majority()) {
    for (size_t i = 1; i < mismatch.ranks.size(); ++i) {
      culprits.insert(culprits.end(), mismatch.ranks[i].begin(), mismatch.ranks[i].end());
    }
  }
  const HangCause::Kind kind = mismatch.of == Mismatch::Of::kSize   ? HangCause::DIFFERENT_SIZE
                               : mismatch.of == Mismatch::Of::kName ? HangCause::DIFFERENT_OPERATION
                                                                    : HangCause::DIFFERENT_ITERATIONS;
  HangCause& cause = AddCause(kind, culprits, -1);
  SetOperation(mismatch.operations[0], &cause);
  cause.set_text(absl::StrCat(DescribeMismatch(job_, mismatch),
                              culprits.empty() ? "; there is no majority, so nobody is blamed" : ""));
}

bool HangAnalyzer::IsConsequence(int rank) const {
  if (!graph_.Waits(rank)) return false;
  for (const std::vector<int>& end : graph_.Ends({rank})) {
    if (end.size() > 1) return true;
    const RankState& awaited = job_.ranks[end[0]];
    if (end[0] == rank || !awaited.known()) continue;
    if (IsGone(awaited) ? WentBefore(awaited, job_.ranks[rank]) : Stands(end[0])) return true;
  }
  return false;
}

void HangAnalyzer::FollowWaits() {
  std::vector<int> gone;
  for (int rank = 0; rank < size(); ++rank) {
    if (!IsGone(job_.ranks[rank])) continue;
    if (IsConsequence(rank)) {
      verdict_.add_notes(
          absl::StrCat(DescribeRanks(job_, {rank}),
                       " is gone, too, but waited for others then: that may be a consequence"));
    } else {
      gone.push_back(rank);
    }
  }
  for (const int rank : gone) graph_.Cut(rank);
  FindNeverLeft();
  for (const std::vector<int>& end : graph_.Ends(waiters_)) {
    if (end.size() > 1) {
      AddCycle(end);
    } else {
      AddEnd(end[0]);
    }
  }
  for (const int rank : gone) {
    const HangCause::Kind kind = job_.ranks[rank].left                           ? HangCause::LEFT
                                 : job_.ranks[rank].process == Process::kDead    ? HangCause::DEAD
                                 : job_.ranks[rank].process == Process::kStopped ? HangCause::STOPPED
                                                                                 : HangCause::SILENT;
    AddCause(kind, {rank}, OperationThatAwaits(rank));
  }
}

int HangAnalyzer::OperationThatAwaits(int rank) const {
  int best = -1;
  for (int i = 0; i < static_cast<int>(graph_.operations().size()); ++i) {
    if (!graph_.Awaits(i, rank)) continue;
    if (best < 0 || graph_.operations()[i].standing.size() > graph_.operations()[best].standing.size()) {
      best = i;
    }
  }
  return best;
}

void HangAnalyzer::AddEnd(int rank) {
  const RankState& state = job_.ranks[rank];
  const int awaited_at = OperationThatAwaits(rank);
  if (!state.known()) {
    unknown_.push_back(rank);
    return;
  }
  if (IsGone(state)) return;
  if (state.finished) return AddFinished(rank);
  if (never_left_.count(rank) > 0) return;
  if (!graph_.OperationsOf(rank).empty()) {
    all_came_.insert(graph_.OperationsOf(rank)[0]);
    return;
  }
  if (awaited_at < 0) return;
  const JobOperation& operation = graph_.operations()[awaited_at].operation;
  const GroupPosition* const position = state.Position(operation.group);
  if (operation.direction == JobOperation::Direction::kCollective && position == nullptr) {
    unknown_.push_back(rank);
  } else if (!Stands(rank)) {
    moving_.push_back(rank);
  } else {
    const bool called = job_.records_entry && position != nullptr && position->enqueued >= operation.sequence;
    AddCause(called ? HangCause::DEVICE_STANDS : HangCause::NEVER_CAME, {rank}, awaited_at);
  }
}

void HangAnalyzer::AddFinished(int rank) {
  const int awaited_at = OperationThatAwaits(rank);
  if (awaited_at < 0 || !said_of_finished_.insert(awaited_at).second) return;
  const StandingOperation& operation = graph_.operations()[awaited_at];
  std::vector<int> finished;
  std::vector<int> others;
  for (const int member : job_.groups[operation.operation.group].ranks) {
    if (!job_.ranks[member].known()) continue;
    (job_.ranks[member].finished ? finished : others).push_back(member);
  }
  const bool left_out =
      operation.operation.iteration >= 0 && operation.operation.iteration < job_.ranks[rank].iteration;
  if (left_out && finished.size() < others.size()) {
    for (const int culprit : finished) AddCause(HangCause::NEVER_CAME, {culprit}, awaited_at);
    return;
  }
  // The job may have a majority if the group has none.
  int64_t majority = static_cast<int64_t>(others.size()) - static_cast<int64_t>(finished.size());
  if (majority == 0) {
    for (const RankState& other : job_.ranks) majority += !other.known() ? 0 : other.finished ? -1 : 1;
  }
  const std::vector<int> culprits = majority > 0   ? finished
                                    : majority < 0 ? operation.standing
                                                   : std::vector<int>();
  HangCause& cause = AddCause(HangCause::DIFFERENT_ITERATIONS, culprits, awaited_at);
  cause.set_text(absl::StrCat(
      DescribeRanks(job_, operation.standing), operation.standing.size() == 1 ? " waits in " : " wait in ",
      DescribeOperation(job_, operation.operation), ", and ", DescribeRanks(job_, finished),
      finished.size() == 1 ? " has" : " have", " finished training after ", job_.ranks[rank].iteration,
      " iterations", culprits.empty() ? "; there is no majority, so nobody is blamed" : ""));
}

std::vector<int> HangAnalyzer::CulpritsOfCycle(const std::vector<WaitGraph::Step>& cycle) const {
  std::set<int> operations;
  for (const WaitGraph::Step& step : cycle) operations.insert(step.operation);
  if (operations.size() != 2) return {};
  return RanksInOppositeOrder(job_, graph_.operations()[*operations.begin()].operation,
                              graph_.operations()[*operations.rbegin()].operation);
}

bool HangAnalyzer::AddThoseAtTheObserver(const std::vector<WaitGraph::Step>& cycle,
                                         const std::vector<int>& culprits) {
  for (const WaitGraph::Step& step : cycle) {
    const StandingOperation& operation = graph_.operations()[step.operation];
    if (operation.operation.synchronizes) continue;
    const bool all_there = std::all_of(culprits.begin(), culprits.end(), [&](int rank) {
      return std::binary_search(operation.standing.begin(), operation.standing.end(), rank);
    });
    if (culprits.empty() || !all_there) continue;
    for (const int rank : culprits) AddCause(HangCause::NEVER_CAME, {rank}, OperationThatAwaits(rank));
    return true;
  }
  return false;
}

void HangAnalyzer::AddCycle(const std::vector<int>& ranks) {
  const std::vector<WaitGraph::Step> cycle = graph_.Cycle(ranks);
  for (const int rank : ranks) {
    if (!job_.ranks[rank].known()) unknown_.push_back(rank);
  }
  if (cycle.empty()) return;
  if (!job_.records_entry) {
    // Whoever called the operation may have begun it as well.
    for (size_t i = 0; i < cycle.size(); ++i) {
      const JobOperation& operation = graph_.operations()[cycle[i].operation].operation;
      const GroupPosition* const next =
          job_.ranks[cycle[(i + 1) % cycle.size()].rank].Position(operation.group);
      if (next == nullptr || next->enqueued >= operation.sequence) {
        verdict_.add_notes(
            absl::StrCat(DescribeRanks(job_, ranks),
                         " wait in a circle, as far as can be told without knowing when operations "
                         "began; record it with TORCH_NCCL_ENABLE_TIMING=1"));
        return;
      }
    }
  }
  const std::vector<int> culprits = CulpritsOfCycle(cycle);
  if (AddThoseAtTheObserver(cycle, culprits)) return;
  HangCause& cause = AddCause(HangCause::OPPOSITE_ORDER, culprits, cycle[0].operation);
  std::string text = "ranks wait in a circle: ";
  for (size_t i = 0; i < cycle.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : "; ", DescribeRanks(job_, {cycle[i].rank}), " in ",
                    DescribeOperation(job_, graph_.operations()[cycle[i].operation].operation), " for rank ",
                    cycle[(i + 1) % cycle.size()].rank);
  }
  if (culprits.empty()) {
    absl::StrAppend(&text,
                    "; they call the groups in opposite order, and nothing tells which order is wrong");
  } else {
    absl::StrAppend(&text, "; ", DescribeRanks(job_, culprits), culprits.size() == 1 ? " calls" : " call",
                    " the groups in another order than the rest");
  }
  cause.set_text(text);
}

void HangAnalyzer::LookOutside() {
  std::set<std::string> places;
  std::vector<int> roots;
  for (const HangCause& cause : verdict_.causes()) {
    if (cause.kind() != HangCause::NEVER_CAME || cause.place().empty()) return;
    places.insert(cause.place());
    roots.insert(roots.end(), cause.ranks().begin(), cause.ranks().end());
  }
  if (places.size() != 1 || roots.size() < 2 || 2 * roots.size() <= job_.ranks.size()) return;
  if (unknown_.empty() && AllCompute(roots))
    return AnswerThatTheyCompute(roots, ", and the others wait for them");
  verdict_.clear_causes();
  AddOutside(roots, ", and the others wait for them");
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
  if (!job_.has_times) return true;
  std::map<int64_t, std::map<std::string, std::vector<int>>> by_iteration;
  std::set<std::string> places;
  for (const HangCause& cause : verdict_.causes()) {
    if (cause.kind() != HangCause::NEVER_CAME || cause.ranks_size() != 1) return true;
    by_iteration[job_.ranks[cause.ranks(0)].iteration][cause.place()].push_back(cause.ranks(0));
    places.insert(cause.place());
  }
  if (places.size() < 2) return true;
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
        " #", awaited.sequence(), "; one of them may wait for another in a way that is not declared"));
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
  for (const std::vector<int>& end : graph_.Ends(waiters_)) {
    if (end.size() != 1 || culprits.count(end[0]) == 0) return;
  }
  std::vector<int> held_up;
  for (const int rank : waiters_) {
    const std::vector<int>& operations = graph_.OperationsOf(rank);
    const bool waits_for_them = std::any_of(operations.begin(), operations.end(), [&](int i) {
      return std::any_of(culprits.begin(), culprits.end(),
                         [&](int culprit) { return graph_.Awaits(i, culprit); });
    });
    if (graph_.Waits(rank) && !waits_for_them && culprits.count(rank) == 0) held_up.push_back(rank);
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

void HangAnalyzer::FindNeverLeft(int32_t group) {
  if (divided_.count(group) > 0) return;
  const std::vector<int>& members = job_.groups[group].ranks;
  int64_t completed = -1;
  // If some never came to an operation, others completed it without them, and so they may have done without
  // those that stand in it.
  int64_t came_to = std::numeric_limits<int64_t>::max();
  for (const int rank : members) {
    const GroupPosition* const position = job_.ranks[rank].Position(group);
    if (position == nullptr) continue;
    completed = std::max(completed, position->completed);
    if (job_.ranks[rank].known()) came_to = std::min(came_to, position->entered);
  }
  completed = std::min(completed, came_to);
  std::map<int, size_t> found;
  for (const int rank : members) {
    const std::vector<JobOperation>& operations = job_.ranks[rank].operations;
    for (size_t i = 0; i < operations.size(); ++i) {
      if (operations[i].group == group && operations[i].direction == JobOperation::Direction::kCollective &&
          operations[i].progress != Progress::kCompleted && operations[i].sequence <= completed) {
        found.emplace(rank, i);
        break;
      }
    }
  }
  // If most have not left, they are not to blame.
  if (2 * found.size() > members.size()) return;
  for (const auto& [rank, i] : found) {
    if (!job_.ranks[rank].operations[i].synchronizes && found.size() > 1) continue;
    if (!Stands(rank) || IsGone(job_.ranks[rank])) continue;
    size_t& first = never_left_.emplace(rank, i).first->second;
    first = std::min(first, i);
  }
}

void HangAnalyzer::FindNeverLeft() {
  std::set<int32_t> groups;
  for (const RankState& rank : job_.ranks) {
    for (const JobOperation& operation : rank.operations) {
      if (operation.progress != Progress::kCompleted) groups.insert(operation.group);
    }
  }
  for (const int32_t group : groups) FindNeverLeft(group);
  for (const auto& [rank, i] : never_left_) {
    graph_.Cut(rank);
    SetOperation(job_.ranks[rank].operations[i], &AddCause(HangCause::NEVER_LEFT, {rank}, -1));
  }
}

void HangAnalyzer::FindSuspects() {
  std::set<int> suspects;
  for (const int i : all_came_) {
    std::map<int32_t, std::vector<std::pair<int64_t, int>>> enqueued;
    for (const int rank : graph_.operations()[i].standing) {
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

void HangAnalyzer::SetOperation(const JobOperation& operation, HangCause* cause) const {
  cause->set_group(job_.groups[operation.group].name);
  cause->set_operation(job_.names[operation.name]);
  cause->set_sequence(static_cast<uint32_t>(operation.sequence));
  cause->set_iteration(static_cast<int32_t>(operation.iteration));
}

HangCause& HangAnalyzer::AddCause(HangCause::Kind kind, const std::vector<int>& ranks, int operation) {
  HangCause& cause = *verdict_.add_causes();
  cause.set_kind(kind);
  *cause.mutable_ranks() = {ranks.begin(), ranks.end()};
  cause.set_iteration(-1);
  if (operation >= 0) {
    const StandingOperation& standing = graph_.operations()[operation];
    SetOperation(standing.operation, &cause);
    for (const int rank : standing.standing) {
      if (ranks.size() == 1 && rank == ranks[0]) continue;
      cause.add_waiting(rank);
      cause.set_waited_seconds(std::max(cause.waited_seconds(), Waited(rank, standing.operation)));
    }
  }
  if (ranks.size() == 1) {
    cause.set_place(job_.ranks[ranks[0]].place);
    cause.set_place_seconds(SecondsSince(job_.ranks[ranks[0]], job_.ranks[ranks[0]].place_since_ns));
  }
  return cause;
}

std::string HangAnalyzer::DescribeUnknown() const {
  const RankState& first = job_.ranks[unknown_[0]];
  return absl::StrCat(DescribeRanks(job_, unknown_), first.known()
                                                         ? ", and where it is in that group is not recorded"
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
      all_stand = all_stand && Stands(rank);
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
  } else if (num_ended > 0 && !termination_.empty()) {
    verdict_.set_answer(HangVerdict::NOT_HANGING);
    verdict_.set_verdict(absl::StrCat("not hanging: ", termination_, ", and no rank had waited for long"));
  } else if (num_ended > 0) {
    verdict_.set_verdict(
        "cannot tell: the job ended before its training did, all ranks fell silent together, and none had "
        "waited for long");
  } else if (num_working > 0 && all_stand) {
    verdict_.set_verdict(absl::StrCat(
        "cannot tell: nothing moves, and no rank waits in a measurement that is known to be collective; ",
        DescribeRanks(job_, places.begin()->second), " ", DescribePlace(job_, places.begin()->second[0])));
  } else if (!job_.has_times && size() < 2) {
    verdict_.set_verdict("cannot tell: the dump of one rank does not say what others wait for");
  } else {
    verdict_.set_answer(HangVerdict::NOT_HANGING);
    verdict_.set_verdict(
        num_working == 0
            ? "not hanging: all ranks have finished"
            : absl::StrCat("not hanging: ", job_.has_times
                                                ? absl::StrCat("no rank has waited for more than ",
                                                               DescribeSeconds(longest_wait_), " (limit ",
                                                               DescribeSeconds(limit_), ")")
                                                : "no rank waits for another"));
  }
}

void HangAnalyzer::AnswerThatNumbersDoNotTell(const StandingOperation& operation) {
  for (const int rank : job_.groups[operation.operation.group].ranks) {
    const RankState& state = job_.ranks[rank];
    if (state.known() && !state.finished && graph_.OperationsOf(rank).empty() && Stands(rank)) {
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
  *verdict_.mutable_unknown() = {unknown_.begin(), unknown_.end()};
  if (verdict_.causes_size() > 0) {
    LookOutside();
    if (verdict_.causes_size() == 0 || !FindFirstRoots()) return;
    verdict_.set_answer(HangVerdict::HANGING);
    verdict_.set_verdict(JoinCauses());
    AddHeldUp();
    if (!unknown_.empty()) {
      verdict_.add_notes(absl::StrCat("others wait for ", DescribeUnknown()));
    }
  } else if (!unknown_.empty()) {
    verdict_.set_verdict(absl::StrCat("cannot tell: the waits lead to ", DescribeUnknown()));
  } else if (!moving_.empty()) {
    for (const int rank : moving_) AddCause(HangCause::SLOW, {rank}, OperationThatAwaits(rank));
    verdict_.set_answer(HangVerdict::NOT_HANGING);
    verdict_.set_verdict(absl::StrCat("not hanging: ", JoinCauses(), Behind(moving_[0])));
  } else if (!all_came_.empty() &&
             divided_.count(graph_.operations()[*all_came_.begin()].operation.group) > 0) {
    AnswerThatNumbersDoNotTell(graph_.operations()[*all_came_.begin()]);
  } else if (!all_came_.empty()) {
    const StandingOperation& operation = graph_.operations()[*all_came_.begin()];
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
  if (!waiters_.empty()) return false;
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

void HangAnalyzer::Judge() {
  const bool any_gone = std::any_of(job_.ranks.begin(), job_.ranks.end(), IsGone);
  const std::map<int32_t, std::set<std::vector<int>>> parts_of_groups = PartsOfGroups();
  if (!any_gone && FindMismatches(parts_of_groups)) {
    Answer();
  } else if (waiters_.empty() && !any_gone) {
    AnswerWithoutWaiters();
  } else {
    FollowWaits();
    Answer();
  }
}

HangVerdict HangAnalyzer::Run() {
  FindWaiters();
  if (!AllHaveLeft()) Judge();
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
  AddRankRows(job_, graph_, &verdict_);
  return verdict_;
}

}  // namespace

HangVerdict DiagnoseHang(const JobState& job, const HangOptions& options) {
  return HangAnalyzer(job, options).Run();
}

}  // namespace ott
