#include "ott/questions/right/layout/layout_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/text_table.h"
#include "ott/core/compare/report.h"
#include "ott/dist/comm/rank_list.h"

namespace ott::crosscheck {
namespace {

constexpr int kMaxLines = 20;
constexpr int kMaxIterations = 5;
constexpr size_t kMaxNames = 4;

std::string Place(const LayoutPlace& place) {
  const std::vector<int> ranks = {place.ranks().begin(), place.ranks().end()};
  return absl::StrCat(place.value(), " in ", place.run(), ", ", ranks.size() > 1 ? "the sum of " : "",
                      FormatRanks(ranks), ", \"", EscapeControlCharacters(place.path()), "\" [",
                      absl::StrJoin(place.index(), ", "), "]");
}

// Returns the text that follows "iteration 3: ".
std::string DifferenceText(const LayoutDifference& difference) {
  std::string text = absl::StrCat("DIFFER in tensor \"", EscapeControlCharacters(difference.tensor()), "\" (",
                                  difference.dtype(), " [", absl::StrJoin(difference.shape(), ", "), "])");
  if (!difference.problem().empty()) return absl::StrCat(text, ": ", difference.problem(), "\n");
  const std::vector<int> ranks = {difference.ranks().begin(), difference.ranks().end()};
  absl::StrAppendFormat(&text, ", in %s %s: %d of %d elements, max abs error %.3g\n", difference.run(),
                        FormatRanksAmong(ranks, difference.ranks_size(), difference.num_ranks()),
                        difference.num_mismatched(), difference.num_compared(), difference.max_abs_error());
  absl::StrAppend(&text, "    element [", absl::StrJoin(difference.index(), ", "),
                  "]: ", Place(difference.found()), "; ", Place(difference.expected()));
  if (difference.has_ulp_distance()) absl::StrAppend(&text, "; ", difference.ulp_distance(), " ULP");
  const std::string flipped = FlippedBitsText(difference.flipped_bits());
  if (!flipped.empty()) absl::StrAppend(&text, "; ", flipped);
  return text + "\n";
}

std::string UnderstoodText(const LayoutVerdict& verdict) {
  std::string text = absl::StrCat("layout as understood, from iteration ", verdict.iteration(), " on:\n");
  for (const std::string& line : verdict.understood()) {
    absl::StrAppend(&text, "  ", EscapeControlCharacters(line), "\n");
  }
  return text;
}

std::string IterationText(const LayoutVerdict& verdict) {
  std::string text;
  if (verdict.num_different() > 0) {
    // A tensor may differ in both runs.
    std::vector<std::string> names;
    for (const LayoutDifference& difference : verdict.differences()) {
      const std::string name = absl::StrCat("\"", EscapeControlCharacters(difference.tensor()), "\"");
      if (names.size() == kMaxNames) break;
      if (names.empty() || names.back() != name) names.push_back(name);
    }
    absl::StrAppend(&text, "iteration ", verdict.iteration(), ": ", verdict.num_different(), " of ",
                    verdict.num_tensors(), " tensors DIFFER: ", absl::StrJoin(names, ", "),
                    verdict.num_different() > static_cast<int64_t>(names.size()) ? ", ..." : "", "\n");
  }
  const int num_reasons = verdict.not_compared_size();
  for (int i = 0; i < std::min(num_reasons, kMaxLines); ++i) {
    absl::StrAppend(&text, "iteration ", verdict.iteration(),
                    ": NOT COMPARED: ", EscapeControlCharacters(verdict.not_compared(i)), "\n");
  }
  if (num_reasons > kMaxLines) {
    absl::StrAppend(&text, "iteration ", verdict.iteration(), ": NOT COMPARED: ", num_reasons - kMaxLines,
                    " more of the kind\n");
  }
  return text;
}

std::string SummaryText(const std::vector<LayoutVerdict>& verdicts) {
  int num_different = 0;
  int num_not_compared = 0;
  int num_bitwise = 0;
  int64_t num_tensors = 0;
  double max_abs_error = 0;
  for (const LayoutVerdict& verdict : verdicts) {
    num_different += verdict.outcome() == DIFFERENT;
    num_not_compared += !verdict.not_compared().empty();
    num_bitwise += verdict.outcome() == BITWISE_EQUAL;
    num_tensors += verdict.num_tensors();
    max_abs_error = std::max(max_abs_error, verdict.max_abs_error());
  }
  std::vector<std::string> parts = {absl::StrCat(verdicts.size(),
                                                 verdicts.size() == 1 ? " iteration, " : " iterations, ",
                                                 num_tensors, " tensors compared")};
  const int num_within =
      static_cast<int>(std::count_if(verdicts.begin(), verdicts.end(), [](const auto& verdict) {
        return verdict.outcome() == WITHIN_TOLERANCE;
      }));
  if (num_bitwise > 0) parts.push_back(absl::StrCat(num_bitwise, " equal bit for bit"));
  if (num_within > 0) parts.push_back(absl::StrCat(num_within, " within tolerance but not bit for bit"));
  if (num_different > 0) parts.push_back(absl::StrCat(num_different, " DIFFER"));
  if (num_not_compared > 0) parts.push_back(absl::StrCat(num_not_compared, " NOT COMPARED, or not in full"));
  return absl::StrFormat("%s; max abs error %.3g\n", absl::StrJoin(parts, "; "), max_abs_error);
}

}  // namespace

std::string LayoutVerdictsToText(const std::vector<LayoutVerdict>& verdicts) {
  std::string text;
  int num_failed = 0;
  for (const LayoutVerdict& verdict : verdicts) {
    if (!verdict.understood().empty()) text += UnderstoodText(verdict);
    const std::string found = IterationText(verdict);
    if (!found.empty() && ++num_failed <= kMaxIterations) text += found;
  }
  if (num_failed > kMaxIterations) {
    absl::StrAppend(&text, "... and ", num_failed - kMaxIterations, " more iterations\n");
  }
  text += SummaryText(verdicts);
  for (const LayoutVerdict& verdict : verdicts) {
    if (verdict.differences().empty()) continue;
    absl::StrAppend(&text, "first divergence: iteration ", verdict.iteration(), ": ",
                    DifferenceText(verdict.differences(0)));
    break;
  }
  return text;
}

}  // namespace ott::crosscheck
