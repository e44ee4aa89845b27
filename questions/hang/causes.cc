#include "ott/questions/hang/causes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/questions/hang/cause_text.h"
#include "ott/questions/hang/mismatch.h"
#include "ott/questions/hang/opposite_order.h"
#include "ott/questions/hang/undeclared_group.h"
#include "ott/questions/hang/wait_graph.h"

namespace ott {
namespace {

using Process = RankState::Process;
using Progress = JobOperation::Progress;

// The last signs of life of two ranks are so uncertain: heartbeats come each second, and clocks of hosts may
// be apart.
constexpr int64_t kDoubtHere = 1500000000;
constexpr int64_t kDoubtElsewhere = 10000000000;

// Returns true if, for all that their last signs of life tell, the first of two that are gone went earlier.
// Ranks note when they leave. REQUIRES: the second waited for the first.
bool WentBefore(const RankState& a, const RankState& b) {
  // A rank that leaves an operation was told of an error there. A killed one that gave no sign of life
  // afterwards explains it, unless its launcher ended it, as it does after the first error.
  if (b.left && !a.left) return a.terminated_ns == 0 && a.now_ns <= b.now_ns;
  if (a.left != b.left) return a.left;
  const int64_t doubt = a.host != b.host ? kDoubtElsewhere : a.left ? 0 : kDoubtHere;
  return a.now_ns + doubt < b.now_ns;
}

void SetOperation(const JobState& job, const JobOperation& operation, HangCause* cause) {
  cause->set_group(job.groups[operation.group].name);
  cause->set_operation(job.names[operation.name]);
  cause->set_sequence(static_cast<uint32_t>(operation.sequence));
  cause->set_iteration(static_cast<int32_t>(operation.iteration));
}

// Says what is wrong with calls that wait in a circle, where nobody is known to be to blame.
const char* DescribeCircle(const WaitGraph& graph, const std::vector<WaitGraph::Step>& cycle) {
  const auto all = [&](JobOperation::Direction direction) {
    return std::all_of(cycle.begin(), cycle.end(), [&](const WaitGraph::Step& step) {
      return graph.operations()[step.operation].operation.direction == direction;
    });
  };
  if (all(JobOperation::Direction::kCollective))
    return "; they call the groups in opposite order, and nothing tells which order is wrong";
  if (all(JobOperation::Direction::kReceive))
    return "; all of them receive and none sends, and nothing tells who left a send out";
  if (all(JobOperation::Direction::kSend))
    return "; all of them send and none receives, and nothing tells who is to receive first";
  return "; nothing tells which of them calls in the wrong order";
}

class CauseFinder {
 public:
  CauseFinder(JobWaits& waits, HangVerdict& verdict)
      : job_(waits.job()), waits_(waits), graph_(waits.graph()), verdict_(verdict) {}

  WaitEnds Run();

 private:
  HangCause& AddCause(HangCause::Kind kind, const std::vector<int>& ranks, int operation) {
    return ott::AddCause(waits_, kind, ranks, operation, &verdict_);
  }
  // Returns, for each group whose operations show its members to be apart, the parts that some ranks stand
  // in.
  std::map<int32_t, std::set<std::vector<int>>> PartsOfGroups();
  void NoteContradiction(const Contradiction& contradiction);
  bool FindMismatches(const std::map<int32_t, std::set<std::vector<int>>>& parts_of_groups);
  void AddMismatch(const Mismatch& mismatch, const std::vector<int>& members);
  // Adds calls that differ and to which all ranks came that are gone: libraries end ranks for that.
  bool FindMismatchesOfThoseGone();
  // A rank that is gone waited for one that is still there and stands, or of which nothing is known: that may
  // be why it is gone.
  bool IsConsequence(int rank) const;
  // Returns true if the last operation of a rank that left needs one that went before and never came, or of
  // which nothing is known: it ended by an error.
  bool FailedForWantOfAnother(int rank) const;
  void NoteConsequence(int rank, const char* why);
  void FollowWaits();
  void AddEnd(int rank);
  void AddFinished(int rank);
  void AddCycle(const std::vector<int>& ranks);
  // A culprit may wait in a check or a gather of this library, which comes after all collectives of an
  // iteration: then it never came to the other's. Returns true if it was so.
  bool AddThoseAtTheObserver(const std::vector<WaitGraph::Step>& cycle, const std::vector<int>& culprits);
  std::vector<int> CulpritsOfCycle(const std::vector<WaitGraph::Step>& cycle) const;
  // Ranks that have not completed what other members of the group completed, which these could not have done
  // without them: each with the first such operation.
  void FindNeverLeft();
  void FindNeverLeft(int32_t group);

