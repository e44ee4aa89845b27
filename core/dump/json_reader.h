// Reads JSON, with Python's NaN, Infinity and -Infinity, as fast as its numbers can be converted.
//
// Most input is lists of numbers of 17 digits: they go straight into tensors, and each is converted exactly.
// Nesting costs heap, not stack, and is limited.

#ifndef OTT_CORE_DUMP_JSON_READER_H_
#define OTT_CORE_DUMP_JSON_READER_H_

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "ott/core/tensor/value.h"

namespace ott {

inline constexpr int kMaxJsonDepth = 512;
// Limits the values of one text: tensors and what they stand in count, their elements do not.
inline constexpr int64_t kMaxJsonValues = int64_t{1} << 20;

// A list of numbers, or of such lists of one shape, becomes a tensor: int64 where all are integers (uint64
// where one needs it), float64 where all have a point, an exponent, or are NaN or infinite, bool where all
// are true or false. Other lists stay lists. An integer that only a uint64 holds becomes a uint64 tensor of
// no dimensions. INVALID_ARGUMENT with line and column for what is not JSON, a name used twice in a map,
// nesting deeper than kMaxJsonDepth, text that is not UTF-8, or a number that no int64, uint64 or double
// holds; RESOURCE_EXHAUSTED if there are more than kMaxJsonValues; DATA_LOSS if the text ends
// too early.
absl::StatusOr<Value> ParseJson(std::string_view text);

}  // namespace ott

#endif  // OTT_CORE_DUMP_JSON_READER_H_
