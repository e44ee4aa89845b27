// Reports calls that break a rule of an interface.

#ifndef OTT_CORE_BASE_MISUSE_H_
#define OTT_CORE_BASE_MISUSE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "ott/core/base/place.h"

namespace ott {

// Says what follows when a call breaks a rule, such as ending a measurement that was not started. In either
// case the message has the name, the thread, the place of the call, and the place where that was started
// which is in the way. OTT_ON_MISUSE=abort in the environment stands for kAbort everywhere.
enum class OnMisuse {
  // Ignores the call and counts it. Prints the first, tenth, hundredth ... of a kind to stderr.
  kLogAndCount,
  kAbort,
};

// Counts how often a rule was broken, as `End("forward") without Start`.
struct MisuseCount {
  std::string kind;
  int64_t count = 0;
};

namespace internal {

// Prints "ott: MESSAGE" to stderr, in one piece.
void PrintMisuse(std::string_view message);

// The parts of such messages: `"name"` with quotes, backslashes and control characters escaped; "file.cc:12";
// and the kernel's id of this thread.
std::string Quoted(std::string_view name);
std::string At(Place place);
int ThisThreadId();

}  // namespace internal
}  // namespace ott

#endif  // OTT_CORE_BASE_MISUSE_H_
