// Input that reads as JSON writes as JSON that reads as the same.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/json_writer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<ott::Value> value =
      ott::ParseJson(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!value.ok()) return 0;
  const std::string text = ott::ToJson(*value).value();
  if (ott::ToJson(ott::ParseJson(text).value()).value() != text) std::abort();
  return 0;
}
