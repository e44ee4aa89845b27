#include "ott/questions/kernels/profile_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
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
#include "ott/core/base/glob.h"
#include "ott/core/json/json_string.h"
#include "ott/questions/kernels/capture_for_test.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/profile_reader.h"
#include "ott/questions/kernels/summary.h"

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

TEST(ProfTable, PyProfsColumnsOfALinearLayer) {
  EXPECT_EQ(
      Table().Write(
          "idx,seq,altseq,tid,layer,trace,dir,sub,mod,op,kernel,params,sil,tc,device,stream,grid,block"),
      "idx seq altseq tid layer trace dir sub mod op kernel params sil tc device stream grid block\n"
      "1 12 - 11 net:fc1 train.cc:42 fprop 0 fc1 linear volta_h884gemm_128x64 M=64,N=32,K=128,float16 1000 1 "
      "0 7 "
      "585,1,1 256,1,1\n"
      "2 12 - 11 net:fc1 train.cc:42 fprop 1 fc1 linear splitKreduce_kernel M=64,N=32,K=128,float16 100 0 0 "
      "7 "
      "585,1,1 256,1,1\n"
      "3 12 - 11 net:fc1 train.cc:42 bprop 0 fc1 linear volta_h884gemm_256x128 M=64,N=32,K=128,float16 2000 "
      "1 0 "
      "7 585,1,1 256,1,1\n"
      "4 12 - 11 net:fc1 train.cc:42 bprop 1 fc1 linear volta_h884gemm_128x128 M=64,N=32,K=128,float16 1000 "
      "1 0 "
      "7 585,1,1 256,1,1\n"
      "5 12 - 11 net:fc1 train.cc:42 bprop 2 fc1 linear reduce_kernel M=64,N=32,K=128,float16 3000 0 0 7 "
      "585,1,1 256,1,1\n"
      "6 - - 11 - - - - - - frobnicate_kernel,_\"quoted\" - 500 na 0 7 585,1,1 256,1,1\n");
}

TEST(ProfTable, EachGradientsKernelHasItsFlopsAndTheOthersHaveNone) {
  EXPECT_EQ(Table().Write("idx,flops,bytes,tflops,gbps,ai"),
            "idx flops bytes tflops gbps ai\n"
            "1 524288 28672 0.47663 26.065 18.286\n"
            "2 - - - - -\n"
            "3 524288 28672 0.26214 14.336 18.286\n"
            "4 524288 28672 0.52429 28.672 18.286\n"
            "5 - - - - -\n"
            "6 na na na na na\n");
}

TEST(ProfTable, OursAreRoofShareLatencyGapPhaseAndJoin) {
  // V100: 125 TFLOP/s and 900 GB/s, of which 28.672 GB/s are 3.2 %.
  EXPECT_EQ(Table().Write("idx,rank,phase,share,peak,roof,latency,gap,join"),
            "idx rank phase share peak roof latency gap join\n"
            "1 3 training 13.158 2.8962 memory 850 - op\n"
            "2 3 training 1.3158 - - 1940 100 op\n"
            "3 3 training 26.316 1.5929 memory 2690 800 op\n"
            "4 3 training 13.158 3.1858 memory 4680 0 op\n"
            "5 3 training 39.474 - - 5670 0 op\n"
            "6 3 - 6.5789 na na 8300 0 no_range\n");
}

TEST(ProfTable, AGapIsFromTheLatestEndOfAnEarlierKernelOfTheSameGpuAndProcess) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 30; ++trial) {
    struct Kernel {
      int64_t pid, device, start, end;
    };
    std::vector<Kernel> kernels;
    CaptureSql sql;
    std::string expected = "gap\n";
    int64_t start = 1000;
    for (int i = 1; i <= 8; ++i) {
      start += 1 + static_cast<int64_t>(random() % 40);
      const Kernel kernel = {1 + static_cast<int64_t>(random() % 2), static_cast<int64_t>(random() % 2),
                             start, start + 1 + static_cast<int64_t>(random() % 60)};
      sql.Kernel(kernel.pid, 11, 10 * i, kernel.start, kernel.end - kernel.start, "kernel", i, kernel.device);
      std::optional<int64_t> busy_until;
      for (const Kernel& other : kernels) {
        if (other.pid == kernel.pid && other.device == kernel.device)
          busy_until = std::max(busy_until.value_or(0), other.end);
      }
      absl::StrAppend(&expected, busy_until ? absl::StrCat(std::max<int64_t>(0, start - *busy_until)) : "-",
                      "\n");
      kernels.push_back(kernel);
    }
    EXPECT_EQ(Table(sql).Write("gap"), expected);
  }
}

