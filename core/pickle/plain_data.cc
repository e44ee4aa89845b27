#include "ott/core/pickle/plain_data.h"

#include <cmath>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace ott {

const PlainData::Value* PlainData::Find(const Value& map, std::string_view key) const {
  if (map.type != Type::kMap) return nullptr;
  for (size_t i = 0; i + 1 < map.items.size(); i += 2) {
    const Value& candidate = values_[map.items[i]];
    if (candidate.type == Type::kText && candidate.text == key) return &values_[map.items[i + 1]];
  }
  return nullptr;
}

int64_t IntegerOr(const PlainData::Value* value, int64_t missing) {
  if (value == nullptr) return missing;
  switch (value->type) {
    case PlainData::Type::kBool:
    case PlainData::Type::kInteger:
      return value->integer;
    case PlainData::Type::kReal:
      return std::abs(value->real) < 9e18 ? static_cast<int64_t>(value->real) : missing;
    case PlainData::Type::kText: {
      int64_t integer;
      return absl::SimpleAtoi(absl::string_view(value->text.data(), value->text.size()), &integer) ? integer
                                                                                                   : missing;
    }
    default:
      return missing;
  }
}

std::string_view TextOf(const PlainData::Value* value) {
  return value != nullptr && value->type == PlainData::Type::kText ? value->text : std::string_view();
}

}  // namespace ott
