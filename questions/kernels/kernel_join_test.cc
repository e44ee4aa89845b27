#include "ott/questions/kernels/kernel_join.h"

#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/kernels/capture_for_test.h"
#include "ott/questions/kernels/profile_reader.h"

namespace ott::kernels {
namespace {

using State = KernelJoin::State;

struct Joined {
  Profile profile;
  KernelJoin join;

  explicit Joined(const CaptureSql& sql) {
    profile = ReadProfile(sql.Write("join.sqlite")).value();
    join = JoinKernels(&profile);
  }

  const KernelJoin::Launch& launch(size_t kernel) const {
    return join.launches[profile.kernels[kernel].launch];
  }
  const LaunchContext& context(size_t kernel) const { return join.contexts[launch(kernel).context]; }
  State state(size_t kernel) const { return join.StateOf(profile, profile.kernels[kernel].launch); }
  std::string op(uint32_t label) const { return label == kNone ? "-" : profile.labels[label].description.op; }
  std::string text(uint32_t text) const { return text == kNone ? "-" : join.texts[text]; }
};

TEST(KernelJoin, CorrelationIdsOfTwoProcessesAreKeptApart) {
  const Joined joined(CaptureSql()
                          .Range(1, 11, 100, 200, "aten::mm, seq = 1")
                          .Range(2, 22, 100, 200, "aten::add, seq = 1")
                          .Kernel(1, 11, 150, 300, 10, "a", 5)
                          .Kernel(2, 22, 150, 400, 10, "b", 5));
  EXPECT_EQ(joined.op(joined.context(0).op), "mm");
  EXPECT_EQ(joined.op(joined.context(1).op), "add");
}

TEST(KernelJoin, EveryKernelHasAState) {
  const Joined joined(CaptureSql()
                          .Range(1, 11, 100, 200, "forward")
                          .Range(1, 11, 150, 160, "aten::mm")
                          .Kernel(1, 11, 155, 300, 10, "op", 1)
                          .Kernel(1, 11, 170, 310, 10, "no op", 2)
                          .Kernel(1, 11, 250, 320, 10, "no range", 3)
                          .Kernel(1, 11, -1, 330, 10, "no launch", 4)
                          .Kernel(1, 12, 155, 340, 10, "no range on its thread", 5));
  EXPECT_EQ(joined.state(0), State::kOp);
  EXPECT_EQ(joined.state(1), State::kNoOp);
  EXPECT_EQ(joined.state(2), State::kNoRange);
  EXPECT_EQ(joined.state(3), State::kNoLaunch);
  EXPECT_EQ(joined.state(4), State::kNoRange);
  EXPECT_EQ(joined.text(joined.context(1).phase), "forward");
}

// Threads with random ranges within each other, and launches at random times, their ends included.
struct RandomCapture {
  struct Range {
    int thread;
    int64_t start, end;
    char kind;  // 'o' an op, 'b' a backward node, 'l' a layer, 'p' a phase
    std::string name;
    int64_t sequence;  // -1: none
  };
  struct Launch {
    int thread;
    int64_t time;
  };

  explicit RandomCapture(unsigned seed) : random(seed) {
    for (int thread = 0; thread < 3; ++thread) {
      Fill(thread, 1 + 1000 * (thread == 2 ? 1 : 0), 1000 * (thread == 2 ? 2 : 1) - 1, 0);
      for (int i = 0; i < 12; ++i)
        launches.push_back({thread, static_cast<int64_t>(random() % 1000) + 1000 * (thread == 2 ? 1 : 0)});
    }
    for (const Range& range : ranges) {
      if (random() % 2 == 0) launches.push_back({range.thread, random() % 2 == 0 ? range.start : range.end});
    }
  }

