#include "ott/core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/far_files.h"
#include "ott/core/base/file_limit.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

FarFiles* g_far_files = nullptr;

FarFiles::Kind FarKindOf(const std::string& path) {
  return g_far_files == nullptr ? FarFiles::Kind::kNone : g_far_files->KindOf(path);
}

absl::Status FileError(int error, absl::string_view action, absl::string_view path) {
  absl::string_view way_out;
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      way_out = "; free some space or choose another directory";
      break;
    case EFBIG:
      way_out = "; raise the limit of files (ulimit -f) or choose another directory";
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      way_out = "; check the permissions or choose another directory";
      break;
    case ENOMEM:
      way_out = "; free some memory, or raise the limit of mappings (sysctl vm.max_map_count)";
      break;
    case EMFILE:
    case ENFILE:
      way_out = "; raise the limit of open files (ulimit -n)";
      break;
  }
  const absl::Status status = absl::ErrnoToStatus(error, absl::StrCat(path, ": cannot ", action));
  return absl::Status(status.code(), absl::StrCat(status.message(), way_out));
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return path.substr(0, slash == 0 ? 1 : slash);
}

absl::StatusOr<int> OpenForReading(const std::string& path) {
  // Opening a FIFO waits for who writes to it, unless told not to. Regular files know no difference.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return FileError(errno, "open", path);
  return fd;
}

// The size of an open regular file.
absl::StatusOr<int64_t> SizeOf(int fd, const std::string& path) {
  struct stat info;
  if (fstat(fd, &info) != 0) return FileError(errno, "stat", path);
  if (!S_ISREG(info.st_mode))
    return absl::FailedPreconditionError(absl::StrCat(path, ": not a regular file"));
  return info.st_size;
}

absl::Status SyncDirectory(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return FileError(errno, "open", path);
  const int result = fsync(fd);
  const int error = errno;
  close(fd);
  return result == 0 ? absl::OkStatus() : FileError(error, "fsync", path);
}

}  // namespace

void SetFarFiles(FarFiles* files) { g_far_files = files; }

FarFiles* GetFarFiles() { return g_far_files; }

absl::StatusOr<std::unique_ptr<AtomicFile>> AtomicFile::Create(std::string path) {
  // A name of its own, short enough wherever the file's is. Processes of other machines and containers, which
  // may have the same number, are found out by O_EXCL.
  static std::atomic<uint64_t> counter{0};
  std::string temporary_path;
  int fd = -1;
  do {
    temporary_path = absl::StrCat(DirectoryOf(path), "/.ott_", getpid(), "_", counter++, ".tmp");
    fd = open(temporary_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EEXIST);
  if (fd < 0) return FileError(errno, "create", path);
  return std::unique_ptr<AtomicFile>(new AtomicFile(std::move(path), std::move(temporary_path), fd));
}

AtomicFile::AtomicFile(std::string path, std::string temporary_path, int fd)
    : path_(std::move(path)), temporary_path_(std::move(temporary_path)), fd_(fd) {}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_path_.empty()) unlink(temporary_path_.c_str());
}

absl::Status AtomicFile::Append(std::string_view bytes) {
  const FileLimitIsAnError no_signal;
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return FileError(errno, "write", path_);
    if (written > 0) bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit(bool sync) {
  if (sync && fsync(fd_) != 0) return FileError(errno, "fsync", path_);
  // Some file systems report a full disk only here.
  if (close(std::exchange(fd_, -1)) != 0) return FileError(errno, "write", path_);
  if (rename(temporary_path_.c_str(), path_.c_str()) != 0) return FileError(errno, "rename to", path_);
  temporary_path_.clear();
  return sync ? SyncDirectory(DirectoryOf(path_)) : absl::OkStatus();
}

absl::Status WriteFileAtomically(const std::string& path, std::string_view contents, bool sync) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  OTT_RETURN_IF_ERROR(file->Append(contents));
  return file->Commit(sync);
}

