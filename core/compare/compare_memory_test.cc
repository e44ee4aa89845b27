// Comparing files that are larger than memory.

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ott/core/base/file.h"
#include "ott/core/compare/compare.h"

namespace ott {
namespace {

// Makes a sparse file of int64 zeros, like Python's.
std::string MakeSparseDump(int64_t num_bytes) {
  std::string dir = testing::TempDir() + "/compare_memory_test_XXXXXX";
  EXPECT_NE(mkdtemp(dir.data()), nullptr);
  const std::string blob = dir + "/[tensors.json]w.bin";
  EXPECT_EQ(WriteFileAtomically(dir + "/tensors.json", "{\"w\": \"w.bin\"}"), absl::OkStatus());
  EXPECT_EQ(WriteFileAtomically(blob, ""), absl::OkStatus());
  EXPECT_EQ(truncate(blob.c_str(), num_bytes), 0);
  EXPECT_EQ(
      WriteFileAtomically(blob + ".meta.json", absl::StrCat("{\"file_data_shape\": [", num_bytes / 8,
                                                            "], \"file_data_dtype\": \"torch.int64\"}")),
      absl::OkStatus());
  return dir;
}

TEST(CompareMemory, LargeDumpsNeedLittle) {
  constexpr int64_t kBytes = 1 << 30;
  const std::string reference = MakeSparseDump(kBytes);
  const std::string current = MakeSparseDump(kBytes);
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
