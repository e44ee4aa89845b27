#include "ott/core/kernel_profile/literal.h"

#include <charconv>
#include <cstddef>

#include "ott/core/json/json_cursor.h"
#include "ott/core/json/json_string.h"

namespace ott::kernels {
namespace {

constexpr int kMaxDepth = 64;

bool Parse(JsonCursor& cursor, int depth, Literal* literal) {
  if (depth > kMaxDepth) return false;
  const auto parse_item = [&] { return Parse(cursor, depth + 1, &literal->items.emplace_back()); };
  switch (cursor.Peek()) {
    case '{':
      literal->kind = Literal::Kind::kMap;
      return cursor.Object([&](std::string_view name) {
        literal->names.push_back(UnescapedJson(name));
        return parse_item();
      });
    case '[':
    case '(':
      literal->kind = Literal::Kind::kList;
      return cursor.List(parse_item);
    case '"':
    case '\'': {
      std::string_view raw;
      if (!cursor.String(&raw)) return false;
      UnescapeJson(raw, literal->text);
      return true;
    }
  }
  JsonScalar scalar;
  if (!cursor.Scalar(&scalar)) return false;
  if (scalar.kind == JsonScalar::Kind::kNull) return true;
  literal->kind = Literal::Kind::kNumber;
  if (scalar.kind == JsonScalar::Kind::kTrue) literal->number = 1;
  if (scalar.kind == JsonScalar::Kind::kTrue || scalar.kind == JsonScalar::Kind::kFalse) return true;
  const char* const end = scalar.text.data() + scalar.text.size();
  const auto [at, error] = std::from_chars(scalar.text.data(), end, literal->number);
  return error == std::errc() && at == end;
}

}  // namespace

const Literal* Literal::Find(std::string_view name) const {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return &items[i];
  }
  return nullptr;
}

std::string_view Literal::FindText(std::string_view name) const {
  const Literal* value = Find(name);
  return value == nullptr ? std::string_view() : std::string_view(value->text);
}

std::optional<std::vector<int64_t>> Literal::ToShape() const {
  if (!is_list()) return std::nullopt;
  std::vector<int64_t> shape;
  for (const Literal& item : items) {
    // Sizes beyond any memory are no sizes.
    if (!item.is_number() || !(item.number >= 0 && item.number <= 1e15)) return std::nullopt;
    shape.push_back(static_cast<int64_t>(item.number));
  }
  return shape;
}

std::optional<Literal> ParseLiteral(std::string_view text) {
  Literal literal;
  JsonCursor cursor(text, JsonDialect::kLiteral);
  if (!Parse(cursor, 0, &literal)) return std::nullopt;
  cursor.Peek();
  return cursor.at_end() ? std::optional(std::move(literal)) : std::nullopt;
}

}  // namespace ott::kernels
