#include "core/stopwatch/scope_tree.h"

#include <utility>

namespace ott::internal {

void ScopeTree::Add(const StopwatchRecord& root,
                    const std::vector<std::unique_ptr<StopwatchRecord>>& records) {
  std::unordered_map<const StopwatchRecord*, Node*> nodes = {{&root, &root_}};
  for (const auto& record : records) {
    Node& parent = *nodes.at(record->parent);
    if (parent.depth == StopwatchSnapshot::kMaxScopeDepth) {
      nodes.emplace(record.get(), &parent);
      continue;
    }
    Node& node = Child(parent, *record->measurement);
    const IntervalAccumulator::Totals totals = record->intervals.ReadTotals();
    node.count += totals.count;
    node.total += totals.total;
    if (node.depth < StopwatchSnapshot::kMaxScopeDepth) node.inner += totals.inner;
    nodes.emplace(record.get(), &node);
  }
}

ScopeTree::Node& ScopeTree::Child(Node& parent, const StopwatchMeasurement& measurement) {
  Node*& child = parent.by_measurement[&measurement];
  if (child == nullptr) {
    child = parent.children.emplace_back(std::make_unique<Node>()).get();
    child->measurement = &measurement;
    child->depth = parent.depth + 1;
  }
  return *child;
}

std::vector<StopwatchSnapshot::Scope> ScopeTree::ScopesIn(const Node& node) {
  std::vector<StopwatchSnapshot::Scope> scopes;
  for (const auto& child : node.children) {
    std::vector<StopwatchSnapshot::Scope> inner = ScopesIn(*child);
    // In warm-up, or before the stopwatch was switched off and on again.
    if (child->count == 0 && inner.empty()) continue;
    scopes.push_back({child->measurement->name, static_cast<int64_t>(child->count),
                      static_cast<double>(child->total) * 1e-12,
                      static_cast<double>(child->total - child->inner) * 1e-12, std::move(inner)});
  }
  return scopes;
}

}  // namespace ott::internal
