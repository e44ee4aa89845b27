#include "core/stopwatch/arrival_queue.h"

namespace ott::internal {

uint64_t ArrivalQueue::Add(const StopwatchArrivals::Arrival& arrival, size_t limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!arrivals_.has_value()) arrivals_.emplace();
  if (arrivals_->size() >= limit) {
    // Drops whole iterations, so that what is left of an iteration can be counted.
    const int64_t oldest = arrivals_->front().iteration;
    while (!arrivals_->empty() && arrivals_->front().iteration == oldest) arrivals_->pop_front();
  }
  arrivals_->push_back(arrival);
  return num_added_++;
}

void ArrivalQueue::SetInside(uint64_t number, int64_t nanoseconds) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!arrivals_.has_value()) return;
  const uint64_t num_since = num_added_ - number;
  if (num_since <= arrivals_->size()) (*arrivals_)[arrivals_->size() - num_since].inside = nanoseconds;
}

std::vector<StopwatchArrivals::Arrival> ArrivalQueue::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!arrivals_.has_value()) return {};
  const std::vector<StopwatchArrivals::Arrival> taken(arrivals_->begin(), arrivals_->end());
  arrivals_->clear();
  return taken;
}

}  // namespace ott::internal
