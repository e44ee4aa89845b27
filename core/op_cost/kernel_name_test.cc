#include "ott/core/op_cost/kernel_name.h"

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(KernelName, RealNamesTellTensorCoresElementTypesKindsAndAShortName) {
  const std::map<std::string, KernelKind> kinds = {{"collective", KernelKind::kCollective},
                                                   {"attention", KernelKind::kAttention},
                                                   {"convolution", KernelKind::kConvolution},
                                                   {"convolution dx", KernelKind::kConvolutionInputGradient},
                                                   {"convolution dw", KernelKind::kConvolutionWeightGradient},
                                                   {"gemm", KernelKind::kGemm},
                                                   {"other", KernelKind::kOther}};
  std::ifstream file("core/op_cost/kernel_names_for_test.tsv");
  size_t num_names = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> fields = absl::StrSplit(line, '\t');
    ASSERT_EQ(fields.size(), 5) << line;
    const std::string& name = fields[4];
    const TensorCoreUse use = TensorCoreUseOf(name);
    const char* const tensor_cores = use == TensorCoreUse::kYes  ? "1"
                                     : use == TensorCoreUse::kNo ? "0"
                                                                 : "na";
    EXPECT_EQ(tensor_cores, fields[0]) << name;
    const std::optional<DType> dtype = KernelDType(name);
    EXPECT_EQ(dtype.has_value() ? std::string(Name(*dtype)) : "-", fields[1]) << name;
    EXPECT_EQ(KernelKindOf(name), kinds.at(fields[2])) << name;
    // A brief name keeps what tells it apart from others.
    EXPECT_EQ(BriefKernelName(name), fields[3]) << name;
    ++num_names;
  }
  EXPECT_GT(num_names, 40);
}

TEST(KernelName, FlashAttentionTellsWhetherItIsCausal) {
  const std::string traits = "<Traits<(int)64, cutlass::bfloat16_t, Flash_kernel_traits<(int)64>>, ";
  const std::string forward = "void pytorch_flash::flash_fwd_kernel" + traits;
  const std::string split = "void flash::flash_fwd_splitkv_kernel" + traits;
  const std::string backward = "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel" + traits;
  EXPECT_EQ(KernelIsCausal(forward + "(bool)0, (bool)1, (bool)0>(Params)"), true);
  EXPECT_EQ(KernelIsCausal(forward + "(bool)1, (bool)0, (bool)0>(Params)"), false);
  EXPECT_EQ(KernelIsCausal(forward + "false, true, false, true>(Params)"), true);
  EXPECT_EQ(KernelIsCausal(split + "(bool)1, (bool)0, (bool)1>(Params)"), true);
  EXPECT_EQ(KernelIsCausal(backward + "0, 1, 0, 1>(Params)"), true);
  // A window; and names that were cut, or tell nothing.
  EXPECT_EQ(KernelIsCausal(forward + "(bool)0, (bool)0, (bool)1>(Params)"), std::nullopt);
  EXPECT_EQ(KernelIsCausal("void flash::flash_fwd_kernel<Traits<(int)64"), std::nullopt);
  EXPECT_EQ(KernelIsCausal(forward + "(bool)0, (bool)1>(Params)"), std::nullopt);
  EXPECT_EQ(KernelIsCausal("flash_fwd_kernel"), std::nullopt);
  EXPECT_EQ(KernelIsCausal("cudnn_generated_fort_native_sdpa_sm90_flash_fprop"), std::nullopt);
}

TEST(KernelName, NvjetTellsWhatItWrites) {
  EXPECT_EQ(KernelResultDType("nvjet_qqtst_64x8"), DType::kBFloat16);
  EXPECT_EQ(KernelResultDType("nvjet_sm90_tss_64x8"), DType::kFloat32);
  EXPECT_EQ(KernelResultDType("nvjet_"), std::nullopt);
  EXPECT_EQ(KernelResultDType("nvjet_sm100"), std::nullopt);
  EXPECT_EQ(KernelResultDType("volta_sgemm_128x64_nn"), std::nullopt);
}

TEST(KernelName, MangledNamesAreDemangledAndOthersStay) {
  EXPECT_EQ(DemangledKernelName("_Z9axpy_kernIfEvPT_S1_i"), "void axpy_kern<float>(float*, float*, int)");
  for (const char* name : {"f", "_Z", "", "sm80_xmma_gemm_f32f32"})
    EXPECT_EQ(DemangledKernelName(name), name);
}

TEST(KernelName, ShortNameHasNoReturnTypeNamespaceTemplateArgumentOrParameter) {
  EXPECT_EQ(ShortKernelName(
                "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
                "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"),
            "vectorized_elementwise_kernel");
  EXPECT_EQ(
      ShortKernelName("void (anonymous namespace)::softmax_warp_forward<float, float, (bool)0>(float*)"),
      "softmax_warp_forward");
  EXPECT_EQ(ShortKernelName("std::enable_if<(bool)1, void>::type f<(int)16, a->b, c>(char *)"), "f");
  EXPECT_EQ(ShortKernelName("void f <int>"), "f");
  for (const char* name : {"volta_h884gemm_256x128_ldg8_nn", "", "<unnamed>", "(((", "a b", "voided_f"}) {
    EXPECT_EQ(ShortKernelName(name), name);
  }
}

TEST(KernelName, HostileNamesAreWordsToo) {
  for (const std::string& name :
       {std::string(), std::string("<"), std::string(">>>>"), std::string("("), std::string("a b\tc\n"),
        std::string("::"), std::string("<unnamed>::"), std::string("_Z"), std::string("_ZN"),
        std::string(100000, '<'), std::string("operator()<int>(int)"), std::string(1, '\0')}) {
    const std::string brief = BriefKernelName(name);
    EXPECT_FALSE(brief.empty());
    EXPECT_EQ(KernelIsCausal(name), std::nullopt);
    EXPECT_EQ(KernelResultDType(name), std::nullopt);
    EXPECT_EQ(brief.find_first_of(std::string(" \t\n\0", 4)), std::string::npos) << brief;
  }
}

}  // namespace
}  // namespace ott
