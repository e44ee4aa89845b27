#include "ott/core/base/config.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace ott {
namespace {

using ::testing::HasSubstr;

std::string FileWith(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/config.textproto";
  std::ofstream(path) << text;
  return path;
}

TEST(Config, IsReadFromProtobufText) {
  const auto config = LoadConfig(FileWith("run_dir: \"out\"\nstopwatch { num_warmup_iters: 5 }\n")).value();
  EXPECT_EQ(config.run_dir(), "out");
  EXPECT_EQ(config.stopwatch().num_warmup_iters(), 5);
  EXPECT_FALSE(config.has_nvtx());
}

TEST(Config, AnErrorNamesFileLineAndColumn) {
  const std::string path = FileWith("run_dir: \"out\"\nstopwatch {\n  num_warmup_iterations: 5\n}\n");
  const auto config = LoadConfig(path);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(config.status().message()), HasSubstr(path + ":3:24: "));
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("num_warmup_iterations"));
}

TEST(Config, AFileThatCannotBeReadIsNamed) {
  const auto missing = LoadConfig("/none/config.textproto");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("/none/config.textproto"));
  EXPECT_FALSE(LoadConfig("/").ok());
  // Opening a FIFO waits for who writes to it.
  const std::string fifo = ::testing::TempDir() + "/fifo.textproto";
  unlink(fifo.c_str());
  ASSERT_EQ(mkfifo(fifo.c_str(), 0666), 0);
  EXPECT_EQ(LoadConfig(fifo).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(Config, ComesFromTheEnvironmentWhoseRunDirectoryReplacesThatOfTheFile) {
  for (const char* const run_dir : {"", "out/environment"}) {
    setenv("OTT_RUN_DIR", run_dir, 1);
    unsetenv("OTT_CONFIG");
    EXPECT_FALSE(LoadConfigFromEnvironment().value().has_stopwatch());
    EXPECT_EQ(LoadConfigFromEnvironment()->run_dir(), "");
    setenv("OTT_CONFIG", FileWith("run_dir: 'out/file' stopwatch {}").c_str(), 1);
    EXPECT_TRUE(LoadConfigFromEnvironment().value().has_stopwatch());
    EXPECT_EQ(LoadConfigFromEnvironment()->run_dir(), *run_dir == '\0' ? "out/file" : run_dir);
  }
  unsetenv("OTT_CONFIG");
  unsetenv("OTT_RUN_DIR");
}

}  // namespace
}  // namespace ott
