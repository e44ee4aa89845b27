#include "ott/questions/kernels/prof_column.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace ott::kernels {
namespace {

// Returns the cell of a cost, which is empty if another kernel of the call has the costs.
ProfCell CostCell(const KernelRow& row, double value) {
  return row.counted_elsewhere ? ProfCell() : RealCell(value);
}

// A space, a control character, or DEL.
bool SplitsWords(char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7f; }

// Eight characters at a time, since this is asked of every text of every row.
bool IsOneWord(std::string_view text) {
  constexpr size_t kWord = sizeof(uint64_t);
  constexpr uint64_t kOnes = 0x0101010101010101;
  if (text.size() < kWord) return std::none_of(text.begin(), text.end(), SplitsWords);
  uint64_t found = 0;
  const auto look_at = [&](const char* at) {
    uint64_t word;
    std::memcpy(&word, at, kWord);
    const uint64_t del = word ^ 0x7f * kOnes;
    // Sets the highest bit of a byte up to ' ', and of one that is 0x7f.
    found |= ((word - (' ' + 1) * kOnes) & ~word) | ((del - kOnes) & ~del);
  };
  for (size_t i = 0; i + kWord < text.size(); i += kWord) look_at(text.data() + i);
  look_at(text.data() + text.size() - kWord);
  return (found & 0x80 * kOnes) == 0;
}

// The amount is that of the call, which may have taken several kernels.
double PerSecond(const KernelRow& row, double amount) {
  const int64_t time = row.call == kNoInteger ? row.sil : row.call;
  return time > 0 ? amount / (static_cast<double>(time) * 1e-9) : KernelRow::kUnknown;
}

}  // namespace

ProfCell TextCell(std::string_view text) {
  ProfCell cell;
  if (text.empty()) return cell;
  cell.kind = ProfCell::Kind::kText;
  cell.text = text;
  return cell;
}

ProfCell IntegerCell(int64_t integer) {
  ProfCell cell;
  if (integer == kNoInteger) return cell;
  cell.kind = ProfCell::Kind::kInteger;
  cell.integer = integer;
  return cell;
}

ProfCell RealCell(double real) {
  ProfCell cell;
  cell.kind = std::isnan(real) ? ProfCell::Kind::kUnknown : ProfCell::Kind::kReal;
  cell.real = real;
  return cell;
}

void AppendCell(const ProfCell& cell, bool one_word, std::string* text) {
  char buffer[32];
  switch (cell.kind) {
    case ProfCell::Kind::kText: {
      const size_t begin = text->size();
      text->append(cell.text);
      if (!one_word || IsOneWord(cell.text)) return;
      std::replace_if(text->begin() + static_cast<std::ptrdiff_t>(begin), text->end(), SplitsWords, '_');
      return;
    }
    case ProfCell::Kind::kInteger:
      text->append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), cell.integer).ptr);
      return;
    case ProfCell::Kind::kReal:
      // Counts in full; ratios and rates in five digits.
      if (cell.real == std::floor(cell.real) && std::abs(cell.real) < 9e15) {
        text->append(buffer,
                     std::to_chars(buffer, buffer + sizeof(buffer), static_cast<int64_t>(cell.real)).ptr);
      } else {
        text->append(
            buffer,
            std::to_chars(buffer, buffer + sizeof(buffer), cell.real, std::chars_format::general, 5).ptr);
      }
      return;
    case ProfCell::Kind::kUnknown:
      text->append("na");
      return;
    case ProfCell::Kind::kAbsent:
      text->append("-");
      return;
  }
}