bool PathExists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 || (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG) ||
         FarKindOf(path) != FarFiles::Kind::kNone;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? S_ISDIR(info.st_mode)
                                        : FarKindOf(path) == FarFiles::Kind::kDirectory;
}

bool IsRegularFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? S_ISREG(info.st_mode) : FarKindOf(path) == FarFiles::Kind::kFile;
}

absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) {
  std::vector<std::string> names;
  if (g_far_files != nullptr) names = g_far_files->List(path);
  std::error_code error;
  for (std::filesystem::directory_iterator entry(path, error), end; entry != end; entry.increment(error))
    names.push_back(entry->path().filename().string());
  if (error && FarKindOf(path) != FarFiles::Kind::kDirectory) {
    return absl::NotFoundError(absl::StrCat(path, ": cannot be listed: ", error.message()));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string DescribeFiles(const std::string& path, int depth) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return "";
  std::string files =
      absl::StrCat(info.st_ino, " ", info.st_size, " ", info.st_mtim.tv_sec, " ", info.st_mtim.tv_nsec, "\n");
  if (!S_ISDIR(info.st_mode) || depth == 0) return files;
  for (const std::string& name : ListDirectory(path).value_or(std::vector<std::string>()))
    absl::StrAppend(&files, name, "/", DescribeFiles(absl::StrCat(path, "/", name), depth - 1));
  return files;
}

std::string FarHostOf(const std::string& path) {
  struct stat info;
  return g_far_files == nullptr || stat(path.c_str(), &info) == 0 ? "" : g_far_files->HostOf(path);
}

absl::Status CheckIsHere(const std::string& path) {
  const std::string host = FarHostOf(path);
  if (host.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": is on ", host, ", and files of its kind are read where they are; ask there"));
}

absl::StatusOr<std::string> ReadFile(const std::string& path, int64_t max_bytes) {
  if (struct stat info; stat(path.c_str(), &info) != 0 && FarKindOf(path) == FarFiles::Kind::kFile) {
    return g_far_files->Read(path, max_bytes);
  }
  OTT_ASSIGN_OR_RETURN(const int fd, OpenForReading(path));
  const auto close_file = absl::MakeCleanup([fd] { close(fd); });
  OTT_ASSIGN_OR_RETURN(const int64_t size, SizeOf(fd, path));
  if (size > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(path, ": ", size, " bytes, which is more than the ", max_bytes, " that it may have"));
  }
  std::string contents(size, '\0');
  size_t filled = 0;
  while (filled < contents.size()) {
    const ssize_t count = read(fd, &contents[filled], contents.size() - filled);
    if (count < 0 && errno != EINTR) return FileError(errno, "read", path);
    if (count == 0)
      return absl::DataLossError(absl::StrCat(path, ": cut to ", filled, " bytes while it was read"));
    if (count > 0) filled += count;
  }
  return contents;
}

absl::Status MakeDirectories(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string directory = path.substr(0, end);
    if (mkdir(directory.c_str(), 0777) != 0) {
      const int error = errno;
      struct stat info;
      if (stat(directory.c_str(), &info) != 0) return FileError(error, "make the directory", directory);
      if (!S_ISDIR(info.st_mode)) {
        return absl::FailedPreconditionError(
            absl::StrCat(directory, ": is a file where a directory is needed"));
      }
    }
    if (end == std::string::npos) return absl::OkStatus();
  }
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  OTT_RETURN_IF_ERROR(CheckIsHere(path));
  OTT_ASSIGN_OR_RETURN(const int fd, OpenForReading(path));
  const auto close_file = absl::MakeCleanup([fd] { close(fd); });
  OTT_ASSIGN_OR_RETURN(const int64_t size, SizeOf(fd, path));
  void* data = nullptr;
  if (size > 0) {
    data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) return FileError(errno, "map", path);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(static_cast<const char*>(data), size));
}

MappedFile::~MappedFile() {
  if (size_ > 0) munmap(const_cast<char*>(data_), size_);
}

}  // namespace ott
