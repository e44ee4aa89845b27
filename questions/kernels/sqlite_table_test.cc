#include "ott/questions/kernels/sqlite_table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "ott/questions/kernels/capture_for_test.h"

namespace ott::kernels {
namespace {

// Returns true if another process than this one could write the file now.
bool OthersCanWrite(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    // SQLite's writers and readers exclude each other here.
    struct flock range = {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = 0x40000002;
    range.l_len = 510;
    const int fd = open(path.c_str(), O_RDWR);
    _exit(fd >= 0 && fcntl(fd, F_GETLK, &range) == 0 && range.l_type == F_UNLCK ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status == 0;
}

TEST(SqliteTable, OthersCannotWriteAFileThatIsOpen) {
  const std::string path = CaptureSql().Range(1, 2, 3, 4, "range").Write("locked.sqlite");
  EXPECT_TRUE(OthersCanWrite(path));
  auto file = SqliteFile::Open(path).value();
  EXPECT_FALSE(OthersCanWrite(path));
  file.reset();
  EXPECT_TRUE(OthersCanWrite(path));
}

TEST(SqliteTable, AFileThatIsCutWhileItIsReadIsDamaged) {
  CaptureSql sql;
  for (int64_t i = 0; i < 2000; ++i) sql.Range(1, 2, i, i, std::string(200, 'x'));
  const std::string path = sql.Write("cut_while_read.sqlite");
  const auto file = SqliteFile::Open(path).value();
  struct stat status;
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  int64_t num_rows = 0;
  const absl::Status read = file->Scan("NVTX_EVENTS", {"start"}, [&](const SqliteRow&) {
    if (++num_rows == 100) {
      EXPECT_EQ(truncate(path.c_str(), status.st_size / 2), 0);
    }
  });
  EXPECT_EQ(read.code(), absl::StatusCode::kDataLoss) << read;
  EXPECT_LT(num_rows, 2000);
}

}  // namespace
}  // namespace ott::kernels
