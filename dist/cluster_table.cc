#include "ott/dist/cluster_table.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/proto_json.h"
#include "ott/dist/rank_list.h"
#include "ott/dist/text_table.h"

namespace ott {
namespace {

std::string Place(const TimeOfRank& time) {
  return absl::StrCat("rank ", time.rank(), " (", time.host(), ")");
}

// All times of a row in the unit that suits its largest.
std::vector<std::string> TimesInOneUnit(const std::vector<double>& seconds) {
  const double largest = *std::max_element(seconds.begin(), seconds.end());
  const double factor = largest >= 1 ? 1 : largest >= 1e-3 ? 1e3 : largest >= 1e-6 ? 1e6 : 1e9;
  const char* unit = largest >= 1 ? "s " : largest >= 1e-3 ? "ms" : largest >= 1e-6 ? "us" : "ns";
  std::vector<std::string> texts;
  for (const double value : seconds) texts.push_back(absl::StrFormat("%.3f %s", value * factor, unit));
  return texts;
}

void AddRow(const ClusterMeasurement& row, const std::string& indent, TextTable& table) {
  const std::vector<std::string> times =
      TimesInOneUnit({row.min().seconds(), row.mean(), row.max().seconds(), row.standard_deviation()});
  table.AddRow({absl::StrCat(indent, row.name(), row.collective() ? " *" : ""),
                absl::StrFormat("%.1f%%", row.share_of_iteration() * 100), times[0], times[1], times[2],
                times[3], absl::StrFormat("%.1f%%", row.imbalance() * 100), Place(row.max())});
}

bool AnyCollective(const ClusterStats& stats) {
  return std::any_of(stats.measurements().begin(), stats.measurements().end(),
                     [](const ClusterMeasurement& measurement) { return measurement.collective(); });
}

std::string FormatHeadline(const ClusterStats& stats) {
  int64_t fewest = 0;
  int64_t most = 0;
  for (const RankSummary& rank : stats.ranks()) {
    fewest =
        &rank == &stats.ranks(0) ? rank.num_measured_iters() : std::min(fewest, rank.num_measured_iters());
    most = std::max(most, rank.num_measured_iters());
  }
  std::string text = absl::StrCat(stats.ranks_size(), " of ", stats.world_size(), " ranks, ", most,
                                  " measured iterations; times per iteration, over ranks\n");
  if (fewest != most) {
    text = absl::StrCat(stats.ranks_size(), " of ", stats.world_size(), " ranks, ", fewest, " to ", most,
                        " measured iterations; times per iteration, over ranks\n");
  }
  if (stats.missing_ranks_size() > 0) {
    absl::StrAppend(&text, "INCOMPLETE: nothing from ",
                    FormatRanks({stats.missing_ranks().begin(), stats.missing_ranks().end()}), "\n");
  }
  return text;
}

std::string FormatStraggler(const ClusterStats& stats) {
  if (!stats.has_straggler()) {
    if (stats.ranks_size() < 2) return "slowest rank: one rank alone has nobody to be slower than\n";
    if (AnyCollective(stats)) return "slowest rank: none stands out\n";
    return "slowest rank: none stands out; name the measurements in which ranks wait for each other as "
           "collective, else "
           "waiting counts as work\n";
  }
  const Straggler& slow = stats.straggler();
  const std::string where = slow.measurement().empty()
                                ? std::string("outside all measurements")
                                : absl::StrCat("in \"", EscapeControlCharacters(slow.measurement()), "\"");
  return absl::StrFormat(
      "slowest rank: rank %d (%s) works %s an iteration, %.1f%% more than the others' median of %s; "
      "most of it %s (+%s)\n",
      slow.rank(), slow.host(), FormatSeconds(slow.work_seconds()), slow.slower_by() * 100,
      FormatSeconds(slow.median_work_seconds()), where, FormatSeconds(slow.measurement_excess_seconds()));
}

}  // namespace

std::string FormatClusterTable(const ClusterStats& stats) {
  std::string text = FormatHeadline(stats);
  TextTable table({"measurement", "share", "min", "mean", "max", "stddev", "imbalance", "max on"});
  if (stats.iteration().num_ranks() > 0) AddRow(stats.iteration(), "", table);
  for (const ClusterMeasurement& measurement : stats.measurements()) AddRow(measurement, "  ", table);
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
  for (const std::string& note : stats.notes())
    absl::StrAppend(&text, "note: ", EscapeControlCharacters(note), "\n");
  absl::StrAppend(&text, FormatStraggler(stats));
  return text;
}

std::string ClusterStatsToJson(const ClusterStats& stats) {
  return ProtoToJson(stats, JsonLayout::kIndented);
}

}  // namespace ott
