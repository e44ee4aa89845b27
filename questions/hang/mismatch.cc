#include "ott/questions/hang/mismatch.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace ott {
namespace {

struct Called {
  int rank;
  const JobOperation* operation;
};

int64_t Trait(const JobOperation& operation, Mismatch::Of of) {
  switch (of) {
    case Mismatch::Of::kName:
      return operation.name;
    case Mismatch::Of::kSize:
      return operation.size;
    case Mismatch::Of::kIteration:
      return operation.iteration;
  }
  return 0;
}

// Ranks by what they have, the most frequent first; fewer than two where they agree. -1 agrees with all.
std::optional<Mismatch> Differ(const std::vector<Called>& calls, Mismatch::Of of) {
  std::map<int64_t, std::vector<Called>> by_trait;
  for (const Called& call : calls) {
    if (Trait(*call.operation, of) >= 0) by_trait[Trait(*call.operation, of)].push_back(call);
  }
  if (by_trait.size() < 2) return std::nullopt;
  std::vector<std::vector<Called>> sorted;
  for (auto& [trait, with_it] : by_trait) sorted.push_back(std::move(with_it));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.size() > b.size(); });
  Mismatch mismatch;
  mismatch.of = of;
  for (const std::vector<Called>& with_it : sorted) {
    mismatch.operations.push_back(*with_it[0].operation);
    mismatch.ranks.emplace_back();
    for (const Called& call : with_it) mismatch.ranks.back().push_back(call.rank);
  }
  return mismatch;
}

bool Includes(const std::vector<Called>& calls, int rank) {
  return std::any_of(calls.begin(), calls.end(), [rank](const Called& call) { return call.rank == rank; });
}

bool AllCompleted(const std::vector<Called>& calls) {
  return std::all_of(calls.begin(), calls.end(), [](const Called& call) {
    return call.operation->progress == JobOperation::Progress::kCompleted;
  });
}

}  // namespace

bool Mismatch::has_majority(size_t num_absent) const {
  size_t all = num_absent;
  for (const std::vector<int>& with_it : ranks) all += with_it.size();
  return 2 * ranks[0].size() > all;
}

std::optional<Mismatch> FindMismatch(const JobState& job, int32_t group, const std::vector<int>& members) {
  std::map<int64_t, std::vector<Called>> by_sequence;
  for (const int rank : members) {
    for (const JobOperation& operation : job.ranks[rank].operations) {
      if (operation.group == group && operation.direction == JobOperation::Direction::kCollective) {
        by_sequence[operation.sequence].push_back({rank, &operation});
      }
    }
  }
  // Ranks that differ by habit, by operations that all completed. Iterations that differ are kept: an
  // operation that was left out shifts all that follow, which may complete all the same.
  std::set<std::pair<Mismatch::Of, int>> habits;
  std::optional<Mismatch> shifted;
  bool agreed = false;
  for (const auto& [sequence, calls] : by_sequence) {
    const bool completed = AllCompleted(calls);
    for (const Mismatch::Of of : {Mismatch::Of::kName, Mismatch::Of::kSize}) {
      std::optional<Mismatch> found = Differ(calls, of);
      if (!found.has_value()) continue;
      bool is_habit = completed;
      for (size_t i = 1; i < found->ranks.size(); ++i) {
        for (const int rank : found->ranks[i]) {
          if (completed) habits.emplace(of, rank);
          is_habit = is_habit || habits.count({of, rank}) > 0;
        }
      }
      if (is_habit) continue;
      if (shifted.has_value()) found = shifted;
      found->is_of_unlike_calls = true;
      return found;
    }
    const std::optional<Mismatch> iterations = Differ(calls, Mismatch::Of::kIteration);
    if (!shifted.has_value() && iterations.has_value()) {
      shifted = iterations;
      shifted->or_earlier = !agreed && sequence > 1;
    }
    agreed = agreed || sequence == 1 || (calls.size() > 1 && !iterations.has_value());
    // Ranks that agree again never left out anything.
    if (shifted.has_value() && !iterations.has_value() && Includes(calls, shifted->ranks[1][0]))
      shifted.reset();
  }
  return shifted;
}

}  // namespace ott
