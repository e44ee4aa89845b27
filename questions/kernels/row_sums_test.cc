// Tests what sums over rows say, by sums over all rows, and that rows are read as they were written.

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"
#include "ott/core/base/text_table.h"
#include "ott/core/op_cost/kernel_name.h"
#include "ott/questions/kernels/compare_rows.h"
#include "ott/questions/kernels/json_rows.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/summary.h"

namespace ott::kernels {
namespace {

// Holds any rows, in any order.
class AnyRows : public KernelRows {
 public:
  explicit AnyRows(std::mt19937& random) {
    const auto any = [&](auto of) { return *(of.begin() + random() % of.size()); };
    using Texts = std::initializer_list<const char*>;
    using Integers = std::initializer_list<int64_t>;
    const int64_t shortest = any(Integers{1000, 6000});
    for (size_t i = random() % 12; i > 0; --i) {
      KernelRow& row = rows.emplace_back();
      for (const auto field : {&KernelRow::seq, &KernelRow::altseq, &KernelRow::tid, &KernelRow::rank,
                               &KernelRow::sub, &KernelRow::stream, &KernelRow::latency})
        row.*field = any(Integers{kNoInteger, 0, 7, 123456789012});
      for (const auto field :
           {&KernelRow::layer, &KernelRow::trace, &KernelRow::mod, &KernelRow::grid, &KernelRow::block,
            &KernelRow::phase, &KernelRow::join, &KernelRow::roof, &KernelRow::calls, &KernelRow::types,
            &KernelRow::shapes, &KernelRow::strides, &KernelRow::inputs})
        row.*field = any(Texts{"", "x", "a \"b\",\n\xc3\xa4"});
      for (const auto field :
           {&KernelRow::bytes, &KernelRow::message_bytes, &KernelRow::bus_bytes, &KernelRow::percent_peak}) {
        if (random() % 2 == 0) row.*field = static_cast<double>(random() % 1000);
      }
      row.idx = any(Integers{1, 12});
      row.call = any(Integers{kNoInteger, 500});
      row.kernel = any(Texts{"ampere_sgemm_128x64_tn", "nvjet_tst_64x8", "gemv2T_kernel_val", "reduce_kernel",
                             "ncclDevKernel_AllReduce_Sum_f32_RING_LL"});
      row.name = any(Texts{"", "", "cutlass_gemm", "elementwise"});
      row.op = any(Texts{"", "mm", "mm", "add"});
      row.dir = any(Texts{"", "fprop", "bprop"});
      row.params = any(Texts{"", "M=1", "M=2"});
      row.tc = any(Texts{"", "0", "0", "1"});
      row.dtype = any(Texts{"float32", "float16", "bfloat16", "int8"});
      row.odd = any(Integers{kNoInteger, 0, 1});
      row.blocks = any(Integers{kNoInteger, 0, 63, 64});
      row.gap = any(Integers{kNoInteger, 0, 500, 20000});
      row.pid = any(Integers{1, 2});
      row.device = any(Integers{0, 1});
      row.start = 1000 + static_cast<int64_t>(random() % 100000);
      row.sil = shortest + static_cast<int64_t>(random() % 5000) * any(Integers{1, 1, 20});
      if (random() % 2 == 0) row.flops = 1e6 * static_cast<double>(random() % 1000);
      row.counted_elsewhere = !row.op.empty() && random() % 4 == 0;
    }
  }

  size_t size() const override { return rows.size(); }
  void Get(size_t index, KernelRow* row) const override { *row = rows[index]; }

