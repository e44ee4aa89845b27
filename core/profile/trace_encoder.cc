#include "ott/core/profile/trace_encoder.h"

#include <charconv>
#include <cmath>

namespace ott::internal {

void AppendNumber(double value, std::string& out) {
  if (std::isnan(value)) {
    out += "nan";
  } else if (std::isinf(value)) {
    out += value > 0 ? "inf" : "-inf";
  } else {
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr);
  }
}

}  // namespace ott::internal
