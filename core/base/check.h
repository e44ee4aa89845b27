// Checks of what the programmer promised. What the world does is an absl::Status instead.
//
//   OTT_CHECK(rank < size) << "rank " << rank << " of " << size;
//
// A failed check prints file, line, condition and message to stderr and aborts.

#ifndef OTT_CORE_BASE_CHECK_H_
#define OTT_CORE_BASE_CHECK_H_

#include <sstream>

#define OTT_CHECK(condition)                                 \
  switch (0)                                                 \
  case 0:                                                    \
  default:                                                   \
    if (__builtin_expect(static_cast<bool>(condition), 1)) { \
    } else                                                   \
      ::ott::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

namespace ott::internal {

// Collects the message of a failed check; its destructor prints it and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure();

  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

}  // namespace ott::internal

#endif  // OTT_CORE_BASE_CHECK_H_