  std::vector<KernelRow> rows;
};

std::string Time(double nanoseconds) { return FormatSeconds(nanoseconds * 1e-9); }

// Returns the sum of value(row) over some rows.
template <typename Value, typename Counts>
int64_t Sum(const std::vector<KernelRow>& rows, const Value& value, const Counts& counts) {
  int64_t sum = 0;
  for (const KernelRow& row : rows) sum += counts(row) ? value(row) : 0;
  return sum;
}

std::string SummaryByDefinition(const std::vector<KernelRow>& rows, bool all_ops, size_t limit) {
  if (rows.empty()) return "no kernels pass the filters\n";
  const auto nanoseconds = [](const KernelRow& row) { return row.sil; };
  const auto one = [](const KernelRow&) -> int64_t { return 1; };
  const auto time_of = [&](const auto& counts) { return Sum(rows, nanoseconds, counts); };
  const int64_t total = time_of([](const KernelRow&) { return true; });
  const auto percent = [&](int64_t part) {
    return 100.0 * static_cast<double>(part) / static_cast<double>(total);
  };
  const auto kind = [](const KernelRow& row) {
    return KernelKindOf(row.name.empty() ? row.kernel : row.name);
  };
  const auto is_collective = [&](const KernelRow& row) { return kind(row) == KernelKind::kCollective; };
  const auto is_matrix = [&](const KernelRow& row) {
    return !is_collective(row) && kind(row) != KernelKind::kOther;
  };
  const auto on_cuda_cores = [&](const KernelRow& row) {
    return is_matrix(row) && row.tc == "0" && row.kernel.find("gemv") == std::string_view::npos;
  };
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<KernelRow>> gpus;
  int64_t first = rows[0].start, last = 0;
  for (const KernelRow& row : rows) {
    gpus[{row.rank, row.pid, row.device}].push_back(row);
    first = std::min(first, row.start);
    last = std::max(last, row.start + row.sil);
  }
  // The gap before the first kernel of a GPU is not between kernels.
  int64_t gap = 0, elapsed = 0;
  for (auto& [gpu, of_gpu] : gpus) {
    std::stable_sort(of_gpu.begin(), of_gpu.end(),
                     [](const KernelRow& a, const KernelRow& b) { return a.start < b.start; });
    int64_t end = 0;
    for (const KernelRow& row : of_gpu) {
      if (&row != &of_gpu[0] && row.gap != kNoInteger) gap += row.gap;
      end = std::max(end, row.start + row.sil);
    }
    elapsed += end - of_gpu[0].start;
  }
  const double idle = 100.0 * static_cast<double>(gap) / static_cast<double>(elapsed);
  std::string text =
      absl::StrFormat("%d kernels, copies and memsets on %d GPU%s, %s of GPU time within %s", rows.size(),
                      gpus.size(), gpus.size() > 1 ? "s" : "", Time(total), Time(last - first));
  if (all_ops) absl::StrAppendFormat(&text, "; GPUs idle %.1f %% of the time between kernels", idle);
  const int64_t matrix = time_of(is_matrix);
  absl::StrAppendFormat(&text, "\nmatrix kernels: %s (%.1f %%)", Time(matrix), percent(matrix));
  const auto of_matrix = [&](const char* tc) {
    const int64_t time = time_of([&](const KernelRow& row) { return is_matrix(row) && row.tc == tc; });
    return 100.0 * static_cast<double>(time) / static_cast<double>(matrix);
  };
  if (matrix > 0) absl::StrAppendFormat(&text, ", %.1f %% of it on Tensor Cores", of_matrix("1"));
  if (matrix > 0 && of_matrix("") > 0) absl::StrAppendFormat(&text, ", %.1f %% not known", of_matrix(""));
  absl::StrAppendFormat(&text, "\ncollectives: %s (%.1f %%)\n", Time(time_of(is_collective)),
                        percent(time_of(is_collective)));
  const auto has_flops = [](const KernelRow& row) { return row.counted_elsewhere || !std::isnan(row.flops); };
  absl::StrAppendFormat(&text, "no op known for %.1f %% of the time, no FLOPs for %.1f %%\n\n",
                        percent(time_of([](const KernelRow& row) { return row.op.empty(); })),
                        percent(time_of([&](const KernelRow& row) { return !has_flops(row); })));
  std::map<std::pair<std::string, std::string>, std::vector<KernelRow>> ops;
  for (const KernelRow& row : rows)
    ops[{row.op.empty() ? "-" : std::string(row.op), std::string(row.dir)}].push_back(row);
  std::vector<std::pair<int64_t, std::vector<std::string>>> cells;
  for (const auto& [name, of_op] : ops) {
    const int64_t time = Sum(of_op, nanoseconds, [](const KernelRow&) { return true; });
    const auto known = static_cast<double>(Sum(of_op, nanoseconds, has_flops));
    double flops = 0;
    for (const KernelRow& row : of_op) flops += std::isnan(row.flops) ? 0 : row.flops;
    cells.push_back(
        {-time,
         {name.first, name.second.empty() ? "-" : name.second, absl::StrCat(of_op.size()), Time(time),
          absl::StrFormat("%.1f %%", percent(time)), flops > 0 ? absl::StrFormat("%.4g", flops / 1e12) : "na",
          flops > 0 ? absl::StrFormat("%.4g", flops / known / 1e3) : "na"}});
  }
  std::stable_sort(cells.begin(), cells.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  TextTable table({"op", "dir", "count", "time", "share", "TFLOP", "TFLOP/s"});
  for (size_t i = 0; i < std::min(limit, cells.size()); ++i) table.AddRow(cells[i].second);
  absl::StrAppend(&text, table.ToString(), "\n");

  const size_t before_advice = text.size();
  const auto advise = [&](int64_t time, double least, const std::string& what) {
    if (percent(time) >= least)
      absl::StrAppendFormat(&text, "* %s (%.1f %%) %s\n", Time(time), percent(time), what);
  };
  advise(time_of([&](const KernelRow& row) { return on_cuda_cores(row) && row.dtype == "float32"; }), 1,
         "multiplies float32 on CUDA cores: TF32 (cuBLAS math mode, allow_tf32) or bfloat16 would use Tensor "
         "Cores");
  advise(
      time_of([&](const KernelRow& row) {
        return on_cuda_cores(row) && (row.dtype == "float16" || row.dtype == "bfloat16");
      }),
      1,
      "multiplies 16-bit types on CUDA cores: sizes and addresses that are multiples of 8 elements would use "
      "Tensor Cores");
  const auto advise_of_worst = [&](const auto& counts, const auto& name_of, const std::string& what) {
    std::map<std::string, int64_t> times;
    for (const KernelRow& row : rows) {
      if (counts(row)) times[std::string(name_of(row))] += row.sil;
    }
    const auto worst = std::max_element(times.begin(), times.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    if (worst != times.end())
      advise(time_of(counts), 1,
             absl::StrCat(what, "; most: ", worst->first, " (", Time(worst->second), ")"));
  };
  advise_of_worst([&](const KernelRow& row) { return is_matrix(row) && row.odd == 1; },
                  [](const KernelRow& row) { return row.params; },
                  "multiplies sizes that are no multiple of 8 (16-bit types) or 16 (8-bit types): pad them");
  advise_of_worst(
      [&](const KernelRow& row) { return is_matrix(row) && row.blocks >= 0 && row.blocks < 64; },
      [](const KernelRow& row) { return row.kernel; },
      "is in matrix kernels of fewer than 64 blocks, which leave multiprocessors idle: larger batches, "
      "or split-K");
  if (all_ops && idle >= 20) {
    absl::StrAppendFormat(
        &text,
        "* the GPU is idle %.1f %% of the time between kernels: see the columns gap and latency; CUDA "
        "graphs, fewer synchronisations, or a faster input would fill it\n",
        idle);
  }
  const auto is_short = [](const KernelRow& row) { return row.sil < 5000; };
  if (percent(time_of(is_short)) >= 10) {
    absl::StrAppendFormat(
        &text,
        "* %d of %d kernels, copies and memsets are shorter than 5 us, about what a launch takes (%.1f %% of "
        "the time): fuse them or use CUDA graphs\n",
        Sum(rows, one, is_short), rows.size(), percent(time_of(is_short)));
  }
  const int64_t without_sizes =
      time_of([](const KernelRow& row) { return !row.op.empty() && row.params.empty(); });
  if (percent(without_sizes) >= 10) {
    absl::StrAppendFormat(
        &text,
        "* the ops of %.1f %% of the time tell no sizes, so no FLOPs: emit_nvtx(record_shapes=True) of "
        "torch.autograd.profiler, or OpRange, writes them\n",
        percent(without_sizes));
  }
  return text.size() > before_advice ? text : text + "nothing stands out\n";
}

TEST(Summary, IsOfAllRowsThatPassTheFilters) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 300; ++trial) {
    const AnyRows any(random);
    ProfTableOptions options;
    if (random() % 3 == 0) options.op = "mm";
    if (random() % 8 == 0) options.phase = "x";
    if (random() % 3 == 0) options.limit = 1;
    std::vector<KernelRow> rows;
    for (const KernelRow& row : any.rows) {
      if ((options.op.empty() || row.op == "mm") && (options.phase.empty() || row.phase == "x"))
        rows.push_back(row);
    }
    ASSERT_EQ(Summarize(any, options), SummaryByDefinition(rows, options.op.empty() && options.phase.empty(),
                                                           options.limit == 1 ? 1 : 10));
  }
}

TEST(JsonRows, AreTheRowsThatWereWritten) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 300; ++trial) {
    const AnyRows any(random);
    ProfTableOptions options;
    options.columns = "all";
    options.limit = static_cast<int64_t>(any.size());
    const auto table = [&](const KernelRows& rows, TableLayout::Format format) {
      options.layout.format = format;
      std::string text;
      EXPECT_TRUE(WriteProfTable(rows, options, [&](std::string_view part) { text += part; }).ok());
      return text;
    };
    // A row has one of the columns that no other kind of line has.
    std::istringstream lines(table(any, TableLayout::Format::kJson) +
                             "[]\n\n{\"a\": 1}\n{\"kDuration\": 1, \"op\": \"mm\"}\n{\"flops\": 1}\n" +
                             "{\"bytes\": null}\n{\"op\": \"\"}\n{\"odd\": 1}");
    const JsonRows rows(lines, "no row");
    EXPECT_EQ(rows.num_bad_lines(), 4);
    EXPECT_EQ(rows.size(), any.size() + 4);
    ASSERT_EQ(table(rows, TableLayout::Format::kCsv), table(any, TableLayout::Format::kCsv)) << trial;
  }
}

