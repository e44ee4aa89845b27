#include "ott/core/base/file_limit.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

namespace ott {
namespace {

bool IsPending() {
  sigset_t pending;
  return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

sigset_t TheSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGXFSZ);
  return signals;
}

}  // namespace

FileLimitIsAnError::FileLimitIsAnError() : was_pending_(IsPending()) {
  const sigset_t signals = TheSignal();
  pthread_sigmask(SIG_BLOCK, &signals, &mask_before_);
}

FileLimitIsAnError::~FileLimitIsAnError() {
  const int error = errno;
  const sigset_t signals = TheSignal();
  // The kernel sends it to the thread that wrote.
  const timespec at_once = {};
  if (!was_pending_) sigtimedwait(&signals, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  errno = error;
}

}  // namespace ott
