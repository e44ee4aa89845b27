#include "ott/core/base/file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ott/core/base/far_files.h"

namespace ott {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;

// An empty directory for one test.
std::string MakeTestDir() {
  std::string dir = testing::TempDir() + "/file_test_XXXXXX";
  EXPECT_NE(mkdtemp(dir.data()), nullptr);
  return dir;
}

std::vector<std::string> ListDir(const std::string& path) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    names.push_back(entry.path().filename());
  return names;
}

TEST(File, WhatIsWrittenLastIsReadAndMapped) {
  const size_t num_open_files = ListDir("/proc/self/fd").size();
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(MakeTestDir());
  const std::string path = "file";
  for (const std::string& contents :
       {std::string("a longer text"), std::string("a\0b\n", 4), std::string()}) {
    ASSERT_TRUE(WriteFileAtomically(path, contents, /*sync=*/true).ok());
    const auto size = static_cast<int64_t>(contents.size());
    EXPECT_EQ(ReadFile(path).value(), contents);
    EXPECT_EQ(ReadFile(path, size).value(), contents);
    EXPECT_EQ(ReadFile(path, size - 1).status(),
              absl::ResourceExhaustedError(absl::StrCat("file: ", size, " bytes, which is more than the ",
                                                        size - 1, " that it may have")));
    const std::shared_ptr<const MappedFile> file = MappedFile::Open(path).value();
    EXPECT_EQ(std::string(file->data(), file->size()), contents);
    EXPECT_TRUE(AtomicFile::Create("another").ok());
  }
  // Its holes would take all memory.
  ASSERT_EQ(truncate(path.c_str(), int64_t{8} << 40), 0);
  EXPECT_TRUE(absl::IsResourceExhausted(ReadFile(path).status()));
  std::filesystem::current_path(before);
  EXPECT_EQ(ListDir("/proc/self/fd").size(), num_open_files);
  std::stringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  EXPECT_THAT(maps.str(), testing::Not(HasSubstr("/file_test_")));
}

TEST(File, AFileThatIsReplacedIsDescribedAsAnotherOne) {
  const std::string dir = MakeTestDir();
  ASSERT_TRUE(MakeDirectories(dir + "/a/b").ok());
  ASSERT_TRUE(WriteFileAtomically(dir + "/a/b/file", "same").ok());
  const std::string shallow = DescribeFiles(dir, 2);
  const std::string deep = DescribeFiles(dir, 3);
  const std::string file = DescribeFiles(dir + "/a/b/file", 0);
  std::ofstream(dir + "/a/b/file") << "longer";
  EXPECT_EQ(DescribeFiles(dir, 2), shallow);
  EXPECT_NE(DescribeFiles(dir, 3), deep);
  EXPECT_NE(DescribeFiles(dir + "/a/b/file", 0), file);
  EXPECT_EQ(DescribeFiles(dir + "/none", 1), "");
}

TEST(File, IsThereOnlyIfItIsCommitted) {
  const std::string dir = MakeTestDir();
  std::unique_ptr<AtomicFile> file = AtomicFile::Create(dir + "/file").value();
  ASSERT_TRUE(file->Append("contents").ok());
  const std::vector<std::string> before = ListDir(dir);
  EXPECT_THAT(before, ElementsAre(StartsWith(".ott_")));
  ASSERT_TRUE(file->Commit().ok());
  EXPECT_THAT(ListDir(dir), ElementsAre("file"));
  // Another process may take its name.
  std::ofstream(dir + "/" + before.at(0)) << "theirs";
  file.reset();
  ASSERT_TRUE(AtomicFile::Create(dir + "/another").value()->Append("contents").ok());
  EXPECT_THAT(ListDir(dir), UnorderedElementsAre("file", before.at(0)));
}

TEST(File, WhatAProcessOfTheSameNumberOnAnotherMachineWritesIsLeftAlone) {
  const std::string dir = MakeTestDir();
  std::vector<std::string> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(dir + "/.ott_" + std::to_string(getpid()) + "_" + std::to_string(i) + ".tmp");
    std::ofstream(others.back()) << "theirs";
  }
  ASSERT_TRUE(WriteFileAtomically(dir + "/file", "ours").ok());
  EXPECT_EQ(ReadFile(dir + "/file").value(), "ours");
  for (const std::string& other : others) EXPECT_EQ(ReadFile(other).value_or("gone"), "theirs");
}

TEST(File, LimitOnFilesIsAnErrorThatSaysWhatToDoAndEndsNothing) {
  const std::string dir = MakeTestDir();
  std::unique_ptr<AtomicFile> file = AtomicFile::Create(dir + "/file").value();
  rlimit original;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &original), 0);
  rlimit small = original;
  small.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  absl::Status status;
  sigset_t limit, pending, blocked, mask_before;
  sigemptyset(&limit);
  sigaddset(&limit, SIGXFSZ);
  const timespec at_once = {};
  // A signal that waits already goes on waiting.
  for (const bool waits : {false, true}) {
    pthread_sigmask(waits ? SIG_BLOCK : SIG_UNBLOCK, &limit, &mask_before);
    if (waits) raise(SIGXFSZ);
    status = file->Append(std::string(2 << 20, 'x'));
    sigpending(&pending);
    EXPECT_EQ(sigismember(&pending, SIGXFSZ), waits);
    sigtimedwait(&limit, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &mask_before, &blocked);
    EXPECT_EQ(sigismember(&blocked, SIGXFSZ), waits);
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &original), 0);
  EXPECT_THAT(std::string(status.message()), HasSubstr(dir + "/file: cannot write: File too large"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("choose another directory"));
  file.reset();
  EXPECT_THAT(ListDir(dir), IsEmpty());
}

