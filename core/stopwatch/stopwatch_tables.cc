#include "core/stopwatch/stopwatch_tables.h"

#include <functional>
#include <new>
#include <utility>

namespace ott::internal {

void Renew(IntervalAccumulator& intervals) {
  intervals.~IntervalAccumulator();
  new (&intervals) IntervalAccumulator();
}

void StopwatchMeasurement::Clear() {
  hooks.Clear();
  flight.store(nullptr, std::memory_order_release);
  collective = false;
  sampled = false;
  Renew(per_iteration);
  series = IterationSeries();
  count = finished_count = 0;
  total = finished_total = 0;
}

StopwatchThread::StopwatchThread() { outermost.record = &root; }

StopwatchMeasurement* StopwatchThread::FindKnown(std::string_view name) const {
  const size_t hash = std::hash<std::string_view>()(name);
  const size_t mask = known_.size() - 1;
  for (size_t slot = hash & mask; known_[slot].measurement != nullptr; slot = (slot + 1) & mask) {
    if (known_[slot].hash == hash && known_[slot].measurement->name == name) return known_[slot].measurement;
  }
  return nullptr;
}

void StopwatchThread::AddKnown(StopwatchMeasurement& measurement) {
  const auto add = [](const Known& added, std::vector<Known>& table) {
    size_t slot = added.hash & (table.size() - 1);
    while (table[slot].measurement != nullptr) slot = (slot + 1) & (table.size() - 1);
    table[slot] = added;
  };
  if (++num_known_ * 2 > known_.size()) {
    std::vector<Known> larger(known_.size() * 2);
    for (const Known& known : known_) {
      if (known.measurement != nullptr) add(known, larger);
    }
    known_ = std::move(larger);
  }
  add({std::hash<std::string_view>()(measurement.name), &measurement}, known_);
}

StopwatchRecord& StopwatchThread::AddChild(StopwatchRecord& parent, StopwatchMeasurement& measurement) {
  if (++parent.num_children * 2 > parent.children.size()) {
    std::vector<StopwatchRecord*> larger(parent.children.size() * 2);
    for (StopwatchRecord* child : parent.children) {
      if (child != nullptr) larger[Slot(larger, *child->measurement)] = child;
    }
    parent.children = std::move(larger);
  }
  StopwatchRecord& added = *records.emplace_back(std::make_unique<StopwatchRecord>(&measurement, &parent));
  parent.children[Slot(parent.children, measurement)] = &added;
  return added;
}

void StopwatchThread::Clear() {
  Renew(root.intervals);
  work = ThreadWork();
  for (const auto& record : records) Renew(record->intervals);
}

}  // namespace ott::internal
