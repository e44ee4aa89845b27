#include "ott/questions/kernels/host_time.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/op_cost/op_cost.h"

namespace ott::kernels {
namespace {

struct Row {
  std::string_view kind, direction;
  std::string name;
  // The shapes of an op's tensors: "[[32,64],[64,10]]".
  std::string shapes;
  // The first row of the same but for shapes.
  size_t named = 0;
  int64_t count = 0;
  int64_t num_with_flops = 0;
  double flops = 0;  // of these calls
  int64_t total = 0;
  int64_t self = 0;
  int64_t min = 0;
  int64_t max = 0;
};

std::string ShapesOf(const OpDescription& op) {
  std::vector<std::string> shapes;
  for (const OpArgument& argument : op.arguments) {
    if (!argument.is_tensor || argument.shape.empty()) continue;
    shapes.push_back(absl::StrCat("[", absl::StrJoin(argument.shape, ","), "]"));
  }
  return shapes.empty() ? "" : absl::StrCat("[", absl::StrJoin(shapes, ","), "]");
}

// The rows, and which one each label belongs to, by whether it is within a node of the backward pass.
struct Rows {
  std::vector<Row> rows;
  std::vector<size_t> of_label[2];
  // The FLOPs of a call; absent if the op has no formula, or the label does not tell enough.
  std::vector<std::optional<double>> flops_of_label[2];

  explicit Rows(const std::vector<OpLabel>& labels) {
    for (const bool within_backward : {false, true}) AddRowsOf(labels, within_backward);
  }

 private:
  void AddRowsOf(const std::vector<OpLabel>& labels, bool within_backward) {
    for (const OpLabel& label : labels) {
      Row row;
      row.name = label.text;
      switch (label.kind) {
        case OpLabel::Kind::kMarker:
        case OpLabel::Kind::kOp:
          row.kind = "op";
          row.name = label.description.op;
          row.shapes = ShapesOf(label.description);
          row.direction = within_backward || label.direction == OpDirection::kBackward ? "bprop" : "fprop";
          break;
        case OpLabel::Kind::kLayer:
          row.kind = "layer";
          break;
        case OpLabel::Kind::kTrace:
          row.kind = "trace";
          row.name = label.source;
          break;
        case OpLabel::Kind::kModule:
          row.kind = "module";
          break;
        case OpLabel::Kind::kOther:
          row.kind = "range";
          break;
      }
      row.named =
          by_name_.try_emplace(std::make_tuple(row.kind, row.direction, row.name), rows.size()).first->second;
      const auto [entry, added] =
          index_.try_emplace(std::make_tuple(row.kind, row.direction, row.name, row.shapes), rows.size());
      if (added) rows.push_back(row);
      of_label[within_backward].push_back(entry->second);
      // A node's label has the shapes of gradients, from which nothing follows.
      const bool has_cost = row.kind == "op" && !label.is_backward_node;
      flops_of_label[within_backward].push_back(
          has_cost ? CostOf(label.description, OpPass::kForward, std::nullopt).flops : std::nullopt);
    }
  }

