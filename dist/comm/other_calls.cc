#include "ott/dist/comm/other_calls.h"

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

constexpr int kToRankZero = 0;
constexpr int kFromRankZero = 1;
static_assert(kFromRankZero < kTagsOfOtherCalls);

// Also to those that are silent: they may meet the failure later.
void PostToAll(Communicator& ranks, std::string_view calls) {
  for (int rank = 1; rank < ranks.size(); ++rank) ranks.Post(rank, kFromRankZero, calls).IgnoreError();
}

std::string NothingFrom(const Communicator& ranks, int rank) {
  return absl::StrCat("nothing from ", FormatRank(rank, ranks.host(rank)));
}

std::string CollectCalls(Communicator& ranks, std::string_view call, Deadline deadline) {
  std::map<std::string, std::vector<int>> callers;
  callers[std::string(call)].push_back(0);
  std::vector<std::string> silent;
  for (int rank = 1; rank < ranks.size(); ++rank) {
    const absl::StatusOr<std::string> theirs = ranks.Receive(rank, kToRankZero, deadline);
    if (theirs.ok()) {
      callers[*theirs].push_back(rank);
    } else {
      silent.push_back(NothingFrom(ranks, rank));
    }
  }
  std::vector<std::string> parts;
  for (const auto& [what, who] : callers) {
    const std::string names = who.size() == 1 ? FormatRank(who[0], ranks.host(who[0])) : FormatRanks(who);
    parts.push_back(absl::StrCat(names, " called ", what));
  }
  parts.insert(parts.end(), silent.begin(), silent.end());
  return absl::StrJoin(parts, "; ");
}

}  // namespace

std::string DescribeCalls(Communicator& ranks, std::string_view call, std::chrono::nanoseconds patience) {
  if (ranks.rank() != 0) {
    ranks.Post(0, kToRankZero, call).IgnoreError();
    const absl::StatusOr<std::string> told = ranks.Receive(0, kFromRankZero, Deadline::After(2 * patience));
    return told.ok() ? *told : absl::StrCat("called ", std::string(call), "; ", NothingFrom(ranks, 0));
  }
  const std::string calls = CollectCalls(ranks, call, Deadline::After(patience));
  PostToAll(ranks, calls);
  return calls;
}

void PostCall(Communicator& ranks, std::string_view call) {
  if (ranks.rank() != 0) {
    ranks.Post(0, kToRankZero, call).IgnoreError();
    return;
  }
  PostToAll(ranks, absl::StrCat(FormatRank(0, ranks.host(0)), " called ", std::string(call)));
}

}  // namespace ott
