#include "questions/saved/meetings.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "ott/core/statistics/policy.h"

namespace ott::saved {
namespace {

// Comparing all pairs of more ranks takes too long.
constexpr size_t kMaxRanksInPairs = 256;

}  // namespace

void Meetings::Declare(int32_t name, size_t rank, int32_t group) {
  std::vector<int32_t>& groups = declared_[name];
  groups.resize(num_ranks_);
  groups[rank] = group;
}

int32_t Meetings::DeclaredGroup(int32_t name, size_t rank) const {
  const auto declared = declared_.find(name);
  return declared != declared_.end() ? declared->second[rank] : 0;
}

void Meetings::Learn(const std::vector<std::vector<std::vector<Piece>>>& blocks, int64_t error_bound) {
  std::map<Kind, std::map<int64_t, std::vector<Stay>>> all;
  for (const auto& block : blocks) {
    for (size_t rank = 0; rank < block.size(); ++rank) {
      for (const Piece& piece : block[rank]) {
        if (piece.ordinal < 0) continue;
        all[{piece.name, piece.ordinal}][piece.iteration].push_back({rank, piece.start, piece.end});
      }
    }
  }
  for (const auto& [kind, occurrences] : all) LearnMeeting(kind, occurrences, error_bound);
}

void Meetings::LearnMeeting(const Kind& kind, const std::map<int64_t, std::vector<Stay>>& occurrences,
                            int64_t error_bound) {
  Meeting& meeting = meetings_[kind];
  meeting.comes.resize(num_ranks_);
  const auto declared = declared_.find(kind.first);
  meeting.group = declared != declared_.end() ? declared->second : std::vector<int32_t>(num_ranks_);
  meeting.for_.resize(num_ranks_);
  int64_t num_violated = 0;
  for (const auto& [unused_iteration, stays] : occurrences) {
    struct Times {
      int64_t latest = std::numeric_limits<int64_t>::min();
      int64_t first_end = std::numeric_limits<int64_t>::max();
    };
    std::map<int32_t, Times> of_group;
    for (const Stay& stay : stays) {
      meeting.comes[stay.rank] = 1;
      Times& times = of_group[meeting.group[stay.rank]];
      times.latest = std::max(times.latest, stay.start);
      times.first_end = std::min(times.first_end, stay.end);
    }
    num_violated += std::any_of(of_group.begin(), of_group.end(), [&](const auto& group) {
      return group.second.first_end + 2 * error_bound < group.second.latest;
    });
  }
  const auto count = static_cast<double>(occurrences.size());
  if (static_cast<double>(num_violated) <= kMaxLeftBefore * count || num_ranks_ > kMaxRanksInPairs) return;
  Split(occurrences, error_bound, meeting);
  if (declared != declared_.end()) return;
  const std::set<int32_t> groups(meeting.group.begin(), meeting.group.end());
  int& found = num_groups_found_[kind.first];
  found = std::max(found, static_cast<int>(groups.size()));
}

void Meetings::Split(const std::map<int64_t, std::vector<Stay>>& occurrences, int64_t error_bound,
                     Meeting& meeting) const {
  // Counts for each pair: how often both came, the first before the second, and the first left before that.
  struct Counts {
    double together = 0;
    double came_first = 0;
    double left = 0;
  };
  std::vector<Counts> counts(num_ranks_ * num_ranks_);
  for (const auto& [unused_iteration, stays] : occurrences) {
    for (const Stay& a : stays) {
      for (const Stay& b : stays) {
        if (a.rank == b.rank || meeting.group[a.rank] != meeting.group[b.rank]) continue;
        Counts& of_pair = counts[a.rank * num_ranks_ + b.rank];
        ++of_pair.together;
        of_pair.came_first += a.start < b.start;
        of_pair.left += a.end + 2 * error_bound < b.start;
      }
    }
  }
  const auto of = [&](size_t a, size_t b) -> const Counts& { return counts[a * num_ranks_ + b]; };
  const auto wait_for_each_other = [&](size_t a, size_t b) {
    const double most = kMaxLeftBefore * of(a, b).together;
    return of(a, b).together > 0 && of(a, b).left <= most && of(b, a).left <= most;
  };
  // All of a group wait for each other: one that comes late itself may seem to wait with those of two groups.
  std::vector<std::vector<size_t>> groups;
  for (size_t rank = 0; rank < num_ranks_; ++rank) {
    size_t group = 0;
    while (group < groups.size() &&
           !std::all_of(groups[group].begin(), groups[group].end(),
                        [&](size_t other) { return wait_for_each_other(other, rank); })) {
      ++group;
    }
    if (group == groups.size()) groups.emplace_back();
    groups[group].push_back(rank);
    meeting.group[rank] = static_cast<int32_t>(group);
  }
  for (size_t a = 0; a < num_ranks_; ++a) {
    for (size_t b = 0; b < num_ranks_; ++b) {
      if (a == b || meeting.group[a] == meeting.group[b]) continue;
      const Counts& of_pair = of(a, b);
      if (of_pair.came_first >= std::max(1.0, kMinCameFirst * of_pair.together) &&
          of_pair.left <= kMaxLeftBefore * of_pair.came_first) {
        meeting.for_[a].push_back(b);
      }
    }
  }
}

int32_t Meetings::GroupOf(const Piece& piece, size_t rank) const {
  return meetings_.at({piece.name, piece.ordinal}).group[rank];
}

std::vector<size_t> Meetings::WaitsFor(const Piece& piece, size_t rank) const {
  return meetings_.at({piece.name, piece.ordinal}).for_[rank];
}

bool Meetings::IsOfAll(const Piece& piece) const {
  const Meeting& meeting = meetings_.at({piece.name, piece.ordinal});
  return std::count(meeting.comes.begin(), meeting.comes.end(), 0) == 0 &&
         std::count(meeting.group.begin(), meeting.group.end(), meeting.group[0]) ==
             static_cast<int64_t>(num_ranks_);
}

std::vector<int> Meetings::Components() const {
  std::vector<int> component(num_ranks_);
  std::iota(component.begin(), component.end(), 0);
  const auto join = [&](size_t a, size_t b) {
    const int from = std::max(component[a], component[b]);
    const int to = std::min(component[a], component[b]);
    if (from != to) std::replace(component.begin(), component.end(), from, to);
  };
  for (const auto& [unused_kind, meeting] : meetings_) {
    std::map<int32_t, size_t> first_of_group;
    for (size_t rank = 0; rank < num_ranks_; ++rank) {
      if (meeting.comes[rank] == 0) continue;
      join(rank, first_of_group.emplace(meeting.group[rank], rank).first->second);
      for (const size_t other : meeting.for_[rank]) join(rank, other);
    }
  }
  return component;
}

}  // namespace ott::saved
