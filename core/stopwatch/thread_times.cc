#include "ott/core/stopwatch/thread_times.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <ctime>

namespace ott {
namespace {

// Open as long as the thread lives; reading it again is then one call of the kernel.
class ThreadFile {
 public:
  ThreadFile() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)), forks_(Forks()) {}
  ThreadFile(const ThreadFile&) = delete;
  ThreadFile& operator=(const ThreadFile&) = delete;
  ~ThreadFile() {
    if (file_ >= 0) close(file_);
  }

  // In a process that was forked, the file is still of the thread that did.
  int file() const { return Forks() == forks_ ? file_ : -1; }

 private:
  // Counts how many processes this one was forked from since it was asked first.
  static int Forks() {
    static std::atomic<int> forks{0};
    static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
    static_cast<void>(registered);
    return forks;
  }

  const int file_;
  const int forks_;
};

// Up to this moment.
uint64_t CpuTime(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

std::optional<uint64_t> ParseSchedstat(std::string_view contents) {
  uint64_t on_cpu = 0;
  uint64_t taken = 0;
  const char* const end = contents.data() + contents.size();
  const auto first = std::from_chars(contents.data(), end, on_cpu);
  if (first.ptr == end || *first.ptr != ' ') return std::nullopt;
  if (std::from_chars(first.ptr + 1, end, taken).ec != std::errc()) return std::nullopt;
  return taken;
}

std::optional<ThreadTimes> ReadThreadTimes() {
  static thread_local const ThreadFile file;
  char contents[96];
  const ssize_t size = pread(file.file(), contents, sizeof(contents), 0);
  if (size <= 0) return std::nullopt;
  const std::optional<uint64_t> taken = ParseSchedstat({contents, static_cast<size_t>(size)});
  if (!taken.has_value()) return std::nullopt;
  return ThreadTimes{CpuTime(CLOCK_THREAD_CPUTIME_ID), *taken};
}

uint64_t ReadProcessCpuTime() { return CpuTime(CLOCK_PROCESS_CPUTIME_ID); }

}  // namespace ott
