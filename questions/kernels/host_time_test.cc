#include "ott/questions/kernels/host_time.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gtest/gtest.h"
#include "ott/core/kernel_profile/label_table.h"

namespace ott::kernels {
namespace {

// A label, and what the table says of its ranges that are not within the backward pass.
struct HostLabel {
  const char* text;
  std::array<std::string, 4> row;  // kind, dir, name, shapes
  std::optional<double> flops;     // of a call
  bool is_marker = false;
  bool is_node = false;
};

struct HostRange {
  int64_t start, end;
  const HostLabel* label;
  const HostRange* outer = nullptr;
  bool in_backward = false;
  const HostRange* call = this;  // that it is or describes

  std::array<std::string, 4> row() const {
    std::array<std::string, 4> row = label->row;
    if (in_backward && row[0] == "op") row[1] = "bprop";
    return row;
  }
  bool IsAround(const HostRange& other) const {
    return other.start < end || (other.start == end && other.end == end);
  }
  // A marker within an op, or a node within a node, of one name and direction is the same call.
  bool Describes(const HostRange& other) const {
    const std::array<std::string, 4> a = row(), b = other.call->row();
    const bool is_op = other.label->row[0] == "op" && !other.label->is_marker;
    return std::equal(a.begin(), a.begin() + 3, b.begin()) &&
           ((label->is_marker && is_op) || (label->is_node && other.label->is_node));
  }
};

// Ranges may end after the one around them, begin as it ends, or take no time.
TEST(HostTime, RowsOfAnyRangesAreSumsOfTheirCalls) {
  const std::vector<HostLabel> labels = {
      {"forward", {"range", "-", "forward", "-"}, {}},
      {"layer:fc1", {"layer", "-", "fc1", "-"}, {}},
      {"{'traceMarker': ['a.py:1']}", {"trace", "-", "a.py:1", "-"}, {}},
      {"{'mod': 'fc2', 'strRepr': 'Linear()'}", {"module", "-", "fc2", "-"}, {}},
      {"aten::mm, sizes = [[2, 3], [3, 4]]", {"op", "fprop", "mm", "[[2,3],[3,4]]"}, 48},
      {"aten::mm, sizes = [[8, 3], [3, 4]]", {"op", "fprop", "mm", "[[8,3],[3,4]]"}, 192},
      {"aten::mm, seq = 1", {"op", "fprop", "mm", "-"}, {}},
      {"aten::t, sizes = [[2, 3]]", {"op", "fprop", "t", "[[2,3]]"}, 0},
      {R"({"op":"mm","args":[{"shape":[4,3]},{"shape":[3,4]},{"value":2}]})",
       {"op", "fprop", "mm", "[[4,3],[3,4]]"},
       96,
       true},
      {R"({"op":"mm","args":[{"shape":[]}]})", {"op", "fprop", "mm", "-"}, {}, true},
      {R"({"op":"mm","args":[{"shape":[2,3]},{"shape":[3,4]}],"direction":"backward"})",
       {"op", "bprop", "mm", "[[2,3],[3,4]]"},
       48,
       true},
      {"MmBackward0, sizes = [[2, 4]]", {"op", "bprop", "MmBackward0", "[[2,4]]"}, {}, false, true},
      {"autograd::engine::evaluate_function: MmBackward0, op_id = 9",
       {"op", "bprop", "MmBackward0", "-"},
       {},
       false,
       true},
  };
  LabelTable table;
  for (size_t i = 0; i < labels.size(); ++i) ASSERT_EQ(table.Find(labels[i].text).first, i);
  Profile profile;
  profile.labels = table.TakeLabels();
  std::vector<std::array<std::string, 4>> order;
  for (const bool in_backward : {false, true}) {
    for (const HostLabel& label : labels) {
      const auto row = HostRange{0, 0, &label, nullptr, in_backward}.row();
      if (std::find(order.begin(), order.end(), row) == order.end()) order.push_back(row);
    }
  }
  std::mt19937 random(1);
  for (int trial = 0; trial < 3000; ++trial) {
    std::list<HostRange> ranges;
    profile.threads.clear();
    for (size_t thread = random() % 3; thread > 0; --thread) {
      std::set<std::pair<int64_t, int64_t>> times;  // start, -end
      while (times.size() < 8) {
        const auto start = static_cast<int64_t>(random() % 12);
        times.insert({start, -start - static_cast<int64_t>(random() % 9)});
      }
      const HostRange* before = nullptr;
      Profile::Thread& of_profile = profile.threads.emplace_back();
      for (const auto& [start, minus_end] : times) {
        HostRange& range = ranges.emplace_back();
        range.start = start;
        range.end = -minus_end;
        range.label = &labels[random() % labels.size()];
        while (before != nullptr && !before->IsAround(range)) before = before->outer;
        range.outer = std::exchange(before, &range);
        range.in_backward =
            range.outer != nullptr && (range.outer->in_backward || range.outer->label->is_node);
        if (range.outer != nullptr && range.Describes(*range.outer)) range.call = range.outer->call;
        of_profile.ranges.push_back(
            {start, -minus_end, static_cast<uint32_t>(range.label - labels.data()), kNone});
      }
      std::shuffle(of_profile.ranges.begin(), of_profile.ranges.end(), random);
    }

    struct Row {
      std::array<std::string, 4> names;
      std::vector<int64_t> times;
      int64_t self = 0;
      std::optional<double> flops = 0;
    };
    std::vector<Row> rows;
    int64_t all_self = 0;
    for (const auto& names : order) {
      Row row{names, {}};
      for (const HostRange& range : ranges) {
        if (range.outer != nullptr && range.call != range.outer->call && range.outer->call->row() == names)
          row.self -= std::min(range.end, range.outer->end) - range.start;
        if (range.call != &range || range.row() != names) continue;
        row.times.push_back(range.end - range.start);
        std::optional<double> flops;
        for (const HostRange& told : ranges) {
          if (told.call == &range && told.label->flops.has_value()) flops = told.label->flops;
        }
        row.flops = flops && row.flops ? std::optional(*row.flops + *flops) : std::nullopt;
      }
      for (const int64_t time : row.times) row.self += time;
      all_self += row.self;
      if (!row.times.empty()) rows.push_back(row);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.self > b.self; });
    const int64_t limit = static_cast<int64_t>(random() % 20) - 1;
    if (limit >= 0) rows.resize(std::min(rows.size(), static_cast<size_t>(limit)));
    std::string expected = "kind dir name count total self share mean min max shapes flops gflops\n";
    for (const Row& row : rows) {
      const int64_t total = std::accumulate(row.times.begin(), row.times.end(), int64_t{0});
      const auto [min, max] = std::minmax_element(row.times.begin(), row.times.end());
      const auto ratio = [](double a, int64_t b) {
        return b > 0 ? absl::StrFormat("%.5g", a / static_cast<double>(b)) : "na";
      };
      const auto count = static_cast<int64_t>(row.times.size());
      const bool is_op = row.names[0] == "op";
      absl::StrAppend(&expected, row.names[0], " ", row.names[1], " ", row.names[2], " ", count, " ", total,
                      " ", row.self, " ", ratio(100.0 * static_cast<double>(row.self), all_self), " ",
                      total / count, " ", *min, " ", *max, " ", row.names[3], " ");
      absl::StrAppend(&expected,
                      !is_op      ? "-"
                      : row.flops ? absl::StrCat(*row.flops)
                                  : "na",
                      " ",
                      !is_op      ? "-"
                      : row.flops ? ratio(*row.flops, total)
                                  : "na",
                      "\n");
    }
    std::string text;
    ASSERT_TRUE(WriteHostTimes(profile, {}, limit, [&](std::string_view part) { text += part; }).ok());
    ASSERT_EQ(text, expected) << trial;
  }
}

}  // namespace
}  // namespace ott::kernels