TEST(Summary, GpusAreIdleWhileNoneOfTheirStreamsWorks) {
  CaptureSql sql;
  for (const int64_t start : {1'000'000, 3'000'000}) {
    for (const int64_t stream : {1, 2}) sql.Kernel(1, 11, -1, start, 1'000'000, "kernel", start + stream);
  }
  const Table table(sql);
  EXPECT_THAT(Summarize(ProfileRows(table.profile, table.join, std::nullopt), {}),
              HasSubstr("on 1 GPU, 4 ms of GPU time within 3 ms; GPUs idle 33.3 % of the time"));
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
  ProfTableOptions options;
  options.columns = "idx,sil,share";
  options.op = "lin*";
  options.direction = "bprop";
  options.limit = 2;
  for (const char* const sort : {"sil", "share"}) {
    options.sort = sort;
    EXPECT_EQ(Table().Write(options), "idx sil share\n5 3000 50\n3 2000 33.333\n") << sort;
  }
  options = {};
  options.ranks = {2};
  options.columns = "idx";
  EXPECT_EQ(Table().Write(options), "idx\n");
  options.ranks = {2, 3};
  options.limit = 2;
  EXPECT_EQ(Table().Write(options), "idx\n1\n2\n");
  options = {};
  options.columns = "idx";
  options.begin_seconds = 4.8e-6;  // of the capture, which begins at 50 ns
  options.end_seconds = 8.0e-6;
  EXPECT_EQ(Table().Write(options), "idx\n4\n5\n");
  options = {};
  options.group_by = "op,dir";
  EXPECT_EQ(Table().Write(options),
            "op dir count sil share mean min max tc flops bytes tflops gbps known gap\n"
            "linear bprop 3 6000 78.947 2000 1000 3000 50 1048576 57344 0.17476 9.5573 100 800\n"
            "linear fprop 2 1100 14.474 550 100 1000 90.909 524288 28672 0.47663 26.065 100 100\n"
            "- - 1 500 6.5789 500 500 500 na na na na na 0 0\n");
  // Keys are cells, too.
  options.group_by = "idx,seq,ai";
  options.sort = "idx";
  options.layout.format = TableLayout::Format::kJson;
  const std::string json = Table().Write(options);
  EXPECT_THAT(json, HasSubstr("{\"idx\":5,\"seq\":12,\"count\":1,"));
  EXPECT_EQ(json.find("{\"idx\":6,\"ai\":null,\"count\":1,"), 0) << json;
  options.group_by = "op,dir";
  options.sort = "frobnicate";
  EXPECT_THAT(Table().Write(options),
              HasSubstr("no column 'frobnicate' to sort by; there are op,dir,count,sil"));
  for (const char* const sort : {"op,sil", "all"}) {
    options = {};
    options.sort = sort;
    EXPECT_THAT(Table().Write(options), HasSubstr("rows are sorted by one column")) << sort;
  }
  EXPECT_THAT(Table().Write("idx,ops"), HasSubstr("no column 'ops'; there are idx,seq,"));
}

TEST(ProfTable, LabelsOfPyTorchAloneTellFlopsAndTheKernelTheType) {
  CaptureSql sql;
  sql.Range(1, 11, 100, 200, "aten::mm, seq = 1, sizes = [[2, 3], [3, 4]]");
  sql.Kernel(1, 11, 150, 300, 10, "nvjet_tst_64x8", 1);
  sql.Range(1, 11, 300, 400, "aten::mm, seq = 2, sizes = [[2, 3], [3, 4]]");
  sql.Kernel(1, 11, 350, 400, 10, "mystery", 2);
  EXPECT_EQ(Table(sql).Write("flops,bytes,dtype"), "flops bytes dtype\n48 52 bfloat16\n48 na -\n");
}

TEST(ProfTable, ConvolutionGradientsAreToldApartByTheirKernels) {
  CaptureSql sql;
  sql.Range(
      1, 11, 100, 200,
      "{'mod': 'torch.nn.functional', 'op': 'conv2d', 'args': [{'name': '', 'type': 'tensor', 'shape': "
      "(1,2,5,5), "
      "'dtype': 'float32'}, {'name': '', 'type': 'tensor', 'shape': (4,2,3,3), 'dtype': 'float32'}, {'name': "
      "'stride', 'type': 'int', 'value': 2}, {'name': 'padding', 'type': 'int', 'value': 1}]}");
  sql.Range(1, 11, 110, 190, "aten::conv2d, seq = 3");
  sql.Kernel(1, 11, 150, 300, 10, "sm80_xmma_fprop_implicit_gemm_tf32f32", 1);
  sql.Range(1, 12, 500, 600, "ConvolutionBackward0, seq = 3");
  sql.Kernel(1, 12, 510, 1300, 10, "sm80_xmma_dgrad_implicit_gemm_tf32f32", 2);
  sql.Kernel(1, 12, 520, 1400, 10, "sm80_xmma_wgrad_implicit_gemm_tf32f32", 3);
  EXPECT_EQ(Table(sql).Write("dir,op,flops,bytes"),
            "dir op flops bytes\nfprop conv2d 1296 632\nbprop conv2d 1296 632\nbprop conv2d 1296 632\n");
}

