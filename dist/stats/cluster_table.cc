#include "ott/dist/stats/cluster_table.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/comm/rank_list.h"

namespace ott {
namespace {

constexpr int kMaxNotes = 10;

std::string Place(const TimeOfRank& time) { return FormatRank(time.rank(), time.host()); }

// A row's times, all in the unit that suits its largest.
struct Unit {
  double factor;
  const char* name;
};

Unit UnitFor(double seconds) {
  if (seconds >= 1) return {1, "s"};
  if (seconds >= 1e-3) return {1e3, "ms"};
  if (seconds >= 1e-6) return {1e6, "us"};
  return {1e9, "ns"};
}

bool HasQuantiles(const ClusterStats& stats) {
  return stats.iteration().has_p50() ||
         std::any_of(stats.measurements().begin(), stats.measurements().end(),
                     [](const ClusterMeasurement& measurement) { return measurement.has_p50(); });
}

void AddRow(const ClusterMeasurement& row, const std::string& indent, bool with_quantiles, TextTable& table) {
  const Unit unit = UnitFor(row.max().seconds());
  const auto format = [&](double seconds) { return absl::StrFormat("%.3f", seconds * unit.factor); };
  std::vector<std::string> cells = {absl::StrCat(indent, row.name(), row.collective() ? " *" : ""),
                                    absl::StrFormat("%.1f%%", row.share_of_iteration() * 100),
                                    format(row.min().seconds()),
                                    format(row.mean()),
                                    format(row.max().seconds()),
                                    format(row.standard_deviation()),
                                    unit.name};
  if (with_quantiles) {
    for (const double quantile : {row.p50(), row.p90(), row.p99()}) {
      cells.push_back(row.has_p50() ? format(quantile) : "");
    }
  }
  cells.push_back(absl::StrFormat("%.1f%%", row.imbalance() * 100));
  cells.push_back(Place(row.max()));
  table.AddRow(std::move(cells));
}

bool AnyCollective(const ClusterStats& stats) {
  return std::any_of(stats.measurements().begin(), stats.measurements().end(),
                     [](const ClusterMeasurement& measurement) { return measurement.collective(); });
}

std::string FormatHeadline(const ClusterStats& stats) {
  std::string text = absl::StrCat(stats.num_ranks(), " of ", stats.world_size(), " ranks, ");
  if (stats.min_measured_iters() != stats.max_measured_iters()) {
    absl::StrAppend(&text, stats.min_measured_iters(), " to ");
  }
  absl::StrAppend(&text, stats.max_measured_iters(), " measured iterations; times per iteration, over ranks",
                  HasQuantiles(stats) ? "; percentiles of single intervals on all ranks\n" : "\n");
  if (stats.missing_ranks_size() > 0) {
    absl::StrAppend(&text, "INCOMPLETE: nothing from ",
                    FormatRanks({stats.missing_ranks().begin(), stats.missing_ranks().end()}), "\n");
  }
  if (stats.late_ranks_size() > 0) {
    absl::StrAppend(&text, "LATE: of an earlier gather are the data of ",
                    FormatRanks({stats.late_ranks().begin(), stats.late_ranks().end()}), "\n");
  }
  return text;
}

// "rank 2 (node1) works 20 ms an iteration, 60.0% more than ..."
std::string Describe(const Straggler& slow) {
  const std::string where = slow.measurement().empty()
                                ? std::string("outside all measurements")
                                : absl::StrCat("in \"", EscapeControlCharacters(slow.measurement()), "\"");
  // Beyond the double, percents are hard to read.
  const std::string by_how_much = slow.slower_by() < 1
                                      ? absl::StrFormat("%.1f%% more than", slow.slower_by() * 100)
                                      : absl::StrFormat("%.1f times", slow.slower_by() + 1);
  return absl::StrFormat("%s works %s an iteration, %s the others' median of %s; most of it %s (+%s)",
                         FormatRank(slow.rank(), slow.host()), FormatSeconds(slow.work_seconds()),
                         by_how_much, FormatSeconds(slow.median_work_seconds()), where,
                         FormatSeconds(slow.measurement_excess_seconds()));
}

std::string FormatStraggler(const ClusterStats& stats) {
  if (stats.has_straggler()) return absl::StrCat("slowest rank: ", Describe(stats.straggler()), "\n");
  if (stats.num_ranks() < 2) return "slowest rank: one rank alone has nobody to be slower than\n";
  if (AnyCollective(stats)) return "slowest rank: none stands out\n";
  return "slowest rank: none stands out; name the measurements in which ranks wait for each other as "
         "collective, else waiting counts as work\n";
}

std::string FormatHistory(const StragglerHistory& history) {
  std::string text;
  // The first interval is all there is, and stands above.
  if (history.num_all_intervals() <= 1) return text;
  if (history.has_straggler()) {
    absl::StrAppend(&text, "last ", history.num_iterations(), " iterations: ", Describe(history.straggler()),
                    "; ", history.persistent() ? "persistent, " : "", "interval ", history.num_intervals(),
                    " in a row, since iteration ", history.since_iteration(), "\n");
  }
  std::vector<std::string> counts;
  for (const SlowestCount& count : history.slowest()) {
    counts.push_back(absl::StrCat(FormatRank(count.rank(), count.host()), " in ", count.num_intervals()));
  }
  if (!counts.empty()) {
    absl::StrAppend(&text, "most work, of ", history.num_all_intervals(),
                    " intervals: ", absl::StrJoin(counts, ", "), "\n");
  }
  return text;
}

// "rank 1 (vm) in 94 of 95, 5.1 ms after the next; rank 3 (vm) in 1 of 95, ..."
std::string DescribeLast(const ArrivalStats& arrivals) {
  constexpr int kMaxShown = 2;
  std::vector<std::string> ranks;
  for (const LastArrival& last : arrivals.last()) {
    if (ranks.size() == kMaxShown) break;
    ranks.push_back(absl::StrCat(FormatRank(last.rank(), last.host()), " in ", last.num_intervals(), " of ",
                                 arrivals.num_intervals(), ", ", FormatSeconds(last.after_next()),
                                 " after the next"));
  }
  if (arrivals.num_incomplete() > 0) {
    ranks.push_back(absl::StrCat(arrivals.num_incomplete(), " times not all ranks came"));
  }
  return absl::StrJoin(ranks, "; ");
}

// "all wait for rank 1 (vm) at "loss": 19 ms an iteration, 36.7% of it"
std::string FormatHoldUps(const ClusterStats& stats) {
  std::string text;
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    if (!arrivals.has_hold_up()) continue;
    const HoldUp& hold_up = arrivals.hold_up();
    absl::StrAppendFormat(&text, "all wait for %s at \"%s\": %s an iteration, %.1f%% of it\n",
                          FormatRank(hold_up.rank(), hold_up.host()),
                          EscapeControlCharacters(arrivals.name()),
                          FormatSeconds(hold_up.seconds_per_iteration()), hold_up.share_of_iteration() * 100);
  }
  return text;
}

std::string FormatArrivals(const ClusterStats& stats) {
  if (stats.arrivals().empty()) return "";
  double error_bound = 0;
  TextTable table({"arrival at", "ranks", "iterations", "wait/iteration", "longest", "last"},
                  TextTable::LastColumn::kLeft);
  for (const ArrivalStats& arrivals : stats.arrivals()) {
    error_bound = std::max(error_bound, arrivals.error_bound());
    table.AddRow({absl::StrCat("  ", arrivals.name()), absl::StrCat(arrivals.num_ranks()),
                  absl::StrCat(arrivals.first_iteration(), "-", arrivals.last_iteration()),
                  FormatSeconds(arrivals.mean_wait()), FormatSeconds(arrivals.max_wait()),
                  DescribeLast(arrivals)});
  }
  return absl::StrCat(table.ToString(), FormatHoldUps(stats), "arrivals are by ",
                      error_bound == 0 ? "one clock, which all ranks read"
                                       : absl::StrCat("aligned clocks: two ranks' are compared within ",
                                                      FormatSeconds(error_bound)),
                      "\n");
}

std::string FormatGroups(const ClusterStats& stats) {
  std::string text;
  std::string dimension;
  for (const GroupStats& group : stats.groups()) {
    if (group.dimension() != dimension) {
      dimension = group.dimension();
      absl::StrAppend(&text, text.empty() ? "" : "\n", "work by ", EscapeControlCharacters(dimension), ": ");
    } else {
      absl::StrAppend(&text, ", ");
    }
    absl::StrAppendFormat(&text, "%s %s (%d ranks, %+.1f%%)", EscapeControlCharacters(group.value()),
                          FormatSeconds(group.mean_work_seconds()), group.num_ranks(),
                          group.slower_by() * 100);
  }
  return text.empty() ? "" : text + "\n";
}

}  // namespace

