#include "ott/core/kineto/kineto_profile.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/questions/kernels/kernel_join.h"
#include "ott/questions/kernels/prof_table.h"
#include "ott/questions/kernels/profile_rows.h"

namespace ott::kineto {
namespace {

using kernels::JoinKernels;
using kernels::KernelJoin;
using kernels::Profile;
using kernels::ProfileRows;
using kernels::ProfTableOptions;
using kernels::WriteProfTable;
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

std::string Data(const std::string& name) { return "core/kineto/testdata/" + name; }

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

// A kernel is of the op that alone has the External id of it or its call, else of the op in which the call
// began.
TEST(KinetoProfile, OfAnyEventsInAnyOrderIdsAndElseTimeTellTheOp) {
  std::mt19937 random(1);
  const auto id_text = [](int64_t id) { return id == 0 ? "" : absl::StrCat(R"("External id":)", id); };
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<std::string> events;
    std::map<int64_t, std::vector<std::string>> ops_of_id;
    for (int64_t op = 0; op < 10; ++op) {
      const int64_t id = random() % 4 == 0 ? 0 : 1 + random() % 12;
      const std::string name = absl::StrCat("op", op);
      if (id > 0) ops_of_id[id].push_back(name);
      events.push_back(Event("cpu_op", "aten::" + name, 1000 + 100 * (op / 2), 90, id_text(id), op % 2));
    }
    std::map<int64_t, std::string> rows;  // by start
    size_t num_duplicates = 0, num_without_call = 0;
    for (const auto& [unused, ops] : ops_of_id) num_duplicates += ops.size() - 1;
    for (int64_t kernel = 0; kernel < 8; ++kernel) {
      const int64_t id = random() % 3 == 0 ? 0 : 1 + random() % 12;
      const int id_is_at = static_cast<int>(random() % 3);  // the call, the kernel or both
      const bool has_call = random() % 4 > 0;
      const int64_t place = random() % 5, thread = random() % 2;
      const bool is_between = random() % 4 == 0;
      const int64_t called = 1000 + 100 * place + (is_between ? 93 : 1 + static_cast<int64_t>(random() % 80));
      const int64_t start = 2000 + 20 * static_cast<int64_t>(random() % 10) + kernel;
      const bool is_told = id > 0 && (has_call || id_is_at > 0);
      const std::string correlation = absl::StrCat(R"("correlation":)", kernel + 1);
      const auto args = [&](bool with_id) {
        return with_id && id > 0 ? absl::StrCat(correlation, ",", id_text(id)) : correlation;
      };
      if (has_call)
        events.push_back(Event("cuda_runtime", "cudaLaunchKernel", called, 5, args(id_is_at != 1), thread));
      events.push_back(Event("kernel", absl::StrCat("k", kernel), start, 1, args(id_is_at != 0)));
      events.push_back(Event("gpu_memcpy", "Memcpy HtoD", start + 10, 1, R"("bytes":8)"));
      rows[start + 10] = "Memcpy_HtoD - -\n";
      std::string op = "-";
      if (has_call && !is_between) op = absl::StrCat("op", 2 * place + thread);
      const bool has_one = is_told && ops_of_id[id].size() == 1;
      if (has_one) op = ops_of_id[id][0];
      num_without_call += has_one && !has_call;
      rows[start] = absl::StrCat("k", kernel, " ", op, " ",
                                 has_call ? absl::StrCat(1000 * (start - called)) : "-", "\n");
    }
    std::shuffle(events.begin(), events.end(), random);
    std::string expected = "kernel op latency\n";
    for (const auto& [unused, row] : rows) expected += row;
    const Joined joined = Trace(Last(absl::StrJoin(events, "")));
    EXPECT_EQ(joined.Write("kernel,op,latency"), expected) << trial;
    std::vector<std::string> notes;
    if (num_duplicates > 0)
      notes.push_back(absl::StrCat(num_duplicates,
                                   " ops have an External id that another one has; what they "
                                   "launched is found by time"));
    if (num_without_call > 0)
      notes.push_back(absl::StrCat(num_without_call,
                                   " launches are not in the trace; their kernels' ops are, by External id"));
    EXPECT_EQ(joined.profile.notes, notes) << trial;
  }
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

// An op of these arguments with a kernel: its FLOPs, bytes and Tensor Core use.
std::string CostOf(const std::string& op, const std::string& dims, const std::string& types,
                   const std::string& inputs,
                   const std::string& kernel = "nvjet_tst_128x64_64x6_2x1_v_bz_TNT") {
  const Joined joined = Trace(
      Last(Event("cpu_op", op, 100, 50,
                 absl::StrCat(R"("External id":7,"Input Dims":)", dims, R"(,"Input type":)", types,
                              R"(,"Concrete Inputs":)", inputs)) +
           Event("cuda_runtime", "cudaLaunchKernel", 110, 5, R"("External id":7,"correlation":3)") +
           Event("kernel", kernel, 300, 30, R"("External id":7,"correlation":3,"device":0,"stream":7)")));
  const std::string text = joined.Write("flops,bytes,tc");
  return text.substr(text.find('\n') + 1);
}

// These are computed by hand; core/op_cost has the costs of all forms.
TEST(KinetoProfile, OpsOfEachKindHaveTheirFlopsBytesAndTensorCores) {
  // 2 128 64 256 and the bias's 128 256.
  EXPECT_EQ(CostOf("aten::addmm", "[[256],[128,64],[64,256],[],[]]",
                   R"(["c10::BFloat16","c10::BFloat16","c10::BFloat16","Scalar","Scalar"])",
                   R"(["","","","1","1"])", "Cijk_Alik_Bljk_BBS_BH_MT128x64x64_MI16x16x16x1_SN.kd"),
            "4227072 115200 1\n");
  // float8 with a bfloat16 result, the 7th argument.
  EXPECT_EQ(CostOf("aten::_scaled_mm", "[[16,32],[32,64],[],[],[],[],[],[]]",
                   R"(["c10::Float8_e4m3fn","c10::Float8_e4m3fn","float","float","","","Scalar","Scalar"])",
                   R"(["","","","","","","15","True"])", "nvjet_qqtst_128x64_tmaAB_bz_TNT"),
            "65536 4608 1\n");
  // Inference servers have w[N, K], and a result that comes first.
  EXPECT_EQ(CostOf("vllm::rocm_unquantized_gemm", "[[4,64],[32,64],[]]",
                   R"(["c10::BFloat16","c10::BFloat16",""])", R"(["","",""])"),
            "16384 4864 1\n");
  EXPECT_EQ(
      CostOf("_C::cutlass_scaled_mm", "[[4,32],[4,64],[64,32],[4,1],[1,32],[]]",
             R"(["c10::BFloat16","signed char","signed char","float","float",""])", R"(["","","","","",""])"),
      "16384 2560 1\n");
  // Two sequences of 16 one after the other, causal: 2 x 16 heads 128 pairs 128.
  EXPECT_EQ(CostOf("flash_attn::_flash_attn_varlen_forward",
                   "[[32,8,64],[32,8,64],[32,8,64],[3],[3],[],[],[],[],[]]",
                   R"(["c10::Half","c10::Half","c10::Half","int","int","","","","",""])",
                   R"(["","","","","","16","16","0.","0.125","True"])",
                   "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>(Params)"),
            "524288 132096 1\n");
  // 2 x (2 8 30 30 outputs) (4 of 8 channels, 3 3); float32. Two groups.
  EXPECT_EQ(
      CostOf("aten::convolution", "[[2,8,32,32],[8,4,3,3],[],[],[],[],[],[],[]]",
             R"(["float","float","","ScalarList","ScalarList","ScalarList","Scalar","ScalarList","Scalar"])",
             R"(["","","","[1, 1]","[0, 0]","[1, 1]","False","[0, 0]","2"])", "implicit_convolve_sgemm"),
      absl::StrCat(2 * 2 * 8 * 900 * 36, " ", 4 * (2 * 8 * 1024 + 8 * 36 + 2 * 8 * 900), " 0\n"));
}

TEST(KinetoProfile, KernelsOfGraphsHaveThePhaseOfTheirLaunchAndNoOp) {
  // Inference servers replay them like this, on NVIDIA and AMD; no External id, one correlation for all.
  for (const std::string launch : {"cudaGraphLaunch", "hipGraphLaunch"}) {
    const Joined joined = Trace(Last(
        Event("user_annotation", "execute_context_0(0)_generation_4(4)", 90, 100, R"("External id":4)") +
        Event("gpu_user_annotation", "execute_context_0(0)_generation_4(4)", 290, 100, R"("External id":4)",
              7) +
        Event("cuda_runtime", launch, 110, 5, R"("correlation":55)") +
        Event("kernel", "_gemv", 300, 10, R"("device":0,"stream":7,"correlation":55,"graph node id":99)") +
        Event("kernel", "_norm", 320, 10, R"("device":0,"stream":7,"correlation":55,"graph node id":98)")));
    EXPECT_EQ(joined.Write("op,kernel,phase,join,flops"),
              "op kernel phase join flops\n- _gemv execute_context_0(0)_generation_4(4) graph na\n"
              "- _norm execute_context_0(0)_generation_4(4) graph na\n");
    EXPECT_TRUE(joined.profile.notes.empty());
  }
}

TEST(KinetoProfile, GraphsWhoseKernelsTheTraceLacksAreCounted) {
  const Joined joined =
      Trace(Last(Event("cuda_runtime", "hipGraphLaunch", 110, 5, R"("correlation":55)") +
                 Event("cuda_runtime", "hipGraphLaunch", 120, 5, R"("correlation":56)") +
                 Event("cuda_runtime", "hipGraphLaunch", 130, 5, R"("correlation":57)") +
                 Event("kernel", "_gemv", 300, 10, R"("device":0,"stream":7,"correlation":56)") +
                 Event("gpu_memcpy", "Memcpy HtoD", 320, 10, R"("device":0,"stream":7,"correlation":57)")));
  EXPECT_THAT(joined.profile.notes,
              ElementsAre(HasSubstr("1 launches of graphs have no kernels in the trace")));
}

TEST(KinetoProfile, KernelsOfTorchCompileHaveTheirTritonOpAndWhatItTells) {
  const auto launch = [](int id, int64_t start) {
    return Event("cuda_driver", "cuLaunchKernel", start, 5,
                 absl::StrCat(R"("External id":)", id, R"(,"correlation":)", id));
  };
  const auto kernel = [](const std::string& name, int id, int64_t start) {
    return Event(
        "kernel", name, start, 10,
        absl::StrCat(R"("External id":)", id, R"(,"correlation":)", id, R"(,"device":0,"stream":7)"));
  };
  const Joined joined = Trace(Last(
      Event("python_function", "nn.Module: OptimizedModule_0", 80, 300, "") +
      Event("python_function", "vllm/model.py(40): forward", 85, 290, "") +
      Event("user_annotation", "## Call CompiledFxGraph fabc ##", 88, 280, "") +
      Event("cpu_op", "Torch-Compiled Region: 0/0", 90, 250, R"("External id":1)") +
      Event(
          "cpu_op", "triton_poi_fused_add_0", 100, 20,
          R"-("External id":2,"Input Dims":[[4,8],[4,8],[],[]],"Input type":["float","float","Scalar",""],)-"
          R"-("kernel_backend":"triton","kernel_file":"/tmp/ab/c.py","kernel_hash":"cx","stream":7,)-"
          R"-("grid":"grid(32,)","num_warps":4)-") +
      launch(2, 105) + kernel("triton_poi_fused_add_0", 2, 400) +
      Event("cpu_op", "triton_tem_fused_mm_1", 130, 20,
            R"("External id":3,"Input Dims":[[4,8],[8,16]],"Input type":["float","float"],)"
            R"("kernel_backend":"triton","kernel_flop":1024,"kernel_num_gb":0.000000896)") +
      launch(3, 135) + kernel("triton_tem_fused_mm_1", 3, 420) +
      Event("cpu_op", "aten::mm", 160, 20, R"("External id":4,"Input Dims":[[4,8],[8,16]])") +
      launch(4, 165) + kernel("sgemm", 4, 440)));
  EXPECT_EQ(joined.Write("op,layer,trace,tc,flops,bytes"),
            "op layer trace tc flops bytes\n"
            "triton_poi_fused_add_0 OptimizedModule_0 vllm/model.py:40 0 na na\n"
            "triton_tem_fused_mm_1 OptimizedModule_0 vllm/model.py:40 na 1024 896\n"
            "mm OptimizedModule_0 vllm/model.py:40 0 1024 896\n");
  EXPECT_EQ(joined.Write("phase").substr(0, 38), "phase\n##_Call_CompiledFxGraph_fabc_##\n");
}

TEST(KinetoProfile, MessagesBetweenTwoRanksAreNoCollectives) {
  const std::string own =
      R"("Collective name":"send","In msg nelems":1000,"Out msg nelems":1000,"Group size":8,"dtype":"Half",)"
      R"("Process Group Name":"5","Process Group Ranks":"[0, 1, 2, 3, 4, 5, 6, 7]","Dst Rank":4)";
  const Joined joined =
      Trace(Last(Event("cpu_op", "record_param_comms", 100, 50, R"("External id":7,)" + own) +
                 Event("cuda_runtime", "hipExtLaunchKernel", 110, 5, R"("External id":7,"correlation":3)") +
                 Event("kernel", "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", 200, 10,
                       R"("External id":7,"correlation":3,"stream":20,"device":0,)" + own)));
  EXPECT_EQ(joined.Write("op,algbw,busbw"), "op algbw busbw\nrecord_param_comms 0.2 0.2\n");
}

TEST(KinetoProfile, CallsWithoutCorrelationAreTiedToTheirKernelsByExternalId) {
  const Joined joined =
      Trace(Last(Event("cpu_op", "aten::convolution", 100, 50,
                       R"-("Input type":["Float","Float"],"Input Dims":[[4,512,8,8],[512,256,4,4]],)-"
                       R"-("Concrete Inputs":["","","","(2,2)","(1,1)","(1,1)","True","(0,0)","1"])-") +
                 Event("cuda_runtime", "cudaLaunchKernel", 110, 5, R"("External id":100)") +
                 Event("kernel", "conv", 300, 30, R"("External id":100)")));
  // Transposed: each of 4 512 8 8 numbers adds to 256 4 4 others.
  EXPECT_EQ(joined.Write("op,flops"), "op flops\nconvolution 1073741824\n");
}

TEST(KinetoProfile, RanksAreTheHeadersOrThoseOfFileNames) {
  const std::string kernel = Last(Event("kernel", "k", 1, 1, ""));
  EXPECT_EQ(Trace(kernel, "host_123.rank3.pt.trace.json").profile.rank, 3);
  EXPECT_EQ(Trace(kernel, "trace_rank_00012.json").profile.rank, 12);
  EXPECT_EQ(Trace(kernel, "rank-7_of_ranking.json").profile.rank, 7);
  EXPECT_EQ(Trace(kernel, "dp0_pp0_tp1_dcp0_ep1_rank5.17.pt.trace.json").profile.rank, 5);
  EXPECT_EQ(Trace(kernel, "1754-TP-3.trace.json").profile.rank, 3);
  EXPECT_EQ(Trace(kernel, "1754-TP-3-DP-1.trace.json").profile.rank, -1);
  EXPECT_EQ(Trace(kernel, "host_123.pt.trace.json").profile.rank, -1);
}

}  // namespace
}  // namespace ott::kineto
