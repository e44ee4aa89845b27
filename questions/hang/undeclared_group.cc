#include "ott/questions/hang/undeclared_group.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

// Fewer say nothing of how often a rank calls an operation.
constexpr int kMinIterations = 4;

bool IsOf(const JobOperation& operation, int32_t group) {
  return operation.group == group && operation.direction == JobOperation::Direction::kCollective;
}

// Returns the operation that the rank completed and that the other never came to; null if there is none.
const JobOperation* CompletedWithout(const RankState& rank, const GroupPosition& other, int32_t group) {
  const auto found =
      std::find_if(rank.operations.rbegin(), rank.operations.rend(), [&](const JobOperation& operation) {
        return IsOf(operation, group) && operation.synchronizes &&
               operation.progress == JobOperation::Progress::kCompleted && operation.sequence > other.entered;
      });
  return found != rank.operations.rend() ? &*found : nullptr;
}

// Calls of the operation in an iteration, of those that are known from begin to end; 0: too few are.
double CallsPerIteration(const RankState& rank, int32_t group, int32_t name) {
  std::map<int64_t, int> calls;
  for (const JobOperation& operation : rank.operations) {
    if (IsOf(operation, group) && operation.name == name) ++calls[operation.iteration];
  }
  // The first may have begun before the ring does, the last may go on.
  if (calls.size() < kMinIterations + 2) return 0;
  calls.erase(calls.begin());
  calls.erase(std::prev(calls.end()));
  double sum = 0;
  for (const auto& [iteration, count] : calls) sum += count;
  return sum / static_cast<double>(calls.rbegin()->first - calls.begin()->first + 1);
}

std::string FormatTimes(double calls) {
  return calls == 1 ? "once" : absl::StrCat(std::round(calls * 100) / 100, " times");
}

}  // namespace

int64_t CompletedTogether(const RankState& rank, int32_t group, int32_t name) {
  int64_t completed = 0;
  for (const JobOperation& operation : rank.operations) {
    if (IsOf(operation, group) && operation.name == name && operation.synchronizes &&
        operation.progress == JobOperation::Progress::kCompleted) {
      completed = std::max(completed, operation.sequence);
    }
  }
  return completed;
}

std::optional<Contradiction> FindContradiction(const JobState& job, int32_t group) {
  if (job.groups[group].is_declared) return std::nullopt;
  int last = -1;
  for (const int rank : job.groups[group].ranks) {
    const GroupPosition* const position = job.ranks[rank].Position(group);
    if (position != nullptr && (last < 0 || position->entered < job.ranks[last].Position(group)->entered))
      last = rank;
  }
  if (last < 0) return std::nullopt;
  for (const int rank : job.groups[group].ranks) {
    const JobOperation* const completed =
        CompletedWithout(job.ranks[rank], *job.ranks[last].Position(group), group);
    if (completed != nullptr) return Contradiction{*completed, rank, last};
  }
  return std::nullopt;
}

std::vector<int> MayMeet(const JobState& job, int32_t group, int rank) {
  const GroupPosition* const own = job.ranks[rank].Position(group);
  std::vector<int> meeting;
  for (const int other : job.groups[group].ranks) {
    const GroupPosition* const position = job.ranks[other].Position(group);
    const bool apart = own != nullptr && position != nullptr &&
                       (CompletedWithout(job.ranks[rank], *position, group) != nullptr ||
                        CompletedWithout(job.ranks[other], *own, group) != nullptr);
    if (!apart) meeting.push_back(other);
  }
  return meeting;
}

std::string DescribeUnlikeUse(const JobState& job, int32_t group, int32_t name) {
  // By hundredths of a call.
  std::map<int64_t, std::vector<int>, std::greater<>> by_calls;
  for (const int rank : job.groups[group].ranks) {
    const double calls = CallsPerIteration(job.ranks[rank], group, name);
    if (calls > 0) by_calls[std::llround(calls * 100)].push_back(rank);
  }
  // A rank that left out one in many iterations does not use it for something else.
  if (by_calls.empty() || 2 * by_calls.begin()->first < 3 * by_calls.rbegin()->first) return "";
  std::vector<std::string> uses;
  for (const auto& [hundredths, ranks] : by_calls) {
    uses.push_back(absl::StrCat(FormatRanks(ranks), ranks.size() == 1 ? " calls it " : " call it ",
                                FormatTimes(static_cast<double>(hundredths) / 100)));
  }
  return absl::StrCat("the name ", job.names[name],
                      " is used for unlike collectives: ", absl::StrJoin(uses, ", "), " an iteration");
}

}  // namespace ott