  // Threads 0 and 2 are of one process; thread 2 comes later, and runs the backward nodes.
  void Fill(int thread, int64_t begin, int64_t end, int depth) {
    while (depth < 5) {
      const int64_t start = begin + 1 + static_cast<int64_t>(random() % 60);
      const int64_t stop = start + 3 + static_cast<int64_t>(random() % 200);
      if (stop >= end) return;
      const bool may_be_backward = thread == 2 && depth == 0;
      const char kind = may_be_backward ? 'b' : "olp"[random() % 3];
      const int64_t sequence =
          kind == 'b' || (kind == 'o' && thread != 2) ? static_cast<int64_t>(1 + random() % 8) : -1;
      ranges.push_back(
          {thread, start, stop, kind, std::string(1, kind) + std::to_string(ranges.size()), sequence});
      Fill(thread, start, stop, depth + 1);
      begin = stop;
    }
  }

  CaptureSql Sql() const {
    CaptureSql sql;
    const auto process = [](int thread) { return thread == 1 ? 2 : 1; };
    for (const Range& range : ranges) {
      std::string text = (range.kind == 'o' ? "aten::" : range.kind == 'l' ? "layer:" : "") + range.name;
      if (range.kind == 'b') text = "Node" + range.name + "Backward0";
      if (range.sequence >= 0) text += ", seq = " + std::to_string(range.sequence);
      sql.Range(process(range.thread), 10 + range.thread, range.start, range.end, text);
    }
    for (size_t i = 0; i < launches.size(); ++i) {
      sql.Kernel(process(launches[i].thread), 10 + launches[i].thread, launches[i].time,
                 5000 + 10 * static_cast<int64_t>(i), 5, "k", static_cast<int64_t>(i) + 1);
    }
    return sql;
  }

  // The ranges around a launch, from the outside in.
  std::vector<const Range*> Around(const Launch& launch) const {
    std::vector<const Range*> around;
    for (const Range& range : ranges) {
      if (range.thread == launch.thread && range.start <= launch.time && launch.time <= range.end)
        around.push_back(&range);
    }
    return around;
  }

  std::mt19937 random;
  std::vector<Range> ranges;
  std::vector<Launch> launches;
};

TEST(KernelJoin, EachLaunchIsOfTheRangesAroundIt) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const RandomCapture capture(seed);
    const Joined joined(capture.Sql());
    std::map<const RandomCapture::Range*, uint32_t> instances;
    std::set<uint32_t> all_instances;
    for (size_t i = 0; i < capture.launches.size(); ++i) {
      const auto around = capture.Around(capture.launches[i]);
      ASSERT_EQ(joined.profile.kernels[i].start, 5000 + 10 * static_cast<int64_t>(i));
      const RandomCapture::Range *op = nullptr, *backward = nullptr, *numbered = nullptr;
      std::string layer = "-", phase = "-";
      const auto add_layer = [&](const std::string& name) {
        layer = layer == "-" ? name : layer + ":" + name;
      };
      for (const RandomCapture::Range* const range : around) {
        if (range->kind == 'o') op = range;
        if (range->kind == 'b') backward = range;
        if (range->kind == 'l') add_layer(range->name);
        if (range->kind == 'p') phase = range->name;
        if (range->sequence >= 0) numbered = range;
      }
      EXPECT_EQ(joined.state(i), around.empty()                         ? State::kNoRange
                                 : op == nullptr && backward == nullptr ? State::kNoOp
                                                                        : State::kOp)
          << seed << " " << i;
      if (around.empty()) continue;
      const LaunchContext& context = joined.context(i);
      EXPECT_EQ(joined.op(context.op), op == nullptr ? "-" : op->name) << seed << " " << i;
      EXPECT_EQ(joined.text(context.phase), phase) << seed << " " << i;
      EXPECT_EQ(joined.launch(i).sequence_number, numbered == nullptr ? kNone : numbered->sequence);
      EXPECT_EQ(context.backward != kNone, backward != nullptr) << seed << " " << i;
      const RandomCapture::Range* forward = nullptr;
      if (backward != nullptr) {
        // The last op of its number, of the same process; its layers go before those of the backward pass.
        for (const RandomCapture::Range& range : capture.ranges) {
          if (range.thread == 0 && range.sequence == backward->sequence &&
              (forward == nullptr || range.start > forward->start))
            forward = &range;
        }
      }
      EXPECT_EQ(joined.op(context.forward_op), forward == nullptr ? "-" : forward->name) << seed << " " << i;
      if (forward != nullptr) {
        std::string of_forward = "-";
        std::swap(layer, of_forward);
        for (const RandomCapture::Range* const range : capture.Around({0, forward->start})) {
          if (range->kind == 'l' && range->end >= forward->end) add_layer(range->name);
        }
        if (layer == "-") layer = of_forward;
      }
      EXPECT_EQ(joined.text(context.layer), layer) << seed << " " << i;
      // Launches of one call share its number.
      const RandomCapture::Range* const call = op != nullptr ? op : backward;
      EXPECT_EQ(joined.launch(i).op_instance == kNone, call == nullptr) << seed << " " << i;
      if (call == nullptr) continue;
      const auto [known, is_new] = instances.emplace(call, joined.launch(i).op_instance);
      EXPECT_EQ(known->second, joined.launch(i).op_instance) << seed << " " << i;
      if (is_new) {
        EXPECT_TRUE(all_instances.insert(known->second).second) << seed << " " << i;
      }
    }
    EXPECT_EQ(joined.join.num_op_instances, all_instances.size()) << seed;
    EXPECT_TRUE(joined.join.notes.empty());
  }
}

