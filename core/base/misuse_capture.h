// For bindings to languages with exceptions and with places of their own: collects what broke a rule.

#ifndef OTT_CORE_BASE_MISUSE_CAPTURE_H_
#define OTT_CORE_BASE_MISUSE_CAPTURE_H_

#include <string>
#include <string_view>

namespace ott::internal {

// While one exists, misuse (misuse_log.h) on its thread is neither printed nor aborts: its message is kept
// here. The call that broke the rule is ignored and counted. If a thread has several, the innermost gets the
// message. Only calls into this copy of the library are captured. Not thread-safe; to be destroyed on its
// thread, in the reverse order of construction.
class MisuseCapture {
 public:
  MisuseCapture() : outer_(innermost_) { innermost_ = this; }
  MisuseCapture(const MisuseCapture&) = delete;
  MisuseCapture& operator=(const MisuseCapture&) = delete;
  ~MisuseCapture() { innermost_ = outer_; }

  // Null where this thread has none.
  static MisuseCapture* Innermost() { return innermost_; }

  void Add(std::string_view message, bool is_printed, bool aborts);

  // Empty where no rule was broken; else the messages, a line each.
  const std::string& message() const { return message_; }
  // Return true if, without a capture, a misuse would have been printed, or would have ended the process.
  bool is_printed() const { return is_printed_; }
  bool aborts() const { return aborts_; }

 private:
  // Not thread_local: that might have a constructor, so every access would go through a function.
  static __thread MisuseCapture* innermost_;

  MisuseCapture* const outer_;
  std::string message_;
  bool is_printed_ = false;
  bool aborts_ = false;
};

}  // namespace ott::internal

#endif  // OTT_CORE_BASE_MISUSE_CAPTURE_H_
