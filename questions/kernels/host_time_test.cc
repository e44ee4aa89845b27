#include "ott/questions/kernels/host_time.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/questions/kernels/capture_for_test.h"
#include "ott/questions/kernels/profile_reader.h"

namespace ott::kernels {
namespace {

std::string HostTimes(const CaptureSql& sql) {
  std::string text;
  EXPECT_TRUE(
      WriteHostTimes(ReadProfile(sql.Write("host.sqlite")).value(), {}, -1, [&](std::string_view part) {
        text += part;
      }).ok());
  return text;
}

TEST(HostTime, SelfTimeIsWithoutTheRangesWithin) {
  EXPECT_EQ(
      HostTimes(CaptureSql()
                    .Range(1, 11, 0, 100, "forward")
                    .Range(1, 11, 10, 60, "linear, seq = 1, sizes = [[2, 3]]")
                    .Range(1, 11, 11, 59, R"({"op":"linear","direction":"forward","seq":1})")
                    .Range(1, 11, 20, 30, "layer:inner")
                    .Range(1, 11, 60, 80, "linear, seq = 2, sizes = [[2, 3]]")
                    .Range(1, 12, 0, 40, "autograd::engine::evaluate_function: LinearBackward0, op_id = 9")
                    .Range(1, 12, 5, 35, "LinearBackward0, seq = 1")),
      "kind dir name count total self share mean min max shapes flops gflops\n"
      "op fprop linear 2 70 60 42.857 35 20 50 [[2,3]] na na\n"
      "op bprop LinearBackward0 1 40 40 28.571 40 40 40 - na na\n"
      "range - forward 1 100 30 21.429 100 100 100 - - -\n"
      "layer - inner 1 10 10 7.1429 10 10 10 - - -\n");
}

TEST(HostTime, OpsWithinBackwardNodesAreOfTheBackwardPass) {
  EXPECT_EQ(HostTimes(CaptureSql()
                          .Range(1, 11, 0, 10, "aten::mm, seq = 1, sizes = [[2, 3], [3, 4]]")
                          .Range(1, 12, 0, 40, "autograd::engine::evaluate_function: MmBackward0, op_id = 9")
                          .Range(1, 12, 5, 35, "MmBackward0, seq = 1")
                          .Range(1, 12, 6, 16, "aten::mm, seq = 2, sizes = [[2, 3], [3, 4]]")
                          .Range(1, 12, 7, 15, R"({"op":"aten::mm","direction":"forward","seq":2})")
                          .Range(1, 12, 20, 34, "aten::t, seq = 3, sizes = [[2, 3]]")
                          .Range(1, 12, 50, 55, "aten::mm, seq = 4, sizes = [[2, 3], [3, 4]]")),
            "kind dir name count total self share mean min max shapes flops gflops\n"
            "op bprop MmBackward0 1 40 16 29.091 40 40 40 - na na\n"
            "op fprop mm 2 15 15 27.273 7 5 10 [[2,3],[3,4]] 96 6.4\n"
            "op bprop t 1 14 14 25.455 14 14 14 [[2,3]] 0 0\n"
            "op bprop mm 1 10 10 18.182 10 10 10 [[2,3],[3,4]] 48 4.8\n");
}

TEST(HostTime, OpsOfOtherShapesHaveRowsAndFlopsOfTheirOwn) {
  EXPECT_EQ(HostTimes(CaptureSql()
                          .Range(1, 11, 0, 10, "linear, seq = 1, sizes = [[2, 3], [4, 3]]")
                          .Range(1, 11, 1, 9,
                                 R"({"op":"linear","args":[{"name":"input","dtype":"float32","shape":[2,3]},)"
                                 R"({"name":"weight","dtype":"float32","shape":[4,3]}],"seq":1})")
                          .Range(1, 11, 20, 50, "linear, seq = 2, sizes = [[8, 3], [4, 3]]")),
            "kind dir name count total self share mean min max shapes flops gflops\n"
            "op fprop linear 1 30 30 75 30 30 30 [[8,3],[4,3]] 192 6.4\n"
            "op fprop linear 1 10 10 25 10 10 10 [[2,3],[4,3]] 48 4.8\n");
}

// Ranges may end after the one around them, begin as it ends, or take no time.
TEST(HostTime, SelfTimeOfAnyRangesIsWhatNoneWithinTakes) {
  struct Range {
    int64_t start, end;
    std::string name;

    bool IsAround(const Range& other) const {
      return other.start < end || (other.start == end && other.end == end);
    }
  };
  std::mt19937 random(1);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<Range> ranges;
    CaptureSql sql;
    for (int i = 0; i < 7; ++i) {
      const auto start = static_cast<int64_t>(random() % 12);
      ranges.push_back({start, start + static_cast<int64_t>(random() % 9), absl::StrCat("n", i)});
      sql.Range(1, 11, ranges.back().start, ranges.back().end, "layer:" + ranges.back().name);
    }
    std::stable_sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
      return std::make_pair(a.start, -a.end) < std::make_pair(b.start, -b.end);
    });
    std::map<std::string, std::pair<int64_t, int64_t>> expected;  // total and self
    std::vector<Range> open;
    for (const Range& range : ranges) {
      while (!open.empty() && !open.back().IsAround(range)) open.pop_back();
      if (!open.empty())
        expected[open.back().name].second -= std::min(range.end, open.back().end) - range.start;
      expected[range.name] = {range.end - range.start, range.end - range.start};
      open.push_back(range);
    }
    const std::string text = HostTimes(sql);
    for (const auto& [name, times] : expected) {
      EXPECT_THAT(text,
                  ::testing::HasSubstr(absl::StrCat(" ", name, " 1 ", times.first, " ", times.second, " ")));
    }
  }
}

}  // namespace
}  // namespace ott::kernels