  absl::flat_hash_map<std::tuple<std::string_view, std::string_view, std::string, std::string>, size_t>
      index_;
  absl::flat_hash_map<std::tuple<std::string_view, std::string_view, std::string>, size_t> by_name_;
};

void AddThread(const Profile::Thread& thread, const std::vector<OpLabel>& labels, Rows* rows) {
  std::vector<Profile::Range> ranges(thread.ranges.begin(), thread.ranges.end());
  std::sort(ranges.begin(), ranges.end(), [](const Profile::Range& a, const Profile::Range& b) {
    return a.start != b.start ? a.start < b.start : a.end > b.end;
  });
  struct Open {
    int64_t end;
    size_t row;
    uint32_t label;
    // True if it is, or is within, a node of the backward pass.
    bool is_backward;
    // Its FLOPs, if they are in its row.
    std::optional<double> flops;
  };
  std::vector<Open> open;
  for (const Profile::Range& range : ranges) {
    while (!open.empty() && open.back().end <= range.start && open.back().end < range.end) open.pop_back();
    const OpLabel& label = labels[range.label];
    const bool within_backward = !open.empty() && open.back().is_backward;
    size_t index = rows->of_label[within_backward][range.label];
    std::optional<double> flops = rows->flops_of_label[within_backward][range.label];
    // JSON within a label, and a node within autograd's engine, are the same call.
    const bool describes_outer =
        !open.empty() && rows->rows[open.back().row].named == rows->rows[index].named &&
        ((label.kind == OpLabel::Kind::kMarker && labels[open.back().label].kind == OpLabel::Kind::kOp) ||
         (label.is_backward_node && labels[open.back().label].is_backward_node));
    if (describes_outer) {
      // JSON tells more than the label around it, and the row is that one's.
      Open& outer = open.back();
      if (flops.has_value()) {
        Row& row = rows->rows[outer.row];
        row.num_with_flops += !outer.flops.has_value();
        row.flops += *flops - outer.flops.value_or(0);
        outer.flops = flops;
      }
      index = outer.row;
    } else {
      const int64_t duration = range.end - range.start;
      Row& row = rows->rows[index];
      row.min = row.count == 0 ? duration : std::min(row.min, duration);
      row.max = std::max(row.max, duration);
      ++row.count;
      row.total += duration;
      row.self += duration;
      row.num_with_flops += flops.has_value();
      row.flops += flops.value_or(0);
      if (!open.empty())
        rows->rows[open.back().row].self -= std::min(range.end, open.back().end) - range.start;
    }
    open.push_back({range.end, index, range.label, within_backward || label.is_backward_node, flops});
  }
}

}  // namespace

absl::Status WriteHostTimes(const Profile& profile, const TableLayout& layout, int64_t limit,
                            const std::function<void(std::string_view)>& write) {
  Rows rows(profile.labels);
  for (const Profile::Thread& thread : profile.threads) AddThread(thread, profile.labels, &rows);
  double self = 0;
  for (const Row& row : rows.rows) self += static_cast<double>(row.self);
  std::vector<const Row*> order;
  for (const Row& row : rows.rows) {
    if (row.count > 0) order.push_back(&row);
  }
  std::stable_sort(order.begin(), order.end(), [](const Row* a, const Row* b) { return a->self > b->self; });
  if (limit >= 0 && order.size() > static_cast<size_t>(limit)) order.resize(static_cast<size_t>(limit));
  const std::vector<std::string_view> names = {"kind", "dir", "name", "count",  "total", "self",  "share",
                                               "mean", "min", "max",  "shapes", "flops", "gflops"};
  OTT_RETURN_IF_ERROR(CheckWidth(layout, names));
  TableWriter writer(layout, names, write);
  for (const Row* row : order) {
    for (const std::string_view text : {row->kind, row->direction, std::string_view(row->name)})
      writer.Add(TextCell(text));
    writer.Add(IntegerCell(row->count));
    writer.Add(IntegerCell(row->total));
    writer.Add(IntegerCell(row->self));
    writer.Add(RealCell(self > 0 ? 100 * static_cast<double>(row->self) / self : KernelRow::kUnknown));
    for (const int64_t value : {row->total / row->count, row->min, row->max}) writer.Add(IntegerCell(value));
    writer.Add(TextCell(row->shapes));
    if (row->kind != "op") {
      writer.Add(TextCell(""));
      writer.Add(TextCell(""));
    } else {
      const double flops = row->num_with_flops == row->count ? row->flops : KernelRow::kUnknown;
      writer.Add(RealCell(flops));
      writer.Add(RealCell(row->total > 0 ? flops / static_cast<double>(row->total) : KernelRow::kUnknown));
    }
    writer.EndRow();
  }
  return absl::OkStatus();
}

}  // namespace ott::kernels