TEST(KernelJoin, RangesContainTheirEndsAndAnOpenOneTheRest) {
  const Joined joined(CaptureSql()
                          .Range(1, 11, 100, 200, "aten::first")
                          .Range(1, 11, 300, "NULL", "aten::open")
                          .Kernel(1, 11, 100, 1000, 10, "k", 1)
                          .Kernel(1, 11, 200, 1010, 10, "k", 2)
                          .Kernel(1, 11, 201, 1020, 10, "k", 3)
                          .Kernel(1, 11, 900, 1030, 10, "k", 4));
  EXPECT_EQ(joined.state(0), State::kOp);
  EXPECT_EQ(joined.state(1), State::kOp);
  EXPECT_EQ(joined.state(2), State::kNoRange);
  EXPECT_EQ(joined.op(joined.context(3).op), "open");
  EXPECT_THAT(joined.profile.notes, testing::Contains("1 ranges were open when the capture ended"));
}

TEST(KernelJoin, OneGraphLaunchHasManyKernels) {
  const Joined joined(CaptureSql()
                          .Range(1, 11, 100, 200, "step")
                          .Kernel(1, 11, 150, 300, 10, "a", 5, 0, true)
                          .Kernel(1, 11, -1, 310, 10, "b", 5, 0, true));
  EXPECT_EQ(joined.profile.kernels[0].launch, joined.profile.kernels[1].launch);
  EXPECT_TRUE(joined.profile.kernels[1].in_graph);
  EXPECT_EQ(joined.text(joined.context(1).phase), "step");
}

TEST(KernelJoin, BackwardOnAnotherThreadInheritsFromItsForwardOp) {
  const Joined joined(CaptureSql()
                          .Range(1, 11, 90, 210, "layer:net")
                          .Range(1, 11, 95, 205, "layer:fc1")
                          .Range(1, 11, 98, 202, "{'traceMarker': ['train.py:12']}")
                          .Range(1, 11, 100, 200, "aten::linear, seq = 10, sizes = [[2, 3], [4, 3]]")
                          .Range(1, 11, 120, 130, "aten::t, seq = 10, sizes = [[4, 3]]")
                          .Range(1, 11, 140, 190, "aten::addmm, seq = 11, sizes = [[4], [2, 3], [3, 4]]")
                          .Kernel(1, 11, 150, 300, 10, "gemm", 1)
                          .Range(1, 12, 500, 600, "autograd::engine::evaluate_function: AddmmBackward0")
                          .Range(1, 12, 510, 590, "AddmmBackward0, seq = 11, sizes = [[2, 4]]")
                          .Range(1, 12, 520, 530, "aten::mm, sizes = [[2, 4], [4, 3]]")
                          .Kernel(1, 12, 525, 700, 10, "gemm", 2)
                          // The same number in another process, which must not be taken.
                          .Range(2, 11, 400, 450, "aten::foreign, seq = 11"));
  EXPECT_EQ(joined.context(0).direction, OpDirection::kForward);
  EXPECT_EQ(joined.launch(0).sequence_number, 11);
  EXPECT_EQ(joined.launch(0).other_sequence_number, 10);
  const LaunchContext& backward = joined.context(1);
  EXPECT_EQ(backward.direction, OpDirection::kBackward);
  EXPECT_EQ(joined.launch(1).sequence_number, 11);
  EXPECT_EQ(joined.op(backward.forward_op), "addmm");
  EXPECT_EQ(joined.op(backward.op), "mm");
  EXPECT_EQ(joined.text(backward.layer), "net:fc1");
  EXPECT_EQ(joined.text(backward.source), "train.py:12");
}

