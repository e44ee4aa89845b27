#include "ott/questions/hang/rank_rows.h"

#include <vector>

#include "ott/questions/hang/cause_text.h"

namespace ott {
namespace {

HangRank::State StateOf(const RankState& state, bool waits) {
  using Process = RankState::Process;
  if (!state.known()) return HangRank::UNKNOWN;
  if (state.finished) return HangRank::FINISHED;
  if (state.left) return HangRank::LEFT;
  switch (state.process) {
    case Process::kDead:
      return HangRank::DEAD;
    case Process::kStopped:
      return HangRank::STOPPED;
    case Process::kSilent:
      return HangRank::SILENT;
    default:
      return waits ? HangRank::WAITS : HangRank::WORKS;
  }
}

}  // namespace

void AddRankRows(const JobState& job, const WaitGraph& graph, HangVerdict* verdict) {
  for (int rank = 0; rank < static_cast<int>(job.ranks.size()); ++rank) {
    const RankState& state = job.ranks[rank];
    const std::vector<int>& operations = graph.OperationsOf(rank);
    HangRank& row = *verdict->add_ranks();
    row.set_rank(rank);
    row.set_host(state.host);
    row.set_state(StateOf(state, !operations.empty()));
    row.set_iteration(static_cast<int32_t>(state.iteration));
    row.set_last_completed(state.last_completed);
    row.set_place(state.place);
    row.set_seconds(SecondsSince(state, state.place.empty() ? state.last_event_ns : state.place_since_ns));
    if (operations.empty() || !state.known()) continue;
    // By the name that this rank called it by.
    const JobOperation& own = *state.Entered(graph.operations()[operations[0]].operation);
    row.set_place(DescribeOperation(job, own));
    row.set_seconds(SecondsSince(state, own.entered_ns));
  }
}

}  // namespace ott