std::string FormatSlowest(const ClusterStats& stats) {
  return absl::StrCat(FormatStraggler(stats), FormatHoldUps(stats));
}

std::string FormatClusterTable(const ClusterStats& stats) {
  std::string text = FormatHeadline(stats);
  const bool with_quantiles = HasQuantiles(stats);
  std::vector<std::string> header = {"measurement", "share", "min", "mean", "max", "stddev", ""};
  if (with_quantiles) header.insert(header.end(), {"p50", "p90", "p99"});
  header.insert(header.end(), {"imbalance", "max on"});
  TextTable table(std::move(header), TextTable::LastColumn::kLeft);
  if (stats.iteration().num_ranks() > 0) AddRow(stats.iteration(), "", with_quantiles, table);
  for (const ClusterMeasurement& measurement : stats.measurements()) {
    AddRow(measurement, "  ", with_quantiles, table);
  }
  absl::StrAppend(&text, table.ToString());
  if (AnyCollective(stats))
    absl::StrAppend(&text, "* collective: waiting for other ranks counts there, not as work\n");
  for (const OneTimeOfRanks& one_time : stats.one_time()) {
    absl::StrAppend(&text, "once: ", EscapeControlCharacters(one_time.name()), ": mean ",
                    FormatSeconds(one_time.mean()), ", max ", FormatSeconds(one_time.max().seconds()), " on ",
                    Place(one_time.max()), "\n");
  }
  for (const ClusterMeasurement& measurement : stats.measurements()) {
    if (measurement.ranks_without_size() == 0) continue;
    absl::StrAppend(&text, "note: \"", EscapeControlCharacters(measurement.name()), "\" is not measured on ",
                    FormatRanks({measurement.ranks_without().begin(), measurement.ranks_without().end()}),
                    "\n");
  }
  for (int i = 0; i < std::min(stats.notes_size(), kMaxNotes); ++i) {
    absl::StrAppend(&text, "note: ", EscapeControlCharacters(stats.notes(i)), "\n");
  }
  if (stats.notes_size() > kMaxNotes) {
    absl::StrAppend(&text, "note: and ", stats.notes_size() - kMaxNotes, " more notes\n");
  }
  absl::StrAppend(&text, FormatGroups(stats), FormatStraggler(stats), FormatHistory(stats.history()));
  text += FormatArrivals(stats);
  return text;
}

std::string ClusterStatsToJson(const ClusterStats& stats) {
  return ProtoToJson(stats, JsonLayout::kIndented);
}

}  // namespace ott
