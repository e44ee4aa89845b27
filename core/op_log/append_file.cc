#include "ott/core/op_log/append_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file_limit.h"
#include "ott/core/base/status_macros.h"

namespace ott::internal {
namespace {

// Windows grow from the first to the second.
constexpr int64_t kSmallestWindow = int64_t{256} << 10;
constexpr int64_t kLargestWindow = int64_t{64} << 20;

absl::Status SystemError(const std::string& path, const char* what, int error) {
  const std::string message = absl::StrCat(path, ": ", what, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) return absl::ResourceExhaustedError(message);
  if (error == EEXIST) return absl::AlreadyExistsError(message);
  return absl::InternalError(message);
}

}  // namespace

AppendFile::AppendFile(std::string path, int fd)
    : path_(std::move(path)), process_(getpid()), fd_(fd), next_window_size_(kSmallestWindow) {}

absl::StatusOr<std::unique_ptr<AppendFile>> AppendFile::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd < 0) return SystemError(path, "cannot be made", errno);
  return std::unique_ptr<AppendFile>(new AppendFile(path, fd));
}

AppendFile::~AppendFile() {
  if (getpid() == process_) Close().IgnoreError();
}

void AppendFile::Unmap() {
  if (window_ != nullptr) munmap(window_, window_size_);
  window_ = nullptr;
}

absl::Status AppendFile::Map(int64_t num_bytes) {
  const int64_t page = sysconf(_SC_PAGESIZE);
  const int64_t begin = end_ / page * page;
  int64_t size = std::max(next_window_size_, (end_ - begin + num_bytes + page - 1) / page * page);
  const FileLimitIsAnError no_signal;
  int error = posix_fallocate(fd_, begin, size);
  if (error == ENOSPC) {
    // Takes what little there is.
    size = (end_ - begin + num_bytes + page - 1) / page * page;
    error = posix_fallocate(fd_, begin, size);
  }
  if (error != 0) return SystemError(path_, "no room for more", error);
  void* const window = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, begin);
  if (window == MAP_FAILED) return SystemError(path_, "cannot be mapped", errno);
  Unmap();
  window_ = static_cast<char*>(window);
  window_begin_ = begin;
  window_size_ = size;
  next_window_size_ = std::min(2 * next_window_size_, kLargestWindow);
  return absl::OkStatus();
}

absl::Status AppendFile::Append(std::string_view bytes) {
  if (getpid() != process_) return absl::OkStatus();
  if (fd_ < 0) return absl::FailedPreconditionError(absl::StrCat(path_, ": closed"));
  const auto size = static_cast<int64_t>(bytes.size());
  if (window_ == nullptr || end_ + size > window_begin_ + window_size_) OTT_RETURN_IF_ERROR(Map(size));
  char* const place = window_ + (end_ - window_begin_);
  std::memcpy(place + 4, bytes.data() + 4, size - 4);
  uint32_t first;
  std::memcpy(&first, bytes.data(), sizeof(first));
  __atomic_store_n(reinterpret_cast<uint32_t*>(place), first, __ATOMIC_RELEASE);
  end_ += size;
  return absl::OkStatus();
}

absl::Status AppendFile::Close() {
  if (fd_ < 0) return absl::OkStatus();
  Unmap();
  const int cut = ftruncate(fd_, end_) == 0 ? 0 : errno;
  const int closed = close(fd_) == 0 ? 0 : errno;
  fd_ = -1;
  if (cut != 0 || closed != 0) return SystemError(path_, "cannot be closed", cut != 0 ? cut : closed);
  return absl::OkStatus();
}

}  // namespace ott::internal