// Returns the lines of a table, without the spaces that align them.
std::vector<std::vector<std::string>> Lines(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    lines.push_back(absl::StrSplit(line, "  ", absl::SkipWhitespace()));
    for (std::string& cell : lines.back()) cell = std::string(absl::StripAsciiWhitespace(cell));
  }
  return lines;
}

TEST(CompareRows, AreSumsOfBothSidesByStepIfBothTellSteps) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 300; ++trial) {
    const AnyRows base(random), current(random);
    const int64_t base_steps = random() % 3, current_steps = random() % 3;
    // A part of the time has fewer steps; that of an op has all.
    ProfTableOptions options;
    if (random() % 8 == 0) options.phase = "x";
    if (random() % 8 == 0) options.begin_seconds = 50e-6;
    if (random() % 8 == 0) options.end_seconds = 50e-6;
    if (random() % 8 == 0) options.op = "mm";
    const bool tell_steps = base_steps > 0 && current_steps > 0;
    const bool by_step =
        tell_steps && options.phase.empty() && options.begin_seconds <= 0 && options.end_seconds < 0;
    struct Both {
      double time[2] = {0, 0}, count[2] = {0, 0};
    };
    std::map<std::string, Both> sums[2];
    Both all;
    for (const int side : {0, 1}) {
      const double weight = by_step ? 1.0 / static_cast<double>(side == 0 ? base_steps : current_steps) : 1;
      for (const KernelRow& row : (side == 0 ? base : current).rows) {
        const bool passes = (options.phase.empty() || row.phase == "x") &&
                            (options.op.empty() || row.op == "mm") &&
                            (options.begin_seconds <= 0 || row.start >= 50000) &&
                            (options.end_seconds < 0 || row.start < 50000);
        if (!passes) continue;
        const std::string op =
            absl::StrCat(row.op.empty() ? "-" : std::string(row.op), row.dir == "bprop" ? " (backward)" : "");
        for (Both* both : {&sums[0][op], &sums[1][absl::StrCat(op, ": ", std::string(row.kernel))], &all}) {
          both->time[side] += weight * static_cast<double>(row.sil);
          both->count[side] += weight;
        }
      }
    }
    const auto change = [](double time) { return absl::StrCat(time < 0 ? "-" : "+", Time(std::abs(time))); };
    const size_t limit = 1 + random() % 4;
    const std::string text = CompareRows({&current, current_steps}, {&base, base_steps}, options, limit);
    if (sums[0].empty()) {
      EXPECT_EQ(text, "no kernels pass the filters\n");
      continue;
    }
    const std::vector<std::vector<std::string>> lines = Lines(text);
    const std::string steps =
        by_step ? absl::StrCat(", a step (of ", base_steps, " and ", current_steps, ")")
        : !tell_steps && base_steps != current_steps
            ? "; only one of them tells its steps (ProfilerStep#), so these are sums of each"
            : "";
    EXPECT_EQ(lines[0][0],
              absl::StrCat("kernels, copies and memsets: ", Time(all.time[0]), " before, ", Time(all.time[1]),
                           " after, ", change(all.time[1] - all.time[0]), steps));
    size_t at = 2;
    for (const std::map<std::string, Both>& of : sums) {
      ++at;  // the header
      double rest = all.time[1] - all.time[0], last = INFINITY;
      for (size_t i = 0; i < std::min(limit, of.size()); ++i, ++at) {
        const Both& both = of.at(lines[at][0]);
        const double more = both.time[1] - both.time[0];
        EXPECT_LE(std::abs(more), last + 1e-6);
        last = std::abs(more);
        rest -= more;
        const std::string ratio = both.count[0] == 0   ? "new"
                                  : both.count[1] == 0 ? "gone"
                                                       : absl::StrFormat("%.3f", both.time[1] / both.time[0]);
        EXPECT_EQ(
            absl::StrJoin(lines[at], "|"),
            absl::StrJoin({lines[at][0], change(more), Time(both.time[0]), Time(both.time[1]), ratio,
                           absl::StrFormat("%.6g", both.count[0]), absl::StrFormat("%.6g", both.count[1])},
                          "|"));
      }
      if (of.size() > limit && std::abs(rest) > 1) {
        EXPECT_EQ(lines[at][0], absl::StrCat("and ", of.size() - limit, " more: ", change(rest)));
      }
      at += of.size() > limit ? 2 : 1;
    }
  }
}

}  // namespace
}  // namespace ott::kernels
