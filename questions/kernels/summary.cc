#include "ott/questions/kernels/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"
#include "ott/core/op_cost/kernel_name.h"

namespace ott::kernels {
namespace {

constexpr int64_t kShortKernel = 5000;  // ns: about what a launch takes
constexpr int64_t kSmallGrid = 64;      // blocks: fewer than today's data-centre GPUs have multiprocessors
constexpr double kWorthTelling = 1;     // percent of the time
constexpr size_t kTopOps = 10;

std::string Time(int64_t nanoseconds) { return FormatSeconds(static_cast<double>(nanoseconds) * 1e-9); }

double PercentOrZero(int64_t part, int64_t whole) {
  return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
}

bool IsHalf(std::string_view dtype) { return dtype == "float16" || dtype == "bfloat16"; }

class Summary {
 public:
  // all_ops: between kernels of some ops others ran, so that the time between them tells nothing.
  explicit Summary(bool all_ops) : all_ops_(all_ops) {}

  void Add(const KernelRow& row) {
    ++num_kernels_;
    total_ += row.sil;
    AddToGpu(row);
    if (row.op.empty()) without_op_ += row.sil;
    if (std::isnan(row.flops) && !row.counted_elsewhere) without_flops_ += row.sil;
    if (!row.op.empty() && row.params.empty()) without_sizes_ += row.sil;
    Op& op = ops_[{std::string(row.op.empty() ? "-" : row.op), std::string(row.dir)}];
    op.sil += row.sil;
    ++op.count;
    if (!std::isnan(row.flops)) op.flops += row.flops;
    if (row.counted_elsewhere || !std::isnan(row.flops)) op.flops_sil += row.sil;
    if (row.sil < kShortKernel) {
      ++num_short_;
      short_ += row.sil;
    }
    const KernelKind kind = KernelKindOf(row.name.empty() ? row.kernel : row.name);
    if (kind == KernelKind::kCollective) {
      collectives_ += row.sil;
    } else if (kind != KernelKind::kOther) {
      AddMatrixKernel(row);
    }
  }

  std::string Text(size_t most_ops) const {
    if (num_kernels_ == 0) return "no kernels pass the filters\n";
    std::string text =
        absl::StrFormat("%d kernels, copies and memsets on %d GPU%s, %s of GPU time within %s", num_kernels_,
                        gpus_.size(), gpus_.size() == 1 ? "" : "s", Time(total_), Time(last_ - first_));
    if (all_ops_)
      absl::StrAppendFormat(&text, "; GPUs idle %.1f %% of the time between kernels", PercentIdle());
    absl::StrAppendFormat(&text, "\nmatrix kernels: %s (%.1f %%)", Time(matrix_),
                          PercentOrZero(matrix_, total_));
    if (matrix_ > 0)
      absl::StrAppendFormat(&text, ", %.1f %% of it on Tensor Cores", PercentOrZero(tensor_cores_, matrix_));
    if (unknown_tensor_cores_ > 0)
      absl::StrAppendFormat(&text, ", %.1f %% not known", PercentOrZero(unknown_tensor_cores_, matrix_));
    absl::StrAppendFormat(&text, "\ncollectives: %s (%.1f %%)\n", Time(collectives_),
                          PercentOrZero(collectives_, total_));
    absl::StrAppendFormat(&text, "no op known for %.1f %% of the time, no FLOPs for %.1f %%\n\n",
                          PercentOrZero(without_op_, total_), PercentOrZero(without_flops_, total_));
    absl::StrAppend(&text, TopOps(most_ops), "\n");
    const std::string advice = Advice();
    absl::StrAppend(&text, advice.empty() ? "nothing stands out\n" : advice);
    return text;
  }

 private:
  struct Op {
    int64_t sil = 0;
    int64_t count = 0;
    double flops = 0;
    int64_t flops_sil = 0;  // time of kernels whose FLOPs are known
  };

  // From its first kernel to the end of its last.
  struct Gpu {
    int64_t first = std::numeric_limits<int64_t>::max();
    int64_t last = std::numeric_limits<int64_t>::min();
    int64_t gap_before = 0;
  };

  void AddToGpu(const KernelRow& row) {
    Gpu& gpu = gpus_[{row.rank, row.pid, row.device}];
    const int64_t gap = row.gap == kNoInteger ? 0 : row.gap;
    gap_ += gap;
    if (row.start < gpu.first) gpu.gap_before = gap;
    gpu.first = std::min(gpu.first, row.start);
    gpu.last = std::max(gpu.last, row.start + row.sil);
    first_ = std::min(first_, gpu.first);
    last_ = std::max(last_, gpu.last);
  }

  // Kernels of several streams run side by side, so that their times do not add up to the time that a GPU
  // works.
  double PercentIdle() const {
    int64_t idle = gap_, elapsed = 0;
    for (const auto& [name, gpu] : gpus_) {
      idle -= gpu.gap_before;
      elapsed += gpu.last - gpu.first;
    }
    return PercentOrZero(idle, elapsed);
  }

  void AddMatrixKernel(const KernelRow& row) {
    matrix_ += row.sil;
    if (row.tc == "1") {
      tensor_cores_ += row.sil;
    } else if (row.tc.empty()) {
      unknown_tensor_cores_ += row.sil;
    } else if (row.kernel.find("gemv") != std::string_view::npos) {
      // A matrix by a vector waits for memory, not for products.
    } else if (row.dtype == "float32") {
      float32_ += row.sil;
    } else if (IsHalf(row.dtype)) {
      half_ += row.sil;
    }
    if (row.odd == 1) odd_[std::string(row.params)] += row.sil;
    if (row.blocks >= 0 && row.blocks < kSmallGrid) small_[std::string(row.kernel)] += row.sil;
  }

