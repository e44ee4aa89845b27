// Runs `ott prof`.

#include "ott/questions/kernels/prof_command.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/kineto/traces_for_test.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/answer/command_for_test.h"

namespace ott::kernels {
namespace {

// A run of two ranks, whose traces have one step of a product and an all-reduce.
std::string WriteRun() {
  const std::string run = ::testing::TempDir() + "/run";
  for (const int rank : {0, 1}) {
    std::filesystem::create_directories(RankDirectory(run, rank));
    EXPECT_TRUE(WriteFileAtomically(absl::StrCat(RankDirectory(run, rank), "/torch.rank_0000", rank, ".json"),
                                    kineto::RankTraceForTest(rank, 0, rank * 3000, 0, 1))
                    .ok());
  }
  return run;
}

TEST(ProfCommand, PrintsTheKernelsOfTheRankThatIsNamed) {
  const std::string run = WriteRun();
  const auto prof = [](const std::vector<std::string>& words) { return RunForTest(&AddProfCommand, words); };
  EXPECT_EQ(
      prof({"prof", run, "-c", "idx,op,kernel,sil,flops,rank", "--csv"}),
      std::pair(
          0, absl::StrCat("idx,op,kernel,sil,flops,rank\r\n"
                          "1,mm,ampere_sgemm_128x64_tn,1900000,12000000,0\r\n"
                          "2,record_param_comms,ncclDevKernel_AllReduce_Sum_f32_RING_LL,1000000,500000,0\r\n",
                          run, ": rank 0's trace of 2; --ranks names another\n", RankDirectory(run, 0),
                          "/torch.rank_00000.json (torch.profiler): 2 kernels, 0 copies and memsets, "
                          "3 ranges\n  2 kernels joined to an op\n")));
  const auto [code, sums] = prof({"prof", run, "--ranks", "1", "--group-by", "op", "--json"});
  EXPECT_EQ(code, 0);
  EXPECT_THAT(
      sums,
      testing::StartsWith(
          R"({"op":"record_param_comms","count":1,"sil":4000000,"share":67.797,"mean":4000000,"min":4000000,)"
          R"("max":4000000,"tc":0,"flops":500000,"bytes":4000000,"tflops":0.000125,"gbps":1,"known":100,"gap":0})"
          "\n"
          R"({"op":"mm","count":1,"sil":1900000,"share":32.203,"mean":1900000,"min":1900000,"max":1900000,"tc":0,)"
          R"("flops":12000000,"bytes":440000,"tflops":0.0063158,"gbps":0.23158,"known":100,"gap":0})"
          "\n"));
  EXPECT_THAT(prof({"prof", run, "--gpu", "none"}),
              testing::Pair(2, testing::HasSubstr("ott prof: no peaks of a GPU 'none'; there are ")));
  // 2^32 + 1 is not rank 1.
  EXPECT_EQ(
      prof({"prof", run, "--ranks", "4294967297"}),
      std::pair(2, absl::StrCat("ott prof: ", run, ": rank 4294967297 has no trace of torch.profiler\n")));
}

}  // namespace
}  // namespace ott::kernels
