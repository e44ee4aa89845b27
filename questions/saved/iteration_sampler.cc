#include "ott/questions/saved/iteration_sampler.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/clock.h"
#include "ott/core/base/glob.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"
#include "ott/core/events/recorded_window.h"
#include "ott/core/stopwatch/stopwatch.h"

namespace ott::saved {
namespace {

constexpr char kEndOfIteration[] = "end of iteration";

// Counts how often a number can be halved: blocks that can be halved more often are left out later.
int Halvings(int64_t number) { return number == 0 ? 64 : __builtin_ctzll(static_cast<uint64_t>(number)); }

}  // namespace

IterationSampler::IterationSampler(Options options)
    : options_(std::move(options)),
      origin_(options_.first_iteration + std::max<int64_t>(options_.num_warmup_iters, 0)),
      recorder_(Clock::Fastest()),
      first_of_block_(origin_) {
  recorder_.SetThreadBufferBytes(kBufferBytes);
  sample_.set_rank(options_.rank);
  sample_.set_world_size(options_.world_size);
  sample_.set_host(options_.host);
  sample_.set_like_work(options_.like_work);
  sample_.set_observer(-1);
  if (origin_ == options_.first_iteration) Begin();
}

IterationSampler::~IterationSampler() {
  if (is_recording_) End();
}

void IterationSampler::Begin() {
  recorder_.Open();
  Stopwatch::Get().RecordInto(&recorder_);
  is_recording_ = true;
}

void IterationSampler::End() {
  Stopwatch::Get().RecordInto(nullptr);
  recorder_.Close();
  is_recording_ = false;
}

void IterationSampler::FinishIter(int64_t iteration, const ClockAligner& clock, bool is_profiling) {
  if (is_recording_) {
    if (is_profiling) {
      // Its window took the intervals.
      recorder_.Close();
      is_recording_ = false;
      KeepBlock(absl::UnavailableError("profiled"));
    } else {
      recorder_.Mark(EventCategory::kStep, kEndOfIteration);
      if (iteration + 1 - first_of_block_ == kIterationsPerBlock) {
        End();
        KeepBlock(ReadBlock(clock));
      }
    }
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    sample_.set_num_iterations(iteration + 1);
  }
  const int64_t next = iteration + 1 - origin_;
  if (is_recording_ || is_profiling || next < 0 || next % (kIterationsPerBlock * spacing_) != 0) return;
  first_of_block_ = iteration + 1;
  Begin();
}

absl::StatusOr<IterationBlock> IterationSampler::ReadBlock(const ClockAligner& clock) {
  struct Interval {
    int64_t track;
    int64_t start;
    int64_t duration;
    int32_t name;
  };
  const RecordedWindow window(recorder_);
  std::vector<Interval> intervals;
  std::vector<int64_t> ends;
  int64_t track = -1;
  const std::string_view measurement = EventCategoryName(EventCategory::kMeasurement);
  window.Visit([&](const TraceEvent& event) {
    if (event.type == TraceEvent::Type::kMark) {
      ends.push_back(event.start);
      track = event.track;
    } else if (event.category == measurement) {
      auto known = index_of_name_.find(event.name);
      if (known == index_of_name_.end()) {
        known = index_of_name_.emplace(std::string(event.name), static_cast<int32_t>(index_of_name_.size()))
                    .first;
      }
      intervals.push_back({event.track, event.start, event.duration, known->second});
    }
  });
  if (window.num_lost_events() > 0 || ends.size() != kIterationsPerBlock) {
    return absl::ResourceExhaustedError("too many intervals");
  }
  OTT_ASSIGN_OR_RETURN(const AlignedTime begin, clock.ToRankZero(window.opened().steady_nanoseconds));
  IterationBlock block;
  block.set_first_iteration(first_of_block_);
  block.set_begin(begin.nanoseconds);
  block.set_error_bound(begin.error_bound_nanoseconds);
  int64_t before = 0;
  for (const int64_t end : ends) {
    block.add_iteration_end(end - before);
    before = end;
  }
  intervals.erase(std::remove_if(intervals.begin(), intervals.end(),
                                 [track](const Interval& interval) { return interval.track != track; }),
                  intervals.end());
  std::stable_sort(intervals.begin(), intervals.end(),
                   [](const Interval& a, const Interval& b) { return a.start < b.start; });
  before = 0;
  for (const Interval& interval : intervals) {
    block.add_name(interval.name);
    block.add_start(interval.start - before);
    block.add_duration(interval.duration);
    before = interval.start;
  }
  return block;
}

void IterationSampler::KeepBlock(absl::StatusOr<IterationBlock> block) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!block.ok()) {
    sample_.set_num_iterations_lost(sample_.num_iterations_lost() + kIterationsPerBlock);
    return;
  }
  for (const auto& [name, index] : index_of_name_) {
    while (sample_.names_size() <= index) {
      sample_.add_names();
      sample_.add_collective(false);
      sample_.add_group();
    }
    if (!sample_.names(index).empty()) continue;
    // Protocol buffers hold UTF-8 alone.
    sample_.set_names(index, ValidUtf8(name));
    sample_.set_collective(index, MatchesAnyGlob(name, options_.collective_measurements));
    if (name == options_.observer_measurement) sample_.set_observer(index);
    const auto group = options_.collective_groups.find(name);
    if (group != options_.collective_groups.end()) sample_.set_group(index, group->second);
  }
  *sample_.add_blocks() = *std::move(block);
  if (static_cast<size_t>(sample_.blocks_size()) < kMaxBlocks) return;
  spacing_ *= 2;
  auto* const blocks = sample_.mutable_blocks();
  blocks->erase(std::remove_if(blocks->begin(), blocks->end(),
                               [this](const IterationBlock& kept) {
                                 const int64_t number =
                                     (kept.first_iteration() - origin_) / kIterationsPerBlock;
                                 return number % spacing_ != 0;
                               }),
                blocks->end());
}

IterationSample IterationSampler::Sample(size_t max_bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (sample_.ByteSizeLong() <= max_bytes) return sample_;
  std::vector<int> order(sample_.blocks_size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto number = [this](int i) {
    return (sample_.blocks(i).first_iteration() - origin_) / kIterationsPerBlock;
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const int halvings_a = Halvings(number(a));
    const int halvings_b = Halvings(number(b));
    return halvings_a != halvings_b ? halvings_a > halvings_b : a < b;
  });
  IterationSample kept = sample_;
  kept.clear_blocks();
  size_t bytes = kept.ByteSizeLong();
  std::vector<int> chosen;
  for (const int i : order) {
    bytes += sample_.blocks(i).ByteSizeLong();
    if (bytes > max_bytes) break;
    chosen.push_back(i);
  }
  std::sort(chosen.begin(), chosen.end());
  for (const int i : chosen) *kept.add_blocks() = sample_.blocks(i);
  return kept;
}

}  // namespace ott::saved
