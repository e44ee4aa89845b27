#include "ott/core/base/config.h"

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

TEST(Config, AnErrorNamesFileLineAndColumn) {
  const std::string path = FileWith("run_dir: \"out\"\nstopwatch {\n  num_warmup_iterations: 5\n}\n");
  const auto config = LoadConfig(path);
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(config.status().message()), HasSubstr(path + ":3:24: "));
  EXPECT_THAT(std::string(config.status().message()), HasSubstr("num_warmup_iterations"));
  EXPECT_THAT(std::string(LoadConfig(FileWith("run_dir: '\\q'\nstopwatch { x: 1 }")).status().message()),
              HasSubstr("config.textproto:1:12: "))
      << "the first of two errors";
}

TEST(Config, ComesFromTheEnvironmentWhoseRunDirectoryReplacesThatOfTheFile) {
  for (const char* const run_dir : {static_cast<const char*>(nullptr), "", "out/environment"}) {
    unsetenv("OTT_RUN_DIR");
    if (run_dir != nullptr) setenv("OTT_RUN_DIR", run_dir, 1);
    for (const bool is_set : {false, true}) {
      is_set ? setenv("OTT_CONFIG", "", 1) : unsetenv("OTT_CONFIG");
      EXPECT_EQ(LoadConfigFromEnvironment()->DebugString(), "");
    }
    setenv("OTT_CONFIG", "/none/config.textproto", 1);
    const absl::Status missing = LoadConfigFromEnvironment().status();
    EXPECT_TRUE(absl::IsNotFound(missing));
    EXPECT_THAT(std::string(missing.message()), HasSubstr("/none/config.textproto"));
    setenv("OTT_CONFIG", FileWith("run_dir: 'out/file' stopwatch {}").c_str(), 1);
    EXPECT_TRUE(LoadConfigFromEnvironment().value().has_stopwatch());
    const bool replaces = run_dir != nullptr && *run_dir != '\0';
    EXPECT_EQ(LoadConfigFromEnvironment()->run_dir(), replaces ? run_dir : "out/file");
  }
  unsetenv("OTT_CONFIG");
  unsetenv("OTT_RUN_DIR");
}

}  // namespace
}  // namespace ott
