#include "ott/questions/kernels/table_writer.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_format.h"
#include "ott/core/base/csv.h"
#include "ott/core/json/json_string.h"

namespace ott::prof {
namespace {

constexpr size_t kBufferSize = size_t{1} << 16;

}  // namespace

TableWriter::TableWriter(const TableLayout& layout, std::vector<std::string_view> names,
                         std::function<void(std::string_view)> write)
    : layout_(layout), names_(std::move(names)), write_(std::move(write)) {
  if (layout.format == TableLayout::Format::kJson) return;
  for (const std::string_view name : names_) Add(TextCell(name));
  EndRow();
}

void TableWriter::Add(const Cell& cell) {
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

void TableWriter::AddPlain(const Cell& cell) {
  if (column_ > 0) buffer_.push_back(' ');
  const size_t begin = buffer_.size();
  AppendCell(cell, true, &buffer_);
  if (layout_.width == 0 || column_ + 1 == names_.size()) return;
  // A number that was cut would be another number.
  const size_t end = begin + static_cast<size_t>(layout_.width);
  if (!cell.is_number() || buffer_.size() < end) buffer_.resize(end, ' ');
}

void TableWriter::AddCsv(const Cell& cell) {
  if (column_ > 0) buffer_.push_back(',');
  if (cell.kind == Cell::Kind::kText) {
    buffer_.append(CsvField(cell.text));
  } else {
    AppendCell(cell, false, &buffer_);
  }
}

void TableWriter::AddJson(const Cell& cell) {
  if (cell.kind == Cell::Kind::kAbsent) return;
  buffer_.append(first_in_object_ ? "{\"" : ",\"").append(names_[column_]).append("\":");
  first_in_object_ = false;
  if (cell.kind == Cell::Kind::kUnknown || (cell.kind == Cell::Kind::kReal && !std::isfinite(cell.real))) {
    buffer_.append("null");
  } else if (cell.kind == Cell::Kind::kText) {
    AppendJsonString(cell.text, buffer_);
  } else {
    AppendCell(cell, false, &buffer_);
  }
}

}  // namespace ott::prof
