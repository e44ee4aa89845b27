// A file that grows by what is appended, and keeps it when the process is killed.

#ifndef OTT_CORE_OP_LOG_APPEND_FILE_H_
#define OTT_CORE_OP_LOG_APPEND_FILE_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace ott::internal {

// The file's next part is mapped, with its blocks allocated, so that an appended record costs no system call
// and a full disk is an error and no signal. What was appended is in the file as soon as the call returns,
// whatever becomes of the process; behind it there are zeros until Close(). A child that is forked writes
// nothing. Not thread-safe.
class AppendFile {
 public:
  // Returns ALREADY_EXISTS if there is a file.
  static absl::StatusOr<std::unique_ptr<AppendFile>> Create(const std::string& path);
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  // The first four bytes are written last, so that a reader sees all of it or none. RESOURCE_EXHAUSTED where
  // the disk is full; nothing is appended then. REQUIRES: at least four bytes, a multiple of 4
  absl::Status Append(std::string_view bytes);

  // Cuts off the zeros.
  absl::Status Close();

  const std::string& path() const { return path_; }

 private:
  AppendFile(std::string path, int fd);

  // Maps at least so many bytes from end_ on.
  absl::Status Map(int64_t num_bytes);
  void Unmap();

  const std::string path_;
  const pid_t process_;
  int fd_;
  char* window_ = nullptr;
  int64_t window_begin_ = 0;
  int64_t window_size_ = 0;
  int64_t end_ = 0;
  int64_t next_window_size_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_OP_LOG_APPEND_FILE_H_
