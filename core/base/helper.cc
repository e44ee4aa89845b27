#include "ott/core/base/helper.h"

#include "absl/strings/str_cat.h"
#include "ott/core/base/misuse.h"

namespace ott::internal {

absl::Status CheckNotEnabled(const char* helper, const std::optional<Place>& enabled_at, Place place) {
  if (!enabled_at.has_value()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(helper, ": enabled at ", At(place), ", but already enabled at ", At(*enabled_at)));
}

absl::Status CheckNotEnabled(const char* helper, const std::optional<Place>& enabled_at, Place place,
                             const EventRecorder* recorder) {
  OTT_RETURN_IF_ERROR(CheckNotEnabled(helper, enabled_at, place));
  if (recorder == nullptr) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(helper, ": enabled at ", At(place),
                   " while a profiler's window is open; enable it before the profiler"));
}

}  // namespace ott::internal
