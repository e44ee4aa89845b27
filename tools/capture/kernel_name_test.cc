#include "tools/capture/kernel_name.h"

#include "gtest/gtest.h"

namespace ott {
namespace {

TEST(KernelName, MangledNameIsDemangled) {
  EXPECT_EQ(DemangledKernelName("_Z9axpy_kernIfEvPT_S1_i"), "void axpy_kern<float>(float*, float*, int)");
}

TEST(KernelName, NameInCStaysAsItIs) {
  const char kName[] = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3";
  EXPECT_EQ(DemangledKernelName(kName), kName);
  EXPECT_EQ(ShortKernelName(kName), kName);
}

TEST(KernelName, ShortNameHasNoReturnTypeNamespaceTemplateArgumentOrParameter) {
  EXPECT_EQ(ShortKernelName(
                "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
                "std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)"),
            "vectorized_elementwise_kernel");
  EXPECT_EQ(
      ShortKernelName("void (anonymous namespace)::softmax_warp_forward<float, float, (bool)0>(float*)"),
      "softmax_warp_forward");
  EXPECT_EQ(ShortKernelName("kernel(int)"), "kernel");
  EXPECT_EQ(ShortKernelName("void f<(int)16, g(long)>(char *)"), "f");
}

TEST(KernelName, NameThatIsNoneStays) {
  EXPECT_EQ(ShortKernelName(""), "");
  EXPECT_EQ(ShortKernelName("<unnamed>"), "<unnamed>");
  EXPECT_EQ(ShortKernelName("((("), "(((");
}

}  // namespace
}  // namespace ott
