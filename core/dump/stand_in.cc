#include "ott/core/dump/stand_in.h"

#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ott/core/dump/dump_files.h"

namespace ott {
namespace {

const ValueMap* StandInOf(const Value& value, std::string_view name) {
  if (!value.is_map() || value.map().size() != 1) return nullptr;
  const Value* const found = value.map().Find(name);
  return found != nullptr && found->is_map() ? &found->map() : nullptr;
}

const std::string* TextIn(const ValueMap& map, std::string_view name) {
  const Value* const found = map.Find(name);
  return found != nullptr && found->kind() == Value::Kind::kString ? &found->string_value() : nullptr;
}

// The inverse of ShapeToString().
std::optional<Dims> ParseShape(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]")) return std::nullopt;
  Dims shape;
  for (const absl::string_view extent : absl::StrSplit(text, ", ", absl::SkipEmpty())) {
    if (!absl::SimpleAtoi(extent, &shape.emplace_back())) return std::nullopt;
  }
  return shape;
}

// A tensor without elements, of the dtype and shape that a stand-in has; nullopt if it lacks one, or a
// digest.
std::optional<NamedTensor> TensorOf(const std::string& path, const ValueMap& stand_in) {
  const std::string* const dtype = TextIn(stand_in, "dtype");
  const std::string* const shape = TextIn(stand_in, "shape");
  const std::string* const digest = TextIn(stand_in, "digest");
  if (dtype == nullptr || shape == nullptr || digest == nullptr) return std::nullopt;
  const absl::StatusOr<DType> parsed = ParseDType(*dtype);
  std::optional<Dims> dims = ParseShape(*shape);
  if (!parsed.ok() || !dims.has_value() || !CheckedNumBytes(*parsed, *dims).ok()) return std::nullopt;
  // One zero, which all elements share: nobody is to read them.
  static constexpr double kZero[2] = {0, 0};
  const TensorView view(kZero, *parsed, *dims, Dims(dims->size(), 0));
  return NamedTensor{path, Tensor{view, nullptr}, NamedTensor::Content::kDigest, *digest};
}

void Append(const std::string& path, const Value& value, std::vector<NamedTensor>& all) {
  const ValueMap* const image = ImageOf(value);
  const ValueMap* const stand_in = image != nullptr ? image : StatisticsOf(value);
  if (stand_in != nullptr) {
    if (std::optional<NamedTensor> tensor = TensorOf(path, *stand_in)) {
      all.push_back(*std::move(tensor));
      return;
    }
  }
  if (stand_in != nullptr) {
    const std::string below = JoinPath(path, image != nullptr ? kImageName : kStatisticsName);
    for (const auto& [name, child] : *stand_in) {
      if (std::optional<Tensor> tensor = AsTensor(child)) {
        all.push_back({JoinPath(below, name), *std::move(tensor), NamedTensor::Content::kStandIn});
      }
    }
  } else if (std::optional<Tensor> tensor = AsTensor(value)) {
    all.push_back({path, *std::move(tensor)});
  } else if (value.kind() == Value::Kind::kString) {
    const auto text = std::make_shared<const std::string>(value.string_value());
    const TensorView bytes(text->data(), DType::kUInt8, {static_cast<int64_t>(text->size())});
    all.push_back({path, Tensor{bytes, text}, NamedTensor::Content::kText});
  } else if (value.is_list()) {
    for (size_t i = 0; i < value.list().size(); ++i) {
      Append(JoinPath(path, std::to_string(i)), value.list()[i], all);
    }
  } else if (value.is_map()) {
    for (const auto& [name, child] : value.map()) Append(JoinPath(path, name), child, all);
  }
}

}  // namespace

const ValueMap* StatisticsOf(const Value& value) { return StandInOf(value, kStatisticsName); }

const ValueMap* ImageOf(const Value& value) {
  const ValueMap* const image = StandInOf(value, kImageName);
  if (image == nullptr) return nullptr;
  const Value* const pixels = image->Find("pixels");
  const bool is_image = pixels != nullptr && pixels->is_tensor() &&
                        image->Find("original_range") != nullptr && TextIn(*image, "image_format") != nullptr;
  return is_image ? image : nullptr;
}

std::optional<std::string> DigestOfStandIn(const Value& value) {
  const ValueMap* const image = ImageOf(value);
  const ValueMap* const stand_in = image != nullptr ? image : StatisticsOf(value);
  const std::string* const digest = stand_in == nullptr ? nullptr : TextIn(*stand_in, "digest");
  return digest == nullptr ? std::nullopt : std::optional<std::string>(*digest);
}

std::vector<NamedTensor> ListComparable(const Value& root) {
  std::vector<NamedTensor> all;
  Append("", root, all);
  return all;
}

}  // namespace ott
