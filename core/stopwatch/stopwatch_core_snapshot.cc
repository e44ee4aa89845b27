// What a StopwatchCore has measured, added up over its threads.

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/stopwatch/stopwatch_core.h"
#include "ott/core/stopwatch/stopwatch_snapshot.h"

namespace ott::internal {
namespace {

// The tree of scopes, added up over threads.
class ScopeTree {
 public:
  // records: of one thread, each behind its parent.
  void Add(const StopwatchRecord& root, const std::vector<std::unique_ptr<StopwatchRecord>>& records) {
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

  static Node& Child(Node& parent, const StopwatchMeasurement& measurement) {
    Node*& child = parent.by_measurement[&measurement];
    if (child == nullptr) {
      child = parent.children.emplace_back(std::make_unique<Node>()).get();
      child->measurement = &measurement;
      child->depth = parent.depth + 1;
    }
    return *child;
  }

  static std::vector<StopwatchSnapshot::Scope> ScopesIn(const Node& node) {
    std::vector<StopwatchSnapshot::Scope> scopes;
    for (const auto& child : node.children) {
      scopes.push_back({child->measurement->name, static_cast<int64_t>(child->count),
                        static_cast<double>(child->total) * 1e-12,
                        static_cast<double>(child->total - child->inner) * 1e-12, ScopesIn(*child)});
    }
    return scopes;
  }

  Node root_;
};

}  // namespace

StopwatchSnapshot StopwatchCore::Snapshot() const {
  if (device_events_ != nullptr) ReadDeviceEvents();
  StopwatchSnapshot snapshot;
  const std::lock_guard<std::mutex> lock(mutex_);
  snapshot.num_warmup_iters = options_.num_warmup_iters;
  snapshot.num_warmup_iters_done = std::min<int64_t>(num_finished_, options_.num_warmup_iters);
  snapshot.num_measured_iters = std::max<int64_t>(0, num_finished_ - options_.num_warmup_iters);
  snapshot.iteration = iteration_.Read();
  snapshot.iteration_series = iteration_series_;
  snapshot.own_work = own_work_;
  snapshot.own_work.time = work_.Read();
  for (const StopwatchMeasurement* measurement : measurements_) {
    StopwatchSnapshot::Measurement& added = snapshot.measurements.emplace_back();
    added.name = measurement->name;
    added.collective = measurement->collective;
    added.per_iteration = measurement->per_iteration.Read();
    added.series = measurement->series;
    added.own = measurement->own.Read();
  }
  SnapshotThreads(snapshot);
  SnapshotDevice(snapshot);
  for (const OneTime& one_time : one_time_) {
    const uint64_t duration = one_time.running ? Since(one_time.start, clock_.Ticks()) : one_time.duration;
    snapshot.one_time.push_back({one_time.name, static_cast<double>(duration) * 1e-12, one_time.running});
  }
  snapshot.cpu_usage_measurement = cpu_usage_measurement_;
  {
    const std::lock_guard<std::mutex> cpu_lock(cpu_mutex_);
    snapshot.cpu_usage = cpu_usage_;
  }
  snapshot.observer_seconds_per_interval = observer_seconds_per_interval_;
  snapshot.num_misuses = num_misuses_;
  return snapshot;
}

void StopwatchCore::SnapshotThreads(StopwatchSnapshot& snapshot) const {
  ScopeTree scopes;
  const std::lock_guard<std::mutex> lock(threads_.mutex());
  for (const StopwatchThread* thread : threads_.all()) {
    for (const auto& record : thread->records) {
      snapshot.measurements[record->measurement->index].per_interval.Merge(record->intervals.Read());
    }
    scopes.Add(thread->root, thread->records);
  }
  snapshot.scopes = scopes.Scopes();
}

void StopwatchCore::SnapshotDevice(StopwatchSnapshot& snapshot) const {
  if (device_events_ == nullptr) return;
  const std::lock_guard<std::mutex> lock(device_mutex_);
  for (const StopwatchMeasurement* measurement : measurements_) {
    snapshot.measurements[measurement->index].device_per_interval = measurement->on_device->Read();
  }
  snapshot.num_pending_device_intervals = static_cast<int64_t>(pending_.size());
}

}  // namespace ott::internal
