// For bindings to languages with exceptions: collects what broke a rule, instead of aborting.

#ifndef OTT_CORE_BASE_MISUSE_CAPTURE_H_
#define OTT_CORE_BASE_MISUSE_CAPTURE_H_

#include <string>
#include <string_view>

namespace ott::internal {

// While one exists, misuse (misuse.h) on its thread is neither printed nor aborts: its message is kept here.
// The call that broke the rule is ignored and counted, as with OnMisuse::kLogAndCount. If a thread has
// several, the innermost gets the message. Only calls into this copy of the library are captured. Not
// thread-safe; to be destroyed on its thread, in the reverse order of construction.
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
  // Not thread_local: that might have a constructor, so every access would go through a function.
  static __thread MisuseCapture* innermost_;

  MisuseCapture* const outer_;
  std::string message_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_BASE_MISUSE_CAPTURE_H_
