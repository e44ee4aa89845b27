#include "ott/questions/kernels/profile_rows.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/check.h"
#include "ott/core/base/glob.h"
#include "ott/core/kernel_profile/label_table.h"
#include "ott/core/op_cost/kernel_name.h"
#include "ott/core/op_cost/op_cost.h"
#include "ott/questions/kernels/capture_for_test.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/profile_reader.h"
#include "ott/questions/kernels/summary.h"

namespace ott::kernels {
namespace {

using ::testing::HasSubstr;

constexpr char kLinear[] =
    R"({"op":"linear","module":"fc1","args":[{"name":"input","dtype":"float16","shape":[32,128]},)"
    R"({"name":"weight","dtype":"float16","shape":[64,128]}],"direction":"forward","seq":12,"source":"train.cc:42"})";

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

TEST(ProfTable, CsvQuotesAndWidthCuts) {
  ProfTableOptions options;
  options.columns = "idx,grid,kernel";
  options.limit = 1;
  options.sort = "idx";
  options.layout.format = TableLayout::Format::kCsv;
  EXPECT_EQ(Table().Write(options),
            "idx,grid,kernel\r\n6,\"585,1,1\",\"frobnicate_kernel,_\"\"quoted\"\"\"\r\n");
  options.layout = {TableLayout::Format::kPlain, 40};
  EXPECT_EQ(Table().Write(options),
            "idx     grid         kernel\n6       585,1,1      frobnicate_kernel,_\n");
  options.columns = "sub,start,op";
  EXPECT_EQ(Table().Write(options), "sub start        op\n-   8950         -\n");
  options.columns = "op,start,idx";
  options.layout.width = 28;
  EXPECT_THAT(Table().Write(options), HasSubstr("need a line of at least 36 characters, not 28"));
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
  options.sort = "sil";
  options.limit = 2;
  EXPECT_EQ(Table().Write(options), "idx sil share\n5 3000 50\n3 2000 33.333\n");
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

TEST(ProfTable, PlainCellsAreOneWordWhateverTheNames) {
  CaptureSql sql;
  sql.Range(1, 11, 100, 200, "layer:a b\tc")
      .Range(1, 11, 101, 199, "{'mod': 'x y', 'op': '\\n', 'args': []}");
  sql.Kernel(1, 11, 150, 300, 10, " ", 1);
  const std::string text = Table(sql).Write("all");
  const size_t line = text.find('\n');
  const auto words = [](std::string_view part) { return std::count(part.begin(), part.end(), ' ') + 1; };
  EXPECT_EQ(words(text.substr(0, line)), words(text.substr(line + 1)));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_THAT(text, HasSubstr(" a_b_c "));
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

// A collective as a trace tells it, and what it costs; NaN: not known.
struct TracedCollective {
  Profile::CollectiveKind kind;  // elements in and out, and ranks
  double flops, message_bytes, bus_bytes;
};
const TracedCollective kCollectives[] = {
    {{"allreduce", "float32", "", "", "", 100, 100, 4}, 75, 400, 600},
    {{"allreduce", "float32", "", "", "", 3, 3, 1}, 0, 12, 0},
    {{"allreduce", "float32", "", "", "", 3, 3, -1}, NAN, 12, NAN},
    {{"broadcast", "", "", "", "", -1, 7, 2}, 0, NAN, NAN},
    // What all have together, where only a rank's part is told.
    {{"allgather", "float16", "", "", "", 7, -1, 4}, 0, 56, 42},
    {{"allgather", "float16", "", "", "", 0, 8, 4}, 0, 16, 12},
    {{"reduce_scatter", "bfloat16", "", "", "", -1, 5, 2}, NAN, NAN, NAN},
};

// Holds any profile and join, which need not be of one program, and says by the rules what its rows are.
struct AnyProfile {
  // A kernel, or a copy or memset.
  struct Activity {
    int64_t start, end, bytes;
    uint32_t name, geometry, launch;
    int32_t stream;
    uint16_t process;
    int16_t device;
    bool is_transfer, in_graph;
    uint32_t collective = kNone;

    int64_t time() const { return end - start; }
  };

  static constexpr const char* kLabels[] = {
      "aten::mm, sizes = [[16, 8], [8, 5]]",
      "aten::relu, seq = 1",
      "AddmmBackward0, seq = 1",
      "c10d::allreduce_, sizes = [[1000]]",
      "aten::convolution_backward, sizes = [[1, 4, 3, 3], [1, 2, 5, 5], [4, 2, 3, 3], [], [], []]",
      "aten::_flash_attention_forward, sizes = [[1, 4, 1, 2], [1, 4, 1, 2], [1, 4, 1, 2]]",
      "aten::_scaled_mm, sizes = [[32, 16], [16, 64]]",
      kLinear,
      R"({"op":"embedding","args":[{"dtype":"int64","shape":[3]},{"dtype":"float16","shape":[9,4]}]})",
      R"({"op":"_scaled_mm","module":"m","args":[{"dtype":"float8_e4m3fn","shape":[24,16]},)"
      R"({"dtype":"float8_e4m3fn","shape":[16,64]}]})",
      R"({"op":"clone","args":[{"dtype":"int64","shape":[1000]}]})",
      R"({"op":"mm","args":[{"dtype":"int8","shape":[32,24]},{"dtype":"int8","shape":[24,16]}]})",
  };
  static constexpr uint32_t kNumOps = 7;  // the other labels are markers

  explicit AnyProfile(std::mt19937& random) : random_(random) {
    LabelTable table;
    for (const char* const text : kLabels) OTT_CHECK(table.Find(text).first < std::size(kLabels));
    profile.labels = table.TakeLabels();
    for (const uint32_t label : {0, 4}) {
      profile.labels[label].shapes = absl::StrCat("[", label, "]");
      profile.labels[label].types = absl::StrCat("types ", label);
      profile.labels[label].strides = absl::StrCat("strides ", label);
      profile.labels[label].inputs = absl::StrCat("inputs ", label);
    }
    const std::string flash = "void flash_fwd_kernel<Traits<(int)2, cutlass::bfloat16_t>, (bool)0, (bool)";
    profile.kernel_names = {"volta_h884gemm_128x64",
                            "ampere_sgemm_128x64_tn",
                            "reduce_kernel",
                            "sm80_xmma_dgrad_implicit_gemm_f32f32_tf32f32_f32",
                            "sm80_xmma_wgrad_implicit_gemm_f32f32_tf32f32_f32",
                            "nvjet_qqtst_64x8",
                            "triton_mm",
                            " a\t\x7f!",
                            flash + "0, (bool)0>(Params)",
                            flash + "1, (bool)0>(Params)"};
    profile.transfer_names = {"memset", "memcpy to\tdevice"};
    profile.geometries = {{{2, 3, 4}, {32, 1, 1}}, {{1, 1, 1}, {5, 6, 7}}, {{0, 1, 1}, {0, 0, 0}}};
    profile.devices[0].name = "Tesla V100-SXM2-16GB";
    profile.devices[1] = {"some A100", 108, 8, 0, 1.41e9, 1.5e12};
    profile.devices[2] = {"no name", 108, 8, 0, 1.41e9, 1.5e12};
    profile.devices[3].name = "unknown";
    profile.devices[4] = {"no memory", 108, 8, 0, 1.41e9, 0};
    profile.processes.resize(2);
    profile.processes[0].pid = 10;
    profile.processes[1] = {11, "", 4};
    profile.threads.resize(2);
    profile.threads[0].tid = 20;
    profile.threads[1].tid = 21;
    profile.first_time = Below(5);
    for (const TracedCollective& of : kCollectives) profile.collective_kinds.push_back(of.kind);
    if (Below(2) == 0) gpu = PeaksByName("H100");
    at = std::vector<std::string>{"", "", "m*,relu", "allreduce_,"}[static_cast<size_t>(Below(4))];

    join.texts = {"layer", "line", "module", "phase"};
    const auto any = [&](uint32_t first, uint32_t end) {
      return Below(3) == 0 ? first + static_cast<uint32_t>(Below(end - first)) : kNone;
    };
    for (uint32_t i = 0; i < 6; ++i) {
      LaunchContext& context = join.contexts.emplace_back();
      for (uint32_t* op : {&context.op, &context.forward_op}) *op = any(0, kNumOps);
      for (uint32_t* marker : {&context.marker, &context.forward_marker})
        *marker = any(kNumOps, std::size(kLabels));
      context.backward = any(2, 3);
      for (uint32_t* text : {&context.layer, &context.source, &context.module, &context.phase})
        *text = any(0, 4);
      const uint32_t outer = any(0, i + 1);
      if (context.op != kNone && outer != kNone && outer < i && join.contexts[outer].op != kNone)
        context.outer = outer;
      context.direction =
          std::array{OpDirection::kUnknown, OpDirection::kForward, OpDirection::kBackward}[Below(3)];
    }
    join.num_op_instances = 3;
    for (int i = 0; i < 6; ++i) {
      Profile::Launch& launch = profile.launches.emplace_back();
      KernelJoin::Launch& joined = join.launches.emplace_back();
      launch.start = Below(20);
      launch.nanoseconds = Below(3) == 0 ? kNone : 5;
      if (Below(8) == 0) continue;
      launch.thread = static_cast<uint32_t>(Below(2));
      if (Below(8) == 0) continue;
      joined.context = static_cast<uint32_t>(Below(6));
      joined.sequence_number = any(0, 9);
      joined.other_sequence_number = any(0, 9);
      if (Below(8) > 0) joined.op_instance = static_cast<uint32_t>(Below(3));
    }
    for (int64_t i = Below(12); i > 0; --i) {
      const int64_t start = 20 + Below(100), time = Below(9) == 0    ? 0
                                                    : Below(20) == 0 ? 3'000'000'000
                                                                     : Below(30);
      const auto index = static_cast<uint32_t>(Below(7));
      activities.push_back({start, start + time, Below(3) == 0 ? -1 : Below(1000),
                            static_cast<uint32_t>(Below(10)), static_cast<uint32_t>(Below(3)),
                            index == 6 ? kNone : index, static_cast<int32_t>(Below(3) - 1),
                            static_cast<uint16_t>(Below(2)), static_cast<int16_t>(Below(7) - 1),
                            Below(4) == 0, Below(8) == 0});
    }
    std::stable_sort(activities.begin(), activities.end(), [](const Activity& a, const Activity& b) {
      return std::pair(a.start, a.is_transfer) < std::pair(b.start, b.is_transfer);
    });
    const bool has_collectives = Below(2) == 0;
    for (Activity& of : activities) {
      if (of.is_transfer) {
        of.name %= 2;
        profile.transfers.push_back(
            {of.start, of.end, of.bytes, of.name, of.launch, of.stream, of.process, of.device});
        continue;
      }
      if (has_collectives && Below(3) == 0) {
        of.collective = static_cast<uint32_t>(Below(std::size(kCollectives)));
        profile.collectives.push_back({static_cast<uint32_t>(profile.kernels.size()), of.collective});
      }
      profile.kernels.push_back(
          {of.start, of.end, of.name, of.geometry, of.launch, of.stream, of.process, of.device, of.in_graph});
    }
  }

  int64_t Below(int64_t end) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(end)); }

  std::string_view Keep(std::string text) { return texts_.emplace_back(std::move(text)); }
  std::string_view Words(std::string name) {
    for (char& c : name) c = (c > ' ' || c < 0) && c != 0x7f ? c : '_';
    return Keep(std::move(name));
  }
  const OpDescription& Of(uint32_t label) const { return profile.labels[label].description; }
  // The first that there is.
  static uint32_t First(std::initializer_list<uint32_t> of) {
    const auto found = std::find_if(of.begin(), of.end(), [](uint32_t label) { return label != kNone; });
    return found == of.end() ? kNone : *found;
  }
  uint32_t InstanceOf(const Activity& of) const {
    return of.launch == kNone ? kNone : join.launches[of.launch].op_instance;
  }
  bool Multiplies(const Activity& of) const {
    return KernelKindOf(profile.kernel_names[of.name]) != KernelKind::kOther;
  }

  std::optional<DevicePeaks> PeaksOfDevice(int number) const {
    const auto known = profile.devices.find(number);
    if (known == profile.devices.end()) return gpu;
    const Profile::Device& device = known->second;
    std::optional<DevicePeaks> peaks = PeaksByName(device.name);
    if (!peaks)
      peaks = PeaksOf(device.name, device.compute_major, device.compute_minor, device.sm_count,
                      device.clock_hz, device.memory_bytes_per_second);
    return peaks ? peaks : gpu;
  }

  KernelRow RowOf(size_t index) {
    const Activity& of = activities[index];
    const uint32_t instance = InstanceOf(of);
    KernelRow row;
    row.idx = static_cast<int64_t>(index) + 1;
    if (instance != kNone) row.sub = 0;
    std::optional<int64_t> busy_until;
    for (const Activity& before : std::vector(activities.begin(), activities.begin() + row.idx - 1)) {
      if (instance != kNone && InstanceOf(before) == instance) ++row.sub;
      if (before.process == of.process && before.device == of.device)
        busy_until = std::max(busy_until.value_or(0), before.end);
    }
    if (busy_until) row.gap = std::max<int64_t>(0, of.start - *busy_until);
    row.pid = profile.processes[of.process].pid;
    if (of.process == 1) row.rank = 4;
    if (of.device >= 0) row.device = of.device;
    if (of.stream >= 0) row.stream = of.stream;
    row.start = of.start - profile.first_time;
    row.sil = of.time();
    if (of.is_transfer) {
      row.kernel = row.name = Words(profile.transfer_names[of.name]);
      row.tc = "0";
      row.flops = 0;
      row.call = row.sil;
      if (of.bytes >= 0) row.bytes = static_cast<double>(of.bytes);
    } else {
      const std::string& name = profile.kernel_names[of.name];
      row.name = Words(name);
      row.kernel = Keep(BriefKernelName(name));
      const TensorCoreUse use = TensorCoreUseOf(name);
      row.tc = use == TensorCoreUse::kYes ? "1" : use == TensorCoreUse::kNo ? "0" : "";
      const Profile::Geometry& geometry = profile.geometries[of.geometry];
      row.grid = Keep(absl::StrJoin(geometry.grid, ","));
      row.block = Keep(absl::StrJoin(geometry.block, ","));
      row.blocks = std::array<int64_t, 3>{24, 1, kNoInteger}[of.geometry];
      if (const auto dtype = KernelDType(name)) row.dtype = Name(*dtype);
    }
    SetLaunch(of, &row);
    if (of.collective != kNone) {
      const TracedCollective& told = kCollectives[of.collective];
      row.dtype = told.kind.dtype;
      row.call = row.sil;
      row.counted_elsewhere = false;
      row.flops = told.flops;
      row.message_bytes = told.message_bytes;
      row.bus_bytes = row.bytes = told.bus_bytes;
    }
    return row;
  }

  static void SetCost(const OpCost& cost, KernelRow* row) {
    row->flops = cost.flops.value_or(NAN);
    row->bytes = cost.bytes.value_or(NAN);
    row->message_bytes = cost.message_bytes.value_or(NAN);
    row->bus_bytes = cost.bus_bytes.value_or(NAN);
  }

  void SetLaunch(const Activity& of, KernelRow* row) {
    row->join = "no_launch";
    if (of.launch == kNone || profile.launches[of.launch].thread == kNone) return;
    const Profile::Launch& call = profile.launches[of.launch];
    const KernelJoin::Launch& launch = join.launches[of.launch];
    row->tid = profile.threads[call.thread].tid;
    if (call.nanoseconds != kNone) row->latency = of.start - call.start;
    if (launch.sequence_number != kNone) row->seq = launch.sequence_number;
    if (launch.other_sequence_number != kNone) row->altseq = launch.other_sequence_number;
    row->join = launch.context == kNone ? "no_range" : "no_op";
    if (launch.context != kNone) {
      const LaunchContext& context = join.contexts[launch.context];
      if (First({context.marker, context.op, context.backward}) != kNone) row->join = "op";
      const auto text = [&](uint32_t number) { return number == kNone ? "" : Keep(join.texts[number]); };
      row->layer = text(context.layer);
      row->trace = text(context.source);
      row->phase = text(context.phase);
      if (!of.in_graph || of.is_transfer) SetOp(of, context, row);
    }
    if (of.in_graph && !of.is_transfer) row->join = "graph";
  }

  void SetOp(const Activity& of, const LaunchContext& context, KernelRow* row) {
    uint32_t asked_for = kNone;
    std::vector<std::string> calls;
    for (const LaunchContext* at_context = &context;; at_context = &join.contexts[at_context->outer]) {
      const uint32_t op = at_context->op;
      if (op != kNone) calls.insert(calls.begin(), profile.labels[op].text);
      for (const std::string& glob : std::vector<std::string>(absl::StrSplit(at, ',', absl::SkipEmpty()))) {
        if (op != kNone && MatchesGlob(Of(op).op, glob)) asked_for = op;
      }
      if (at_context->outer == kNone) break;
    }
    row->calls = Keep(absl::StrJoin(calls, ">"));
    const uint32_t op = First({asked_for, context.op});
    const bool is_backward = context.direction == OpDirection::kBackward;
    row->dir = is_backward ? "bprop" : context.direction == OpDirection::kForward ? "fprop" : "";
    const uint32_t named =
        First({op != kNone && IsCollective(Of(op)) ? op : asked_for, context.forward_marker,
               context.forward_op, context.backward, context.marker, op});
    if (named != kNone) {
      row->op = Of(named).op;
      row->mod = Of(named).module;
    }
    if (row->mod.empty() && context.module != kNone) row->mod = Keep(join.texts[context.module]);
    const auto if_it = [](uint32_t label, bool has) { return label != kNone && has ? label : kNone; };
    const auto with_shapes = [&](uint32_t label) {
      return if_it(label, label != kNone && !profile.labels[label].shapes.empty());
    };
    if (const uint32_t told = First({with_shapes(op), with_shapes(context.forward_op)}); told != kNone) {
      row->shapes = profile.labels[told].shapes;
      row->types = profile.labels[told].types;
      row->strides = profile.labels[told].strides;
      row->inputs = profile.labels[told].inputs;
    }
    const auto with_arguments = [&](uint32_t label) {
      return if_it(label, label != kNone && !Of(label).arguments.empty());
    };
    const uint32_t costs =
        First({with_arguments(context.marker), with_arguments(context.op),
               with_arguments(context.forward_marker), with_arguments(context.forward_op)});
    if (of.is_transfer || costs == kNone || InstanceOf(of) == kNone) return;
    const bool called_here = costs == context.op || (costs == context.marker && context.backward != kNone);
    SetCostOfOp(of, Of(costs), is_backward && !called_here ? OpPass::kBackward : OpPass::kForward, row);
  }

  void SetCostOfOp(const Activity& of, OpDescription op, OpPass pass, KernelRow* row) {
    const std::string& name = profile.kernel_names[of.name];
    const KernelKind kind = KernelKindOf(name);
    const bool two_gradients = ComputesTwoGradients(op, pass);
    // The kernels of the call, those that multiply matrices first, and then the longest.
    std::vector<const Activity*> call;
    int64_t time = 0;
    for (const Activity& other : activities) {
      if (other.is_transfer || InstanceOf(other) != InstanceOf(of)) continue;
      call.push_back(&other);
      time += other.time();
    }
    std::stable_sort(call.begin(), call.end(), [&](const Activity* a, const Activity* b) {
      return std::pair(Multiplies(*a), a->time()) > std::pair(Multiplies(*b), b->time());
    });
    const bool is_second = call.size() > 1 && call[1] == &of;
    row->counted_elsewhere = call[0] != &of && !(is_second && Multiplies(of) && two_gradients);
    row->dtype = "";
    const auto dtype_of = [&](bool floating_point) -> std::optional<DType> {
      for (const OpArgument& argument : op.arguments) {
        if (argument.dtype && (!floating_point || IsFloatingPoint(*argument.dtype))) return argument.dtype;
      }
      return std::nullopt;
    };
    std::optional<DType> dtype = dtype_of(true);
    if (!dtype) dtype = dtype_of(false);
    if (!dtype) dtype = KernelDType(name);
    if (dtype) row->dtype = Name(*dtype);
    // The name tells what the label does not.
    if (const auto causal = KernelIsCausal(name)) {
      op.arguments.emplace_back().name = "is_causal";
      op.arguments.back().numbers = {*causal ? 1.0 : 0.0};
    }
    if (const auto result = KernelResultDType(name)) {
      op.arguments.emplace_back().name = "out_dtype";
      op.arguments.back().text = Name(*result);
    }
    if (two_gradients) {
      pass =
          kind == KernelKind::kConvolutionWeightGradient ? OpPass::kWeightGradient : OpPass::kInputGradient;
    }
    const OpCost cost = CostOf(op, pass, KernelDType(name));
    row->params = Keep(cost.params);
    const bool is_narrow = row->dtype == "float8_e4m3fn" || row->dtype == "int8";
    const int64_t step = is_narrow ? 16 : row->dtype == "float16" || row->dtype == "bfloat16" ? 8 : 0;
    if (step > 0 && !cost.matrix_sizes.empty()) {
      row->odd = 0;
      for (const int64_t size : cost.matrix_sizes) row->odd |= size % step != 0 ? 1 : 0;
    }
    if (row->counted_elsewhere) return;
    // A call's time is told up to 4.29 s.
    row->call = two_gradients ? row->sil : std::max(row->sil, std::min<int64_t>(time, kNone));
    SetCost(cost, row);
    const std::optional<DevicePeaks> peaks = PeaksOfDevice(of.device);
    if (!peaks || row->call <= 0 || peaks->memory <= 0) return;
    const double seconds = static_cast<double>(row->call) * 1e-9;
    const double memory = row->bytes / seconds / peaks->memory;
    double compute = row->flops == 0 ? 0 : NAN;
    if (row->flops > 0 && dtype && TensorCoreUseOf(name) != TensorCoreUse::kUnknown)
      compute = row->flops / seconds /
                peaks->Flops(*dtype, TensorCoreUseOf(name) == TensorCoreUse::kYes).value_or(NAN);
    if (std::isnan(memory) || std::isnan(compute)) return;
    row->roof = compute >= memory ? "compute" : "memory";
    row->percent_peak = 100 * std::max(compute, memory);
  }

  std::mt19937& random_;
  std::list<std::string> texts_;
  Profile profile;
  KernelJoin join;
  std::string at;
  std::optional<DevicePeaks> gpu;
  std::vector<Activity> activities;
};

TEST(ProfileRows, AnyRowsAreWhatTheRulesSay) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    AnyProfile any(random);
    const ProfileRows rows(any.profile, any.join, any.gpu, any.at);
    ASSERT_EQ(rows.size(), any.activities.size());
    std::set<std::string> without_peaks;
    for (const auto& [number, device] : any.profile.devices) {
      if (!any.PeaksOfDevice(number)) without_peaks.insert(device.name);
    }
    EXPECT_EQ(rows.DevicesWithoutPeaks(), without_peaks);
    for (size_t i = 0; i < rows.size(); ++i) {
      KernelRow row;
      rows.Get(i, &row);
      const KernelRow expected = any.RowOf(i);
      for (const auto field : {&KernelRow::idx, &KernelRow::seq, &KernelRow::altseq, &KernelRow::pid,
                               &KernelRow::tid, &KernelRow::rank, &KernelRow::sub, &KernelRow::device,
                               &KernelRow::stream, &KernelRow::start, &KernelRow::sil, &KernelRow::latency,
                               &KernelRow::gap, &KernelRow::blocks, &KernelRow::odd, &KernelRow::call})
        EXPECT_EQ(row.*field, expected.*field);
      for (const auto field :
           {&KernelRow::layer,  &KernelRow::trace,  &KernelRow::dir,     &KernelRow::mod,
            &KernelRow::op,     &KernelRow::kernel, &KernelRow::name,    &KernelRow::params,
            &KernelRow::dtype,  &KernelRow::tc,     &KernelRow::grid,    &KernelRow::block,
            &KernelRow::phase,  &KernelRow::join,   &KernelRow::roof,    &KernelRow::calls,
            &KernelRow::shapes, &KernelRow::types,  &KernelRow::strides, &KernelRow::inputs})
        EXPECT_EQ(row.*field, expected.*field);
      for (const auto field : {&KernelRow::flops, &KernelRow::bytes, &KernelRow::message_bytes,
                               &KernelRow::bus_bytes, &KernelRow::share, &KernelRow::percent_peak})
        EXPECT_THAT(row.*field, testing::NanSensitiveDoubleEq(expected.*field));
      EXPECT_EQ(row.counted_elsewhere, expected.counted_elsewhere);
      ASSERT_FALSE(HasFailure()) << trial << " " << i;
    }
  }
}

}  // namespace
}  // namespace ott::kernels
