#include "ott/questions/kernels/profile_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/csv.h"
#include "ott/core/json/json_string.h"
#include "ott/questions/kernels/capture_for_test.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/profile_reader.h"

namespace ott::kernels {
namespace {

using ::testing::HasSubstr;

// A linear layer forward and backward: two kernels forward, a GEMM for each gradient and one more backward.
CaptureSql LinearLayer() {
  CaptureSql sql;
  sql.Range(1, 11, 50, 450, "training")
      .Range(1, 11, 90, 210, "layer:net")
      .Range(1, 11, 95, 205, "layer:fc1")
      .Range(1, 11, 100, 200, "linear, seq = 12, sizes = [[32, 128], [64, 128]]")
      .Range(1, 11, 101, 199, kLinear)
      .Kernel(1, 11, 150, 1000, 1000, "volta_h884gemm_128x64", 1)
      .Kernel(1, 11, 160, 2100, 100, "splitKreduce_kernel", 2)
      .Range(1, 11, 300, 400, "LinearBackward0, seq = 12")
      .Kernel(1, 11, 310, 3000, 2000, "volta_h884gemm_256x128", 3)
      .Kernel(1, 11, 320, 5000, 1000, "volta_h884gemm_128x128", 4)
      .Kernel(1, 11, 330, 6000, 3000, "reduce_kernel", 5)
      .Kernel(1, 11, 700, 9000, 500, "frobnicate kernel, \"quoted\"", 6)
      .Sql(
          "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT); INSERT INTO TARGET_INFO_GPU VALUES (0, "
          "'Tesla V100-SXM2-16GB');");
  return sql;
}

struct Table {
  Profile profile;
  KernelJoin join;

  explicit Table(const CaptureSql& sql = LinearLayer()) {
    profile = ReadProfile(sql.Write("rows.rank_00003.sqlite")).value();
    join = JoinKernels(&profile);
  }

