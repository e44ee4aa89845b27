#include "ott/core/kineto/kineto_profile.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
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
using ::testing::HasSubstr;

struct Joined {
  Profile profile;
  KernelJoin join;

  explicit Joined(const std::string& path) {
    profile = ReadKinetoProfile(path).value();
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

// events: each with a comma after it.
Joined Trace(std::string events) {
  events.pop_back();
  const std::string path = ::testing::TempDir() + "/trace.json";
  EXPECT_TRUE(WriteFileAtomically(path, absl::StrCat("{\"traceEvents\":[", events, "]}")).ok());
  return Joined(path);
}

std::string Event(const std::string& category, const std::string& name, int64_t start, int64_t duration,
                  const std::string& args, int64_t tid = 1) {
  return absl::StrCat(R"({"ph":"X","cat":")", category, R"(","name":")", name, R"(","pid":9,"tid":)", tid,
                      R"(,"ts":)", start, R"(,"dur":)", duration, R"(,"args":{)", args, "}},");
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

TEST(KinetoProfile, TheFormOfPyTorch18IsRead) {
  const Joined joined = Trace(
      Event(
          "Operator", "aten::mm", 100, 50,
          R"("Device":24572,"External id":2,"Input dims":[[2,3],[3,4]],"Call stack":"torch/nn/x.py(1): f;a/b.py(7): g")") +
      Event("Runtime", "cudaLaunchKernel", 110, 5, R"("cbid":211,"correlation":3,"external id":2)") +
      Event("Kernel", "sgemm", 120, 10, R"("device":0,"stream":7,"correlation":3,"external id":2)") +
      Event("Memcpy", "Memcpy HtoD (Pageable -> Device)", 140, 10, R"("device":0,"stream":7,"bytes":64)"));
  EXPECT_EQ(joined.Write("op,trace,kernel,bytes,join"),
            "op trace kernel bytes join\nmm a/b.py:7 sgemm 104 op\n"
            "- - Memcpy_HtoD_(Pageable_->_Device) 64 no_launch\n");
}

// A kernel and the call that launches it.
std::string Launched(const std::string& kernel, int id, int64_t start) {
  const std::string ids = absl::StrCat(R"("External id":)", id, R"(,"correlation":)", id);
  return Event("cuda_driver", "cuLaunchKernel", start, 5, ids) +
         Event("kernel", kernel, start + 300, 10, ids + R"(,"device":0,"stream":7)");
}

// An op of these arguments with a kernel: its FLOPs, bytes and Tensor Core use.
std::string CostOf(const std::string& op, const std::string& dims, const std::string& types,
                   const std::string& inputs, const std::string& kernel) {
  const Joined joined =
      Trace(Event("cpu_op", op, 100, 50,
                  absl::StrCat(R"("External id":7,"Input Dims":)", dims, R"(,"Input type":)", types,
                               R"(,"Concrete Inputs":)", inputs)) +
            Launched(kernel, 7, 110));
  const std::string text = joined.Write("flops,bytes,tc");
  return text.substr(text.find('\n') + 1);
}

// These are computed by hand; core/op_cost has the costs of all ops and forms.
TEST(KinetoProfile, OpsHaveTheirFlopsBytesAndTensorCores) {
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
  // Two sequences of 16 one after the other, causal: 2 x 16 heads 128 pairs 128.
  EXPECT_EQ(CostOf("flash_attn::_flash_attn_varlen_forward",
                   "[[32,8,64],[32,8,64],[32,8,64],[3],[3],[],[],[],[],[]]",
                   R"(["c10::Half","c10::Half","c10::Half","int","int","","","","",""])",
                   R"(["","","","","","16","16","0.","0.125","True"])",
                   "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>(Params)"),
            "524288 132096 1\n");
}

TEST(KinetoProfile, KernelsOfGraphsHaveThePhaseOfTheirLaunchAndNoOp) {
  // Inference servers replay them like this, on NVIDIA and AMD; no External id, one correlation for all.
  for (const std::string launch : {"cudaGraphLaunch", "hipGraphLaunch"}) {
    const Joined joined = Trace(
        Event("user_annotation", "execute_context_0(0)_generation_4(4)", 90, 100, R"("External id":4)") +
        Event("gpu_user_annotation", "execute_context_0(0)_generation_4(4)", 290, 100, R"("External id":4)",
              7) +
        Event("cuda_runtime", launch, 110, 5, R"("correlation":55)") +
        Event("kernel", "_gemv", 300, 10, R"("device":0,"stream":7,"correlation":55,"graph node id":99)") +
        Event("kernel", "_norm", 320, 10, R"("device":0,"stream":7,"correlation":55,"graph node id":98)"));
    EXPECT_EQ(joined.Write("op,kernel,phase,join,flops"),
              "op kernel phase join flops\n- _gemv execute_context_0(0)_generation_4(4) graph na\n"
              "- _norm execute_context_0(0)_generation_4(4) graph na\n");
    EXPECT_TRUE(joined.profile.notes.empty());
  }
}

TEST(KinetoProfile, KernelsOfTorchCompileHaveTheirTritonOpAndWhatItTells) {
  const Joined joined = Trace(
      Event("python_function", "nn.Module: OptimizedModule_0", 80, 300, "") +
      Event("python_function", "vllm/model.py(40): forward", 85, 290, "") +
      Event("user_annotation", "## Call CompiledFxGraph fabc ##", 88, 280, "") +
      Event("cpu_op", "Torch-Compiled Region: 0/0", 90, 250, R"("External id":1)") +
      Event(
          "cpu_op", "triton_poi_fused_add_0", 100, 20,
          R"-("External id":2,"Input Dims":[[4,8],[4,8],[],[]],"Input type":["float","float","Scalar",""],)-"
          R"-("kernel_backend":"triton","kernel_file":"/tmp/ab/c.py","kernel_hash":"cx","stream":7,)-"
          R"-("grid":"grid(32,)","num_warps":4)-") +
      Launched("triton_poi_fused_add_0", 2, 105) +
      Event("cpu_op", "triton_tem_fused_mm_1", 130, 20,
            R"("External id":3,"Input Dims":[[4,8],[8,16]],"Input type":["float","float"],)"
            R"("kernel_backend":"triton","kernel_flop":1024,"kernel_num_gb":0.000000896)") +
      Launched("triton_tem_fused_mm_1", 3, 135) +
      Event("cpu_op", "aten::mm", 160, 20, R"("External id":4,"Input Dims":[[4,8],[8,16]])") +
      Launched("sgemm", 4, 165));
  EXPECT_EQ(joined.Write("op,layer,trace,tc,flops,bytes"),
            "op layer trace tc flops bytes\n"
            "triton_poi_fused_add_0 OptimizedModule_0 vllm/model.py:40 0 na na\n"
            "triton_tem_fused_mm_1 OptimizedModule_0 vllm/model.py:40 na 1024 896\n"
            "mm OptimizedModule_0 vllm/model.py:40 0 1024 896\n");
  EXPECT_EQ(joined.Write("phase").substr(0, 38), "phase\n##_Call_CompiledFxGraph_fabc_##\n");
}

}  // namespace
}  // namespace ott::kineto
