// Comparing files that are larger than memory.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "gtest/gtest.h"
#include "ott/core/compare/compare.h"
#include "ott/core/dump/dump_for_test.h"

namespace ott {
namespace {

TEST(CompareMemory, LargeDumpsNeedLittle) {
  constexpr int64_t kBytes = 1 << 30;
  const std::string reference = MakeTestDir(), current = MakeTestDir();
  for (const std::string& dir : {reference, current}) WriteSparseDump(dir, {kBytes / 8});
  // In a process of its own, whose memory, but for mapped files, is limited.
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {256 << 20, 256 << 20};
    const bool equal =
        setrlimit(RLIMIT_DATA, &limit) == 0 && CompareDumps(reference, current).verdict() == Verdict::kEqual;
    std::_Exit(equal ? 0 : 1);
  }
  int status = 0;
  rusage usage = {};
  ASSERT_EQ(wait4(child, &status, 0, &usage), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  // In KiB, with all pages of files that were resident at once.
  EXPECT_LT(usage.ru_maxrss, 256 << 10);
}

}  // namespace
}  // namespace ott
