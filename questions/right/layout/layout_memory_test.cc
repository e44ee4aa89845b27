// Tensors that are larger than the memory that comparing them takes.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "ott/core/dump/dump_for_test.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/right/crosscheck/run_for_test.h"
#include "ott/questions/right/layout/check_layout.h"

namespace ott::crosscheck {
namespace {

void WriteRank(const std::string& run_dir, int rank, int64_t rows, int64_t columns) {
  const std::string dir = DumpPath(run_dir, rank, 0);
  std::filesystem::create_directories(dir);
  WriteSparseDump(dir, {rows, columns});
}

TEST(LayoutMemory, LargeTensorsNeedLittle) {
  // 512 MiB in each run; in b transposed, so that no order of reading suits both.
  constexpr int64_t kRows = 8192;
  constexpr int64_t kColumns = 8192;
  const std::string a = MakeRunForTest("a", 1);
  const std::string b = MakeRunForTest("b", 2);
  WriteRank(a, 0, kRows, kColumns);
  for (const int rank : {0, 1}) WriteRank(b, rank, kColumns / 2, kRows);
  // Either of them may be the one that the other is compared with.
  for (const bool transposed_first : {false, true}) {
    Layout layout;
    RunLayout& transposed = transposed_first ? *layout.mutable_a() : *layout.mutable_b();
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
        R"(mesh { axes { name: "tensor" size: 2 } }
           tensors { path: "*" transpose: [1, 0] split { dim: 1 axis: "tensor" } })",
        &transposed));
    // In a process of its own, whose memory, but for mapped files, is limited.
    const pid_t child = fork();
    if (child == 0) {
      const rlimit limit = {64 << 20, 64 << 20};
      const bool limited = setrlimit(RLIMIT_DATA, &limit) == 0;
      const auto verdicts = CheckLayout(transposed_first ? b : a, transposed_first ? a : b, layout, {});
      std::_Exit(limited && verdicts.ok() && verdicts->front().outcome() == BITWISE_EQUAL ? 0 : 1);
    }
    int status = 0;
    rusage usage = {};
    ASSERT_EQ(wait4(child, &status, 0, &usage), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    // In KiB, with all pages of files that were resident at once.
    RecordProperty(transposed_first ? "peak_kib_transposed_first" : "peak_kib",
                   static_cast<int>(usage.ru_maxrss));
    EXPECT_LT(usage.ru_maxrss, 96 << 10) << transposed_first;
  }
}

}  // namespace
}  // namespace ott::crosscheck
