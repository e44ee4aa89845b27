// What happens when a call breaks a rule of an interface.

#ifndef OTT_CORE_BASE_MISUSE_H_
#define OTT_CORE_BASE_MISUSE_H_

#include <string>
#include <string_view>

#include "ott/core/base/place.h"

namespace ott {

// What a call does that breaks a rule, such as ending what was not started. Either way the message has the
// name, the thread, the place, and where what stands in the way was started.
enum class OnMisuse {
  kAbort,
  // Prints to stderr, ignores the call, and counts it.
  kLogAndCount,
};

namespace internal {

// Prints "ott: MESSAGE" to stderr, in one piece, and aborts where asked to.
void ReportMisuse(OnMisuse on_misuse, std::string_view message);

// The parts of such messages: `"name"` with quotes, backslashes and control characters escaped; "file.cc:12";
// and the kernel's id of this thread.
std::string Quoted(std::string_view name);
std::string At(Place place);
int ThisThreadId();

}  // namespace internal
}  // namespace ott

#endif  // OTT_CORE_BASE_MISUSE_H_
