#include "ott/core/dump/selection.h"

#include <algorithm>
#include <regex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/glob.h"
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
  return MatchesAnyTensorGlob(path, globs) ||
         std::any_of(regexes.begin(), regexes.end(),
                     [&](const std::regex& r) { return std::regex_match(path, r); });
}

}  // namespace

struct Selection::Regexes {
  std::vector<std::regex> include;
  std::vector<std::regex> exclude;
};

absl::StatusOr<Selection> Selection::Create(SelectionOptions options) {
  Selection selection;
  OTT_ASSIGN_OR_RETURN(selection.iterations_, IterationSelector::Create(options.iterations));
  Regexes regexes;
  OTT_ASSIGN_OR_RETURN(regexes.include, Compile(options.include_regexes));
  OTT_ASSIGN_OR_RETURN(regexes.exclude, Compile(options.exclude_regexes));
  selection.regexes_ = std::make_shared<const Regexes>(std::move(regexes));
  selection.options_ = std::move(options);
  return selection;
}

bool Selection::WantsRank(int rank) const {
  const std::vector<int>& ranks = options_.ranks;
  return ranks.empty() || std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

bool Selection::WantsPath(const std::string& path) const {
  if (regexes_ == nullptr) return true;
  const bool all = options_.include_globs.empty() && regexes_->include.empty();
  return (all || AnyMatches(path, options_.include_globs, regexes_->include)) &&
         !AnyMatches(path, options_.exclude_globs, regexes_->exclude);
}

}  // namespace ott
