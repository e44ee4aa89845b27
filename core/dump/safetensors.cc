#include "ott/core/dump/safetensors.h"

#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/dump/json_reader.h"
#include "ott/core/dump/json_writer.h"
#include "ott/core/dump/manifest.h"

namespace ott {
namespace {

// The format's own limit, so that a header of a wrong length is not parsed for hours.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;

absl::StatusOr<DType> DTypeOfEntry(const Value& entry) {
  const Value* const name = entry.is_map() ? entry.map().Find("dtype") : nullptr;
  if (name != nullptr && name->kind() == Value::Kind::kString) {
    for (const DTypeInfo& known : kDTypes) {
      if (!known.safetensors.empty() && known.safetensors == name->string_value()) return known.dtype;
    }
  }
  return absl::InvalidArgumentError("the safetensors header has a dtype that no tensor has");
}

}  // namespace

absl::StatusOr<std::string> SafetensorsHeader(std::string_view name, DType dtype,
                                              absl::Span<const int64_t> shape) {
  const std::string type(InfoOf(dtype).safetensors);
  if (type.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("safetensors has no ", std::string(Name(dtype)), "; dump it as BINARY or NPY"));
  }
  OTT_ASSIGN_OR_RETURN(const int64_t num_bytes, CheckedNumBytes(dtype, shape));
  OTT_ASSIGN_OR_RETURN(const std::string json_name, ToJson(Value(name)));
  std::string json = absl::StrCat("{", json_name, ":{\"dtype\":\"", type, "\",\"shape\":[",
                                  absl::StrJoin(shape, ","), "],\"data_offsets\":[0,", num_bytes, "]}}");
  // The elements are aligned.
  json.append((8 - json.size() % 8) % 8, ' ');
  const uint64_t size = json.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + json;
}

absl::StatusOr<TensorView> ParseSafetensors(std::string_view file, std::string_view name) {
  uint64_t header_size = 0;
  const absl::Status truncated = absl::DataLossError(absl::StrCat(
      "a safetensors file cut at byte ", file.size(), "; the program was probably killed while writing"));
  if (file.size() < sizeof(header_size)) return truncated;
  std::memcpy(&header_size, file.data(), sizeof(header_size));
  file.remove_prefix(sizeof(header_size));
  if (header_size > kMaxHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the safetensors header claims ", header_size, " bytes"));
  }
  if (header_size > file.size()) return truncated;
  OTT_ASSIGN_OR_RETURN(const Value header, ParseJson(file.substr(0, header_size)));
  file.remove_prefix(header_size);

  const Value* const entry = header.is_map() ? header.map().Find(name) : nullptr;
  if (entry == nullptr) {
    return absl::NotFoundError(absl::StrCat("the safetensors file has no tensor '", std::string(name), "'"));
  }
  OTT_ASSIGN_OR_RETURN(const DType dtype, DTypeOfEntry(*entry));
  const Value* const shape = entry->map().Find("shape");
  const Value* const offsets = entry->map().Find("data_offsets");
  OTT_ASSIGN_OR_RETURN(const Dims dims, ShapeFromValue(shape == nullptr ? Value() : *shape));
  OTT_ASSIGN_OR_RETURN(const Dims range, ShapeFromValue(offsets == nullptr ? Value() : *offsets));
  OTT_ASSIGN_OR_RETURN(const int64_t num_bytes, CheckedNumBytes(dtype, dims));
  if (range.size() != 2 || range[0] < 0 || range[1] < range[0] || range[1] - range[0] != num_bytes) {
    return absl::InvalidArgumentError("the safetensors header's offsets do not fit its shape and dtype");
  }
  if (range[1] > static_cast<int64_t>(file.size())) return truncated;
  return TensorView(file.data() + range[0], dtype, dims);
}

}  // namespace ott
