// JSON as Python's json.dump(value, file, indent=2) writes it, byte for byte.

#ifndef OTT_CORE_DUMP_JSON_WRITER_H_
#define OTT_CORE_DUMP_JSON_WRITER_H_

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/tensor/value.h"

namespace ott {

// Takes the text piece by piece.
using JsonSink = std::function<absl::Status(std::string_view)>;

// Tensors are written as nested lists of their elements: floating-point numbers as Python's repr() of their
// value as a double, NaN as NaN, infinities as Infinity and -Infinity, complex numbers as lists [real,
// imaginary]. Characters beyond ASCII are escaped. No newline at the end. INVALID_ARGUMENT, with the path,
// for a string or name that is not UTF-8 and for a tensor not in host memory; else what the sink returns.
//
// num_threads: how many threads format large tensors; 0: as many as the machine has cores. The sink is called
// by one thread at a time, in order.
absl::Status WriteJson(const Value& value, const JsonSink& sink, int num_threads = 1);

// Returns the whole text.
absl::StatusOr<std::string> ToJson(const Value& value);

// Appends Python's repr() of a float, but NaN, Infinity and -Infinity as Python's JSON spells them.
void AppendPythonFloat(double value, std::string& text);

// Returns OK, or INVALID_ARGUMENT saying where a text stops being UTF-8.
absl::Status CheckUtf8(std::string_view text);

}  // namespace ott

#endif  // OTT_CORE_DUMP_JSON_WRITER_H_
