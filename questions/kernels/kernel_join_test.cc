#include "ott/questions/kernels/kernel_join.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/kernel_profile/label_table.h"
#include "ott/questions/kernels/capture_for_test.h"
#include "ott/questions/kernels/profile_reader.h"
#include "ott/questions/kernels/profile_rows.h"

namespace ott::kernels {
namespace {

using ::testing::ElementsAre;
using State = KernelJoin::State;

struct Joined {
  Profile profile;
  KernelJoin join;

  void Join() { join = JoinKernels(&profile); }

  const KernelJoin::Launch& launch(size_t kernel) const {
    return join.launches[profile.kernels[kernel].launch];
  }
  const LaunchContext& context(size_t kernel) const { return join.contexts[launch(kernel).context]; }
  State state(size_t kernel) const { return join.StateOf(profile, profile.kernels[kernel].launch); }
  std::string text(uint32_t text) const { return text == kNone ? "-" : join.texts[text]; }
};

// Makes any ranges, which may cross, touch and take no time, and says by the rules of the join what they
// tell. Numbers of ranges are their indices; -1 is none.
struct AnyCapture {
  // Says what a range and those around it tell together.
  struct Said {
    int64_t marker = -1, op = -1, backward = -1;
    int64_t call = -1;  // launches of one call share its number
    std::string layer = "-", source = "-", module = "-", phase = "-", callers;
    OpDirection direction = OpDirection::kUnknown;
    int64_t number = -1, other_number = -1, backward_start = 0;
  };
  struct Range {
    uint32_t thread;
    int64_t start, end;
    // 'b' and 'B' nodes of the backward pass, 'B', 'm' and 'w' markers, 'o' and 'c' ops, 'c' and 'w' of the
    // backward pass; 'l' a layer, 's' a line, 'd' a module, 'p' a phase
    char kind;
    int64_t number;
    int64_t cut_end = end;  // of the part within the range around it
    int64_t parent = -1;
    Said said = {};

    bool Is(std::string_view kinds) const { return kinds.find(kind) != kinds.npos; }
  };

  // Threads 0 to 2 are of one process, of which the last runs later, as backward passes do.
  static uint16_t ProcessOf(uint32_t thread) { return thread == 3 ? 1 : 0; }

  explicit AnyCapture(unsigned seed) : random(seed) {
    std::set<std::tuple<uint32_t, int64_t, int64_t>> known;
    while (ranges.size() < 40) {
      const auto thread = static_cast<uint32_t>(Below(4));
      // No two threads begin anything at one time.
      const int64_t start = 4 * Below(60) + thread + (thread == 2 ? 400 : 0), end = start + 4 * Below(40);
      const char kind = thread == 2 ? "bBocmwlp"[Below(8)] : "oooomwlpsd"[Below(10)];
      if (!known.emplace(thread, start, end).second) continue;
      ranges.push_back({thread, start, end, kind, -1});
      if (Below(2) == 0 && ranges.back().Is("bBmwoc")) ranges.back().number = Below(5);
    }
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
      return std::make_tuple(a.thread, a.start, -a.end) < std::make_tuple(b.thread, b.start, -b.end);
    });
    for (size_t i = 0; i < ranges.size(); ++i) Say(static_cast<int64_t>(i));
  }

  int64_t Below(int64_t end) { return static_cast<int64_t>(random() % static_cast<uint64_t>(end)); }