TEST(KernelJoin, OurLabelsComeInPairsAndShowZeroWithinBackward) {
  const Joined joined(
      CaptureSql()
          .Range(1, 11, 90, 210, "layer:fc1")
          .Range(1, 11, 100, 200, "linear, seq = 12, sizes = [[2, 3], [4, 3]]")
          .Range(1, 11, 101, 199,
                 R"({"op":"linear","module":"fc1","direction":"forward","seq":12,"source":"a.cc:1"})")
          .Kernel(1, 11, 150, 1000, 10, "k", 1)
          .Range(1, 11, 295, 405, "layer:elsewhere")
          .Range(1, 11, 300, 400, "LinearBackward0, seq = 12, sizes = [[2, 4]]")
          .Range(1, 11, 301, 399,
                 R"({"op":"LinearBackward0","direction":"backward","seq":12,"source":"a.cc:9"})")
          .Range(1, 11, 310, 390, "mm, seq = 0, sizes = [[2, 4], [4, 3]]")
          .Range(1, 11, 311, 389, R"({"op":"mm","direction":"backward","seq":0})")
          .Kernel(1, 11, 350, 1100, 10, "k", 2));
  const LaunchContext& backward = joined.context(1);
  EXPECT_EQ(joined.op(backward.backward), "LinearBackward0");
  EXPECT_EQ(joined.op(backward.marker), "mm");
  EXPECT_EQ(joined.op(backward.forward_marker), "linear");
  EXPECT_EQ(joined.text(backward.layer), "fc1");
  EXPECT_EQ(joined.text(backward.source), "a.cc:1");
  EXPECT_EQ(joined.launch(1).sequence_number, 12);
  EXPECT_EQ(joined.launch(1).other_sequence_number, kNone);
}

TEST(KernelJoin, DoubleBackwardGoesBackToTheFirstForward) {
  const Joined joined(CaptureSql()
                          .Range(1, 11, 90, 210, "layer:fc1")
                          .Range(1, 11, 100, 200, "aten::mul, seq = 5")
                          .Range(1, 12, 300, 400, "MulBackward0, seq = 5")
                          .Range(1, 12, 310, 390, "aten::mul, seq = 20")
                          .Kernel(1, 12, 320, 1000, 10, "k", 1)
                          .Range(1, 12, 500, 600, "MulBackward0, seq = 20")
                          .Kernel(1, 12, 520, 1100, 10, "k", 2));
  EXPECT_EQ(joined.launch(0).sequence_number, 5);
  EXPECT_EQ(joined.launch(0).other_sequence_number, 20);
  EXPECT_EQ(joined.launch(1).sequence_number, 20);
  EXPECT_EQ(joined.text(joined.context(1).layer), "fc1");
  EXPECT_EQ(joined.context(1).direction, OpDirection::kBackward);
}

// The number of a forward op in a backward node is that of the node's own; a forward op outside of one ends
// the way back.
TEST(KernelJoin, TheWayBackEndsAtAForwardOp) {
  const Joined joined(CaptureSql()
                          .Range(1, 11, 50, 80, "layer:older")
                          .Range(1, 11, 60, 70, "aten::mul, seq = 7")
                          .Range(1, 11, 90, 210, "layer:fc1")
                          .Range(1, 11, 95, 205, "aten::outer, seq = 7")
                          .Range(1, 11, 100, 200, "aten::mul, seq = 5")
                          .Range(1, 12, 300, 400, "MulBackward0, seq = 5")
                          .Kernel(1, 12, 320, 1000, 10, "k", 1));
  EXPECT_EQ(joined.op(joined.context(0).forward_op), "mul");
  EXPECT_EQ(joined.text(joined.context(0).layer), "fc1");
  EXPECT_EQ(joined.launch(0).sequence_number, 5);
}

