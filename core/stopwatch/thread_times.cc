#include "ott/core/stopwatch/thread_times.h"

#include <fcntl.h>
#include <unistd.h>

#include <charconv>

namespace ott {
namespace {

// Open as long as the thread lives; reading it again is then one call of the kernel.
class ThreadFile {
 public:
  ThreadFile() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)), process_(getpid()) {}
  ThreadFile(const ThreadFile&) = delete;
  ThreadFile& operator=(const ThreadFile&) = delete;
  ~ThreadFile() {
    if (file_ >= 0) close(file_);
  }

  // In a process that was forked, the file is still of the thread that did.
  int file() const { return getpid() == process_ ? file_ : -1; }

 private:
  const int file_;
  const pid_t process_;
};

}  // namespace

std::optional<ThreadTimes> ParseSchedstat(std::string_view contents) {
  ThreadTimes times;
  const char* const end = contents.data() + contents.size();
  const auto on_cpu = std::from_chars(contents.data(), end, times.on_cpu);
  if (on_cpu.ec != std::errc() || on_cpu.ptr == end || *on_cpu.ptr != ' ') return std::nullopt;
  if (std::from_chars(on_cpu.ptr + 1, end, times.taken).ec != std::errc()) return std::nullopt;
  return times;
}

std::optional<ThreadTimes> ReadThreadTimes() {
  static thread_local const ThreadFile file;
  char contents[96];
  const ssize_t size = pread(file.file(), contents, sizeof(contents), 0);
  if (size <= 0) return std::nullopt;
  return ParseSchedstat({contents, static_cast<size_t>(size)});
}

}  // namespace ott
