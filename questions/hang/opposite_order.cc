#include "ott/questions/hang/opposite_order.h"

namespace ott {
namespace {

// The rank has entered the first group's operation before the second's; how was it the time before?
bool BreaksItsOrder(const RankState& rank, int32_t first_group, int32_t second_group) {
  int64_t first_before = 0;
  int64_t second_before = 0;
  for (const JobOperation& operation : rank.operations) {
    if (operation.progress != JobOperation::Progress::kCompleted) continue;
    if (operation.group == first_group) first_before = operation.entered_ns;
    if (operation.group == second_group) second_before = operation.entered_ns;
  }
  return first_before > 0 && second_before > 0 && second_before < first_before;
}

}  // namespace

std::vector<int> RanksInOppositeOrder(const JobState& job, const JobOperation& a, const JobOperation& b) {
  if (a.group == b.group) return {};
  std::vector<int> a_first;
  std::vector<int> b_first;
  for (const int rank : job.groups[a.group].ranks) {
    const GroupPosition* const in_a = job.ranks[rank].Position(a.group);
    const GroupPosition* const in_b = job.ranks[rank].Position(b.group);
    if (in_a == nullptr || in_b == nullptr) continue;
    const bool came_to_a = in_a->entered >= a.sequence;
    const bool came_to_b = in_b->entered >= b.sequence;
    if (came_to_a != came_to_b) (came_to_a ? a_first : b_first).push_back(rank);
  }
  if (a_first.size() != b_first.size()) return a_first.size() < b_first.size() ? a_first : b_first;
  std::vector<int> breaking;
  for (const int rank : a_first) {
    if (BreaksItsOrder(job.ranks[rank], a.group, b.group)) breaking.push_back(rank);
  }
  for (const int rank : b_first) {
    if (BreaksItsOrder(job.ranks[rank], b.group, a.group)) breaking.push_back(rank);
  }
  return breaking.size() < a_first.size() + b_first.size() ? breaking : std::vector<int>();
}

}  // namespace ott
