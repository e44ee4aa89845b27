#include "core/stopwatch/device_intervals.h"

#include <optional>
#include <utility>

namespace ott::internal {

DeviceIntervals::DeviceIntervals(std::unique_ptr<DeviceEvents> events) : events_(std::move(events)) {}

DeviceIntervals::~DeviceIntervals() {
  while (!pending_.empty()) Pop();
}

void DeviceIntervals::End(DeviceEvents::Event start, IntervalAccumulator* durations) {
  if (start == nullptr) return;
  const DeviceEvents::Event end = events_->Record();
  if (end == nullptr) return events_->GiveBack(start);
  const std::lock_guard<std::mutex> lock(mutex_);
  pending_.push_back({start, end, durations});
}

void DeviceIntervals::Read() {
  const std::lock_guard<std::mutex> lock(mutex_);
  while (!pending_.empty() && events_->HasHappened(pending_.front().end)) {
    const Pending& oldest = pending_.front();
    const std::optional<uint64_t> duration = events_->Between(oldest.start, oldest.end);
    if (duration.has_value()) oldest.durations->Add(*duration, 0);
    Pop();
  }
}

int64_t DeviceIntervals::num_pending() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<int64_t>(pending_.size());
}

void DeviceIntervals::Pop() {
  events_->GiveBack(pending_.front().start);
  events_->GiveBack(pending_.front().end);
  pending_.pop_front();
}

}  // namespace ott::internal
