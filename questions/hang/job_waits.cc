#include "ott/questions/hang/job_waits.h"

#include <algorithm>

#include "ott/questions/hang/cause_text.h"

namespace ott {

bool IsGone(const RankState& rank) {
  return rank.known() && !rank.finished &&
         (rank.left || rank.process == RankState::Process::kDead ||
          rank.process == RankState::Process::kStopped || rank.process == RankState::Process::kSilent);
}

JobWaits::JobWaits(const JobState& job, double limit) : job_(job), limit_(limit), graph_(job) {
  for (int rank = 0; rank < static_cast<int>(job_.ranks.size()); ++rank) {
    if (job_.ranks[rank].finished) graph_.Cut(rank);
    double waited = -1;
    for (const int i : graph_.OperationsOf(rank)) {
      waited = std::max(waited, Waited(rank, graph_.operations()[i].operation));
    }
    if (waited < 0 || job_.ranks[rank].finished) continue;
    longest_ = std::max(longest_, waited);
    if (!job_.has_times || waited >= limit_) waiters_.push_back(rank);
  }
}

bool JobWaits::Stands(int rank) const {
  const RankState& state = job_.ranks[rank];
  return !job_.has_times || state.finished || IsGone(state) ||
         SecondsSince(state, state.last_event_ns) >= limit_;
}

double JobWaits::Waited(int rank, const JobOperation& operation) const {
  return SecondsSince(job_.ranks[rank], job_.ranks[rank].Entered(operation)->entered_ns);
}

int JobWaits::OperationThatAwaits(int rank) const {
  int best = -1;
  for (int i = 0; i < static_cast<int>(graph_.operations().size()); ++i) {
    if (!graph_.Awaits(i, rank)) continue;
    if (best < 0 || graph_.operations()[i].standing.size() > graph_.operations()[best].standing.size()) {
      best = i;
    }
  }
  return best;
}

}  // namespace ott