  std::string TopOps(size_t most_ops) const {
    std::vector<std::pair<std::pair<std::string, std::string>, Op>> ops(ops_.begin(), ops_.end());
    std::stable_sort(ops.begin(), ops.end(),
                     [](const auto& a, const auto& b) { return a.second.sil > b.second.sil; });
    if (ops.size() > most_ops) ops.resize(most_ops);
    TextTable table({"op", "dir", "count", "time", "share", "TFLOP", "TFLOP/s"});
    for (const auto& [name, op] : ops) {
      const bool known = op.flops > 0 && op.flops_sil > 0;
      table.AddRow(
          {name.first, name.second.empty() ? "-" : name.second, absl::StrCat(op.count), Time(op.sil),
           absl::StrFormat("%.1f %%", PercentOrZero(op.sil, total_)),
           known ? absl::StrFormat("%.4g", op.flops * 1e-12) : "na",
           known ? absl::StrFormat("%.4g", op.flops / static_cast<double>(op.flops_sil) * 1e-3) : "na"});
    }
    return table.ToString();
  }

  // The entry that takes most, where all of them together are worth telling.
  void AppendWorst(const std::map<std::string, int64_t>& times, const std::string& what,
                   std::string* text) const {
    int64_t sum = 0;
    const std::pair<const std::string, int64_t>* worst = nullptr;
    for (const auto& entry : times) {
      sum += entry.second;
      if (worst == nullptr || entry.second > worst->second) worst = &entry;
    }
    if (worst == nullptr || PercentOrZero(sum, total_) < kWorthTelling) return;
    absl::StrAppend(text, "* ", Time(sum), absl::StrFormat(" (%.1f %%) ", PercentOrZero(sum, total_)), what,
                    "; most: ", worst->first, " (", Time(worst->second), ")\n");
  }

  std::string Advice() const {
    std::string text;
    if (PercentOrZero(float32_, total_) >= kWorthTelling) {
      absl::StrAppendFormat(
          &text,
          "* %s (%.1f %%) multiplies float32 on CUDA cores: TF32 (cuBLAS math mode, allow_tf32) or "
          "bfloat16 would use Tensor Cores\n",
          Time(float32_), PercentOrZero(float32_, total_));
    }
    if (PercentOrZero(half_, total_) >= kWorthTelling) {
      absl::StrAppendFormat(
          &text,
          "* %s (%.1f %%) multiplies 16-bit types on CUDA cores: sizes and addresses that are "
          "multiples of 8 elements would use Tensor Cores\n",
          Time(half_), PercentOrZero(half_, total_));
    }
    AppendWorst(odd_,
                "multiplies sizes that are no multiple of 8 (16-bit types) or 16 (8-bit types): pad them",
                &text);
    AppendWorst(small_,
                absl::StrCat("is in matrix kernels of fewer than ", kSmallGrid,
                             " blocks, which leave multiprocessors idle: larger batches, or split-K"),
                &text);
    if (all_ops_ && PercentIdle() >= 20) {
      absl::StrAppendFormat(
          &text,
          "* the GPU is idle %.1f %% of the time between kernels: see the columns gap and latency; "
          "CUDA graphs, fewer synchronisations, or a faster input would fill it\n",
          PercentIdle());
    }
    if (PercentOrZero(short_, total_) >= 10) {
      absl::StrAppendFormat(
          &text,
          "* %d of %d kernels, copies and memsets are shorter than %s, about what a launch takes (%.1f %% of "
          "the time): fuse them or use CUDA graphs\n",
          num_short_, num_kernels_, Time(kShortKernel), PercentOrZero(short_, total_));
    }
    if (PercentOrZero(without_sizes_, total_) >= 10) {
      absl::StrAppendFormat(
          &text,
          "* the ops of %.1f %% of the time tell no sizes, so no FLOPs: emit_nvtx(record_shapes=True) of "
          "torch.autograd.profiler, or OpRange, writes them\n",
          PercentOrZero(without_sizes_, total_));
    }
    return text;
  }

  const bool all_ops_;
  int64_t num_kernels_ = 0, num_short_ = 0;
  int64_t total_ = 0, gap_ = 0, short_ = 0;
  int64_t first_ = std::numeric_limits<int64_t>::max(), last_ = 0;
  int64_t without_op_ = 0, without_flops_ = 0, without_sizes_ = 0;
  int64_t collectives_ = 0, matrix_ = 0, tensor_cores_ = 0, unknown_tensor_cores_ = 0, float32_ = 0,
          half_ = 0;
  std::map<std::tuple<int64_t, int64_t, int64_t>, Gpu> gpus_;  // by rank, process and device
  std::map<std::pair<std::string, std::string>, Op> ops_;
  std::map<std::string, int64_t> odd_;    // by sizes
  std::map<std::string, int64_t> small_;  // by kernel
};

}  // namespace

std::string Summarize(const KernelRows& rows, const ProfTableOptions& options) {
  Summary summary(options.op.empty() && options.layer.empty() && options.kernel.empty() &&
                  options.phase.empty() && options.direction.empty());
  KernelRow row;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows.Get(i, &row);
    if (PassesFilters(options, row)) summary.Add(row);
  }
  return summary.Text(options.limit >= 0 ? static_cast<size_t>(options.limit) : kTopOps);
}

}  // namespace ott::kernels
