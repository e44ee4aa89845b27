// Run directories that tests make up.

#ifndef OTT_QUESTIONS_RIGHT_CROSSCHECK_RUN_FOR_TEST_H_
#define OTT_QUESTIONS_RIGHT_CROSSCHECK_RUN_FOR_TEST_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "ott/core/dump/dump_writer.h"
#include "ott/core/tensor/value.h"
#include "ott/dist/directory/run_directory.h"

namespace ott::crosscheck {

// Returns an empty run directory of this test.
inline std::string MakeRunForTest(const std::string& name, int world_size) {
  const std::string dir =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + "_" + name;
  std::filesystem::remove_all(dir);
  std::filesystem::create_directories(dir);
  RunInfo info;
  info.set_world_size(world_size);
  for (int rank = 0; rank < world_size; ++rank) info.add_hosts("node" + std::to_string(rank));
  EXPECT_TRUE(WriteRunInfo(dir, info).ok()) << dir;
  return dir;
}

inline void WriteTreeForTest(const std::string& run_dir, int rank, int64_t iteration, const Value& tree) {
  DumpContents contents;
  contents.iteration = iteration;
  contents.tensors.tree = &tree;
  contents.tensors.format = [](std::string_view) { return DumpFormat::kBinary; };
  std::filesystem::create_directories(DumpsDirectory(run_dir, rank));
  EXPECT_TRUE(WriteDump(DumpsDirectory(run_dir, rank) + "/" + std::to_string(iteration), contents).ok());
}

// Writes a rank's dump with "weights" of these elements, and "step".
inline void WriteDumpForTest(const std::string& run_dir, int rank, int64_t iteration,
                             const std::vector<float>& weights) {
  WriteTreeForTest(run_dir, rank, iteration,
                   ValueMap{{"step", iteration},
                            {"weights", TensorView(weights.data(), {static_cast<int64_t>(weights.size())})}});
}

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_CROSSCHECK_RUN_FOR_TEST_H_
