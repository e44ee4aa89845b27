// Counts and reports calls that break a rule of an interface.

#ifndef OTT_CORE_BASE_MISUSE_LOG_H_
#define OTT_CORE_BASE_MISUSE_LOG_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "ott/core/base/misuse.h"

namespace ott::internal {

// The misuses of one helper by kind. Thread-safe.
class MisuseLog {
 public:
  // More kinds than this count as one.
  static constexpr size_t kMaxKinds = 64;

  // helper: begins each message.
  explicit MisuseLog(const char* helper) : helper_(helper) {}

  // Counts one of `kind`, such as `End("forward") without Start`. Aborts with `message`, which has the place,
  // if on_misuse or the environment variable OTT_ON_MISUSE=abort says so. Else prints it to stderr, in one
  // piece, if it is the first, tenth, hundredth ... of its kind. A MisuseCapture of this thread receives the
  // message instead.
  void Report(OnMisuse on_misuse, std::string_view kind, std::string_view message);

  // In the order of the first of each kind.
  std::vector<MisuseCount> Counts() const;
  int64_t total() const;
  void Clear();

 private:
  const char* const helper_;
  mutable std::mutex mutex_;
  std::vector<MisuseCount> counts_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_BASE_MISUSE_LOG_H_
