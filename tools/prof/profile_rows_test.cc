#include "tools/prof/profile_rows.h"

#include <sstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/prof/capture_for_test.h"
#include "tools/prof/json_rows.h"
#include "tools/prof/prof_table.h"
#include "tools/prof/profile_reader.h"
#include "tools/prof/summary.h"

namespace ott {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
            "1 524288 28672 0.52429 28.672 18.286\n"
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
            "1 3 training 13.158 3.1858 memory 850 - op\n"
            "2 3 training 1.3158 - - 1940 100 op\n"
            "3 3 training 26.316 1.5929 memory 2690 800 op\n"
            "4 3 training 13.158 3.1858 memory 4680 0 op\n"
            "5 3 training 39.474 - - 5670 0 op\n"
            "6 3 - 6.5789 na na 8300 0 no_range\n");
}

TEST(ProfTable, CsvQuotesAndWidthCuts) {
  ProfTableOptions options;
  options.columns = "idx,grid,kernel";
  options.limit = 1;
  options.sort = "idx";
  options.layout.format = TableLayout::Format::kCsv;
  EXPECT_EQ(Table().Write(options),
            "idx,grid,kernel\r\n6,\"585,1,1\",\"frobnicate_kernel,_\"\"quoted\"\"\"\r\n");
  options.layout = {TableLayout::Format::kPlain, 5};
  EXPECT_EQ(Table().Write(options), "idx   grid  kernel\n6     585,1 frobnicate_kernel,_\"quoted\"\n");
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
  options.sort = "frobnicate";
  EXPECT_THAT(Table().Write(options), HasSubstr("no column 'frobnicate'"));
}

TEST(ProfTable, ColumnsThatAreNoneAreNamed) {
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

TEST(ProfTable, JsonIsReadBackAsTheSameRows) {
  const Table table;
  ProfTableOptions options;
  options.columns = "all";
  options.layout.format = TableLayout::Format::kJson;
  const std::string json = table.Write(options);
  EXPECT_THAT(json, HasSubstr(R"("op":"linear")"));
  EXPECT_THAT(json, HasSubstr(R"(\"quoted\")"));
  std::istringstream lines(json + "\nno row\n[]\n");
  const JsonRows rows(lines);
  EXPECT_EQ(rows.num_bad_lines(), 2);
  for (const char* group : {"", "op,dir"}) {
    options = {};
    options.columns = "all";
    options.group_by = group;
    std::string text;
    ASSERT_TRUE(WriteProfTable(rows, options, [&](std::string_view part) { text += part; }).ok());
    EXPECT_EQ(text, table.Write(options));
  }
}

TEST(ProfTable, JsonTextIsUtf8WhateverTheNames) {
  CaptureSql sql;
  sql.Kernel(1, 11, 150, 300, 10, "k\xc3\xa4\xff\xed\xa0\x80", 1);
  ProfTableOptions options;
  options.columns = "kernel";
  options.layout.format = TableLayout::Format::kJson;
  EXPECT_EQ(Table(sql).Write(options),
            "{\"kernel\":\"k\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}\n");
}

TEST(ProfTable, KernelsOfGraphsAreNotTakenForTheOpAroundTheLaunch) {
  CaptureSql sql;
  sql.Range(1, 11, 90, 210, "step").Range(1, 11, 100, 200, kLinear);
  sql.Kernel(1, 11, 150, 300, 10, "a", 5, 0, true).Kernel(1, 11, -1, 310, 10, "b", 5, 0, true);
  EXPECT_EQ(Table(sql).Write("idx,phase,op,flops,join"),
            "idx phase op flops join\n1 step - na graph\n2 step - na graph\n");
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

TEST(Summary, SaysWhatStandsOut) {
  CaptureSql sql;
  sql.Range(1, 11, 100, 200, "aten::mm, seq = 1, sizes = [[30, 128], [128, 64]]");
  sql.Kernel(1, 11, 150, 10000, 60000, "ampere_sgemm_128x64_tn", 1);
  sql.Range(1, 11, 300, 400, "aten::mm, seq = 2, sizes = [[30, 129], [129, 64]]");
  sql.Kernel(1, 11, 350, 100000, 20000, "nvjet_tst_64x8", 2);
  sql.Sql("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = 3 WHERE start = 100000;");
  const Table table(sql);
  const std::string text = Summarize(ProfileRows(table.profile, table.join, std::nullopt), {});
  EXPECT_THAT(text, HasSubstr("matrix kernels: 80 us (100.0 %), 25.0 % of it on Tensor Cores"));
  EXPECT_THAT(text, HasSubstr("* 60 us (75.0 %) multiplies float32 on CUDA cores"));
  EXPECT_THAT(text, HasSubstr("* 20 us (25.0 %) multiplies sizes that are no multiple of 8"));
  EXPECT_THAT(text, HasSubstr("fewer than 64 blocks"));
  EXPECT_THAT(text, HasSubstr("the GPU is idle 27.3 %"));
  EXPECT_THAT(text, Not(HasSubstr("fuse them")));
  ProfTableOptions options;
  options.op = "nothing";
  EXPECT_EQ(Summarize(ProfileRows(table.profile, table.join, std::nullopt), options),
            "no kernels pass the filters\n");
}

}  // namespace
}  // namespace ott
