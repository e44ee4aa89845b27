// The tree of scopes, added up over threads.

#ifndef OTT_CORE_STOPWATCH_SCOPE_TREE_H_
#define OTT_CORE_STOPWATCH_SCOPE_TREE_H_

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/stopwatch/stopwatch_tables.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"

namespace ott::internal {

// Not synchronised.
class ScopeTree {
 public:
  // Adds one thread's. records: each behind its parent. What is deeper than StopwatchSnapshot::kMaxScopeDepth
  // counts with the scope of that depth which it is in.
  void Add(const StopwatchRecord& root, const std::vector<std::unique_ptr<StopwatchRecord>>& records);

  std::vector<StopwatchSnapshot::Scope> Scopes() const { return ScopesIn(root_); }

 private:
  struct Node {
    const StopwatchMeasurement* measurement = nullptr;
    int depth = 0;
    uint64_t count = 0;
    Uint128 total = 0;
    Uint128 inner = 0;
    // In the order of first use.
    std::vector<std::unique_ptr<Node>> children;
    std::unordered_map<const StopwatchMeasurement*, Node*> by_measurement;
  };

  static Node& Child(Node& parent, const StopwatchMeasurement& measurement);
  static std::vector<StopwatchSnapshot::Scope> ScopesIn(const Node& node);

  Node root_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_STOPWATCH_SCOPE_TREE_H_