// One that begins where another ends follows it, unless it takes no time.
TEST(KernelJoin, RangesThatTouchFollowEachOtherUnlessOneIsEmpty) {
  for (const int64_t end : {200, 201, 260}) {
    const Joined joined(CaptureSql()
                            .Range(1, 11, 100, 200, "aten::outer")
                            .Range(1, 11, 200, end, "layer:touching")
                            .Kernel(1, 11, 200, 300, 10, "k", 1));
    EXPECT_EQ(joined.text(joined.context(0).layer), "touching");
    EXPECT_EQ(joined.op(joined.context(0).op), end == 200 ? "outer" : "-") << end;
    EXPECT_TRUE(joined.join.notes.empty());
  }
}

TEST(KernelJoin, ThreadsThatCountAlikeAreToldApartByDevice) {
  const Joined joined(CaptureSql()
                          .Range(1, 11, 90, 200, "layer:on0")
                          .Range(1, 11, 100, 190, "aten::mm, seq = 1")
                          .Kernel(1, 11, 150, 1000, 10, "k", 1, 0)
                          .Range(1, 12, 95, 200, "layer:on1")
                          .Range(1, 12, 105, 190, "aten::add, seq = 1")
                          .Kernel(1, 12, 150, 1010, 10, "k", 2, 1)
                          .Range(1, 13, 500, 600, "MmBackward0, seq = 1")
                          .Kernel(1, 13, 550, 1020, 10, "k", 3, 0)
                          .Range(1, 14, 500, 600, "AddBackward0, seq = 1")
                          .Kernel(1, 14, 550, 1030, 10, "k", 4, 1));
  EXPECT_EQ(joined.text(joined.context(2).layer), "on0");
  EXPECT_EQ(joined.text(joined.context(3).layer), "on1");
}

TEST(KernelJoin, AMarkersOpIsThatOfTheOpsItCalls) {
  const Joined joined(CaptureSql()
                          .Range(1, 11, 100, 200, "{'mod': 'torch', 'op': 'softmax', 'args': []}")
                          .Range(1, 11, 110, 190, "aten::_softmax, seq = 3")
                          .Kernel(1, 11, 150, 300, 10, "k", 1)
                          .Kernel(1, 11, 195, 310, 10, "k", 2)
                          .Range(1, 11, 210, 220, "{'mod': 'torch', 'op': 'softmax', 'args': []}")
                          .Kernel(1, 11, 215, 320, 10, "k", 3));
  EXPECT_EQ(joined.op(joined.context(0).marker), "softmax");
  EXPECT_EQ(joined.launch(0).op_instance, joined.launch(1).op_instance);
  EXPECT_NE(joined.launch(0).op_instance, joined.launch(2).op_instance);
}

TEST(KernelJoin, AMillionNestedRangesAreJoined) {
  CaptureSql sql;
  const std::string depth = "1000000";
  sql.Sql("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < " + depth +
          " - 1) INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) SELECT i, 4000000 - i, 59, "
          "'aten::mm', " +
          std::to_string(GlobalTid(1, 11)) + " FROM n;");
  for (int i = 0; i < 100; ++i) sql.Kernel(1, 11, 2000000 + i, 5000000 + i, 1, "k", i);
  const Joined joined(sql);
  EXPECT_EQ(joined.profile.num_ranges, 1000000);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(joined.state(i), State::kOp);
}

TEST(KernelJoin, RangesThatCrossAreCountedAndCut) {
  const Joined joined(CaptureSql()
                          .Range(1, 11, 100, 200, "aten::outer")
                          .Range(1, 11, 150, 250, "aten::crossing")
                          .Kernel(1, 11, 160, 300, 10, "k", 1)
                          .Kernel(1, 11, 240, 310, 10, "k", 2));
  EXPECT_EQ(joined.op(joined.context(0).op), "crossing");
  EXPECT_EQ(joined.state(1), State::kNoRange);
  EXPECT_EQ(joined.join.notes.size(), 1);
}

}  // namespace
}  // namespace ott::kernels