TEST(File, MissingFileIsNotFoundWithItsPath) {
  const absl::Status status = ReadFile("/no/such/file").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("/no/such/file: cannot open: No such file or directory"));
  EXPECT_EQ(MappedFile::Open("/no/such/file").status(), status);
  EXPECT_TRUE(absl::IsNotFound(WriteFileAtomically("/no/such/file", "")));
}

TEST(File, DirectoriesAreMadeWithTheirParentsAndOthersMayDoWhatTheMaskLeavesThem) {
  const std::string dir = MakeTestDir();
  for (const mode_t mask : {0u, 027u}) {
    const std::string folder = dir + "/" + std::to_string(mask);
    const mode_t before = umask(mask);
    for (const char* const path : {"/a/b//c/", "/a/b/c"}) ASSERT_TRUE(MakeDirectories(folder + path).ok());
    ASSERT_TRUE(WriteFileAtomically(folder + "/a/b/file", "").ok());
    umask(before);
    for (const auto& [path, mode] :
         {std::pair("/a", S_IFDIR | 0777u), {"/a/b/c", S_IFDIR | 0777u}, {"/a/b/file", S_IFREG | 0666u}}) {
      struct stat info;
      ASSERT_EQ(stat((folder + path).c_str(), &info), 0);
      EXPECT_EQ(info.st_mode, mode & ~mask) << path;
    }
  }
}

TEST(File, DirectoryWhereAFileIsIsAnError) {
  const std::string dir = MakeTestDir();
  ASSERT_TRUE(WriteFileAtomically(dir + "/a", "").ok());
  EXPECT_EQ(MakeDirectories(dir + "/a/b").message(), dir + "/a: is a file where a directory is needed");
  EXPECT_TRUE(IsDirectory(dir) && !IsDirectory(dir + "/a") && IsRegularFile(dir + "/a"));
}

TEST(ReadFile, OfAFifoOrADirectoryIsAnErrorAtOnce) {
  const std::string path = ::testing::TempDir() + "/fifo";
  unlink(path.c_str());
  ASSERT_EQ(mkfifo(path.c_str(), 0666), 0);
  for (const std::string& other : {path, ::testing::TempDir()}) {
    const absl::Status refused = absl::FailedPreconditionError(other + ": not a regular file");
    EXPECT_EQ(ReadFile(other).status(), refused);
    EXPECT_EQ(MappedFile::Open(other).status(), refused);
    EXPECT_TRUE(PathExists(other));
    EXPECT_FALSE(IsRegularFile(other));
  }
}

// Has a file and a folder, and a file that is here as well.
struct FarForTest : FarFiles {
  std::string dir = MakeTestDir();

  Kind KindOf(const std::string& path) const override {
    if (path == dir + "/file" || path == dir + "/both") return Kind::kFile;
    return path == dir + "/folder" ? Kind::kDirectory : Kind::kNone;
  }
  std::string HostOf(const std::string& path) const override { return path == dir + "/none" ? "" : "node7"; }
  std::vector<std::string> List(const std::string& path) const override {
    return path == dir ? std::vector<std::string>{"both", "file", "folder"} : std::vector<std::string>();
  }
  absl::StatusOr<std::string> Read(const std::string&, int64_t max_bytes) override {
    return absl::StrCat("far, at most ", max_bytes);
  }
};

TEST(FarFiles, AreFoundAndReadWholeUnlessTheyAreHere) {
  FarForTest far;
  const std::string &dir = far.dir, file = dir + "/file", folder = dir + "/folder", both = dir + "/both";
  ASSERT_TRUE(WriteFileAtomically(both, "near").ok());
  SetFarFiles(&far);
  for (const std::string& path : {file, folder, both, dir, dir + "/none"}) {
    EXPECT_EQ(PathExists(path), path != dir + "/none") << path;
    EXPECT_EQ(IsRegularFile(path), path == file || path == both) << path;
    EXPECT_EQ(IsDirectory(path), path == folder || path == dir) << path;
    EXPECT_EQ(ListDirectory(path).ok(), path == folder || path == dir) << path;
    EXPECT_EQ(FarHostOf(path), path == file || path == folder ? "node7" : "") << path;
  }
  EXPECT_THAT(*ListDirectory(dir), ElementsAre("both", "file", "folder"));
  EXPECT_EQ(*ReadFile(file, 9), "far, at most 9");
  EXPECT_EQ(*ReadFile(both), "near");
  EXPECT_TRUE(MappedFile::Open(both).ok());
  EXPECT_EQ(MappedFile::Open(file).status().message(),
            file + ": is on node7, and files of its kind are read where they are; ask there");
  SetFarFiles(nullptr);
  EXPECT_FALSE(PathExists(file) || PathExists(folder));
}

TEST(PathExists, NeverThrows) {
  const std::string loop = ::testing::TempDir() + "/loop";
  unlink(loop.c_str());
  ASSERT_EQ(symlink(loop.c_str(), loop.c_str()), 0);
  const std::string too_long(100000, 'x');
  for (const std::string& path : {loop, loop + "/file", too_long}) {
    EXPECT_EQ(PathExists(path), path != too_long);
    EXPECT_FALSE(IsDirectory(path));
    EXPECT_FALSE(ReadFile(path).ok());
  }
  // The last lies below a file.
  for (const char* const none : {"", "/no/such", "/proc/self/comm/file"})
    EXPECT_FALSE(PathExists(none)) << none;
}

}  // namespace
}  // namespace ott
