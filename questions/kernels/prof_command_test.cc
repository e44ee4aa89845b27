// Runs `ott prof`.

#include "ott/questions/kernels/prof_command.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/kineto/traces_for_test.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::kernels {
namespace {

struct Printed {
  int exit_code = -1;
  std::string out;
  std::string err;
};

Printed Prof(std::vector<std::string> words) {
  CLI::App app;
  Printed printed;
  AddProfCommand({app, &printed.exit_code, nullptr});
  words.insert(words.begin(), "prof");
  std::reverse(words.begin(), words.end());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  app.parse(words);
  printed.out = testing::internal::GetCapturedStdout();
  printed.err = testing::internal::GetCapturedStderr();
  return printed;
}

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
  const Printed first = Prof({run, "-c", "idx,op,kernel,sil,flops,rank", "--csv"});
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_EQ(first.out,
            "idx,op,kernel,sil,flops,rank\r\n"
            "1,mm,ampere_sgemm_128x64_tn,1900000,12000000,0\r\n"
            "2,record_param_comms,ncclDevKernel_AllReduce_Sum_f32_RING_LL,1000000,500000,0\r\n");
  EXPECT_EQ(first.err,
            absl::StrCat(run, ": rank 0's trace of 2; --ranks names another\n", RankDirectory(run, 0),
                         "/torch.rank_00000.json (torch.profiler): 2 kernels, 0 copies and memsets, "
                         "3 ranges\n  2 kernels joined to an op\n"));
  const Printed second = Prof({run, "--ranks", "1", "--group-by", "op", "--json"});
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_EQ(
      second.out,
      R"({"op":"record_param_comms","count":1,"sil":4000000,"share":67.797,"mean":4000000,"min":4000000,)"
      R"("max":4000000,"tc":0,"flops":500000,"bytes":4000000,"tflops":0.000125,"gbps":1,"known":100,"gap":0})"
      "\n"
      R"({"op":"mm","count":1,"sil":1900000,"share":32.203,"mean":1900000,"min":1900000,"max":1900000,"tc":0,)"
      R"("flops":12000000,"bytes":440000,"tflops":0.0063158,"gbps":0.23158,"known":100,"gap":0})"
      "\n");
  // 2^32 + 1 is not rank 1.
  const Printed none = Prof({run, "--ranks", "4294967297"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_EQ(none.err, absl::StrCat("ott prof: ", run, ": rank 4294967297 has no trace of torch.profiler\n"));
}

}  // namespace
}  // namespace ott::kernels