  std::string Text(size_t i) const {
    const Range& range = ranges[i];
    const std::string name = absl::StrCat("x", i);
    const std::string op = absl::StrCat(name, range.Is("bB")  ? "Backward0"
                                              : range.Is("c") ? "_backward"
                                                              : "");
    const std::string number = range.number < 0 ? "" : absl::StrCat(range.number);
    if (range.Is("Bmw"))
      return absl::StrCat(R"({"op":")", op, R"(","source":")", name, R"(","direction":")",
                          range.Is("Bw") ? "backward" : "forward", R"(")", number.empty() ? "" : R"(,"seq":)",
                          number, "}");
    if (range.Is("boc"))
      return absl::StrCat(range.Is("b") ? "" : "aten::", op, number.empty() ? "" : ", seq = ", number);
    if (range.Is("s")) return absl::StrCat("{'traceMarker': ['", name, "']}");
    if (range.Is("d")) return absl::StrCat("{'mod': '", name, "', 'strRepr': 'x'}");
    return absl::StrCat(range.Is("l") ? "layer:" : "", name);
  }

  Said SaidAround(const Range& range) const {
    return range.parent < 0 ? Said() : ranges[static_cast<size_t>(range.parent)].said;
  }

  // Fills what a range says; those before it in `ranges` are known.
  void Say(int64_t self) {
    Range& range = ranges[static_cast<size_t>(self)];
    for (int64_t before = 0; before < self; ++before) {
      const Range& other = ranges[static_cast<size_t>(before)];
      if (other.thread == range.thread &&
          (other.cut_end > range.start || (other.cut_end == range.start && range.end == range.start)))
        range.parent = before;
    }
    if (range.parent >= 0)
      range.cut_end = std::min(range.end, ranges[static_cast<size_t>(range.parent)].cut_end);
    num_crossing += range.cut_end < range.end;
    const Said outer = SaidAround(range);
    Said& said = range.said = outer;
    const std::string name = absl::StrCat("x", self);
    if (range.Is("bB")) {
      said.marker = said.op = -1;
      said.callers.clear();
      said.backward = self;
    } else if (range.Is("mw")) {
      said.marker = self;
      said.op = -1;
    } else if (range.Is("oc")) {
      said.callers = outer.op < 0 ? "" : absl::StrCat(outer.callers, ">", outer.op);
      said.op = self;
    }
    if (range.Is("Bmws")) said.source = name;
    if (range.Is("d")) said.module = name;
    if (range.Is("p")) said.phase = name;
    if (range.Is("l")) said.layer = outer.layer == "-" ? name : outer.layer + ":" + name;
    if (!range.Is("bBmwoc")) return;
    if (range.Is("bBmw") || said.marker < 0) said.call = self;
    const bool is_within = outer.direction == OpDirection::kBackward;
    if (!is_within) said.direction = range.Is("bBcw") ? OpDirection::kBackward : OpDirection::kForward;
    const std::pair<uint16_t, int64_t> key = {ProcessOf(range.thread), range.number};
    if (range.number >= 0 && range.Is("bBw")) asked_for.insert(key);
    const bool begins = range.Is("bB") || (!is_within && range.Is("cw"));
    // An op within a backward node shows 0, unless it makes a graph of its own.
    if (range.number < 0 || (is_within && !begins && range.number == 0)) return;
    const bool takes = begins || !is_within || outer.number < 0;
    if (outer.number >= 0 && range.number != outer.number)
      said.other_number = takes ? outer.number : range.number;
    if (takes) said.number = range.number;
    if (begins) said.backward_start = range.start;
    // Numbers are not used again later: the last one of each thread counts.
    if (!begins) forwards[key][range.thread] = self;
  }

  // Returns the innermost range around a time.
  int64_t Around(uint32_t thread, int64_t time) const {
    int64_t found = -1;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (ranges[i].thread == thread && ranges[i].start <= time) found = static_cast<int64_t>(i);
    }
    while (found >= 0 && ranges[static_cast<size_t>(found)].cut_end < time)
      found = ranges[static_cast<size_t>(found)].parent;
    return found;
  }

  std::mt19937_64 random;
  std::vector<Range> ranges;  // of each thread by start, the outer ones first
  int64_t num_crossing = 0;
  std::set<std::pair<uint16_t, int64_t>> asked_for;  // the numbers of backward nodes, by process
  std::map<std::pair<uint16_t, int64_t>, std::map<uint32_t, int64_t>> forwards;  // the range of each thread
};

