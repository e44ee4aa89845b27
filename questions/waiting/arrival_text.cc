#include "ott/questions/waiting/arrival_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

// "rank 3 (node1)", of what is said of one rank.
template <typename OfRank>
std::string Who(const OfRank& of) {
  return FormatRank(of.rank(), of.host());
}

// "rank 1 (vm) in 94 of 95, 5.1 ms after the next; rank 3 (vm) in 1 of 95, ..."
std::string DescribeLast(const ArrivalStats& arrivals) {
  constexpr int kMaxShown = 2;
  std::vector<std::string> ranks;
  for (const LastArrival& last : arrivals.last()) {
    if (ranks.size() == kMaxShown) break;
    ranks.push_back(absl::StrCat(Who(last), " in ", last.num_intervals(), " of ", arrivals.num_intervals(),
                                 ", ", FormatSeconds(last.after_next()), " after the next"));
  }
  if (arrivals.num_incomplete() > 0) {
    ranks.push_back(absl::StrCat(arrivals.num_incomplete(), " times not all ranks came"));
  }
  if (arrivals.num_left() > 0) {
    ranks.push_back(absl::StrCat(arrivals.num_left(), " times one left before the last came"));
  }
  return absl::StrJoin(ranks, "; ");
}

// "all wait for rank 1 (vm) at "loss": 19 ms an iteration (18 ms to 20 ms), 36.7% of it"
void AddHoldUps(const ClusterStats& stats, std::vector<std::string>* lines) {
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    if (!arrivals.has_hold_up()) continue;
    const HoldUp& hold_up = arrivals.hold_up();
    lines->push_back(absl::StrFormat(
        "%sall wait for %s at %s: %s an iteration (%s to %s), %.1f%% of it",
        hold_up.recent() ? "since the gather before, " : "", Who(hold_up), ArrivalPlace(arrivals),
        FormatSeconds(hold_up.seconds_per_iteration()), FormatSeconds(hold_up.seconds_low()),
        FormatSeconds(hold_up.seconds_high()), hold_up.share_of_iteration() * 100));
  }
}

// "rank 1 (vm) caused 150 ms of 166 ms of waiting at "loss", in iterations 6, 8, 39", or
// "rank 1 (vm) paused once for 1.6 s before "loss", in iteration 12"
void AddHiccups(const ClusterStats& stats, std::vector<std::string>* lines) {
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    for (const Hiccups& hiccups : arrivals.hiccups()) {
      const int64_t num_more = hiccups.num_hiccups() - hiccups.iterations_size();
      std::string text = Who(hiccups);
      if (!hiccups.is_pause()) {
        absl::StrAppend(&text, " caused ", FormatSeconds(hiccups.seconds()), " of ",
                        FormatSeconds(hiccups.all_seconds()), " of waiting at ");
      } else if (hiccups.num_hiccups() == 1) {
        absl::StrAppend(&text, " paused once for ", FormatSeconds(hiccups.seconds()), " before ");
      } else {
        absl::StrAppend(&text, " paused ", hiccups.num_hiccups(), " times, for ",
                        FormatSeconds(hiccups.seconds()), " in sum, before ");
      }
      absl::StrAppend(&text, ArrivalPlace(arrivals), ", in iteration",
                      hiccups.num_hiccups() == 1 ? " " : "s ", absl::StrJoin(hiccups.iterations(), ", "),
                      num_more > 0 ? absl::StrCat(" and ", num_more, " more") : "");
      lines->push_back(std::move(text));
    }
  }
}

}  // namespace

std::string ArrivalPlace(const ArrivalStats& arrivals) {
  const std::string group =
      arrivals.group().empty() ? "" : absl::StrCat(" of group ", EscapeControlCharacters(arrivals.group()));
  return absl::StrCat("\"", EscapeControlCharacters(arrivals.name()), "\"", group);
}

std::vector<std::string> WaitingLines(const ClusterStats& stats) {
  std::vector<std::string> lines;
  AddHoldUps(stats, &lines);
  AddHiccups(stats, &lines);
  return lines;
}

std::string FormatArrivals(const ClusterStats& stats) {
  if (stats.arrivals().empty()) return "";
  double error_bound = 0;
  TextTable table({"arrival at", "ranks", "iterations", "wait/iteration", "longest", "last"},
                  TextTable::LastColumn::kLeft);
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    error_bound = std::max(error_bound, arrivals.error_bound());
    table.AddRow(
        {absl::StrCat("  ", arrivals.name(), arrivals.group().empty() ? "" : " of group ", arrivals.group()),
         absl::StrCat(arrivals.num_ranks()),
         absl::StrCat(arrivals.first_iteration(), "-", arrivals.last_iteration()),
         FormatSeconds(arrivals.mean_wait()), FormatSeconds(arrivals.max_wait()), DescribeLast(arrivals)});
  }
  return absl::StrCat(table.ToString(), "arrivals are by ",
                      error_bound == 0 ? "one clock, which all ranks read"
                                       : absl::StrCat("aligned clocks: two ranks' are compared within ",
                                                      FormatSeconds(error_bound)),
                      "\n");
}

}  // namespace ott
