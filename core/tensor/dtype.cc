#include "ott/core/tensor/dtype.h"

#include <array>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ott {
namespace {

struct Entry {
  std::string_view name;
  int64_t size;
};

// In the order of the enumeration.
constexpr std::array<Entry, kNumDTypes> kEntries = {{
    {"float64", 8},
    {"float32", 4},
    {"float16", 2},
    {"bfloat16", 2},
    {"float8_e4m3fn", 1},
    {"float8_e5m2", 1},
    {"int8", 1},
    {"int16", 2},
    {"int32", 4},
    {"int64", 8},
    {"uint8", 1},
    {"uint16", 2},
    {"uint32", 4},
    {"uint64", 8},
    {"bool", 1},
    {"complex64", 8},
    {"complex128", 16},
}};

}  // namespace

int64_t SizeOf(DType dtype) { return kEntries[static_cast<size_t>(dtype)].size; }

std::string_view Name(DType dtype) { return kEntries[static_cast<size_t>(dtype)].name; }

absl::StatusOr<DType> ParseDType(std::string_view name) {
  for (size_t i = 0; i < kEntries.size(); ++i) {
    if (kEntries[i].name == name) return static_cast<DType>(i);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::string_view(name.data(), name.size()), "' is not the name of a dtype"));
}

bool IsFloatingPoint(DType dtype) { return dtype <= DType::kFloat8E5M2; }

}  // namespace ott
