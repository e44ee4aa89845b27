#include "ott/questions/right/layout/path_pattern.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace ott::crosscheck {

absl::StatusOr<PathPattern> PathPattern::Parse(std::string_view text) {
  PathPattern pattern;
  pattern.text_ = text;
  const auto error = [&](const char* what) {
    return absl::InvalidArgumentError(absl::StrCat("the pattern \"", pattern.text_, "\" ", what));
  };
  int num_stars = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t special = std::min(text.find_first_of("{}*", i), text.size());
    if (special > i) pattern.tokens_.push_back({std::string(text.substr(i, special - i))});
    if (special == text.size()) break;
    i = special + 1;
    std::string name;
    if (text[special] == '*') {
      name = absl::StrCat("*", num_stars++);
    } else {
      const size_t end = text.find_first_of("{}*.", i);
      if (text[special] == '}' || end == text.npos || text[end] != '}' || end == i) {
        return error("has a brace that is not that of a {name}");
      }
      name = text.substr(i, end - i);
      i = end + 1;
    }
    if (pattern.Has(name)) return error("has a name twice");
    pattern.tokens_.push_back({std::move(name), true});
  }
  return pattern;
}

bool PathPattern::Has(std::string_view name) const {
  return std::any_of(tokens_.begin(), tokens_.end(),
                     [name](const Token& token) { return token.is_name && token.text == name; });
}

std::optional<Captures> PathPattern::Match(std::string_view path) const {
  Captures captures;
  // Places from which the rest does not match are not tried again.
  std::vector<bool> failed(tokens_.size() * (path.size() + 1));
  if (!MatchFrom(0, path, 0, failed, captures)) return std::nullopt;
  return captures;
}

bool PathPattern::MatchFrom(size_t token, std::string_view path, size_t position, std::vector<bool>& failed,
                            Captures& captures) const {
  if (token == tokens_.size()) return position == path.size();
  const size_t place = token * (path.size() + 1) + position;
  if (failed[place]) return false;
  failed[place] = true;
  const Token& next = tokens_[token];
  if (!next.is_name) {
    return path.substr(position, next.text.size()) == next.text &&
           MatchFrom(token + 1, path, position + next.text.size(), failed, captures);
  }
  const bool is_star = next.text[0] == '*';
  for (size_t end = position + (is_star ? 0 : 1); end <= path.size(); ++end) {
    if (!is_star && path[end - 1] == '.') return false;
    if (MatchFrom(token + 1, path, end, failed, captures)) {
      captures[next.text] = path.substr(position, end - position);
      return true;
    }
  }
  return false;
}

std::string PathPattern::Expand(const Captures& captures) const {
  std::string text;
  for (const Token& token : tokens_) text += token.is_name ? captures.find(token.text)->second : token.text;
  return text;
}

absl::Status PathPattern::CheckNamesAreIn(const PathPattern& other) const {
  for (const Token& token : tokens_) {
    if (!token.is_name || other.Has(token.text)) continue;
    return absl::InvalidArgumentError(
        token.text[0] == '*'
            ? absl::StrCat("\"", text_, "\" has more * than \"", other.text_, "\"")
            : absl::StrCat("\"", text_, "\" has {", token.text, "}, which \"", other.text_, "\" has not"));
  }
  return absl::OkStatus();
}

}  // namespace ott::crosscheck
