#include "ott/questions/hang/wait_graph.h"

#include <algorithm>
#include <utility>

#include "ott/questions/hang/undeclared_group.h"

namespace ott {
namespace {

using Direction = JobOperation::Direction;
using Progress = JobOperation::Progress;

// Strongly connected components by Tarjan (1972), without recursion. Components appear after those that they
// lead to.
class Components {
 public:
  template <typename Next>
  Components(int num_nodes, const std::vector<int>& from, const Next& next)
      : index_(num_nodes, 0), low_(num_nodes, 0), component_(num_nodes, -1) {
    for (const int node : from) {
      if (index_[node] == 0) Visit(node, next);
    }
  }

  int num_components() const { return num_components_; }
  // -1: not reached.
  int component(int node) const { return component_[node]; }

 private:
  template <typename Next>
  void Visit(int first, const Next& next) {
    std::vector<std::pair<int, size_t>> path;
    const auto enter = [&](int node) {
      index_[node] = low_[node] = ++num_entered_;
      stack_.push_back(node);
      path.emplace_back(node, 0);
    };
    enter(first);
    while (!path.empty()) {
      const int node = path.back().first;
      int follower = -1;
      if (next(node, path.back().second, &follower)) {
        ++path.back().second;
        if (index_[follower] == 0) {
          enter(follower);
        } else if (component_[follower] < 0) {
          low_[node] = std::min(low_[node], index_[follower]);
        }
        continue;
      }
      path.pop_back();
      if (!path.empty()) low_[path.back().first] = std::min(low_[path.back().first], low_[node]);
      if (low_[node] == index_[node]) Close(node);
    }
  }

  void Close(int node) {
    int member;
    do {
      member = stack_.back();
      stack_.pop_back();
      component_[member] = num_components_;
    } while (member != node);
    ++num_components_;
  }

  std::vector<int> index_;
  std::vector<int> low_;
  std::vector<int> component_;
  std::vector<int> stack_;
  int num_entered_ = 0;
  int num_components_ = 0;
};

}  // namespace

WaitGraph::WaitGraph(const JobState& job) : job_(job), cut_(job.ranks.size()), next_(job.ranks.size()) {
  std::map<Key, int> index;
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    for (const JobOperation& operation : job.ranks[rank].operations) {
      if (operation.progress == Progress::kEntered) AddStanding(static_cast<int>(rank), operation, &index);
    }
  }
  AddAwaited();
}

void WaitGraph::AddStanding(int rank, const JobOperation& operation, std::map<Key, int>* index) {
  const bool collective = operation.direction == Direction::kCollective;
  const Key key(operation.group, operation.sequence, collective ? -1 : rank, collective ? -1 : operation.peer,
                static_cast<int>(operation.direction));
  const auto [found, is_new] = index->emplace(key, static_cast<int>(operations_.size()));
  if (is_new) {
    operations_.emplace_back();
    operations_.back().operation = operation;
  }
  StandingOperation& standing = operations_[found->second];
  standing.standing.push_back(rank);
  if (collective && !job_.groups[operation.group].is_declared) {
    standing.completed_before = std::max(
        standing.completed_before, CompletedTogether(job_.ranks[rank], operation.group, operation.name));
  }
  next_[rank].push_back(found->second);
}

void WaitGraph::AddAwaited() {
  next_.resize(next_.size() + operations_.size());
  std::map<int32_t, std::vector<int>> of_group;
  for (size_t i = 0; i < operations_.size(); ++i) {
    StandingOperation& operation = operations_[i];
    if (operation.operation.direction == Direction::kCollective) {
      of_group[operation.operation.group].push_back(static_cast<int>(i));
      continue;
    }
    const int peer = operation.operation.peer;
    if (peer < 0 || peer >= FirstOperationNode()) continue;
    operation.awaits =
        !job_.ranks[peer].HasOtherHalf(operation.standing[0], operation.operation, Progress::kEntered);
    if (operation.awaits) next_[FirstOperationNode() + i].push_back(peer);
  }
  for (const auto& [group, operations] : of_group) AddAwaitedOfGroup(group, operations);
}