TEST(KernelJoin, OfAnyRangesEachLaunchHasWhatThoseAroundItSay) {
  std::map<State, int> num_of_state;
  int num_inherited = 0, num_double = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    AnyCapture capture(seed);
    Joined joined;
    Profile& profile = joined.profile;
    profile.threads.resize(4);
    profile.threads[3].process = 1;
    std::vector<uint32_t> order(capture.ranges.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), capture.random);
    std::vector<Profile::RangeOfLaunch> places(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      profile.labels.push_back(ParseLabel(SplitLabel(capture.Text(i))));
    for (const uint32_t i : order) {
      const AnyCapture::Range& range = capture.ranges[i];
      auto& ranges = profile.threads[range.thread].ranges;
      places[i] = {range.thread, static_cast<uint32_t>(ranges.size())};
      ranges.push_back(
          {range.start, range.end, i, range.number < 0 ? kNone : static_cast<uint32_t>(range.number)});
    }
    // Some launches lie in a range that is told, whenever they begin.
    std::vector<int64_t> told;
    std::set<std::pair<uint32_t, int>> devices;  // of threads
    for (uint32_t i = 0; i < 30; ++i) {
      const auto thread = static_cast<uint32_t>(capture.Below(4));
      const int64_t of = capture.Below(40);
      const bool is_told = AnyCapture::ProcessOf(capture.ranges[static_cast<size_t>(of)].thread) ==
                               AnyCapture::ProcessOf(thread) &&
                           capture.Below(3) == 0;
      told.push_back(is_told ? of : -1);
      profile.launches.push_back({4 * capture.Below(100) + thread + (thread == 2 ? 400 : 0),
                                  capture.Below(8) == 0 ? kNone : thread, 0});
      profile.range_of_launch.push_back(is_told ? places[static_cast<size_t>(of)] : Profile::RangeOfLaunch());
      const auto device = static_cast<int16_t>(thread == 2 ? capture.Below(3) - 1 : thread % 2);
      profile.kernels.push_back({i, i + 1, 0, 0, i, 0, 0, device, false});
      devices.emplace(profile.launches[i].thread, device);
    }
    if (capture.Below(4) == 0) {
      profile.range_of_launch.clear();
      told.assign(told.size(), -1);
    }
    joined.Join();
    profile.kernel_names = {"kernel"};
    profile.geometries.resize(1);
    profile.processes.resize(2);
    const ProfileRows rows(profile, joined.join, std::nullopt);
    std::map<int64_t, uint32_t> instances;
    for (size_t i = 0; i < profile.launches.size(); ++i) {
      SCOPED_TRACE(i);
      const Profile::Launch& call = profile.launches[i];
      const int64_t in = call.thread == kNone ? -1
                         : told[i] >= 0       ? told[i]
                                              : capture.Around(call.thread, call.start);
      const AnyCapture::Said around =
          in < 0 ? AnyCapture::Said() : capture.ranges[static_cast<size_t>(in)].said;
      const bool has_op = around.marker >= 0 || around.op >= 0 || around.backward >= 0;
      const State state = call.thread == kNone ? State::kNoLaunch
                          : in < 0             ? State::kNoRange
                          : has_op             ? State::kOp
                                               : State::kNoOp;
      ++num_of_state[state];
      ASSERT_EQ(joined.state(i), state);
      KernelRow row;
      rows.Get(i, &row);
      EXPECT_EQ(row.join, state == State::kOp        ? "op"
                          : state == State::kNoOp    ? "no_op"
                          : state == State::kNoRange ? "no_range"
                                                     : "no_launch");
      if (in < 0) continue;
      AnyCapture::Said expected = around;
      int64_t forward_marker = -1, forward_op = -1, number = around.number, before = around.backward_start;
      if (around.direction != OpDirection::kBackward) number = -1;
      // Goes back to the forward range, and from a forward range within a backward node on to that of the
      // node.
      while (number >= 0) {
        const std::pair<uint16_t, int64_t> key = {AnyCapture::ProcessOf(call.thread), number};
        const AnyCapture::Range* forward = nullptr;
        const auto is_better = [&](const AnyCapture::Range& a, const AnyCapture::Range& b) {
          const auto device = profile.kernels[i].device;
          return std::make_pair(device >= 0 && devices.count({a.thread, device}) > 0, a.start) >
                 std::make_pair(device >= 0 && devices.count({b.thread, device}) > 0, b.start);
        };
        for (const auto& [unused, of_thread] : capture.forwards[key]) {
          const AnyCapture::Range& range = capture.ranges[static_cast<size_t>(of_thread)];
          if (capture.asked_for.count(key) > 0 && range.start < before &&
              (forward == nullptr || is_better(range, *forward)))
            forward = &range;
        }
        if (forward == nullptr) break;
        ++(number == around.number ? num_inherited : num_double);
        if (forward_marker < 0 && forward_op < 0) {
          forward_marker = forward->said.marker;
          forward_op = forward->said.op;
        }
        for (std::string AnyCapture::Said::*const text :
             {&AnyCapture::Said::layer, &AnyCapture::Said::source, &AnyCapture::Said::module}) {
          if (forward->said.*text != "-") expected.*text = forward->said.*text;
        }
        if (forward->said.direction != OpDirection::kBackward) break;
        before = capture.SaidAround(*forward).backward_start;
        number = capture.SaidAround(*forward).number;
      }
      const LaunchContext& context = joined.context(i);
      const KernelJoin::Launch& launch = joined.launch(i);
      const auto index = [](uint32_t of) { return of == kNone ? int64_t{-1} : int64_t{of}; };
      EXPECT_EQ(std::make_tuple(index(context.marker), index(context.op), index(context.backward),
                                index(context.forward_marker), index(context.forward_op)),
                std::make_tuple(expected.marker, expected.op, expected.backward, forward_marker, forward_op));
      EXPECT_EQ(std::make_tuple(joined.text(context.layer), joined.text(context.source),
                                joined.text(context.module), joined.text(context.phase)),
                std::make_tuple(expected.layer, expected.source, expected.module, expected.phase));
      EXPECT_EQ(context.direction, expected.direction);
      EXPECT_EQ(index(launch.sequence_number), expected.number);
      EXPECT_EQ(index(launch.other_sequence_number), expected.other_number);
      std::string callers;
      for (uint32_t at = context.outer; at != kNone; at = joined.join.contexts[at].outer)
        callers = absl::StrCat(">", joined.join.contexts[at].op, callers);
      EXPECT_EQ(callers, expected.callers);
      EXPECT_EQ(launch.op_instance == kNone, expected.call < 0);
      if (expected.call >= 0) {
        EXPECT_EQ(instances.emplace(expected.call, launch.op_instance).first->second, launch.op_instance);
      }
    }
    std::set<uint32_t> numbers;
    for (const auto& [unused, instance] : instances) numbers.insert(instance);
    EXPECT_EQ(numbers.size(), instances.size());
    EXPECT_EQ(joined.join.num_op_instances, instances.size());
    EXPECT_THAT(joined.join.notes, ElementsAre(absl::StrCat(capture.num_crossing,
                                                            " ranges end after the range around them; the "
                                                            "part beyond is left out")));
  }
  for (const State state : {State::kOp, State::kNoOp, State::kNoRange, State::kNoLaunch})
    EXPECT_GT(num_of_state[state], 100) << static_cast<int>(state);
  EXPECT_GT(num_inherited, 100);
  EXPECT_GT(num_double, 20);
}

TEST(KernelJoin, AMillionNestedRangesAreJoined) {
  CaptureSql sql;
  const std::string depth = "1000000";
  sql.Sql("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < " + depth +
          " - 1) INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) SELECT i, 4000000 - i, 59, "
          "'aten::mm', " +
          std::to_string(GlobalTid(1, 11)) + " FROM n;");
  for (int i = 0; i < 100; ++i) sql.Kernel(1, 11, 2000000 + i, 5000000 + i, 1, "k", i);
  Joined joined{ReadProfile(sql.Write("join.sqlite")).value(), {}};
  joined.Join();
  EXPECT_EQ(joined.profile.num_ranges, 1000000);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(joined.state(i), State::kOp);
}

}  // namespace
}  // namespace ott::kernels
