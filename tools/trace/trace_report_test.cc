#include "tools/trace/trace_report.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/text_table.h"
#include "ott/core/events/event_recorder.h"
#include "tools/trace/traces_for_test.h"

namespace ott::trace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kStream = EventRecorder::kFirstTrack;

TraceEvent StepForTest(int number, int64_t start) {
  static const std::string kNames[] = {"ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"};
  TraceEvent event = SliceForTest(kNames[number], start, 1000);
  event.category = "step";
  return event;
}

TraceReport Report(const std::vector<TraceEvent>& events) {
  Trace trace;
  trace.tracks.push_back({0, kStream, "GPU 0, stream 7", 0});
  trace.events = events;
  TraceReport report;
  report.Add(trace);
  return report;
}

TEST(TraceReport, TreeHasInclusiveAndExclusiveTimes) {
  const std::string tree =
      Report({StepForTest(1, 0), SliceForTest("forward", 100, 400), SliceForTest("matmul", 200, 100),
              SliceForTest("matmul", 300, 50), SliceForTest("backward", 500, 300), StepForTest(2, 1000)})
          .Tree(0);
  EXPECT_EQ(tree,
            "range           share  count  inclusive  exclusive    mean  longest\n"
            "ProfilerStep  100.0 %      2       2 us     1.3 us    1 us     1 us\n"
            "  forward      20.0 %      1     400 ns     250 ns  400 ns   400 ns\n"
            "    matmul      7.5 %      2     150 ns     150 ns   75 ns   100 ns\n"
            "  backward     15.0 %      1     300 ns     300 ns  300 ns   300 ns\n");
}

TEST(TraceReport, SmallRangesOfTheTreeAreCounted) {
  const std::string tree = Report({SliceForTest("large", 0, 1000), SliceForTest("small", 0, 9),
                                   SliceForTest("enough", 9, 10), SliceForTest("gemm", 0, 10, kStream)})
                               .Tree(0.01);
  EXPECT_THAT(tree, AllOf(HasSubstr("enough"), HasSubstr("[GPU 0, stream 7]"), HasSubstr("gemm"),
                          Not(HasSubstr("small"))));
  EXPECT_THAT(tree, HasSubstr("1 ranges below 1 % are left out"));
}

TEST(TraceReport, TopIsByTimeOfTheirOwn) {
  // The last one ends after the one around it, as clocks that are aligned round.
  const std::string top =
      Report({SliceForTest("outer", 0, 990), SliceForTest("a", 0, 300), SliceForTest("b", 300, 600),
              SliceForTest("a", 900, 100), SliceForTest("gemm", 0, 100, kStream)})
          .Top(4);
  EXPECT_EQ(top,
            "range   share  count  exclusive  inclusive    mean  longest\n"
            "b      60.0 %      1     600 ns     600 ns  600 ns   600 ns\n"
            "a      40.0 %      2     400 ns     400 ns  200 ns   300 ns\n"
            "gemm   10.0 %      1     100 ns     100 ns  100 ns   100 ns\n"
            "outer   0.0 %      1        0 s     990 ns  990 ns   990 ns\n");
}

// The rows of a table, without the spaces that align them.
std::vector<std::string> Rows(const std::string& table) {
  std::vector<std::string> rows = absl::StrSplit(table, '\n', absl::SkipEmpty());
  for (std::string& row : rows) {
    const std::string depth = std::to_string(row.find_first_not_of(' ') / 2);
    absl::RemoveExtraAsciiWhitespace(&row);
    row = depth + row;
  }
  return rows;
}

// One row of a report: a range or a gap.
struct Sum {
  int64_t count = 0, total = 0, own = 0, longest = 0;

  void Add(int64_t duration, int64_t of_its_own) {
    ++count;
    total += duration;
    own += of_its_own;
    longest = std::max(longest, duration);
  }
};

std::string Seconds(int64_t time) { return FormatSeconds(static_cast<double>(time) * 1e-9); }

std::string Row(const std::string& name, const Sum& of, int64_t whole, const std::string& own) {
  return absl::StrCat(name, absl::StrFormat(" %.1f %% %d ", 100.0 * of.total / whole, of.count),
                      Seconds(of.total), " ", own, Seconds(of.total / of.count), " ", Seconds(of.longest));
}

// Paths of ranges and names of gaps, nanosecond by nanosecond.
struct Definition {
  std::map<std::string, Sum> ranges, gaps;
  int64_t total = 0, total_with_device = 0, busy = 0, num_with_device = 0;

  static bool Covers(const TraceEvent& event, int64_t time) {
    return event.start <= time && time < event.start + event.duration;
  }
  static std::string NameOf(const TraceEvent& event) {
    return event.category == "step" ? "ProfilerStep"
                                    : std::string(event.name.substr(0, event.name.find(',')));
  }
  // The slices of a track that cover a time, outermost first.
  static std::vector<const TraceEvent*> At(const Trace& trace, int64_t track, int64_t time) {
    std::vector<const TraceEvent*> found;
    for (const TraceEvent& event : trace.events) {
      if (event.track == track && event.type == TraceEvent::Type::kSlice && Covers(event, time))
        found.push_back(&event);
    }
    return found;
  }

