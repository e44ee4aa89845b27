// The limit of files' sizes (RLIMIT_FSIZE) as an error like others.

#ifndef OTT_CORE_BASE_FILE_LIMIT_H_
#define OTT_CORE_BASE_FILE_LIMIT_H_

#include <signal.h>

namespace ott {

// While it lives, what this thread writes beyond the limit fails with EFBIG, and does not end the program by
// SIGXFSZ. Leaves errno and the program's handlers as they are.
class FileLimitIsAnError {
 public:
  FileLimitIsAnError();
  FileLimitIsAnError(const FileLimitIsAnError&) = delete;
  FileLimitIsAnError& operator=(const FileLimitIsAnError&) = delete;
  // REQUIRES: on the same thread.
  ~FileLimitIsAnError();

 private:
  sigset_t mask_before_;
  bool was_pending_;
};

}  // namespace ott

#endif  // OTT_CORE_BASE_FILE_LIMIT_H_