  const JobState& job_;
  JobWaits& waits_;
  WaitGraph& graph_;
  HangVerdict& verdict_;
  WaitEnds ends_;
  std::map<int, size_t> never_left_;  // by rank the index of the operation
  // Indices of operations that ranks wait in for those that have finished.
  std::set<int> said_of_finished_;
};

std::map<int32_t, std::set<std::vector<int>>> CauseFinder::PartsOfGroups() {
  std::map<int32_t, std::set<std::vector<int>>> parts;
  for (const int rank : waits_.waiters()) {
    for (const int i : graph_.OperationsOf(rank)) {
      const int32_t group = graph_.operations()[i].operation.group;
      if (parts.count(group) == 0) {
        const std::optional<Contradiction> contradiction = FindContradiction(job_, group);
        if (contradiction.has_value()) {
          ends_.divided.insert(group);
          NoteContradiction(*contradiction);
        }
      }
      parts[group].insert(ends_.divided.count(group) > 0 ? MayMeet(job_, group, rank)
                                                         : job_.groups[group].ranks);
    }
  }
  return parts;
}

void CauseFinder::NoteContradiction(const Contradiction& contradiction) {
  const std::string unlike =
      DescribeUnlikeUse(job_, contradiction.completed.group, contradiction.completed.name);
  verdict_.add_notes(absl::StrCat(
      "rank ", contradiction.rank, " completed ", DescribeOperation(job_, contradiction.completed),
      " without rank ", contradiction.without, ", so that they are in different groups",
      unlike.empty() ? "" : "; " + unlike, "; say who waits for whom (stopwatch { collective_groups })"));
}

bool CauseFinder::FindMismatches(const std::map<int32_t, std::set<std::vector<int>>>& parts_of_groups) {
  for (const auto& [group, parts] : parts_of_groups) {
    for (const std::vector<int>& members : parts) {
      const std::optional<Mismatch> mismatch = FindMismatch(job_, group, members);
      if (!mismatch.has_value()) continue;
      const std::string unlike = mismatch->of == Mismatch::Of::kIteration
                                     ? DescribeUnlikeUse(job_, group, mismatch->operations[0].name)
                                     : "";
      if (unlike.empty()) {
        AddMismatch(*mismatch, members);
      } else if (ends_.divided.insert(group).second) {
        verdict_.add_notes(unlike);
      }
    }
  }
  return verdict_.causes_size() > 0;
}

void CauseFinder::AddMismatch(const Mismatch& mismatch, const std::vector<int>& members) {
  const auto num_absent = std::count_if(members.begin(), members.end(), [&](int rank) {
    const GroupPosition* const position = job_.ranks[rank].Position(mismatch.operations[0].group);
    return position == nullptr || position->enqueued < mismatch.operations[0].sequence;
  });
  std::vector<int> culprits;
  if (mismatch.has_majority(static_cast<size_t>(num_absent))) {
    for (size_t i = 1; i < mismatch.ranks.size(); ++i) {
      culprits.insert(culprits.end(), mismatch.ranks[i].begin(), mismatch.ranks[i].end());
    }
  }
  const HangCause::Kind kind = mismatch.of == Mismatch::Of::kSize   ? HangCause::DIFFERENT_SIZE
                               : mismatch.of == Mismatch::Of::kName ? HangCause::DIFFERENT_OPERATION
                                                                    : HangCause::DIFFERENT_ITERATIONS;
  HangCause& cause = AddCause(kind, culprits, -1);
  SetOperation(job_, mismatch.operations[0], &cause);
  cause.set_text(absl::StrCat(DescribeMismatch(job_, mismatch),
                              culprits.empty() ? "; there is no majority, so nobody is blamed" : ""));
}

bool CauseFinder::FindMismatchesOfThoseGone() {
  std::vector<int> gone;
  for (int rank = 0; rank < static_cast<int>(job_.ranks.size()); ++rank) {
    if (IsGone(job_.ranks[rank])) gone.push_back(rank);
  }
  for (int32_t group = 0; group < static_cast<int32_t>(job_.groups.size()); ++group) {
    if (FindContradiction(job_, group).has_value()) continue;
    const std::vector<int>& members = job_.groups[group].ranks;
    const std::optional<Mismatch> mismatch = FindMismatch(job_, group, members);
    if (!mismatch.has_value() || !mismatch->is_of_unlike_calls) continue;
    const bool all_came = std::all_of(gone.begin(), gone.end(), [&](int rank) {
      const GroupPosition* const position = job_.ranks[rank].Position(group);
      return position != nullptr && position->enqueued >= mismatch->operations[0].sequence;
    });
    if (all_came) AddMismatch(*mismatch, members);
  }
  if (verdict_.causes_size() == 0) return false;
  for (const int rank : gone) NoteConsequence(rank, "but came there before");
  return true;
}

void CauseFinder::NoteConsequence(int rank, const char* why) {
  verdict_.add_notes(
      absl::StrCat(DescribeRanks(job_, {rank}), " is gone, ", why, ": that may be a consequence"));
}

bool CauseFinder::FailedForWantOfAnother(int rank) const {
  const RankState& state = job_.ranks[rank];
  if (!state.left || state.operations.empty()) return false;
  const JobOperation& last = state.operations.back();
  if (last.direction != JobOperation::Direction::kCollective || !last.synchronizes) return false;
  const std::vector<int>& members = job_.groups[last.group].ranks;
  return std::any_of(members.begin(), members.end(), [&](int member) {
    const RankState& other = job_.ranks[member];
    if (!other.known()) return true;
    const GroupPosition* const position = other.Position(last.group);
    return IsGone(other) && position != nullptr && position->entered < last.sequence &&
           WentBefore(other, state);
  });
}

bool CauseFinder::IsConsequence(int rank) const {
  if (FailedForWantOfAnother(rank)) return true;
  if (!graph_.Waits(rank)) return false;
  for (const std::vector<int>& end : graph_.Ends({rank})) {
    if (end.size() > 1) return true;
    const RankState& awaited = job_.ranks[end[0]];
    if (!awaited.known()) return true;
    if (IsGone(awaited) ? WentBefore(awaited, job_.ranks[rank]) : waits_.Stands(end[0])) return true;
  }
  return false;
}

void CauseFinder::FollowWaits() {
  std::vector<int> gone;
  for (int rank = 0; rank < static_cast<int>(job_.ranks.size()); ++rank) {
    if (!IsGone(job_.ranks[rank])) continue;
    if (IsConsequence(rank)) {
      NoteConsequence(rank, "too, but waited for others then");
    } else {
      gone.push_back(rank);
    }
  }
  for (const int rank : gone) graph_.Cut(rank);
  FindNeverLeft();
  for (const std::vector<int>& end : graph_.Ends(waits_.waiters())) {
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
    AddCause(kind, {rank}, waits_.OperationThatAwaits(rank));
  }
}

void CauseFinder::AddEnd(int rank) {
  const RankState& state = job_.ranks[rank];
  const int awaited_at = waits_.OperationThatAwaits(rank);
  if (!state.known()) {
    ends_.unknown.push_back(rank);
    return;
  }
  if (IsGone(state)) return;
  if (state.finished) return AddFinished(rank);
  if (never_left_.count(rank) > 0) return;
  if (!graph_.OperationsOf(rank).empty()) {
    ends_.all_came.insert(graph_.OperationsOf(rank)[0]);
    return;
  }
  if (awaited_at < 0) return;
  const JobOperation& operation = graph_.operations()[awaited_at].operation;
  const bool is_collective = operation.direction == JobOperation::Direction::kCollective;
  const GroupPosition* const position = state.Position(operation.group);
  if (is_collective && position == nullptr) {
    ends_.unknown.push_back(rank);
  } else if (!waits_.Stands(rank)) {
    ends_.moving.push_back(rank);
  } else {
    const bool called = is_collective ? position->enqueued >= operation.sequence
                                      : state.HasOtherHalf(graph_.operations()[awaited_at].standing[0],
                                                           operation, Progress::kEnqueued);
    AddCause(job_.records_entry && called ? HangCause::DEVICE_STANDS : HangCause::NEVER_CAME, {rank},
             awaited_at);
  }
}

void CauseFinder::AddFinished(int rank) {
  const int awaited_at = waits_.OperationThatAwaits(rank);
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

std::vector<int> CauseFinder::CulpritsOfCycle(const std::vector<WaitGraph::Step>& cycle) const {
  std::set<int> operations;
  for (const WaitGraph::Step& step : cycle) operations.insert(step.operation);
  if (operations.size() != 2) return {};
  return RanksInOppositeOrder(job_, graph_.operations()[*operations.begin()].operation,
                              graph_.operations()[*operations.rbegin()].operation);
}

bool CauseFinder::AddThoseAtTheObserver(const std::vector<WaitGraph::Step>& cycle,
                                        const std::vector<int>& culprits) {
  for (const WaitGraph::Step& step : cycle) {
    const StandingOperation& operation = graph_.operations()[step.operation];
    if (operation.operation.synchronizes) continue;
    const bool all_there = std::all_of(culprits.begin(), culprits.end(), [&](int rank) {
      return std::binary_search(operation.standing.begin(), operation.standing.end(), rank);
    });
    if (culprits.empty() || !all_there) continue;
    for (const int rank : culprits) AddCause(HangCause::NEVER_CAME, {rank}, waits_.OperationThatAwaits(rank));
    return true;
  }
  return false;
}

void CauseFinder::AddCycle(const std::vector<int>& ranks) {
  const std::vector<WaitGraph::Step> cycle = graph_.Cycle(ranks);
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
    text += DescribeCircle(graph_, cycle);
  } else {
    absl::StrAppend(&text, "; ", DescribeRanks(job_, culprits), culprits.size() == 1 ? " calls" : " call",
                    " the groups in another order than the rest");
  }
  cause.set_text(text);
}

void CauseFinder::FindNeverLeft(int32_t group) {
  if (ends_.divided.count(group) > 0 || job_.is_of_gloo) return;
  const std::vector<int>& members = job_.groups[group].ranks;
  int64_t completed = -1;
  // If some never came to an operation, others completed it without them, and so they may have done without
  // those that stand in it. One of which nothing is known may not have come, unless all complete it together.
  int64_t came_to = std::numeric_limits<int64_t>::max();
  bool all_known = true;
  for (const int rank : members) {
    const GroupPosition* const position = job_.ranks[rank].Position(group);
    all_known = all_known && position != nullptr;
    if (position == nullptr) continue;
    completed = std::max(completed, position->completed);
    came_to = std::min(came_to, position->entered);
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
    if (!job_.ranks[rank].operations[i].synchronizes && (found.size() > 1 || !all_known)) continue;
    if (!waits_.Stands(rank) || IsGone(job_.ranks[rank])) continue;
    size_t& first = never_left_.emplace(rank, i).first->second;
    first = std::min(first, i);
  }
}

void CauseFinder::FindNeverLeft() {
  std::set<int32_t> groups;
  for (const RankState& rank : job_.ranks) {
    for (const JobOperation& operation : rank.operations) {
      if (operation.progress != Progress::kCompleted) groups.insert(operation.group);
    }
  }
  for (const int32_t group : groups) FindNeverLeft(group);
  for (const auto& [rank, i] : never_left_) {
    graph_.Cut(rank);
    SetOperation(job_, job_.ranks[rank].operations[i], &AddCause(HangCause::NEVER_LEFT, {rank}, -1));
  }
}

WaitEnds CauseFinder::Run() {
  const bool any_gone = std::any_of(job_.ranks.begin(), job_.ranks.end(), IsGone);
  const std::map<int32_t, std::set<std::vector<int>>> parts_of_groups = PartsOfGroups();
  if (any_gone ? FindMismatchesOfThoseGone() : FindMismatches(parts_of_groups)) return ends_;
  if (any_gone || !waits_.waiters().empty()) FollowWaits();
  return ends_;
}

}  // namespace

HangCause& AddCause(const JobWaits& waits, HangCause::Kind kind, const std::vector<int>& ranks, int operation,
                    HangVerdict* verdict) {
  const JobState& job = waits.job();
  HangCause& cause = *verdict->add_causes();
  cause.set_kind(kind);
  *cause.mutable_ranks() = {ranks.begin(), ranks.end()};
  cause.set_iteration(-1);
  if (operation >= 0) {
    const StandingOperation& standing = waits.graph().operations()[operation];
    SetOperation(job, standing.operation, &cause);
    for (const int rank : standing.standing) {
      if (ranks.size() == 1 && rank == ranks[0]) continue;
      cause.add_waiting(rank);
      cause.set_waited_seconds(std::max(cause.waited_seconds(), waits.Waited(rank, standing.operation)));
    }
  }
  if (ranks.size() == 1) {
    cause.set_place(job.ranks[ranks[0]].place);
    cause.set_place_seconds(SecondsSince(job.ranks[ranks[0]], job.ranks[ranks[0]].place_since_ns));
  }
  return cause;
}

WaitEnds FindCauses(JobWaits* waits, HangVerdict* verdict) { return CauseFinder(*waits, *verdict).Run(); }

}  // namespace ott
