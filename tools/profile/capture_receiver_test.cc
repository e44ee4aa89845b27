#include "tools/profile/capture_receiver.h"

#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"

namespace ott::profile {
namespace {

TEST(CapturePath, HasTheRankAndOfFurtherProcessesTheirIds) {
  for (const auto& [output, rank, number, path] : std::vector<std::tuple<std::string, int, int, std::string>>{
           {"out/run.sqlite", -1, 0, "out/run.sqlite"},
           {"run", -1, 0, "run"},
           {"out/run.sqlite", 3, 0, "out/run.rank_00003.sqlite"},
           {"out.d/run", 0, 0, "out.d/run.rank_00000"},
           {"run.sqlite", -1, 1, "run.pid_1234.sqlite"},
           {"run.sqlite", 123456, 1, "run.rank_123456.pid_1234.sqlite"},
           {"run.sqlite", -1, 2, "run.pid_1234_2.sqlite"},
           // A hidden file has no extension.
           {"out/.run", 0, 0, "out/.run.rank_00000"},
           {".run", 0, 0, ".run.rank_00000"}}) {
    EXPECT_EQ(CapturePath(output, rank, 1234, number), path);
  }
}

}  // namespace
}  // namespace ott::profile