const std::vector<ProfColumn>& ProfColumns() {
  static const auto& columns = *new std::vector<ProfColumn>{
      {"idx", "number of the kernel, copy or memset, by start",
       [](const KernelRow& r) { return IntegerCell(r.idx); }},
      {"seq", "sequence number that pairs forward and backward",
       [](const KernelRow& r) { return IntegerCell(r.seq); }},
      {"altseq", "sequence number of the next op around it that has another",
       [](const KernelRow& r) { return IntegerCell(r.altseq); }},
      {"pid", "process", [](const KernelRow& r) { return IntegerCell(r.pid); }},
      {"tid", "thread that launched it", [](const KernelRow& r) { return IntegerCell(r.tid); }},
      {"rank", "rank of the process", [](const KernelRow& r) { return IntegerCell(r.rank); }},
      {"layer", "layers from the outside in, joined by ':'",
       [](const KernelRow& r) { return TextCell(r.layer); }},
      {"phase", "innermost range of the program's own", [](const KernelRow& r) { return TextCell(r.phase); }},
      {"trace", "file:line of the call", [](const KernelRow& r) { return TextCell(r.trace); }},
      {"dir", "fprop or bprop", [](const KernelRow& r) { return TextCell(r.dir); }},
      {"sub", "number of the kernel within the call of the op, from 0",
       [](const KernelRow& r) { return IntegerCell(r.sub); }},
      {"mod", "module or namespace of the op", [](const KernelRow& r) { return TextCell(r.mod); }},
      {"op", "op", [](const KernelRow& r) { return TextCell(r.op); }},
      {"calls", "ops from the outside in, joined by '>'",
       [](const KernelRow& r) { return TextCell(r.calls); }},
      {"kernel", "name of the kernel in brief", [](const KernelRow& r) { return TextCell(r.kernel); }},
      {"name", "name of the kernel in full", [](const KernelRow& r) { return TextCell(r.name); }},
      {"params", "sizes of the op", [](const KernelRow& r) { return TextCell(r.params); }},
      {"odd", "1: a size is no multiple of what Tensor Cores take at once; 0: all are",
       [](const KernelRow& r) { return IntegerCell(r.odd); }},
      {"shapes", "of all arguments of the op, where a trace of PyTorch tells them",
       [](const KernelRow& r) { return TextCell(r.shapes); }},
      {"types", "of all arguments", [](const KernelRow& r) { return TextCell(r.types); }},
      {"strides", "of all arguments", [](const KernelRow& r) { return TextCell(r.strides); }},
      {"inputs", "values of the arguments that are no tensors",
       [](const KernelRow& r) { return TextCell(r.inputs); }},
      {"dtype", "element type", [](const KernelRow& r) { return TextCell(r.dtype); }},
      {"start", "ns since the beginning of the capture",
       [](const KernelRow& r) { return IntegerCell(r.start); }},
      {"sil", "duration, ns", [](const KernelRow& r) { return IntegerCell(r.sil); }},
      {"call", "duration of all kernels of the call that the FLOPs and bytes are of, ns",
       [](const KernelRow& r) { return IntegerCell(r.call); }},
      {"share", "percent of the duration of all kernels shown",
       [](const KernelRow& r) { return RealCell(r.share); }},
      {"tc", "Tensor Cores: 1, 0, na",
       [](const KernelRow& r) { return r.tc.empty() ? RealCell(KernelRow::kUnknown) : TextCell(r.tc); }},
      {"device", "GPU", [](const KernelRow& r) { return IntegerCell(r.device); }},
      {"stream", "stream", [](const KernelRow& r) { return IntegerCell(r.stream); }},
      {"grid", "blocks: x,y,z", [](const KernelRow& r) { return TextCell(r.grid); }},
      {"blocks", "blocks in all", [](const KernelRow& r) { return IntegerCell(r.blocks); }},
      {"block", "threads a block: x,y,z", [](const KernelRow& r) { return TextCell(r.block); }},
      {"flops", "floating-point operations; a multiply-add is two",
       [](const KernelRow& r) { return CostCell(r, r.flops); }},
      {"bytes", "least traffic with device memory: inputs read once, outputs written once",
       [](const KernelRow& r) { return CostCell(r, r.bytes); }},
      {"tflops", "achieved 10^12 FLOP/s, of the call's FLOPs in the time of all its kernels",
       [](const KernelRow& r) { return CostCell(r, PerSecond(r, r.flops) * 1e-12); }},
      {"gbps", "achieved 10^9 bytes/s, in the same way",
       [](const KernelRow& r) { return CostCell(r, PerSecond(r, r.bytes) * 1e-9); }},
      {"ai", "arithmetic intensity, FLOPs a byte",
       [](const KernelRow& r) { return CostCell(r, r.bytes > 0 ? r.flops / r.bytes : KernelRow::kUnknown); }},
      {"peak", "percent of the device's peak under the roof that limits",
       [](const KernelRow& r) { return CostCell(r, r.percent_peak); }},
      {"roof", "what limits: compute or memory",
       [](const KernelRow& r) {
         return r.roof.empty() ? CostCell(r, KernelRow::kUnknown) : TextCell(r.roof);
       }},
      {"algbw", "collectives: message size over time, 10^9 bytes/s",
       [](const KernelRow& r) { return CostCell(r, PerSecond(r, r.message_bytes) * 1e-9); }},
      {"busbw", "collectives: what a link carries, 10^9 bytes/s (nccl-tests)",
       [](const KernelRow& r) { return CostCell(r, PerSecond(r, r.bus_bytes) * 1e-9); }},
      {"latency", "ns from the launch call to the start",
       [](const KernelRow& r) { return IntegerCell(r.latency); }},
      {"gap", "ns the process's GPU was idle before it",
       [](const KernelRow& r) { return IntegerCell(r.gap); }},
      {"join", "op, no_op (ranges, but no op among them), no_range, graph, no_launch",
       [](const KernelRow& r) { return TextCell(r.join); }},
  };
  return columns;
}

absl::StatusOr<std::vector<const ProfColumn*>> ParseProfColumns(std::string_view names) {
  std::vector<const ProfColumn*> columns;
  if (names == "all") {
    for (const ProfColumn& column : ProfColumns()) columns.push_back(&column);
    return columns;
  }
  while (true) {
    const size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    const auto column = std::find_if(ProfColumns().begin(), ProfColumns().end(),
                                     [name](const ProfColumn& known) { return known.name == name; });
    if (column == ProfColumns().end()) {
      std::string known;
      for (const ProfColumn& column : ProfColumns()) {
        absl::StrAppend(&known, known.empty() ? "" : ",", std::string(column.name));
      }
      return absl::InvalidArgumentError(
          absl::StrCat("no column '", std::string(name), "'; there are ", known));
    }
    columns.push_back(&*column);
    if (comma == std::string_view::npos) return columns;
    names.remove_prefix(comma + 1);
  }
}

}  // namespace ott::kernels
