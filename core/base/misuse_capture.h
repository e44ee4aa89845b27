// For bindings to languages that have exceptions: what broke a rule, instead of an abort.

#ifndef OTT_CORE_BASE_MISUSE_CAPTURE_H_
#define OTT_CORE_BASE_MISUSE_CAPTURE_H_

#include <string>
#include <string_view>

namespace ott::internal {

// While one lives, misuse (misuse.h) on this thread is neither printed nor does it abort: its message is kept
// here. The call that broke the rule is ignored and counted, as with OnMisuse::kLogAndCount. The innermost
// one of a thread counts, for calls into this copy of the library. Not thread-safe; to be destroyed on its
// thread, in the reverse order of construction.
class MisuseCapture {
 public:
  MisuseCapture() : outer_(innermost_) { innermost_ = this; }
  MisuseCapture(const MisuseCapture&) = delete;
  MisuseCapture& operator=(const MisuseCapture&) = delete;
  ~MisuseCapture() { innermost_ = outer_; }

  // Null where this thread has none.
  static MisuseCapture* Innermost() { return innermost_; }

  void Add(std::string_view message);

  // Empty where no rule was broken; else the messages, a line each.
  const std::string& message() const { return message_; }

 private:
  // Not thread_local, which is reached through a function, as it could have a constructor.
  static __thread MisuseCapture* innermost_;

  MisuseCapture* const outer_;
  std::string message_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_BASE_MISUSE_CAPTURE_H_
