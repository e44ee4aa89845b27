#include "tools/kineto/kineto_profile.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "tools/prof/kernel_join.h"
#include "tools/prof/prof_table.h"
#include "tools/prof/profile_rows.h"

namespace ott::kineto {
namespace {

using prof::JoinKernels;
using prof::KernelJoin;
using prof::Profile;
using prof::ProfileRows;
using prof::ProfTableOptions;
using prof::WriteProfTable;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Joined {
  Profile profile;
  KernelJoin join;

  explicit Joined(const std::string& path) {
    auto read = ReadKinetoProfile(path);
    EXPECT_TRUE(read.ok()) << read.status();
    if (!read.ok()) return;
    profile = *std::move(read);
    join = JoinKernels(&profile);
  }

  std::string Write(const std::string& columns, const std::string& at = "",
                    const std::string& group_by = "") const {
    const ProfileRows rows(profile, join, std::nullopt, at);
    ProfTableOptions options;
    options.columns = columns;
    options.group_by = group_by;
    std::string text;
    const absl::Status status = WriteProfTable(rows, options, [&](std::string_view part) { text += part; });
    return status.ok() ? text : std::string(status.message());
  }
};

std::string Data(const std::string& name) { return "tools/kineto/testdata/" + name; }

Joined Trace(const std::string& events, const std::string& name = "trace.json") {
  const std::string path = absl::StrCat(::testing::TempDir(), "/", name);
  EXPECT_TRUE(WriteFileAtomically(path, absl::StrCat("{\"traceEvents\":[", events, "]}")).ok());
  return Joined(path);
}

std::string Event(const std::string& category, const std::string& name, int64_t start, int64_t duration,
                  const std::string& args, int64_t tid = 1) {
  return absl::StrCat(R"({"ph":"X","cat":")", category, R"(","name":")", name, R"(","pid":9,"tid":)", tid,
                      R"(,"ts":)", start, R"(,"dur":)", duration, R"(,"args":{)", args, "}},");
}

std::string Last(std::string events) {
  events.pop_back();
  return events;
}

TEST(KinetoProfile, ADecoderLayerOnAnH100HasItsOpsLayersFlopsAndPeaks) {
  const Joined layer(Data("h100_decoder_layer.json.gz"));
  EXPECT_EQ(layer.profile.devices.at(0).name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(layer.profile.num_steps, 1);
  // By hand: 3 x 2 8944 1024 1024 and their biases, the output's 2 8944 1024 1024, 3 x 2 8944 1024 2816, and
  // 4 16 16 559 559 64 of attention, of which causal leaves half.
  EXPECT_THAT(layer.Write("op,tc,flops,roof,layer"),
              HasSubstr("\naddmm 1 18766086144 compute "
                        "Qwen2Model_0:Qwen2DecoderLayer_1:Qwen2Attention_1:Linear_7\n"));
  const std::string groups = layer.Write("", "", "op");
  EXPECT_THAT(groups, HasSubstr("\nmm 8 "));
  EXPECT_THAT(groups, HasSubstr(" 173501579264 "));
  EXPECT_THAT(groups, HasSubstr("\n_flash_attention_forward 1 "));
  EXPECT_THAT(groups, HasSubstr(" 10239377408 "));
}

TEST(KinetoProfile, NormsOnAnMi300xHaveForwardAndBackward) {
  const Joined norms(Data("mi300x_norms.json.gz"));
  EXPECT_EQ(norms.profile.devices.at(2).name, "AMD Instinct MI300X");
  const std::string table = norms.Write("dir,op,calls");
  EXPECT_THAT(table, HasSubstr("fprop native_layer_norm aten::layer_norm>aten::native_layer_norm\n"));
  // A backward kernel has the name of the forward op with its sequence number, and --at that of its own.
  EXPECT_THAT(table, HasSubstr("bprop native_layer_norm aten::native_layer_norm_backward\n"));
  EXPECT_THAT(norms.Write("dir,op,shapes", "*_backward"),
              HasSubstr("bprop native_layer_norm_backward [[8,16,32,32],[8,16,32,32],[],[8,1,1,1],"));
}

TEST(KinetoProfile, ExternalIdsTellTheOpEvenWhereTimesDoNot) {
  const Joined joined = Trace(
      Last(Event("cpu_op", "aten::mm", 100, 50,
                 R"("External id":7,"Input Dims":[[2,3],[3,4]],"Input type":["float","float"])") +
           Event("cpu_op", "aten::add", 200, 50, R"("External id":8)") +
           // By time it is add's, by its id mm's.
           Event("cuda_runtime", "cudaLaunchKernel", 210, 5, R"("External id":7,"correlation":3)") +
           Event("kernel", "sgemm", 300, 10, R"("External id":7,"correlation":3,"device":1,"stream":4)") +
           // Without an id, time tells.
           Event("cuda_runtime", "cudaLaunchKernel", 220, 5, R"("correlation":4)") +
           Event("kernel", "adds", 320, 10, R"("correlation":4)") +
           // Without a call, the id does.
           Event("kernel", "other", 340, 10, R"("External id":7)")));
  EXPECT_EQ(joined.Write("op,kernel,flops,device,stream,latency"),
            "op kernel flops device stream latency\n"
            "mm sgemm 48 1 4 90000\n"
            "add adds na 9 1 100000\n"
            "mm other - 9 1 -\n");
  EXPECT_THAT(joined.profile.notes, ElementsAre(HasSubstr("1 launches are not in the trace")));
}

TEST(KinetoProfile, ArrowsPairForwardAndBackwardWhereSequenceNumbersAreNotTold) {
  const auto flow = [](char phase, int64_t start, int64_t tid) {
    return absl::StrCat(R"({"ph":")", std::string(1, phase),
                        R"(","cat":"fwdbwd","name":"fwdbwd","id":5,"pid":9,"tid":)", tid, R"(,"ts":)", start,
                        "},");
  };
  const Joined joined =
      Trace(Last(Event("python_function", "nn.Module: Linear_0", 90, 100, "") +
                 Event("python_function", "my/net.py(12): forward", 95, 90, "") +
                 Event("cpu_op", "aten::mm", 100, 50, R"("External id":7,"Input Dims":[[2,3],[3,4]])") +
                 flow('s', 100, 1) + Event("cpu_op", "MmBackward0", 300, 50, R"("External id":8)", 2) +
                 flow('f', 300, 2) +
                 Event("cpu_op", "aten::mm", 310, 20, R"("External id":9,"Input Dims":[[3,2],[2,4]])", 2) +
                 Event("cuda_runtime", "cudaLaunchKernel", 315, 5, R"("External id":9,"correlation":3)", 2) +
                 Event("kernel", "sgemm", 400, 10, R"("External id":9,"correlation":3)")));
  EXPECT_EQ(joined.Write("dir,op,layer,trace,seq"),
            "dir op layer trace seq\nbprop mm Linear_0 my/net.py:12 5\n");
}

TEST(KinetoProfile, TheFormOfPyTorch18IsRead) {
  const Joined joined = Trace(Last(
      Event(
          "Operator", "aten::mm", 100, 50,
          R"("Device":24572,"External id":2,"Input dims":[[2,3],[3,4]],"Call stack":"torch/nn/x.py(1): f;a/b.py(7): g")") +
      Event("Runtime", "cudaLaunchKernel", 110, 5, R"("cbid":211,"correlation":3,"external id":2)") +
      Event("Kernel", "sgemm", 120, 10, R"("device":0,"stream":7,"correlation":3,"external id":2)") +
      Event("Memcpy", "Memcpy HtoD (Pageable -> Device)", 140, 10, R"("device":0,"stream":7,"bytes":64)")));
  EXPECT_EQ(joined.Write("op,trace,kernel,bytes,join"),
            "op trace kernel bytes join\nmm a/b.py:7 sgemm 104 op\n"
            "- - Memcpy_HtoD_(Pageable_->_Device) 64 no_launch\n");
}

TEST(KinetoProfile, CollectivesTellTheirMessageAndTheirGroup) {
  const std::string own =
      R"("Collective name":"_allgather_base","In msg nelems":1000,"Out msg nelems":4000,"Group size":4,)"
      R"("dtype":"BFloat16","Process Group Name":"3","Process Group Ranks":"[0, 2, 4, 6]")";
  const Joined joined = Trace(Last(
      Event("cpu_op", "record_param_comms", 100, 50,
            R"-("External id":7,"Concrete Inputs":["","42","('3', 'dp')","0","_allgather_base"],)-" + own) +
      Event("cuda_runtime", "cudaLaunchKernelExC", 110, 5, R"("External id":7,"correlation":3)") +
      Event("kernel", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 200, 10,
            R"("External id":7,"correlation":3,"stream":20,)" + own)));
  // 4000 elements of 2 bytes in 10 us, of which a link carries three quarters.
  EXPECT_EQ(joined.Write("algbw,busbw,dtype"), "algbw busbw dtype\n0.8 0.6 bfloat16\n");
  ASSERT_EQ(joined.profile.collectives.size(), 1U);
  EXPECT_EQ(joined.profile.collectives[0].sequence_number, 42);
  EXPECT_EQ(joined.profile.collective_kinds[0].group_ranks, "[0, 2, 4, 6]");
}

TEST(KinetoProfile, TheRatesOfACallCountItOnceInTheTimeOfAllItsKernels) {
  const Joined joined = Trace(
      Last(Event("cpu_op", "aten::mm", 100, 50,
                 R"("External id":7,"Input Dims":[[200,300],[300,400]],"Input type":["float","float"])") +
           Event("cuda_runtime", "cudaLaunchKernel", 110, 5, R"("External id":7,"correlation":3)") +
           Event("kernel", "sgemm", 300, 30, R"("correlation":3)") +
           Event("cuda_runtime", "cudaLaunchKernel", 120, 5, R"("External id":7,"correlation":4)") +
           Event("kernel", "splitKreduce_kernel", 340, 10, R"("correlation":4)")));
  // 2 200 300 400 FLOPs in 40 us.
  EXPECT_EQ(joined.Write("flops,tflops,call"), "flops tflops call\n48000000 1.2 40000\n- - -\n");
}

TEST(KinetoProfile, CallsWithoutCorrelationAreTiedToTheirKernelsByExternalId) {
  const auto flops = [](const std::string& dims, const std::string& inputs) {
    const Joined joined = Trace(Last(
        Event("cpu_op", "aten::convolution", 100, 50,
              R"("Input type":["Float","Float"],"Input Dims":)" + dims + R"(,"Concrete Inputs":)" + inputs) +
        Event("cuda_runtime", "cudaLaunchKernel", 110, 5, R"("External id":100)") +
        Event("kernel", "conv", 300, 30, R"("External id":100)")));
    return joined.Write("op,flops");
  };
  // Transposed: each of 4 512 8 8 numbers adds to 256 4 4 others.
  EXPECT_EQ(
      flops("[[4,512,8,8],[512,256,4,4]]", R"-(["","","","(2,2)","(1,1)","(1,1)","True","(0,0)","1"])-"),
      "op flops\nconvolution 1073741824\n");
  // Dilated, with as much padding: as large as the input.
  EXPECT_EQ(flops("[[2,256,128,128],[256,256,3,3]]",
                  R"-(["","","","(1,1)","(16,16)","(16,16)","False","(0,0)","1"])-"),
            "op flops\nconvolution 38654705664\n");
  // Depthwise.
  EXPECT_EQ(flops("[[8,1024,32,32],[1024,1,3,3]]",
                  R"-(["","","","(1,1)","(1,1)","(1,1)","False","(0,0)","1024"])-"),
            "op flops\nconvolution 150994944\n");
}

TEST(KinetoProfile, WhatIsWrongWithEventsIsSaid) {
  const Joined joined = Trace(Last(Event("cpu_op", "aten::mm", 100, -5, R"("External id":7)") +
                                   Event("cpu_op", "aten::mm", 200, 5, R"("External id":7)") +
                                   Event("cuda_runtime", "cudaLaunchKernel", 310, 5, R"("correlation":3)") +
                                   Event("cuda_runtime", "cudaLaunchKernel", 320, 5, R"("correlation":3)") +
                                   Event("kernel", "early", 300, 10, R"("correlation":3)") +
                                   R"({"ph":"X","cat":"kernel","name":"when"},)"));
  EXPECT_THAT(joined.profile.notes,
              ElementsAre(HasSubstr("1 events have no time"), HasSubstr("1 events end before they begin"),
                          HasSubstr("1 kernels and copies begin before the call"),
                          HasSubstr("1 calls have a correlation id that another one has"),
                          HasSubstr("1 ops have an External id that another one has")));
}

TEST(KinetoProfile, RanksAreTheHeadersOrThoseOfFileNames) {
  const std::string kernel = Last(Event("kernel", "k", 1, 1, ""));
  EXPECT_EQ(Trace(kernel, "host_123.rank3.pt.trace.json").profile.rank, 3);
  EXPECT_EQ(Trace(kernel, "trace_rank_00012.json").profile.rank, 12);
  EXPECT_EQ(Trace(kernel, "rank-7_of_ranking.json").profile.rank, 7);
  EXPECT_EQ(Trace(kernel, "host_123.pt.trace.json").profile.rank, -1);
}

}  // namespace
}  // namespace ott::kineto