void WaitGraph::AddAwaitedOfGroup(int32_t group, const std::vector<int>& operations) {
  std::vector<std::pair<int64_t, int>> entered;
  for (const int rank : job_.groups[group].ranks) {
    const GroupPosition* const position = job_.ranks[rank].Position(group);
    entered.emplace_back(position == nullptr ? -1 : position->entered, rank);
  }
  std::sort(entered.begin(), entered.end());
  const int first = static_cast<int>(next_.size());
  for (size_t i = 0; i < entered.size(); ++i) {
    next_.push_back({entered[i].second});
    if (i > 0) next_.back().push_back(first + static_cast<int>(i) - 1);
  }
  for (const int i : operations) {
    StandingOperation& operation = operations_[i];
    const int64_t sequence = operation.operation.sequence;
    const auto end = std::lower_bound(entered.begin(), entered.end(), std::make_pair(sequence, -1));
    // Those of which nothing is known come first, then those that are of another group.
    const auto unknown = std::lower_bound(entered.begin(), end, std::make_pair(int64_t{0}, -1));
    const auto begin = std::lower_bound(unknown, end, std::make_pair(operation.completed_before, -1));
    std::vector<int>& next = next_[FirstOperationNode() + i];
    if (begin == unknown) {
      if (end != entered.begin()) next.push_back(first + static_cast<int>(end - entered.begin()) - 1);
    } else {
      if (unknown != entered.begin()) next.push_back(first + static_cast<int>(unknown - entered.begin()) - 1);
      for (auto awaited = begin; awaited != end; ++awaited) next.push_back(awaited->second);
    }
    operation.awaits = !next.empty();
  }
}

bool WaitGraph::Awaits(int operation, int rank) const {
  const StandingOperation& standing = operations_[operation];
  if (!standing.awaits) return false;
  if (standing.operation.direction != Direction::kCollective) return standing.operation.peer == rank;
  const std::vector<int>& members = job_.groups[standing.operation.group].ranks;
  if (!std::binary_search(members.begin(), members.end(), rank)) return false;
  const GroupPosition* const position = job_.ranks[rank].Position(standing.operation.group);
  return position == nullptr ||
         (position->entered < standing.operation.sequence && position->entered >= standing.completed_before);
}

bool WaitGraph::Waits(int rank) const {
  if (cut_[rank]) return false;
  for (const int operation : next_[rank]) {
    if (operations_[operation].awaits) return true;
  }
  return false;
}

std::vector<std::vector<int>> WaitGraph::Ends(const std::vector<int>& from) const {
  const auto next = [&](int node, size_t i, int* follower) {
    if (node < FirstOperationNode() && cut_[node]) return false;
    if (i >= next_[node].size()) return false;
    *follower = next_[node][i] + (node < FirstOperationNode() ? FirstOperationNode() : 0);
    return true;
  };
  const Components components(static_cast<int>(next_.size()), from, next);
  std::vector<bool> is_end(components.num_components(), true);
  std::vector<std::vector<int>> ranks(components.num_components());
  for (int node = 0; node < static_cast<int>(next_.size()); ++node) {
    const int component = components.component(node);
    if (component < 0) continue;
    if (node < FirstOperationNode()) {
      ranks[component].push_back(node);
      if (!Waits(node)) continue;
    }
    int follower;
    for (size_t i = 0; next(node, i, &follower); ++i) {
      if (follower >= FirstOperationNode() &&
          follower < FirstOperationNode() + static_cast<int>(operations_.size()) &&
          !operations_[follower - FirstOperationNode()].awaits) {
        continue;
      }
      if (components.component(follower) != component) is_end[component] = false;
    }
  }
  std::vector<std::vector<int>> ends;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (is_end[i] && !ranks[i].empty()) ends.push_back(std::move(ranks[i]));
  }
  return ends;
}

std::vector<WaitGraph::Step> WaitGraph::Cycle(const std::vector<int>& ranks) const {
  // Breadth first from the first rank, back to it.
  std::map<int, Step> reached_from;
  std::vector<int> queue = {ranks[0]};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const int operation : next_[queue[i]]) {
      for (const int awaited : ranks) {
        if (!Awaits(operation, awaited)) continue;
        if (!reached_from.emplace(awaited, Step{queue[i], operation}).second) continue;
        if (awaited != ranks[0]) queue.push_back(awaited);
      }
    }
  }
  std::vector<Step> cycle;
  for (int rank = ranks[0]; reached_from.count(rank) > 0;) {
    cycle.push_back(reached_from[rank]);
    rank = cycle.back().rank;
    if (rank == ranks[0]) break;
  }
  std::reverse(cycle.begin(), cycle.end());
  return cycle;
}

}  // namespace ott
