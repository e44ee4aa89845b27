#include "tools/profile/capture_for_test.h"

#include <filesystem>

#include "sqlite3.h"

namespace ott::profile {

std::vector<std::string> Query(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_open_v2(path.c_str(), &database, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK) << path;
  EXPECT_EQ(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr), SQLITE_OK)
      << sqlite3_errmsg(database);
  std::vector<std::string> rows;
  while (sqlite3_step(statement) == SQLITE_ROW) {
    std::string row;
    for (int i = 0; i < sqlite3_column_count(statement); ++i) {
      const auto* const text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
      row += (i == 0 ? "" : "|") + std::string(text == nullptr ? "-" : text);
    }
    rows.push_back(row);
  }
  sqlite3_finalize(statement);
  sqlite3_close(database);
  return rows;
}

std::vector<std::string> Names(const std::string& path, int event_type) {
  return Query(
      path,
      "SELECT COALESCE(text, value) FROM NVTX_EVENTS LEFT JOIN StringIds ON id = textId WHERE eventType = " +
          std::to_string(event_type) + " ORDER BY start");
}

CaptureTest::CaptureTest()
    : directory_(::testing::TempDir() + "/" +
                 ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
  std::filesystem::create_directories(directory_);
  options_.output = directory_ + "/run.sqlite";
  options_.library = std::filesystem::absolute("tools/profile/libott_capture.so");
}

ProfiledProgram CaptureTest::Profile(const std::vector<std::string>& scenario) {
  options_.command = {kProgramForTest};
  options_.command.insert(options_.command.end(), scenario.begin(), scenario.end());
  return ProfileProgram(options_).value();
}

CaptureSummary CaptureTest::Capture(const std::vector<std::string>& scenario) {
  const ProfiledProgram program = Profile(scenario);
  EXPECT_EQ(program.captures.size(), 1u);
  return program.captures.at(0);
}

}  // namespace ott::profile
