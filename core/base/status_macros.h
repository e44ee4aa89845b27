// Early return of errors.
//
//   OTT_RETURN_IF_ERROR(file.Flush());
//   OTT_ASSIGN_OR_RETURN(const Dump dump, ReadDump(path));

#ifndef OTT_CORE_BASE_STATUS_MACROS_H_
#define OTT_CORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define OTT_RETURN_IF_ERROR(expression)                                              \
  do {                                                                               \
    if (absl::Status ott_status = (expression); !ott_status.ok()) return ott_status; \
  } while (false)

#define OTT_ASSIGN_OR_RETURN(lhs, expression) \
  OTT_INTERNAL_ASSIGN_OR_RETURN(OTT_INTERNAL_CONCAT(ott_status_or_, __LINE__), lhs, expression)

#define OTT_INTERNAL_ASSIGN_OR_RETURN(result, lhs, expression) \
  auto result = (expression);                                  \
  if (!result.ok()) return std::move(result).status();         \
  lhs = *std::move(result)

#define OTT_INTERNAL_CONCAT(a, b) OTT_INTERNAL_CONCAT_TOKENS(a, b)
#define OTT_INTERNAL_CONCAT_TOKENS(a, b) a##b

#endif  // OTT_CORE_BASE_STATUS_MACROS_H_
