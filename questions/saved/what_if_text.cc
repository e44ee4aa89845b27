#include "ott/questions/saved/what_if_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/text_table.h"
#include "ott/core/statistics/policy.h"
#include "ott/questions/saved/what_if.h"

namespace ott::saved {
namespace {

constexpr int kMaxRows = 8;

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

// "an iteration", "a step"
std::string One(const std::string& word) {
  return absl::StrCat(word.find_first_of("aeiou") == 0 ? "an " : "a ", word);
}

std::string Interval(const WhatIfPart& part) {
  if (part.saved_high() - part.saved_low() >= 2) return "unknown";
  return absl::StrFormat("%.0f to %.0f", 100 * part.saved_low(), 100 * part.saved_high());
}

using Parts = google::protobuf::RepeatedPtrField<WhatIfPart>;

// By what they have to do with it, most first.
void AppendParts(const char* title, const Parts& parts, std::string& out) {
  if (parts.size() < 2) return;
  std::vector<const WhatIfPart*> order;
  for (const WhatIfPart& part : parts) order.push_back(&part);
  std::stable_sort(order.begin(), order.end(),
                   [](const WhatIfPart* a, const WhatIfPart* b) { return a->slowdown() > b->slowdown(); });
  TextTable table({title, "slowdown", "saved if mended"});
  for (size_t i = 0; i < std::min<size_t>(order.size(), kMaxRows); ++i) {
    table.AddRow({absl::StrCat("  ", order[i]->name()), absl::StrFormat("%.3f", order[i]->slowdown()),
                  Percent(order[i]->saved())});
  }
  absl::StrAppend(&out, table.ToString());
  if (parts.size() > kMaxRows) absl::StrAppend(&out, "  and ", parts.size() - kMaxRows, " more\n");
}

void AppendCriticalPath(const WhatIfAnswer& answer, std::string& out) {
  if (answer.critical_path().empty()) return;
  TextTable table({absl::StrCat("what the end of ", One(answer.step_word()), " waited for"), "share"});
  double rest = 0;
  for (int i = 0; i < answer.critical_path_size(); ++i) {
    const CriticalPart& part = answer.critical_path(i);
    if (i >= kMaxRows) {
      rest += part.share();
    } else {
      table.AddRow({absl::StrCat("  ", part.operation(), " on ", part.rank()), Percent(part.share())});
    }
  }
  if (rest > 0) table.AddRow({"  all else", Percent(rest)});
  absl::StrAppend(&out, table.ToString());
}

}  // namespace

std::string FormatRepair(const WhatIfPart& part, const WhatIfAnswer& answer) {
  return absl::StrCat("without ", EscapeControlCharacters(part.name()), " ", One(answer.step_word()),
                      " takes ", FormatSeconds(part.seconds()), " instead of ",
                      FormatSeconds(answer.measured_seconds()),
                      absl::StrFormat(" (%+.0f %%, 95 %%: %s)", -100 * part.saved(), Interval(part)));
}

std::string FormatWhatIfLine(const WhatIfAnswer& answer) {
  if (answer.verdict() == WHAT_IF_CANNOT_TELL || answer.verdict() == WHAT_IF_EVEN ||
      answer.repairs().empty()) {
    return absl::StrCat("what if: ", EscapeControlCharacters(answer.conclusion()));
  }
  return absl::StrCat("what if: ", FormatRepair(answer.repairs(0), answer));
}

std::string FormatWhatIf(const WhatIfAnswer& answer) {
  std::string out = absl::StrFormat("%d ranks, %d %ss (%d to %d)\n", answer.num_ranks(), answer.num_steps(),
                                    answer.step_word(), answer.first_step(), answer.last_step());
  absl::StrAppend(&out, One(answer.step_word()), " takes ", FormatSeconds(answer.measured_seconds()));
  if (answer.launch_slowdown() > 1.0005) {
    absl::StrAppend(&out, ", ", FormatSeconds(answer.replayed_seconds()),
                    " without what no operation accounts for");
  }
  absl::StrAppend(&out, ", and ", FormatSeconds(answer.ideal_seconds()), " if all ranks were alike",
                  absl::StrFormat(": slowdown %.3f\n", answer.slowdown()));
  absl::StrAppend(&out, "verdict: ", EscapeControlCharacters(answer.conclusion()), "\n");
  if (answer.replay_error() <= kMaxReplayError) {
    for (const WhatIfPart& repair : answer.repairs()) {
      absl::StrAppend(&out, "  ", FormatRepair(repair, answer), "\n");
    }
    if (answer.has_best_repairs_together()) {
      absl::StrAppend(&out, "together: ", FormatRepair(answer.best_repairs_together(), answer), "\n");
    }
    for (const WhatIfPart& scaled : answer.scaled()) {
      absl::StrAppend(&out, "scaled: with ", scaled.name(), " ", One(answer.step_word()), " takes ",
                      FormatSeconds(scaled.seconds()), " instead of ",
                      FormatSeconds(answer.measured_seconds()),
                      absl::StrFormat(" (%+.1f %%)\n", -100 * scaled.saved()));
    }
    absl::StrAppend(&out, "  ", FormatRepair(answer.communication_overlapped(), answer), "\n");
    AppendParts("rank", answer.by_rank(), out);
    AppendParts("operation", answer.by_operation(), out);
    AppendParts("stage", answer.by_stage(), out);
    AppendParts("replica", answer.by_replica(), out);
    AppendParts("host", answer.by_host(), out);
    if (answer.has_worst_ranks_share()) {
      absl::StrAppend(
          &out,
          absl::StrFormat("of what all repairs would bring, the worst %d %s brings %s",
                          answer.worst_ranks_size(), answer.worst_ranks_size() == 1 ? "rank" : "ranks",
                          Percent(answer.worst_ranks_share())),
          answer.has_last_stage_share()
              ? absl::StrCat(", the last stage ", Percent(answer.last_stage_share()))
              : "",
          "\n");
    }
    AppendCriticalPath(answer, out);
  }
  absl::StrAppend(&out, absl::StrFormat("replay error %.2f %% (limit %.0f %%)\n", 100 * answer.replay_error(),
                                        100 * kMaxReplayError));
  for (const std::string& note : answer.notes()) {
    absl::StrAppend(&out, "note: ", EscapeControlCharacters(note), "\n");
  }
  return out;
}

}  // namespace ott::saved
