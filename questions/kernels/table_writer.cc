#include "ott/questions/kernels/table_writer.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/csv.h"
#include "ott/core/json/json_string.h"

namespace ott::kernels {
namespace {

constexpr size_t kBufferSize = size_t{1} << 16;

struct ColumnWidth {
  std::string_view name;
  int width;
};

// Columns that have no width of their own share what is left of a line.
constexpr ColumnWidth kWidths[] = {
    {"idx", 7},    {"seq", 7},    {"altseq", 7}, {"pid", 8},    {"tid", 12},   {"rank", 4},   {"layer", 10},
    {"phase", 15}, {"trace", 25}, {"dir", 5},    {"sub", 3},    {"mod", 15},   {"op", 15},    {"dtype", 8},
    {"start", 12}, {"sil", 10},   {"call", 10},  {"share", 7},  {"tc", 3},     {"device", 6}, {"stream", 6},
    {"odd", 3},    {"grid", 12},  {"blocks", 8}, {"block", 12}, {"flops", 12}, {"bytes", 12}, {"tflops", 8},
    {"gbps", 8},   {"ai", 8},     {"peak", 7},   {"roof", 7},   {"algbw", 8},  {"busbw", 8},  {"latency", 10},
    {"gap", 10},   {"join", 9},   {"count", 7},  {"mean", 10},  {"min", 10},   {"max", 10},   {"known", 7},
    {"kind", 6},   {"total", 12}, {"self", 12},  {"gflops", 8},
};
constexpr int kLeastShare = 8;

int WidthOf(std::string_view name) {
  const auto known = std::find_if(std::begin(kWidths), std::end(kWidths),
                                  [&](const ColumnWidth& column) { return column.name == name; });
  return known == std::end(kWidths) ? 0 : known->width;
}

struct LineWidth {
  int fixed = 0;  // with the spaces between columns
  int num_shares = 0;

  int least() const { return fixed + kLeastShare * num_shares; }
};

LineWidth WidthOfLine(const std::vector<std::string_view>& names) {
  LineWidth line;
  line.fixed = static_cast<int>(names.size()) - 1;
  for (const std::string_view name : names) {
    line.fixed += WidthOf(name);
    line.num_shares += WidthOf(name) == 0 ? 1 : 0;
  }
  return line;
}

std::vector<int> WidthsOf(const TableLayout& layout, const std::vector<std::string_view>& names) {
  std::vector<int> widths(names.size(), 0);
  const LineWidth line = WidthOfLine(names);
  for (size_t i = 0; i < names.size(); ++i) {
    const int width = WidthOf(names[i]);
    widths[i] = width > 0 ? width : std::max(kLeastShare, (layout.width - line.fixed) / line.num_shares);
  }
  return widths;
}

}  // namespace

absl::Status CheckWidth(const TableLayout& layout, const std::vector<std::string_view>& names) {
  const int least = WidthOfLine(names).least();
  if (layout.format != TableLayout::Format::kPlain || layout.width == 0 || layout.width >= least)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("these columns need a line of at least ", least, " characters, not ", layout.width));
}

TableWriter::TableWriter(const TableLayout& layout, std::vector<std::string_view> names,
                         std::function<void(std::string_view)> write)
    : layout_(layout), names_(std::move(names)), widths_(WidthsOf(layout, names_)), write_(std::move(write)) {
  if (layout.format == TableLayout::Format::kJson) return;
  for (const std::string_view name : names_) Add(TextCell(name));
  EndRow();
}

void TableWriter::Add(const ProfCell& cell) {
  switch (layout_.format) {
    case TableLayout::Format::kPlain:
      AddPlain(cell);
      break;
    case TableLayout::Format::kCsv:
      AddCsv(cell);
      break;
    case TableLayout::Format::kJson:
      AddJson(cell);
      break;
  }
  ++column_;
}

void TableWriter::EndRow() {
  column_ = 0;
  switch (layout_.format) {
    case TableLayout::Format::kPlain:
      buffer_.push_back('\n');
      break;
    case TableLayout::Format::kCsv:
      buffer_.append("\r\n");
      break;
    case TableLayout::Format::kJson:
      buffer_.append(first_in_object_ ? "{}\n" : "}\n");
      first_in_object_ = true;
      break;
  }
  if (buffer_.size() < kBufferSize) return;
  write_(buffer_);
  buffer_.clear();
}

void TableWriter::AddPlain(const ProfCell& cell) {
  if (column_ > 0) buffer_.push_back(' ');
  const size_t begin = buffer_.size();
  AppendCell(cell, true, &buffer_);
  if (layout_.width == 0) return;
  const size_t end = begin + static_cast<size_t>(widths_[column_]);
  // A number that was cut would be another number.
  if (buffer_.size() > end && !cell.is_number()) buffer_.resize(end);
  if (buffer_.size() < end && column_ + 1 < names_.size()) buffer_.resize(end, ' ');
}

void TableWriter::AddCsv(const ProfCell& cell) {
  if (column_ > 0) buffer_.push_back(',');
  if (cell.kind == ProfCell::Kind::kText) {
    buffer_.append(CsvField(cell.text));
  } else {
    AppendCell(cell, false, &buffer_);
  }
}

void TableWriter::AddJson(const ProfCell& cell) {
  if (cell.kind == ProfCell::Kind::kAbsent) return;
  buffer_.append(first_in_object_ ? "{\"" : ",\"").append(names_[column_]).append("\":");
  first_in_object_ = false;
  if (cell.kind == ProfCell::Kind::kUnknown ||
      (cell.kind == ProfCell::Kind::kReal && !std::isfinite(cell.real))) {
    buffer_.append("null");
  } else if (cell.kind == ProfCell::Kind::kText) {
    AppendJsonString(cell.text, buffer_);
  } else {
    AppendCell(cell, false, &buffer_);
  }
}

}  // namespace ott::kernels