TEST(ProfTable, AMarkerWithinABackwardNodeIsAnOpOfItsOwn) {
  CaptureSql sql;
  sql.Range(1, 12, 500, 600, "MulBackward0, seq = 3");
  sql.Range(1, 12, 510, 590,
            R"({"op":"mul","args":[{"dtype":"float32","shape":[10]},)"
            R"({"dtype":"float32","shape":[10]}]})");
  sql.Kernel(1, 12, 520, 1300, 10, "elementwise_kernel", 1);
  EXPECT_EQ(Table(sql).Write("dir,op,flops"), "dir op flops\nbprop MulBackward0 10\n");
}

TEST(ProfTable, EachGradientOfConvolutionBackwardHasItsOwnKernel) {
  CaptureSql sql;
  sql.Range(1, 12, 500, 600,
            "aten::convolution_backward, sizes = [[1, 4, 3, 3], [1, 2, 5, 5], [4, 2, 3, 3], [], [], []]");
  sql.Kernel(1, 12, 510, 1300, 10, "sm80_xmma_dgrad_implicit_gemm_f32f32_tf32f32_f32", 1);
  sql.Kernel(1, 12, 520, 1400, 20, "sm80_xmma_wgrad_implicit_gemm_f32f32_tf32f32_f32", 2);
  sql.Kernel(1, 12, 530, 1500, 30, "reduce_kernel", 3);
  EXPECT_EQ(Table(sql).Write("flops,bytes"), "flops bytes\n1296 632\n1296 632\n- -\n");
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

TEST(ProfTable, APeakNeedsToKnowWhetherTensorCoresWorked) {
  CaptureSql sql;
  sql.Sql(
      "CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT); INSERT INTO TARGET_INFO_GPU VALUES (0, "
      "'H100');");
  const std::string mm = R"({"op":"mm","args":[{"dtype":"bfloat16","shape":[64,64]},)"
                         R"({"dtype":"bfloat16","shape":[64,64]}]})";
  sql.Range(1, 11, 100, 200, mm).Kernel(1, 11, 110, 300, 10, "triton_mm", 1);
  sql.Range(1, 11, 300, 400, mm).Kernel(1, 11, 310, 400, 100, "nvjet_tst_64x8", 2);
  // Without FLOPs memory limits, whatever the type.
  sql.Range(1, 11, 500, 600, R"({"op":"clone","args":[{"dtype":"int64","shape":[1000]}]})");
  sql.Kernel(1, 11, 510, 600, 100, "elementwise_kernel", 3);
  // The type of the result is not told, so the bytes are not known.
  sql.Range(1, 11, 700, 800,
            R"({"op":"_scaled_mm","args":[{"dtype":"float8_e4m3fn","shape":[64,64]},)"
            R"({"dtype":"float8_e4m3fn","shape":[64,64]}]})");
  sql.Kernel(1, 11, 710, 800, 100, "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n", 4);
  sql.Range(1, 11, 900, 1000,
            R"({"op":"mm","args":[{"dtype":"float32","shape":[1024,1024]},)"
            R"({"dtype":"float32","shape":[1024,1024]}]})");
  sql.Kernel(1, 11, 910, 1000, 100000, "ampere_sgemm_128x64_tn", 5);
  EXPECT_EQ(Table(sql).Write("flops,peak,roof"),
            "flops peak roof\n524288 na na\n524288 7.3361 memory\n0 4.7761 memory\n524288 na na\n"
            "2147483648 32.1 compute\n");
}

TEST(ProfTable, KernelsTellWhatLabelsDoNot) {
  CaptureSql sql;
  const std::string q = "[1, 4, 1, 2]";
  const std::string flash = "void flash_fwd_kernel<Traits<(int)2, cutlass::bfloat16_t>, (bool)0, (bool)";
  sql.Range(1, 11, 100, 200, "aten::_flash_attention_forward, sizes = [" + q + "," + q + "," + q + "]");
  sql.Kernel(1, 11, 110, 300, 10, flash + "0, (bool)0>(Params)", 1);
  sql.Range(1, 11, 300, 400, "aten::_flash_attention_forward, sizes = [" + q + "," + q + "," + q + "]");
  sql.Kernel(1, 11, 310, 400, 10, flash + "1, (bool)0>(Params)", 2);
  sql.Range(1, 11, 500, 600, "aten::_scaled_mm, sizes = [[2, 3], [3, 4], [], []]");
  sql.Kernel(1, 11, 510, 600, 10, "nvjet_qqtst_64x8", 3);
  // The type of an op is that of what it computes with, not of indices.
  sql.Range(1, 11, 700, 800,
            R"({"op":"embedding","args":[{"dtype":"int64","shape":[3]},{"dtype":"float16","shape":[9,4]}]})");
  sql.Kernel(1, 11, 710, 800, 10, "elementwise_kernel", 4);
  EXPECT_EQ(Table(sql).Write("flops,bytes,dtype"),
            "flops bytes dtype\n128 80 bfloat16\n64 80 bfloat16\n48 34 float8_e4m3fn\n0 72 float16\n");
}

TEST(ProfTable, CopiesAndMemsetsAreRows) {
  CaptureSql sql;
  sql.Range(1, 11, 100, 200, "aten::copy_, seq = 3, sizes = [[4, 8], [4, 8]]")
      .Kernel(1, 11, 110, 300, 50, "first", 1)
      .Kernel(1, 11, 120, 600, 50, "last", 2)
      .Sql(absl::StrCat(
          "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, correlationId, globalPid, deviceId, "
          "streamId, bytes, copyKind); INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (400, 500, 3, ",
          GlobalTid(1, 0), ", 0, 7, 128, 1); INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (130, 140, ",
          GlobalTid(1, 11),
          ", 3, 0); CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end, globalPid, deviceId, bytes); "
          "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (360, 390, ",
          GlobalTid(1, 0), ", 0, 60);"));
  ReadProfileOptions read;
  read.transfers = true;
  Profile profile = ReadProfile(sql.Write("copies.sqlite"), read).value();
  const KernelJoin join = JoinKernels(&profile);
  const ProfileRows rows(profile, join, std::nullopt);
  ProfTableOptions options;
  options.columns = "idx,op,sub,kernel,sil,bytes,gbps,gap,latency";
  std::string text;
  ASSERT_TRUE(WriteProfTable(rows, options, [&](std::string_view part) { text += part; }).ok());
  EXPECT_EQ(text,
            "idx op sub kernel sil bytes gbps gap latency\n"
            "1 copy_ 0 first 50 na na - 190\n"
            "2 - - memset 30 60 2 10 -\n"
            "3 copy_ 1 memcpy 100 128 1.28 10 270\n"
            "4 copy_ 2 last 50 - - 100 480\n");
}

TEST(ProfTable, BlocksAreThoseOfGridsThatDevicesHave) {
  constexpr int64_t kLargest = (int64_t{1} << 31) - 1;
  for (const auto& [size, blocks] : std::map<int64_t, int64_t>{{-1, kNoInteger},
                                                               {0, kNoInteger},
                                                               {7, 42},
                                                               {kLargest, 6 * kLargest},
                                                               {kLargest << 31, kNoInteger}}) {
    Table table{CaptureSql().Kernel(1, 11, 150, 300, 10, "k", 1)};
    table.profile.geometries[0].grid = {2, size, 3};
    KernelRow row;
    ProfileRows(table.profile, table.join, std::nullopt).Get(0, &row);
    EXPECT_EQ(row.blocks, blocks) << size;
  }
}

TEST(ProfTable, SizesAndGridsTellWhatLeavesTensorCoresIdle) {
  CaptureSql sql;
  sql.Range(1, 11, 100, 200, "aten::mm, seq = 1, sizes = [[30, 128], [128, 64]]");
  sql.Kernel(1, 11, 150, 10000, 60000, "ampere_sgemm_128x64_tn", 1);
  sql.Range(1, 11, 300, 400, "aten::mm, seq = 2, sizes = [[30, 129], [129, 64]]");
  sql.Kernel(1, 11, 350, 100000, 20000, "nvjet_tst_64x8", 2);
  sql.Sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 3 WHERE start = 100000;");
  EXPECT_EQ(Table(sql).Write("tc,odd,blocks,gap"), "tc odd blocks gap\n0 - 585 -\n1 1 3 30000\n");
}

TEST(ProfTable, ChannelsOfConvolutionsAreSizesToo) {
  const auto odd = [](const std::string& x, const std::string& w) {
    return Table(CaptureSql()
                     .Range(1, 11, 100, 200,
                            R"({"op":"conv2d","args":[{"name":"input","dtype":"float16","shape":)" + x +
                                R"(},{"name":"weight","dtype":"float16","shape":)" + w + "}]}")
                     .Kernel(1, 11, 150, 10000, 60000, "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32", 1))
        .Write("odd");
  };
  EXPECT_EQ(odd("[3,3,8,8]", "[64,3,3,3]"), "odd\n1\n");
  EXPECT_EQ(odd("[3,64,7,7]", "[64,64,3,3]"), "odd\n0\n");
  // Depthwise.
  EXPECT_EQ(odd("[3,60,7,7]", "[60,1,3,3]"), "odd\n-\n");
}

}  // namespace
}  // namespace ott::kernels
