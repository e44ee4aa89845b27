#include "tools/prof/literal.h"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "ott/core/base/utf8.h"

namespace ott::prof {
namespace {

constexpr int kMaxDepth = 64;

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  bool ParseAll(Literal* literal) {
    if (!ParseValue(literal, 0)) return false;
    SkipSpace();
    return rest_.empty();
  }

 private:
  void SkipSpace() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t' || rest_[0] == '\n' || rest_[0] == '\r')) {
      rest_.remove_prefix(1);
    }
  }

  bool Consume(char c) {
    SkipSpace();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool ConsumeWord(std::string_view word) {
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool ParseValue(Literal* value, int depth) {
    SkipSpace();
    if (rest_.empty() || depth > kMaxDepth) return false;
    switch (rest_[0]) {
      case '{':
        return ParseMap(value, depth);
      case '[':
        return ParseList(']', value, depth);
      case '(':
        return ParseList(')', value, depth);
      case '"':
      case '\'':
        value->kind = Literal::Kind::kText;
        return ParseText(&value->text);
      default:
        return ParseWordOrNumber(value);
    }
  }

  bool ParseMap(Literal* value, int depth) {
    value->kind = Literal::Kind::kMap;
    rest_.remove_prefix(1);
    while (!Consume('}')) {
      if (!value->items.empty() && !Consume(',')) return false;
      if (Consume('}')) return true;  // Python allows a last comma
      SkipSpace();
      if (rest_.empty() || (rest_[0] != '"' && rest_[0] != '\'')) return false;
      if (!ParseText(&value->names.emplace_back()) || !Consume(':')) return false;
      if (!ParseValue(&value->items.emplace_back(), depth + 1)) return false;
    }
    return true;
  }

  bool ParseList(char close, Literal* value, int depth) {
    value->kind = Literal::Kind::kList;
    rest_.remove_prefix(1);
    while (!Consume(close)) {
      if (!value->items.empty() && !Consume(',')) return false;
      if (Consume(close)) return true;
      if (!ParseValue(&value->items.emplace_back(), depth + 1)) return false;
    }
    return true;
  }

  bool ParseText(std::string* text) {
    const char quote = rest_[0];
    size_t i = 1;
    while (i < rest_.size() && rest_[i] != quote) {
      if (rest_[i] != '\\') {
        text->push_back(rest_[i++]);
        continue;
      }
      if (++i >= rest_.size()) return false;
      const char escape = rest_[i++];
      switch (escape) {
        case 'n':
          text->push_back('\n');
          break;
        case 't':
          text->push_back('\t');
          break;
        case 'r':
          text->push_back('\r');
          break;
        case 'u':
        case 'x': {
          const size_t digits = escape == 'u' ? 4 : 2;
          uint32_t code = 0;
          if (rest_.size() - i < digits) return false;
          const auto end = rest_.data() + i + digits;
          if (std::from_chars(rest_.data() + i, end, code, 16).ptr != end) return false;
          AppendUtf8(code, *text);
          i += digits;
          break;
        }
        default:
          text->push_back(escape);
      }
    }
    if (i >= rest_.size()) return false;
    rest_.remove_prefix(i + 1);
    return true;
  }

  bool ParseWordOrNumber(Literal* value) {
    if (ConsumeWord("None") || ConsumeWord("null")) return true;
    value->kind = Literal::Kind::kNumber;
    if (ConsumeWord("True") || ConsumeWord("true")) {
      value->number = 1;
      return true;
    }
    if (ConsumeWord("False") || ConsumeWord("false")) return true;
    if (ConsumeWord("NaN") || ConsumeWord("nan")) {
      value->number = std::numeric_limits<double>::quiet_NaN();
      return true;
    }
    const bool negative = ConsumeWord("-");
    if (ConsumeWord("Infinity") || ConsumeWord("inf")) {
      value->number = std::numeric_limits<double>::infinity();
    } else {
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value->number);
      if (error != std::errc() || rest_[0] == '-') return false;
      rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    }
    if (negative) value->number = -value->number;
    return true;
  }

  std::string_view rest_;
};

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

std::optional<Literal> ParseLiteral(std::string_view text) {
  Literal literal;
  if (!Parser(text).ParseAll(&literal)) return std::nullopt;
  return literal;
}

}  // namespace ott::prof
