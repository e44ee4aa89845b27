// Errors that say where they happened.

#ifndef OTT_CORE_BASE_STATUS_CONTEXT_H_
#define OTT_CORE_BASE_STATUS_CONTEXT_H_

#include <string>

#include "absl/status/status.h"

namespace ott {

// The same error with "CONTEXT: " before its message; OK as it is.
absl::Status WithContext(const std::string& context, const absl::Status& status);

}  // namespace ott

#endif  // OTT_CORE_BASE_STATUS_CONTEXT_H_