  void Add(const Trace& trace, int64_t thread_of_steps) {
    int64_t first = trace.events[0].start, last = 0;
    std::vector<const TraceEvent*> activities;
    for (const TraceEvent& event : trace.events) {
      first = std::min(first, event.start);
      last = std::max(last, event.start + event.duration);
      const bool overlaps = event.type == TraceEvent::Type::kOverlappingSlice;
      std::string path;
      if (event.track >= kStream) ranges[path = event.track == kStream ? "GPU 0/" : "device/"];
      if (event.type == TraceEvent::Type::kMark) continue;
      if (event.track >= kStream) activities.push_back(&event);
      int64_t own = overlaps ? event.duration : 0;
      for (const TraceEvent* outer : At(trace, event.track, event.start)) {
        if (outer < &event && !overlaps) path += NameOf(*outer) + "/";
      }
      for (int64_t time = event.start; !overlaps && time < event.start + event.duration; ++time)
        own += At(trace, event.track, time).back() == &event ? 1 : 0;
      ranges[path + NameOf(event) + "/"].Add(event.duration, own);
    }
    total += last - first;
    if (activities.empty()) return;
    ++num_with_device;
    total_with_device += last - first;
    std::optional<std::map<std::string, int64_t>> gap;  // none before the first activity
    for (int64_t time = first; time < last; ++time) {
      if (std::any_of(activities.begin(), activities.end(), [&](auto* of) { return Covers(*of, time); })) {
        ++busy;
        for (const auto& [name, length] : gap.value_or(std::map<std::string, int64_t>()))
          gaps[name].Add(length, 0);
        gap.emplace();
      } else if (gap.has_value()) {
        const auto host = At(trace, thread_of_steps, time);
        ++(*gap)[host.empty() ? "(no range)" : NameOf(*host.back())];
      }
    }
  }
};

TEST(TraceReport, OfAnyTracesItSaysWhatTheDefinitionSays) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto below = [&](size_t end) { return static_cast<int64_t>(random() % end); };
    TraceReport report;
    Definition expected;
    for (int64_t traces = 1 + below(2); traces > 0; --traces) {
      Trace trace;
      trace.tracks.push_back({0, kStream, "GPU 0", 0});
      const int64_t stepping = below(4);  // the track of steps, if there is one
      const auto add = [&](int64_t track, int64_t begin, int64_t end, int depth,
                           const auto& add_within) -> void {
        const bool is_host = track < kStream;
        for (int64_t at = begin + below(20); at < end && below(8) > 0;) {
          TraceEvent event =
              SliceForTest(below(2) == 0 ? "a" : "b", at, std::min(1 + below(40), end - at), track);
          if (is_host && below(3) == 0) event.category = "op", event.name = "a, seq = 7, sizes = []";
          if (track == stepping && depth == 0) event.category = "step", event.name = "ProfilerStep#3";
          if (below(9) == 0)
            event.type = TraceEvent::Type::kMark, event.duration = 0, event.category = "user";
          else if (!is_host && below(4) == 0)
            event.type = TraceEvent::Type::kOverlappingSlice;
          trace.events.push_back(event);
          if (depth < 3 && is_host) add_within(track, at, at + event.duration, depth + 1, add_within);
          at += event.duration + below(30);
        }
      };
      for (const int64_t track : {int64_t{1}, int64_t{2}, kStream, kStream + 1}) {
        if (below(4) > 0) add(track, below(50), 50 + below(150), 0, add);
      }
      if (trace.events.empty()) continue;
      std::stable_sort(
          trace.events.begin(), trace.events.end(), [](const TraceEvent& a, const TraceEvent& b) {
            return std::tuple(a.track, a.start, -a.duration) < std::tuple(b.track, b.start, -b.duration);
          });
      std::map<int64_t, int> num_events;
      for (const TraceEvent& event : trace.events)
        num_events[event.track] += event.category == "step" ? 1000 : 1;
      report.Add(trace);
      expected.Add(trace, num_events[2] > num_events[1] ? 2 : 1);
    }
    std::vector<std::string> tree = {"0range share count inclusive exclusive mean longest"}, gaps;
    for (const auto& [path, sum] : expected.ranges) {
      const std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
      const bool is_device = parts[0] == "GPU 0" || parts[0] == "device";
      const std::string last = is_device && parts.size() == 1 ? "[" + parts[0] + "]" : parts.back();
      const std::string name = std::to_string(parts.size() - 1) + last;
      tree.push_back(sum.count == 0 ? name : Row(name, sum, expected.total, Seconds(sum.own) + " "));
    }
    EXPECT_THAT(Rows(report.Tree(0)), testing::UnorderedElementsAreArray(tree));
    if (expected.num_with_device > 0) {
      gaps = {absl::StrCat("0devices busy: ",
                           absl::StrFormat("%.1f %% of ", 100.0 * expected.busy / expected.total_with_device),
                           Seconds(expected.total_with_device), " in ", expected.num_with_device, " traces"),
              "0host was in share gaps total mean longest"};
    }
    std::multimap<int64_t, std::string> largest_first;
    for (const auto& [name, sum] : expected.gaps)
      largest_first.emplace(-sum.total, Row("0" + name, sum, expected.total_with_device, ""));
    for (const auto& [negative, row] : largest_first) gaps.push_back(row);
    EXPECT_EQ(Rows(report.Gaps()), gaps);
  }
}

}  // namespace
}  // namespace ott::trace
