// Patterns over paths that keep what they matched, to put it into other names.

#ifndef OTT_QUESTIONS_RIGHT_LAYOUT_PATH_PATTERN_H_
#define OTT_QUESTIONS_RIGHT_LAYOUT_PATH_PATTERN_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace ott::crosscheck {

// Holds what {name} stood for, by name; the first * is "*0", the second "*1".
using Captures = std::map<std::string, std::string, std::less<>>;

// {name} stands for any characters but dots, and for at least one; * for any, and for none. Of several ways
// to match, the one in which the first of them are shortest.
//
//   PathPattern::Parse("layers.{layer}.*")->Match("layers.3.mlp.w1")  // {"layer": "3", "*0": "mlp.w1"}
class PathPattern {
 public:
  // Returns INVALID_ARGUMENT for braces without a name between them, and for a name that is there twice.
  static absl::StatusOr<PathPattern> Parse(std::string_view text);

  const std::string& text() const { return text_; }
  bool Has(std::string_view name) const;

  std::optional<Captures> Match(std::string_view path) const;

  // Returns the pattern with `captures` in it. REQUIRES: they have all of its names
  std::string Expand(const Captures& captures) const;

  // Returns INVALID_ARGUMENT, naming it, unless `other` has all names of this one.
  absl::Status CheckNamesAreIn(const PathPattern& other) const;

 private:
  struct Token {
    std::string text;  // or the name
    bool is_name = false;
  };

  bool MatchFrom(size_t token, std::string_view path, size_t position, std::vector<bool>& failed,
                 Captures& captures) const;

  std::string text_;
  std::vector<Token> tokens_;
};

}  // namespace ott::crosscheck

#endif  // OTT_QUESTIONS_RIGHT_LAYOUT_PATH_PATTERN_H_