  std::string Write(const ProfTableOptions& options) const {
    const ProfileRows rows(profile, join, std::nullopt);
    std::string text;
    const absl::Status status = WriteProfTable(rows, options, [&](std::string_view part) { text += part; });
    return status.ok() ? text : std::string(status.message());
  }
  std::string Write(const std::string& columns) const {
    ProfTableOptions options;
    options.columns = columns;
    return Write(options);
  }
};

// The columns of PyProf are in the test of its reader as well.
TEST(ProfTable, ALinearLayerHasWhatPyProfTellsAndRoofShareLatencyGapPhaseAndJoin) {
  // Each gradient's kernel has its FLOPs. V100: 125 TFLOP/s and 900 GB/s, of which 28.672 GB/s are 3.2 %.
  EXPECT_EQ(
      Table().Write("idx,altseq,layer,dir,sub,op,kernel,tc,rank,phase,share,peak,roof,latency,gap,join"),
      "idx altseq layer dir sub op kernel tc rank phase share peak roof latency gap join\n"
      "1 - net:fc1 fprop 0 linear volta_h884gemm_128x64 1 3 training 13.158 2.8962 memory 850 - op\n"
      "2 - net:fc1 fprop 1 linear splitKreduce_kernel 0 3 training 1.3158 - - 1940 100 op\n"
      "3 - net:fc1 bprop 0 linear volta_h884gemm_256x128 1 3 training 26.316 1.5929 memory 2690 800 op\n"
      "4 - net:fc1 bprop 1 linear volta_h884gemm_128x128 1 3 training 13.158 3.1858 memory 4680 0 op\n"
      "5 - net:fc1 bprop 2 linear reduce_kernel 0 3 training 39.474 - - 5670 0 op\n"
      "6 - - - - - frobnicate_kernel,_\"quoted\" na 3 - 6.5789 na na 8300 0 no_range\n");
}

// Texts of any length and bytes, numbers, and what is not there or not known.
ProfCell RandomCell(std::mt19937& random, std::string* text) {
  switch (random() % 5) {
    case 0:
      return ProfCell();
    case 1:
      return IntegerCell(random() % 2 ? static_cast<int64_t>(random() % 9) : int64_t{1} << random() % 60);
    case 2:
      return RealCell(
          std::array{static_cast<double>(random() % 100000) / 8, std::nan(""), HUGE_VAL}[random() % 3]);
    default:
      for (size_t left = 1 + random() % 30; left > 0; --left) *text += "a, \"\t\x7f\n%bcd"[random() % 11];
      return TextCell(*text);
  }
}

TEST(TableWriter, WritesCellsAsEachFormatHasThem) {
  const std::vector<std::pair<std::string_view, int>> columns = {
      {"idx", 7}, {"grid", 12}, {"kernel", 0}, {"sub", 3}, {"name", 0}, {"op", 15}, {"start", 12}};
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    TableLayout layout;
    layout.format = static_cast<TableLayout::Format>(random() % 3);
    layout.width = random() % 2 ? static_cast<int>(random() % 120) : 0;
    const bool is_plain = layout.format == TableLayout::Format::kPlain;
    const bool is_csv = layout.format == TableLayout::Format::kCsv;
    std::vector<std::string_view> names;
    std::vector<int> widths;
    int fixed = -1, num_shares = 0;
    for (size_t i = random() % 5, end = i + 1 + random() % 3; i < std::min(end, columns.size()); ++i) {
      names.push_back(columns[i].first);
      widths.push_back(columns[i].second);
      fixed += 1 + columns[i].second;
      num_shares += columns[i].second == 0;
    }
    const bool is_too_narrow = is_plain && layout.width > 0 && layout.width < fixed + 8 * num_shares;
    ASSERT_EQ(!CheckWidth(layout, names).ok(), is_too_narrow);
    if (is_too_narrow) continue;
    std::string found, expected;
    std::vector<std::string> texts(2 * names.size());
    {
      TableWriter writer(layout, names, [&found](std::string_view part) { found += part; });
      for (size_t row = layout.format == TableLayout::Format::kJson ? 1 : 0; row < 3; ++row) {
        std::string line;
        for (size_t i = 0; i < names.size(); ++i) {
          ProfCell cell = TextCell(names[i]);
          if (row > 0) writer.Add(cell = RandomCell(random, &texts[(row - 1) * names.size() + i]));
          const bool is_text = cell.kind == ProfCell::Kind::kText;
          std::string word;
          AppendCell(cell, /*one_word=*/false, &word);
          if (is_plain) {
            for (char& c : word) c = (c > 0 && c <= ' ') || c == 0x7f ? '_' : c;
            const size_t width = layout.width == 0 ? 0
                                 : widths[i] > 0   ? widths[i]
                                                   : (layout.width - fixed) / num_shares;
            if (width > 0 && !cell.is_number()) word = word.substr(0, width);
            if (word.size() < width && i + 1 < names.size()) word.resize(width, ' ');
          } else if (is_csv && is_text) {
            word = CsvField(cell.text);
          } else if (!is_csv) {
            if (cell.kind == ProfCell::Kind::kAbsent) continue;
            if (cell.kind == ProfCell::Kind::kUnknown || std::isinf(cell.real)) word = "null";
            if (is_text) AppendJsonString(cell.text, word = "");
            word = absl::StrCat("\"", std::string(names[i]), "\":", word);
          }
          absl::StrAppend(&line, i == 0 || line.empty() ? "" : is_plain ? " " : ",", word);
        }
        if (row > 0) writer.EndRow();
        expected += is_plain ? line + "\n" : is_csv ? line + "\r\n" : "{" + line + "}\n";
      }
    }
    ASSERT_EQ(found, expected) << trial;
  }
}

TEST(ProfTable, ColumnsHaveTheirWidths) {
  ProfTableOptions options;
  options.columns = "all";
  options.limit = 0;
  options.layout.width = 513;
  EXPECT_EQ(
      Table().Write(options),
      "idx     seq     altseq  pid      tid          rank layer      phase           trace                   "
      "  dir   sub mod             op              calls            kernel           name             params "
      "          odd shapes           types            strides          inputs           dtype    start      "
      "  sil        call       share   tc  device stream grid         blocks   block        flops        "
      "bytes        tflops   gbps     ai       peak    roof    algbw    busbw    latency    gap        "
      "join\n");
}

TEST(ProfTable, FiltersSortsAndGroups) {
  const Table table;
  const auto write = [&](const std::string& columns, const auto& set) {
    ProfTableOptions options;
    options.columns = columns;
    set(options);
    return table.Write(options);
  };
  for (const char* const sort : {"sil", "share"}) {
    EXPECT_EQ(write("idx,sil,share",
                    [&](auto& options) {
                      options.op = "lin*";
                      options.direction = "bprop";
                      options.limit = 2;
                      options.sort = sort;
                    }),
              "idx sil share\n5 3000 50\n3 2000 33.333\n")
        << sort;
  }
  EXPECT_EQ(write("idx,flops", [](auto& options) { options.sort = "flops"; }),
            "idx flops\n1 524288\n3 524288\n4 524288\n6 na\n2 -\n5 -\n");
  EXPECT_EQ(write("idx", [](auto& options) { options.ranks = {2}; }), "idx\n");
  EXPECT_EQ(write("idx", [](auto& options) { options.ranks = {2, 3}, options.limit = 2; }), "idx\n1\n2\n");
  // Times are of the capture, which begins at 50 ns.
  EXPECT_EQ(write("idx", [](auto& options) { options.begin_seconds = 4.8e-6, options.end_seconds = 8e-6; }),
            "idx\n4\n5\n");
  ProfTableOptions options;
  options.group_by = "op,dir";
  EXPECT_EQ(table.Write(options),
            "op dir count sil share mean min max tc flops bytes tflops gbps known gap\n"
            "linear bprop 3 6000 78.947 2000 1000 3000 50 1048576 57344 0.17476 9.5573 100 800\n"
            "linear fprop 2 1100 14.474 550 100 1000 90.909 524288 28672 0.47663 26.065 100 100\n"
            "- - 1 500 6.5789 500 500 500 na na na na na 0 0\n");
  // Keys are cells, too.
  options.group_by = "idx,seq,ai";
  options.sort = "idx";
  options.layout.format = TableLayout::Format::kJson;
  const std::string json = table.Write(options);
  EXPECT_THAT(json, HasSubstr("{\"idx\":5,\"seq\":12,\"count\":1,"));
  EXPECT_EQ(json.find("{\"idx\":6,\"ai\":null,\"count\":1,"), 0) << json;
  options.group_by = "op,dir";
  options.sort = "frobnicate";
  EXPECT_THAT(table.Write(options),
              HasSubstr("no column 'frobnicate' to sort by; there are op,dir,count,sil"));
  for (const char* const sort : {"op,sil", "all"}) {
    options = {};
    options.sort = sort;
    EXPECT_THAT(table.Write(options), HasSubstr("rows are sorted by one column")) << sort;
  }
  EXPECT_THAT(table.Write("idx,ops"), HasSubstr("no column 'ops'; there are idx,seq,"));
}

TEST(ProfTable, CollectivesOfGradientsAreOpsOfTheirOwn) {
  CaptureSql sql;
  sql.Range(1, 12, 100, 200,
            "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad, op_id = 4")
      .Range(1, 12, 110, 190, "c10d::allreduce_, op_id = 5, sizes = [[1000], [], [], []]")
      .Range(1, 12, 120, 180, "record_param_comms, op_id = 6, sizes = [[1000], [], []]")
      .Range(1, 12, 130, 170, "nccl:all_reduce, op_id = 7, sizes = [[1000]]")
      .Range(1, 12, 140, 160, "ncclGroupEnd")
      .Kernel(1, 12, 150, 300, 4000, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1);
  EXPECT_EQ(Table(sql).Write("dir,op,params,algbw,busbw"),
            "dir op params algbw busbw\nbprop all_reduce [1000] 1 na\n");
}

}  // namespace
}  // namespace ott::kernels
