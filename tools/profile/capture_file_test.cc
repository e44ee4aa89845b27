#include "tools/profile/capture_file.h"

#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "tools/profile/capture_for_test.h"

namespace ott::profile {
namespace {

class CaptureFileTest : public ::testing::Test {
 protected:
  CaptureFileTest() { std::filesystem::remove(path_); }

  // The one number that a query gives, to another reader of the file.
  int64_t Query(const std::string& sql) const { return std::stoll(profile::Query(path_, sql).at(0)); }

  std::unique_ptr<CaptureFile> Create() { return CaptureFile::Create(path_).value(); }
  static void Insert(CaptureFile& file, int pid, std::string_view name) {
    file.Insert(Table::kProcesses, Column{"globalPid", pid}, Column{"pid", pid}, Column{"name", name});
  }

  const std::string path_ = ::testing::TempDir() + "/" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".sqlite";
};

TEST_F(CaptureFileTest, RowsAreThereAfterFlush) {
  const auto file = Create();
  Insert(*file, 1, "first");
  EXPECT_EQ(Query("SELECT COUNT(*) FROM PROCESSES"), 0);
  EXPECT_TRUE(file->Flush().ok());
  EXPECT_EQ(Query("SELECT COUNT(*) FROM PROCESSES"), 1);
  EXPECT_FALSE(std::filesystem::exists(path_ + "-journal"));
}

TEST_F(CaptureFileTest, AColumnThatTheTableDoesNotHaveIsAnError) {
  const auto file = Create();
  file->Insert(Table::kProcesses, Column{"globalPid", 1}, Column{"pids", 2});
  const absl::Status status = file->Flush();
  EXPECT_NE(status.message().find("pids"), std::string::npos) << status;
}

TEST_F(CaptureFileTest, ColumnsTakeTheirValuesByName) {
  const auto file = Create();
  file->Insert(Table::kProcesses, Column{"pid", 2}, Column{"globalPid", 1});
  file->Insert(Table::kProcesses, Column{"globalPid", 3}, Column{"pid", 4});
  EXPECT_TRUE(file->Flush().ok());
  EXPECT_EQ(Query("SELECT SUM(pid) FROM PROCESSES"), 6);
  EXPECT_EQ(Query("SELECT COUNT(*) FROM PROCESSES WHERE name IS NULL"), 2);
}

// Instead of a disk that is full, which is hard to come by: no file may be longer.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    EXPECT_EQ(getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit limit = {bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FileSizeLimit() {
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0);
    signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  const sighandler_t handler_ = signal(SIGXFSZ, SIG_IGN);
};

TEST_F(CaptureFileTest, FullDiskLeavesNoFileWithoutTables) {
  const FileSizeLimit limit(100);
  EXPECT_FALSE(CaptureFile::Create(path_).ok());
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(CaptureFileTest, FullDiskLosesWhatCameSinceTheLastFlushAndNoMore) {
  const auto file = Create();
  Insert(*file, 1, "before");
  ASSERT_TRUE(file->Flush().ok());
  const int64_t early = file->StringId("early");
  ASSERT_TRUE(file->Flush().ok());

  int64_t lost;
  {
    const FileSizeLimit limit(std::filesystem::file_size(path_));
    lost = file->StringId("lost");
    Insert(*file, 2, std::string(100'000, 'x'));
    EXPECT_EQ(file->num_pending_rows(), 2);
    const absl::Status status = file->Flush();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(path_), std::string::npos) << status;
    EXPECT_EQ(file->num_pending_rows(), 0);
  }

  Insert(*file, 3, "after");
  EXPECT_EQ(file->StringId("early"), early);
  EXPECT_EQ(file->StringId("next"), lost);
  EXPECT_TRUE(file->Flush().ok());
  EXPECT_EQ(Query("SELECT COUNT(*) FROM PROCESSES WHERE name IN ('before', 'after')"), 2);
  EXPECT_EQ(Query("SELECT COUNT(*) FROM PROCESSES"), 2);
  EXPECT_EQ(Query("SELECT COUNT(*) FROM StringIds WHERE value IN ('early', 'next')"), 2);
}

TEST_F(CaptureFileTest, ReaderDelaysTheFlushAndLosesNothing) {
  const auto file = Create();
  sqlite3* reader = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &reader, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  sqlite3_exec(reader, "BEGIN; SELECT COUNT(*) FROM PROCESSES", nullptr, nullptr, nullptr);
  Insert(*file, 1, "name");
  EXPECT_EQ(file->Flush().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(file->num_pending_rows(), 1);
  sqlite3_close(reader);
  EXPECT_TRUE(file->Flush().ok());
  EXPECT_EQ(Query("SELECT COUNT(*) FROM PROCESSES"), 1);
}

TEST_F(CaptureFileTest, FileThatIsThereIsNotTouched) {
  std::ofstream(path_) << "precious";
  EXPECT_EQ(CaptureFile::Create(path_).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(std::filesystem::file_size(path_), 8u);
}

}  // namespace
}  // namespace ott::profile
