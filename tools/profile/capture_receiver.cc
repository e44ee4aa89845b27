#include "tools/profile/capture_receiver.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott::profile {
namespace {

constexpr int kDrainMilliseconds = 10;
constexpr std::chrono::seconds kFlushInterval(1);

bool IsReadable(int fd, int milliseconds) {
  pollfd poll_fd{fd, POLLIN, 0};
  return poll(&poll_fd, 1, milliseconds) == 1;
}

// Readable once the process has ended. Before Linux 5.3 its connection has to do, which it may have closed
// before.
int OpenEndOfProcess(const ReceivedBuffer& received) {
  const auto fd = static_cast<int>(syscall(SYS_pidfd_open, received.pid, 0));
  return fd < 0 ? dup(received.connection) : fd;
}

}  // namespace

std::string CapturePath(const std::string& output, int rank, int pid, int number) {
  const size_t slash = output.rfind('/');
  const size_t dot = output.rfind('.');
  const bool has_extension =
      dot != std::string::npos && (slash == std::string::npos || dot > slash + 1) && dot > 0;
  std::string path = has_extension ? output.substr(0, dot) : output;
  if (rank >= 0) {
    char suffix[24];
    std::snprintf(suffix, sizeof(suffix), ".rank_%05d", rank);
    path += suffix;
  }
  if (number >= 1) absl::StrAppend(&path, ".pid_", pid);
  if (number >= 2) absl::StrAppend(&path, "_", number);
  return has_extension ? path + output.substr(dot) : path;
}

absl::StatusOr<std::unique_ptr<CaptureReceiver>> CaptureReceiver::Create(Options options) {
  std::string address;
  const int listening = ListenForBuffers(&address);
  const int stop = eventfd(0, EFD_CLOEXEC);
  if (listening < 0 || stop < 0) {
    return absl::UnavailableError(absl::StrCat("no socket to capture processes by: ", std::strerror(errno)));
  }
  std::unique_ptr<CaptureReceiver> receiver(
      new CaptureReceiver(std::move(options), listening, stop, address));
  receiver->acceptor_ = std::thread([receiver = receiver.get()] { receiver->Accept(); });
  return receiver;
}

CaptureReceiver::~CaptureReceiver() {
  Stop();
  close(listening_);
  close(stop_);
}

std::vector<CaptureSummary> CaptureReceiver::Stop() {
  const uint64_t one = 1;
  if (acceptor_.joinable() && write(stop_, &one, sizeof(one)) == sizeof(one)) acceptor_.join();
  return std::exchange(summaries_, {});
}

void CaptureReceiver::Accept() {
  pollfd fds[] = {{listening_, POLLIN, 0}, {stop_, POLLIN, 0}};
  do {
    poll(fds, 2, -1);
    AcceptAll();
  } while (fds[1].revents == 0);
  for (std::thread& session : sessions_) session.join();
}

void CaptureReceiver::AcceptAll() {
  for (ReceivedBuffer received; ReceiveBuffer(listening_, &received);) {
    // Here, so that names of files follow the order of the processes.
    auto session = MakeSession(received);
    sessions_.emplace_back(
        [this, received, session = std::move(session)]() mutable { Receive(received, std::move(session)); });
  }
}

absl::StatusOr<std::unique_ptr<CaptureSession>> CaptureReceiver::MakeSession(const ReceivedBuffer& received) {
  if (received.buffer_fd < 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("process ", received.pid, " is not captured, it has no memory for its events: ",
                     std::strerror(received.error), "; --buffer-size makes it smaller"));
  }
  std::string error;
  std::unique_ptr<SharedBuffer> buffer = SharedBuffer::Attach(received.buffer_fd, &error);
  if (buffer == nullptr) return absl::FailedPreconditionError(error);
  const SharedBuffer::Header& header = buffer->header();
  for (int number = 0;; ++number) {
    const std::string path = CapturePath(options_.output, header.rank, header.pid, number);
    if (!paths_.insert(path).second) continue;
    if (options_.overwrite) {
      unlink(path.c_str());
      unlink((path + "-journal").c_str());
    }
    absl::StatusOr<std::unique_ptr<CaptureFile>> file = CaptureFile::Create(path);
    if (absl::IsAlreadyExists(file.status())) continue;
    OTT_RETURN_IF_ERROR(file.status());
    return std::make_unique<CaptureSession>(std::move(buffer), *std::move(file), path, options_.start,
                                            options_.command);
  }
}

void CaptureReceiver::Receive(ReceivedBuffer received,
                              absl::StatusOr<std::unique_ptr<CaptureSession>> session) {
  const int end = OpenEndOfProcess(received);
  CaptureSummary summary;
  if (!session.ok()) {
    summary.pid = received.pid;
    summary.problems.emplace_back(session.status().message());
  } else {
    auto last_flush = std::chrono::steady_clock::now();
    bool has_more = false;
    while (!IsReadable(end, has_more ? 0 : kDrainMilliseconds) && !IsReadable(stop_, 0)) {
      has_more = (*session)->Drain();
      if (const auto now = std::chrono::steady_clock::now(); now - last_flush >= kFlushInterval) {
        (*session)->Flush();
        last_flush = now;
      }
    }
    const bool runs_on = !IsReadable(end, 0);
    summary = (*session)->Finish();
    if (runs_on) {
      summary.problems.push_back(
          absl::StrCat("process ", summary.pid, " runs on; what it does from here on is not in the file"));
    }
  }
  close(end);
  close(received.connection);
  const std::lock_guard<std::mutex> lock(mutex_);
  summaries_.push_back(std::move(summary));
}

}  // namespace ott::profile
