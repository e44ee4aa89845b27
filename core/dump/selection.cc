#include "ott/core/dump/selection.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/glob.h"
#include "ott/core/base/status_macros.h"
#include "re2/re2.h"

namespace ott {
namespace {

using CompiledRegexes = std::vector<std::unique_ptr<const RE2>>;

absl::StatusOr<CompiledRegexes> Compile(const std::vector<std::string>& expressions) {
  CompiledRegexes compiled;
  for (const std::string& expression : expressions) {
    compiled.push_back(std::make_unique<const RE2>(expression, RE2::Quiet));
    if (compiled.back()->ok()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "'", expression, "' is not a regular expression as RE2 has them: ", compiled.back()->error()));
  }
  return compiled;
}

bool AnyMatches(const std::string& path, const std::vector<std::string>& globs,
                const CompiledRegexes& regexes) {
  return MatchesAnyTensorGlob(path, globs) ||
         std::any_of(regexes.begin(), regexes.end(),
                     [&](const std::unique_ptr<const RE2>& regex) { return RE2::FullMatch(path, *regex); });
}

}  // namespace

struct Selection::Regexes {
  CompiledRegexes include;
  CompiledRegexes exclude;
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
