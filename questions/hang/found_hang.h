// Keeps what a rank found while its job stood still.

#ifndef OTT_QUESTIONS_HANG_FOUND_HANG_H_
#define OTT_QUESTIONS_HANG_FOUND_HANG_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "ott/questions/hang/hang.pb.h"

namespace ott::hang {

// Reads RUN/hang.json; null if no rank found anything.
absl::StatusOr<std::optional<HangVerdict>> ReadFoundHang(const std::string& run_dir);

// Returns true if that verdict holds whatever the recorders say `now`: its culprits, or all ranks if it names
// none, have not gone on since. Ranks that end their job when they find that it stands leave recorders that
// end too early to tell, and those that gave up waiting stand elsewhere later.
bool StillHolds(const HangVerdict& found, const HangVerdict& now);

}  // namespace ott::hang

#endif  // OTT_QUESTIONS_HANG_FOUND_HANG_H_
