#include "tools/trace/trace_report.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/kernel_profile/op_label.h"

namespace ott::trace {
namespace {

constexpr char kNoRange[] = "(no range)";

// All steps have one name, and so have all calls of an operation, "linear, seq = 12, sizes = [[32, 128]]".
std::string NameOf(const TraceEvent& event) {
  if (event.category == "step") return "ProfilerStep";
  return std::string(event.category == "op" ? kernels::SplitLabel(event.name).head : event.name);
}

bool IsSlice(const TraceEvent& event) {
  return event.type == TraceEvent::Type::kSlice || event.type == TraceEvent::Type::kOverlappingSlice;
}

bool IsOfDevice(int64_t track) { return track >= EventRecorder::kFirstTrack; }

std::string Seconds(int64_t nanoseconds) { return FormatSeconds(static_cast<double>(nanoseconds) * 1e-9); }

std::string Share(int64_t part, int64_t whole) {
  return whole == 0
             ? "-"
             : absl::StrFormat("%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// Largest first.
template <typename Value, typename Size>
std::vector<const std::pair<const std::string, Value>*> Sorted(const std::map<std::string, Value>& values,
                                                               Size size) {
  std::vector<const std::pair<const std::string, Value>*> result;
  for (const auto& entry : values) result.push_back(&entry);
  std::stable_sort(result.begin(), result.end(),
                   [size](const auto* a, const auto* b) { return size(a->second) > size(b->second); });
  return result;
}

// The track of the steps; without any, the busiest thread's.
int64_t ThreadOfSteps(const Trace& trace) {
  std::map<int64_t, int64_t> num_events;
  for (const TraceEvent& event : trace.events) {
    if (IsOfDevice(event.track)) continue;
    if (event.category == "step") return event.track;
    ++num_events[event.track];
  }
  const auto busiest = std::max_element(num_events.begin(), num_events.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  return busiest == num_events.end() ? 0 : busiest->first;
}

}  // namespace

void TraceReport::Add(const Trace& trace) {
  int64_t first = 0, last = 0;
  std::vector<Interval> activities;
  std::vector<Part> parts;
  const int64_t thread_of_steps = ThreadOfSteps(trace);
  const TraceEvent* const end = trace.events.data() + trace.events.size();
  for (const TraceEvent* begin = trace.events.data(); begin != end;) {
    const int64_t track = begin->track;
    const TraceEvent* next = begin;
    for (; next != end && next->track == track; ++next) {
      first = begin == trace.events.data() && next == begin ? next->start : std::min(first, next->start);
      last = std::max(last, next->start + next->duration);
      if (IsOfDevice(track) && next->category == "device" && IsSlice(*next)) {
        activities.push_back({next->start, next->start + next->duration});
      }
    }
    Range* root = &root_;
    if (IsOfDevice(track)) {
      const auto named = std::find_if(trace.tracks.begin(), trace.tracks.end(),
                                      [track](const TraceTrack& known) { return known.track == track; });
      root = &root_.inner[absl::StrCat("[", named == trace.tracks.end() ? "device" : named->name, "]")];
    }
    AddTrack(begin, next, *root, track == thread_of_steps ? &parts : nullptr);
    begin = next;
  }
  total_ += last - first;
  if (activities.empty()) return;
  ++num_with_device_;
  total_with_device_ += last - first;
  AddGaps(std::move(activities), parts);
}

void TraceReport::AddTrack(const TraceEvent* begin, const TraceEvent* end, Range& root,
                           std::vector<Part>* parts) {
  struct Open {
    Range* range;
    std::string name;
    int64_t end;
    // Until where its time is accounted for.
    int64_t accounted;
  };
  std::vector<Open> open;
  // The innermost range runs until then.
  const auto advance = [&open, parts](int64_t time) {
    while (!open.empty()) {
      Open& innermost = open.back();
      const int64_t until = std::min(innermost.end, time);
      if (until > innermost.accounted) {
        innermost.range->exclusive += until - innermost.accounted;
        if (parts != nullptr) parts->push_back({innermost.accounted, until, innermost.name});
      }
      if (innermost.end > time) return;
      const int64_t ended = innermost.end;
      open.pop_back();
      if (!open.empty()) open.back().accounted = std::max(open.back().accounted, ended);
    }
  };
  for (const TraceEvent* event = begin; event != end; ++event) {
    if (!IsSlice(*event)) continue;
    const bool overlaps = event->type == TraceEvent::Type::kOverlappingSlice;
    if (!overlaps) advance(event->start);
    Range& parent = open.empty() || overlaps ? root : *open.back().range;
    std::string name = NameOf(*event);
    Range& range = parent.inner[name];
    ++range.count;
    range.inclusive += event->duration;
    range.longest = std::max(range.longest, event->duration);
    if (overlaps) {
      range.exclusive += event->duration;
      continue;
    }
    open.push_back({&range, std::move(name), event->start + event->duration, event->start});
  }
  advance(std::numeric_limits<int64_t>::max());
}

void TraceReport::AddGaps(std::vector<Interval> activities, const std::vector<Part>& parts) {
  std::sort(activities.begin(), activities.end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  auto part = parts.begin();
  int64_t busy_until = activities.front().begin;
  for (const Interval& activity : activities) {
    device_busy_ += std::max<int64_t>(0, activity.end - std::max(activity.begin, busy_until));
    int64_t time = busy_until;
    std::map<std::string, int64_t> by_name;
    while (time < activity.begin) {
      while (part != parts.end() && part->end <= time) ++part;
      const bool in_range = part != parts.end() && part->begin <= time;
      const int64_t next = part == parts.end() ? activity.begin : in_range ? part->end : part->begin;
      const int64_t until = std::min(next, activity.begin);
      by_name[in_range ? part->name : kNoRange] += until - time;
      time = until;
    }
    for (const auto& [name, duration] : by_name) {
      Gap& gap = gaps_[name];
      ++gap.count;
      gap.total += duration;
      gap.longest = std::max(gap.longest, duration);
    }
    busy_until = std::max(busy_until, activity.end);
  }
}

std::string TraceReport::Tree(double min_share) const {
  TextTable table({"range", "share", "count", "inclusive", "exclusive", "mean", "longest"});
  const auto least = static_cast<int64_t>(min_share * static_cast<double>(total_));
  int64_t num_left_out = 0;
  const auto add = [&](const Range& parent, int depth, const auto& add_inner) -> void {
    for (const auto* entry : Sorted(parent.inner, [](const Range& range) { return range.inclusive; })) {
      const auto& [name, range] = *entry;
      const bool is_track = range.count == 0;
      if (!is_track && range.inclusive < least) {
        ++num_left_out;
        continue;
      }
      const std::string indented = std::string(2 * depth, ' ') + name;
      if (is_track) {
        table.AddRow({indented, "", "", "", "", "", ""});
      } else {
        table.AddRow({indented, Share(range.inclusive, total_), absl::StrCat(range.count),
                      Seconds(range.inclusive), Seconds(range.exclusive),
                      Seconds(range.inclusive / range.count), Seconds(range.longest)});
      }
      add_inner(range, depth + 1, add_inner);
    }
  };
  add(root_, 0, add);
  std::string result = table.ToString();
  if (num_left_out > 0) {
    absl::StrAppend(&result, num_left_out, " ranges below ", absl::StrFormat("%g", 100 * min_share),
                    " % are left out\n");
  }
  return result;
}

std::string TraceReport::Top(size_t count) const {
  std::map<std::string, Range> by_name;
  const auto add = [&by_name](const Range& parent, const auto& add_inner) -> void {
    for (const auto& [name, range] : parent.inner) {
      if (range.count > 0) {
        Range& sum = by_name[name];
        sum.count += range.count;
        sum.inclusive += range.inclusive;
        sum.exclusive += range.exclusive;
        sum.longest = std::max(sum.longest, range.longest);
      }
      add_inner(range, add_inner);
    }
  };
  add(root_, add);
  TextTable table({"range", "share", "count", "exclusive", "inclusive", "mean", "longest"});
  for (const auto* entry : Sorted(by_name, [](const Range& range) { return range.exclusive; })) {
    if (count-- == 0) break;
    const auto& [name, range] = *entry;
    table.AddRow({name, Share(range.exclusive, total_), absl::StrCat(range.count), Seconds(range.exclusive),
                  Seconds(range.inclusive), Seconds(range.inclusive / range.count), Seconds(range.longest)});
  }
  return table.ToString();
}

std::string TraceReport::Gaps() const {
  if (num_with_device_ == 0) return "";
  TextTable table({"host was in", "share", "gaps", "total", "mean", "longest"});
  for (const auto* entry : Sorted(gaps_, [](const Gap& gap) { return gap.total; })) {
    const auto& [name, gap] = *entry;
    table.AddRow({name, Share(gap.total, total_with_device_), absl::StrCat(gap.count), Seconds(gap.total),
                  Seconds(gap.total / gap.count), Seconds(gap.longest)});
  }
  return absl::StrCat("devices busy: ", Share(device_busy_, total_with_device_), " of ",
                      Seconds(total_with_device_), " in ", num_with_device_, " traces\n\n", table.ToString());
}

}  // namespace ott::trace
