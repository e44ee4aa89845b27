#include "ott/core/dump/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

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

struct HeaderEntry {
  DType dtype;
  Dims shape;
  // Bytes behind the header.
  int64_t begin;
  int64_t end;
};

absl::StatusOr<HeaderEntry> ParseEntry(const Value& value) {
  OTT_ASSIGN_OR_RETURN(const DType dtype, DTypeOfEntry(value));
  const Value* const shape = value.map().Find("shape");
  const Value* const offsets = value.map().Find("data_offsets");
  OTT_ASSIGN_OR_RETURN(Dims dims, ShapeFromValue(shape == nullptr ? Value() : *shape));
  OTT_ASSIGN_OR_RETURN(const Dims range, ShapeFromValue(offsets == nullptr ? Value() : *offsets));
  OTT_ASSIGN_OR_RETURN(const int64_t num_bytes, CheckedNumBytes(dtype, dims));
  if (range.size() != 2 || range[0] < 0 || range[1] < range[0] || range[1] - range[0] != num_bytes) {
    return absl::InvalidArgumentError("the safetensors header's offsets do not fit its shape and dtype");
  }
  return HeaderEntry{dtype, std::move(dims), range[0], range[1]};
}

// The format wants each byte to be of one tensor: what is changed elsewhere would go unseen.
absl::Status CheckThatBytesAreOfOneTensor(std::vector<std::pair<int64_t, int64_t>> ranges,
                                          int64_t num_bytes) {
  std::sort(ranges.begin(), ranges.end());
  int64_t at = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != at) {
      return absl::InvalidArgumentError(absl::StrCat("the safetensors header's tensors ",
                                                     begin < at ? "overlap" : "leave a gap", " at byte ",
                                                     std::min(begin, at)));
    }
    at = end;
  }
  if (at == num_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the safetensors file has ", num_bytes - at, " bytes that are of no tensor"));
}

}  // namespace

absl::StatusOr<std::string> SafetensorsHeader(std::string_view name, DType dtype,
                                              absl::Span<const int64_t> shape) {
  const std::string type(InfoOf(dtype).safetensors);
  if (type.empty()) {
    return absl::UnimplementedError(absl::StrCat("safetensors has no ", std::string(Name(dtype))));
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

absl::StatusOr<SafetensorsFile> ListSafetensors(std::string_view file) {
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

  if (!header.is_map()) return absl::InvalidArgumentError("the safetensors header is no JSON object");
  SafetensorsFile result;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const auto& [name, value] : header.map()) {
    if (name == "__metadata__") {
      result.metadata = value;
      continue;
    }
    OTT_ASSIGN_OR_RETURN(HeaderEntry entry, ParseEntry(value));
    if (entry.end > static_cast<int64_t>(file.size())) return truncated;
    ranges.emplace_back(entry.begin, entry.end);
    result.tensors.push_back(
        {name, entry.dtype, std::move(entry.shape), file.substr(entry.begin, entry.end - entry.begin)});
  }
  OTT_RETURN_IF_ERROR(CheckThatBytesAreOfOneTensor(std::move(ranges), static_cast<int64_t>(file.size())));
  return result;
}

absl::StatusOr<TensorView> ParseSafetensors(std::string_view file, std::string_view name) {
  OTT_ASSIGN_OR_RETURN(const SafetensorsFile all, ListSafetensors(file));
  for (const SafetensorsFile::Entry& entry : all.tensors) {
    if (entry.name == name) return TensorView(entry.bytes.data(), entry.dtype, entry.shape);
  }
  return absl::NotFoundError(absl::StrCat("the safetensors file has no tensor '", std::string(name), "'"));
}

}  // namespace ott
