#include "ott/questions/hang/cause_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/questions/hang/termination.h"

namespace ott {
namespace {

// Only the places of so many culprits are printed.
constexpr size_t kMaxPlaces = 3;

std::string FormatOperation(const std::string& name, int64_t sequence, const std::string& group,
                            int64_t iteration) {
  // Sends and receives of a recorder have no number.
  return absl::StrCat(name, sequence > 0 ? absl::StrCat(" #", sequence) : "", " of group ", group,
                      iteration >= 0 ? absl::StrCat(" (iteration ", iteration, ")") : "");
}

// "ranks 0, 1, 3 have waited for 38 s".
std::string DescribeWaiting(const JobState& job, const HangCause& cause) {
  const std::vector<int> waiting(cause.waiting().begin(), cause.waiting().end());
  return absl::StrCat(
      DescribeRanks(job, waiting), waiting.size() == 1 ? " has waited" : " have waited",
      cause.waited_seconds() > 0 ? " for " + DescribeSeconds(cause.waited_seconds()) : std::string());
}

// Describes what the ranks did, up to the operation.
std::string DescribeKind(HangCause::Kind kind, bool one) {
  switch (kind) {
    case HangCause::NEVER_CAME:
      return "never came to ";
    case HangCause::DEAD:
      return one ? "is dead: its process is gone" : "are dead: their processes are gone";
    case HangCause::STOPPED:
      return one ? "is stopped, by a signal or a debugger" : "are stopped, by a signal or a debugger";
    case HangCause::LEFT:
      return "left training without ending it";
    case HangCause::SILENT:
      return one ? "is dead or stopped: it gives no sign of life"
                 : "are dead or stopped: they give no sign of life";
    case HangCause::DEVICE_STANDS:
      return one ? "called, but its device never began, " : "called, but their devices never began, ";
    case HangCause::NEVER_LEFT:
      return "never left ";
    case HangCause::SLOW:
      return one ? "is behind, but moves" : "are behind, but move";
    default:
      return "is to blame for ";
  }
}

bool SaysWhereOthersWait(HangCause::Kind kind) {
  return kind == HangCause::LEFT || kind == HangCause::DEAD || kind == HangCause::STOPPED ||
         kind == HangCause::SILENT || kind == HangCause::SLOW;
}

}  // namespace

std::string DescribeRanks(const JobState& job, const std::vector<int>& ranks) {
  if (ranks.size() != 1 || job.ranks[ranks[0]].host.empty()) return FormatRanks(ranks);
  return absl::StrCat("rank ", ranks[0], " (", job.ranks[ranks[0]].host, ")");
}

std::string DescribeOperation(const JobState& job, const JobOperation& operation) {
  return FormatOperation(job.names[operation.name], operation.sequence, job.groups[operation.group].name,
                         operation.iteration);
}

std::string DescribeSeconds(double seconds) {
  return absl::StrFormat("%.*f s", seconds < 10 ? 2 : 0, seconds);
}

double SecondsSince(const RankState& rank, int64_t entered_ns) {
  if (entered_ns <= 0 || rank.now_ns <= entered_ns) return 0;
  return static_cast<double>(rank.now_ns - entered_ns) * 1e-9;
}

std::string DescribePlace(const JobState& job, int rank) {
  const RankState& state = job.ranks[rank];
  if (state.finished) return absl::StrCat("has finished its training after ", state.iteration, " iterations");
  if (state.left) return absl::StrCat("was in iteration ", state.iteration);
  if (!state.place.empty()) {
    const double seconds = SecondsSince(state, state.place_since_ns);
    const bool gone =
        state.process == RankState::Process::kDead || state.process == RankState::Process::kSilent;
    return absl::StrCat(
        gone ? "was in \"" : "is in \"", state.place, "\"",
        seconds <= 0 ? std::string() : (gone ? " for " : " since ") + DescribeSeconds(seconds),
        gone || state.cpu_share < 0 ? ""
        : state.computes()          ? ", where it computes"
                                    : ", where it takes no CPU time");
  }
  if (state.last_event_ns > 0) {
    return absl::StrCat("is outside of all measurements since ",
                        DescribeSeconds(SecondsSince(state, state.last_event_ns)));
  }
  if (!state.last_completed.empty()) {
    return absl::StrCat("completed ", state.last_completed, " last");
  }
  return "";
}

std::string DescribeMismatch(const JobState& job, const Mismatch& mismatch) {
  const JobOperation& most = mismatch.operations[0];
  const JobOperation& other = mismatch.operations[1];
  const auto describe = [&](size_t i) {
    const JobOperation& operation = mismatch.operations[i];
    const std::string who = DescribeRanks(job, mismatch.ranks[i]);
    switch (mismatch.of) {
      case Mismatch::Of::kSize:
        return absl::StrCat(who, " with size ", operation.size);
      case Mismatch::Of::kName:
        return absl::StrCat(who, " as \"", job.names[operation.name], "\"");
      case Mismatch::Of::kIteration:
        break;
    }
    return absl::StrCat(who, " in iteration ", operation.iteration);
  };
  std::string text =
      absl::StrCat(describe(1), " called #", other.sequence, " of group ", job.groups[most.group].name,
                   mismatch.of == Mismatch::Of::kSize ? absl::StrCat(" (", job.names[most.name], ")") : "",
                   ", which ", describe(0), " called");
  if (mismatch.of == Mismatch::Of::kIteration) {
    absl::StrAppend(
        &text, ": there", mismatch.or_earlier ? " or earlier, which is not recorded," : "",
        other.iteration > most.iteration ? " it left out one before" : " it called one more before");
  }
  return text;
}

std::string DescribeCauses(const JobState& job, const std::vector<const HangCause*>& causes) {
  const HangCause& first = *causes[0];
  std::vector<int> ranks;
  for (const HangCause* const cause : causes) {
    ranks.insert(ranks.end(), cause->ranks().begin(), cause->ranks().end());
  }
  std::sort(ranks.begin(), ranks.end());
  std::string text =
      absl::StrCat(DescribeRanks(job, ranks), " ", DescribeKind(first.kind(), ranks.size() == 1));
  const std::string ended = DescribeTerminationOfRank(job.ranks[ranks[0]]);
  const bool all_were_ended_so = std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    return DescribeTerminationOfRank(job.ranks[rank]) == ended;
  });
  if (first.kind() == HangCause::DEAD && all_were_ended_so) text += ended;
  const std::string operation =
      FormatOperation(first.operation(), first.sequence(), first.group(), first.iteration());
  if (!first.operation().empty()) {
    if (SaysWhereOthersWait(first.kind())) {
      if (first.waiting_size() > 0) {
        absl::StrAppend(&text, "; ", DescribeWaiting(job, first), " for ", ranks.size() == 1 ? "it" : "them",
                        " at ", operation);
      }
    } else {
      absl::StrAppend(&text, operation);
      if (first.waiting_size() > 0) absl::StrAppend(&text, ", where ", DescribeWaiting(job, first));
    }
  }
  for (size_t i = 0; i < std::min(ranks.size(), kMaxPlaces); ++i) {
    const std::string place = DescribePlace(job, ranks[i]);
    if (place.empty()) continue;
    absl::StrAppend(&text, "; ", ranks.size() == 1 ? "it" : absl::StrCat("rank ", ranks[i]), " ", place);
  }
  if (ranks.size() > kMaxPlaces) text += "; ...";
  return text;
}

}  // namespace ott
