#include "ott/core/dump/selection.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"

namespace ott {
namespace {

absl::StatusOr<std::vector<std::regex>> Compile(const std::vector<std::string>& expressions) {
  std::vector<std::regex> compiled;
  for (const std::string& expression : expressions) {
    try {
      compiled.emplace_back(expression);
    } catch (const std::regex_error& error) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", expression, "' is not a regular expression: ", error.what()));
    }
  }
  return compiled;
}

bool AnyMatches(const std::string& path, const std::vector<std::string>& globs,
                const std::vector<std::regex>& regexes) {
  return std::any_of(globs.begin(), globs.end(),
                     [&](const std::string& glob) { return MatchesGlob(path, glob); }) ||
         std::any_of(regexes.begin(), regexes.end(),
                     [&](const std::regex& r) { return std::regex_match(path, r); });
}

template <typename T>
bool Contains(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

bool MatchesGlob(std::string_view text, std::string_view glob) {
  // Where to go on after the last star, one character later.
  size_t star = std::string_view::npos;
  size_t star_text = 0;
  size_t t = 0;
  size_t g = 0;
  while (t < text.size()) {
    if (g < glob.size() && glob[g] == '*') {
      star = g++;
      star_text = t;
    } else if (g < glob.size() && (glob[g] == '?' || glob[g] == text[t])) {
      ++g;
      ++t;
    } else if (star != std::string_view::npos) {
      g = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (g < glob.size() && glob[g] == '*') ++g;
  return g == glob.size();
}

absl::StatusOr<Selection> Selection::Create(SelectionOptions options) {
  if (options.every < 0 || options.begin < 0 || options.end < 0) {
    return absl::InvalidArgumentError("a selection of iterations has a negative number");
  }
  Selection selection;
  OTT_ASSIGN_OR_RETURN(selection.include_, Compile(options.include_regexes));
  OTT_ASSIGN_OR_RETURN(selection.exclude_, Compile(options.exclude_regexes));
  selection.options_ = std::move(options);
  return selection;
}

bool Selection::WantsIteration(int64_t iteration) const {
  const SelectionOptions& o = options_;
  if (!o.first && o.every == 0 && o.iterations.empty() && o.end == 0) return true;
  return (o.first && iteration == 0) || (o.every > 0 && iteration % o.every == 0) ||
         Contains(o.iterations, iteration) || (o.begin <= iteration && iteration < o.end);
}

bool Selection::WantsRank(int rank) const { return options_.ranks.empty() || Contains(options_.ranks, rank); }

bool Selection::WantsPath(const std::string& path) const {
  const bool all = options_.include_globs.empty() && include_.empty();
  return (all || AnyMatches(path, options_.include_globs, include_)) &&
         !AnyMatches(path, options_.exclude_globs, exclude_);
}

}  // namespace ott
