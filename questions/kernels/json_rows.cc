#include "ott/questions/kernels/json_rows.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string_view>

#include "ott/core/kernel_profile/literal.h"

namespace ott::kernels {
namespace {

struct IntegerColumn {
  std::string_view name;
  int64_t KernelRow::*value;
};

constexpr IntegerColumn kIntegers[] = {
    {"idx", &KernelRow::idx},     {"seq", &KernelRow::seq},       {"altseq", &KernelRow::altseq},
    {"pid", &KernelRow::pid},     {"tid", &KernelRow::tid},       {"rank", &KernelRow::rank},
    {"sub", &KernelRow::sub},     {"device", &KernelRow::device}, {"stream", &KernelRow::stream},
    {"start", &KernelRow::start}, {"sil", &KernelRow::sil},       {"latency", &KernelRow::latency},
    {"gap", &KernelRow::gap},     {"call", &KernelRow::call},     {"blocks", &KernelRow::blocks},
    {"odd", &KernelRow::odd},
};

struct TextColumn {
  std::string_view name;
  std::string_view KernelRow::*value;
};

constexpr TextColumn kTexts[] = {
    {"layer", &KernelRow::layer},     {"trace", &KernelRow::trace},   {"dir", &KernelRow::dir},
    {"mod", &KernelRow::mod},         {"op", &KernelRow::op},         {"kernel", &KernelRow::kernel},
    {"name", &KernelRow::name},       {"params", &KernelRow::params}, {"dtype", &KernelRow::dtype},
    {"tc", &KernelRow::tc},           {"grid", &KernelRow::grid},     {"block", &KernelRow::block},
    {"phase", &KernelRow::phase},     {"join", &KernelRow::join},     {"roof", &KernelRow::roof},
    {"calls", &KernelRow::calls},     {"shapes", &KernelRow::shapes}, {"types", &KernelRow::types},
    {"strides", &KernelRow::strides}, {"inputs", &KernelRow::inputs},
};

double NumberOf(const Literal& line, std::string_view name) {
  const Literal* value = line.Find(name);
  return value != nullptr && value->is_number() ? value->number : KernelRow::kUnknown;
}

// PyProf's dictionaries share four names with rows, and are none.
bool HasAColumn(const Literal& line) {
  if (line.Find("kDuration") != nullptr) return false;
  const auto is_there = [&](const auto& column) { return line.Find(column.name) != nullptr; };
  return std::any_of(std::begin(kIntegers), std::end(kIntegers), is_there) ||
         std::any_of(std::begin(kTexts), std::end(kTexts), is_there) || line.Find("flops") != nullptr ||
         line.Find("bytes") != nullptr;
}

}  // namespace

JsonRows::JsonRows(std::istream& lines, const std::string& first) {
  std::string text = first;
  do {
    if (text.empty()) continue;
    const std::optional<Literal> line = ParseLiteral(text);
    if (!line.has_value() || !line->is_map() || !HasAColumn(*line)) {
      ++num_bad_lines_;
      continue;
    }
    KernelRow& row = rows_.emplace_back();
    for (const IntegerColumn& column : kIntegers) {
      const double number = NumberOf(*line, column.name);
      if (std::abs(number) < 9e18) row.*column.value = static_cast<int64_t>(number);
    }
    for (const TextColumn& column : kTexts)
      row.*column.value = Interned(std::string(line->FindText(column.name)));
    row.flops = NumberOf(*line, "flops");
    row.bytes = NumberOf(*line, "bytes");
    row.percent_peak = NumberOf(*line, "peak");
    const double seconds = static_cast<double>(row.call == kNoInteger ? row.sil : row.call) * 1e-9;
    row.message_bytes = NumberOf(*line, "algbw") * 1e9 * seconds;
    row.bus_bytes = NumberOf(*line, "busbw") * 1e9 * seconds;
    // A cost that is not known is null; one that is not there is another kernel's.
    row.counted_elsewhere =
        !row.op.empty() && line->Find("flops") == nullptr && line->Find("bytes") == nullptr;
  } while (std::getline(lines, text));
}

std::string_view JsonRows::Interned(const std::string& text) {
  if (text.empty()) return {};
  return *texts_.insert(text).first;
}

}  // namespace ott::kernels
