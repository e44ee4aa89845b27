#include "ott/questions/origin/origin_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/comm/rank_list.h"

namespace ott::origin {
namespace {

std::string Name(const std::string& operation, const std::string& module) {
  return EscapeControlCharacters(module.empty() ? operation : absl::StrCat(operation, " (", module, ")"));
}

std::string FormatRelative(double difference) {
  if (!std::isfinite(difference)) return "in size, NaN or infinities";
  return absl::StrFormat("by %.2g of its norm", difference);
}

std::string DescribeRanks(const OriginVerdict& verdict) {
  const std::vector<int> ranks(verdict.ranks().begin(), verdict.ranks().end());
  if (verdict.world_size() == 1) return absl::StrCat("on rank ", ranks[0]);
  return FormatRanksAmong(ranks, static_cast<int>(ranks.size()), verdict.world_size());
}

// Says what differs, and by how many times what is explained.
std::string DescribeDifference(const OriginVerdict& verdict) {
  std::string text = absl::StrCat(verdict.of_increment() ? "what it adds to " : "",
                                  EscapeControlCharacters(verdict.tensor()), " differs ",
                                  FormatRelative(verdict.relative_difference()));
  if (verdict.estimated() && std::isfinite(verdict.relative_difference())) text += " (estimated)";
  if (verdict.explained() > 0 && std::isfinite(verdict.relative_difference())) {
    const double times = verdict.relative_difference() / verdict.explained();
    absl::StrAppendFormat(
        &text, ", %.2g times what %s", times,
        verdict.perturbed().empty() ? "its rounding explains" : "rounding and its inputs explain");
    if (verdict.perturbed().empty() && times <= 1) text += ": another order of its sums would";
  }
  return text;
}

std::string DescribeInputs(const OriginVerdict& verdict) {
  if (verdict.input_difference() == 0) return "inputs equal bit for bit";
  return absl::StrFormat("inputs agree within %.2g", verdict.input_difference());
}

// Appends what reads the output of `parent`, each followed by what reads its own.
void AppendSpread(const OriginVerdict& verdict, int parent, std::string* text) {
  for (int i = 0; i < verdict.spread_size(); ++i) {
    const OriginSpread& spread = verdict.spread(i);
    if (spread.parent() != parent) continue;
    absl::StrAppend(text, std::string(static_cast<size_t>(2 * spread.depth()), ' '),
                    Name(spread.operation(), spread.module()));
    if (spread.iteration() != verdict.iteration()) absl::StrAppend(text, ", iteration ", spread.iteration());
    const double in = spread.input_difference();
    const double out = spread.relative_difference();
    if (out == 0) {
      absl::StrAppendFormat(text, ": %.2g swallowed\n", in);
    } else {
      absl::StrAppendFormat(text, ": %.2g -> %.2g%s\n", in, out,
                            out > 2 * in   ? ", grows"
                            : out < in / 2 ? ", shrinks"
                                           : "");
    }
    AppendSpread(verdict, i, text);
  }
}

}  // namespace

std::string FormatSentence(const OriginVerdict& verdict) {
  if (verdict.kind() == OriginVerdict::NONE || verdict.kind() == OriginVerdict::UNKNOWN) {
    const std::string begin = verdict.kind() == OriginVerdict::NONE ? "none" : "cannot tell";
    std::string text =
        absl::StrCat(begin, ": ",
                     verdict.perturbed().empty() ? "no operation is known to have computed something else"
                                                 : "no operation differs by more than rounding explains",
                     ", of ", verdict.num_compared(), " on ", verdict.world_size(),
                     verdict.world_size() == 1 ? " rank" : " ranks");
    if (verdict.largest_unseen() == 0) return text;
    absl::StrAppendFormat(&text, "; faults below %.2g of an output (median; at most %.2g, in ",
                          verdict.median_unseen(), verdict.largest_unseen());
    return absl::StrCat(text, EscapeControlCharacters(verdict.largest_unseen_in()), ") are not excluded");
  }
  std::string text =
      absl::StrCat("iteration ", verdict.iteration(), ", ", DescribeRanks(verdict), ", ",
                   verdict.phase().empty() ? verdict.direction() : EscapeControlCharacters(verdict.phase()),
                   ": ", Name(verdict.operation(), verdict.module()));
  if (!verdict.source().empty()) absl::StrAppend(&text, ", ", EscapeControlCharacters(verdict.source()));
  text += ": ";
  const std::string detail = EscapeControlCharacters(verdict.detail());
  if (verdict.in_one_run_only()) {
    absl::StrAppend(&text, detail);
  } else if (verdict.kind() == OriginVerdict::INPUT) {
    absl::StrAppend(&text, DescribeDifference(verdict), detail.empty() ? "" : "; ", detail);
  } else {
    absl::StrAppend(&text, DescribeInputs(verdict), "; ", DescribeDifference(verdict),
                    detail.empty() ? "" : "; ", detail);
  }
  const bool on_all = verdict.ranks_size() == verdict.world_size() && verdict.world_size() > 1;
  // A device that fails makes a rank compute something else; the others get that by a collective.
  if (on_all && verdict.kind() != OriginVerdict::INPUT && !verdict.collective()) {
    text += "; on all ranks, so it is the program and not a device";
  }
  return text;
}

std::string FormatOrigin(const OriginVerdict& verdict) {
  std::string text = absl::StrCat("origin: ", verdict.verdict(), "\n");
  if (verdict.spread_size() > 0) {
    text += "how it spreads:\n";
    AppendSpread(verdict, -1, &text);
    absl::StrAppend(&text, "after it ", verdict.num_differ_after(), " operations differ for that reason, ",
                    verdict.num_swallow_after(), " swallow it\n");
  }
  absl::StrAppend(&text, "compared ", verdict.num_compared(), " operations on ", verdict.world_size(),
                  verdict.world_size() == 1 ? " rank" : " ranks");
  if (verdict.num_renamed() > 0) absl::StrAppend(&text, ", ", verdict.num_renamed(), " by another name");
  if (verdict.num_only_in_reference() > 0) {
    absl::StrAppend(&text, ", ", verdict.num_only_in_reference(), " only in the reference");
  }
  if (verdict.num_only_in_current() > 0) {
    absl::StrAppend(&text, ", ", verdict.num_only_in_current(), " only in the current run");
  }
  if (verdict.num_not_judged() > 0) {
    absl::StrAppend(&text, "; ", verdict.num_not_judged(),
                    " outputs were not judged: the perturbed run does not tell what becomes of their inputs");
  }
  text += "\n";
  for (const std::string& note : verdict.notes()) absl::StrAppend(&text, EscapeControlCharacters(note), "\n");
  for (const std::string& problem : verdict.problems()) {
    absl::StrAppend(&text, "INCOMPLETE: ", EscapeControlCharacters(problem), "\n");
  }
  return text;
}

}  // namespace ott::origin
