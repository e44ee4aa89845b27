#include "ott/questions/slow/cluster_table.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/comm/rank_list.h"
#include "ott/dist/stats/cluster_summary.h"
#include "ott/questions/waiting/arrival_text.h"

namespace ott {
namespace {

constexpr int kMaxNotesShown = 10;
// A share of the iteration: sampled measurements of less, of which a model has hundreds, are left out.
constexpr double kMinSampledShare = 0.05;

// "rank 3 (node1)", of what is said of one rank.
template <typename OfRank>
std::string Who(const OfRank& of) {
  return FormatRank(of.rank(), of.host());
}

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
  cells.push_back(Who(row.max()));
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

// "20.1% more than" with its interval, or "3.0 times": beyond the double, percents are hard to read.
template <typename Verdict>
std::string ByHowMuch(const Verdict& verdict, const char* more) {
  if (verdict.slower_by() < 1) return absl::StrFormat("%.1f%% %s than", verdict.slower_by() * 100, more);
  return absl::StrFormat("%.1f times", verdict.slower_by() + 1);
}

template <typename Verdict>
std::string FormatInterval(const Verdict& verdict) {
  if (verdict.slower_by() < 1) {
    return absl::StrFormat("%.1f to %.1f%%", verdict.slower_by_low() * 100, verdict.slower_by_high() * 100);
  }
  return absl::StrFormat("%.1f to %.1f", verdict.slower_by_low() + 1, verdict.slower_by_high() + 1);
}

// " since iteration 140"; empty if it is so in the whole run.
template <typename Verdict>
std::string When(const Verdict& verdict) {
  if (verdict.has_since_iteration() && verdict.has_until_iteration()) {
    return absl::StrCat(" in iterations ", verdict.since_iteration(), " to ", verdict.until_iteration() - 1);
  }
  if (verdict.has_since_iteration()) return absl::StrCat(" since iteration ", verdict.since_iteration());
  if (verdict.has_until_iteration()) return absl::StrCat(" until iteration ", verdict.until_iteration() - 1);
  return "";
}

// "rank 2 (node1) works 20 ms an iteration since iteration 140, 60.0% more than ..."
std::string Describe(const Straggler& slow) {
  const std::string works = absl::StrCat(
      Who(slow), " works ", FormatSeconds(slow.work_seconds()), " an iteration", When(slow), ", ",
      ByHowMuch(slow, "more"), " the others' median of ", FormatSeconds(slow.median_work_seconds()));
  const std::string in_mean = slow.has_mean_excess_seconds()
                                  ? absl::StrCat("; not in all iterations alike: in the mean it works ",
                                                 FormatSeconds(std::abs(slow.mean_excess_seconds())),
                                                 slow.mean_excess_seconds() < 0 ? " less" : " more")
                                  : "";
  if (!slow.parts().empty()) {
    std::vector<std::string> parts;
    for (const StragglerPart& part : slow.parts()) {
      parts.push_back(absl::StrCat("\"", EscapeControlCharacters(part.measurement()), "\" (+",
                                   FormatSeconds(part.excess_seconds()), ")"));
    }
    return absl::StrCat(works, " (", FormatInterval(slow), "); in everything: ", absl::StrJoin(parts, ", "),
                        in_mean);
  }
  if (slow.place_is_unknown()) {
    return absl::StrCat(works, " (", FormatInterval(slow),
                        "); in which measurement is not known, as not all times are kept", in_mean);
  }
  const std::string where = slow.measurement().empty()
                                ? std::string("outside all measurements")
                                : absl::StrCat("in \"", EscapeControlCharacters(slow.measurement()), "\"");
  return absl::StrCat(works, " (", FormatInterval(slow), "); most of it ", where, " (+",
                      FormatSeconds(slow.measurement_excess_seconds()), ")", in_mean);
}

std::string StragglerLine(const ClusterStats& stats) {
  if (stats.has_straggler()) return absl::StrCat("slowest rank: ", Describe(stats.straggler()));
  if (stats.num_ranks() < 2 && stats.missing_ranks().empty()) {
    return "slowest rank: one rank alone has nobody to be slower than";
  }
  if (stats.missing_ranks_size() > 0) {
    return absl::StrCat("slowest rank: cannot tell: nothing from ",
                        FormatRanks({stats.missing_ranks().begin(), stats.missing_ranks().end()}),
                        stats.has_detectable() ? ", and none of the others stands out" : "");
  }
  if (stats.has_detectable()) {
    return absl::StrFormat("slowest rank: none stands out (an excess of %.0f%% would have shown)",
                           std::ceil(stats.detectable() * 100));
  }
  if (AnyCollective(stats)) {
    return "slowest rank: cannot tell; that takes some 40 measured iterations, and ranks that do like work";
  }
  return "slowest rank: cannot tell: no measurement is known in which ranks wait for each other, so that "
         "waiting counts as work; name them as collective";
}

// "attention_forward: rank 1 (vm) takes 20.1% longer than the others (18.0 to 23.0%), 0.4% of an iteration"
std::vector<std::string> SlowMeasurementLines(const ClusterStats& stats) {
  std::vector<std::string> lines;
  for (const SlowMeasurement& slow : stats.slow_measurements()) {
    const bool is_double = slow.slower_by() >= 1;
    lines.push_back(absl::StrFormat("%s: %s takes %s the others%s (%s)%s, %.1f%% of an iteration",
                                    EscapeControlCharacters(slow.name()), Who(slow),
                                    ByHowMuch(slow, "longer"), is_double ? "' time" : "",
                                    FormatInterval(slow), When(slow), slow.share_of_iteration() * 100));
  }
  return lines;
}

std::vector<std::string> MisuseLines(const ClusterStats& stats) {
  std::vector<std::string> lines;
  for (const MisuseOfRanks& misuses : stats.misuses()) {
    lines.push_back(absl::StrCat(
        "REFUSED as misuse, so that these times are not all: ", EscapeControlCharacters(misuses.kind()), ", ",
        misuses.count(), misuses.count() == 1 ? " time on " : " times on ", misuses.ranks()));
  }
  return lines;
}

// A rank whose CPU was taken is not slow. Where there are several, the machine has too much to do.
std::vector<std::string> CpuTakenLines(const ClusterStats& stats) {
  const CpuTaken& taken = stats.cpu_taken();
  if (taken.ranks().empty()) return {};
  const TakenFromRank& most = taken.ranks(0);
  if (taken.num_taken() == 1) {
    return {
        absl::StrFormat("CPU taken: others had that of %s for %.0f%% of its work, which counts as nobody's",
                        Who(most), most.share() * 100)};
  }
  return {absl::StrFormat(
      "overloaded machine: others had the CPU of %d of %d ranks for 10%% of their work and more (most: "
      "%.0f%%, %s), which counts as nobody's",
      taken.num_taken(), taken.num_watched(), most.share() * 100, Who(most))};
}

std::string FormatHistory(const StragglerHistory& history) {
  std::string text;
  // The first interval is all there is, and stands above.
  if (history.num_all_intervals() <= 1 || !history.has_straggler()) return text;
  absl::StrAppend(&text, "last ", history.num_iterations(), " iterations: ", Describe(history.straggler()),
                  "; ", history.persistent() ? "persistent, " : "", "interval ", history.num_intervals(),
                  " in a row, since iteration ", history.since_iteration(), "\n");
  std::vector<std::string> counts;
  for (const SlowestCount& count : history.slowest()) {
    counts.push_back(absl::StrCat(Who(count), " in ", count.num_intervals()));
  }
  if (!counts.empty()) {
    absl::StrAppend(&text, "most work, of ", history.num_all_intervals(),
                    " intervals: ", absl::StrJoin(counts, ", "), "\n");
  }
  return text;
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

std::vector<std::string> SlowRankLines(const ClusterStats& stats) {
  std::vector<std::string> lines = SlowMeasurementLines(stats);
  // A slow measurement is the news, not that no rank is slow in all.
  lines.insert(stats.has_straggler() ? lines.begin() : lines.end(), StragglerLine(stats));
  for (std::string& line : CpuTakenLines(stats)) lines.push_back(std::move(line));
  for (std::string& line : MisuseLines(stats)) lines.push_back(std::move(line));
  return lines;
}

std::string FormatClusterTable(const ClusterStats& stats) {
  std::string text = FormatHeadline(stats);
  const bool with_quantiles = HasQuantiles(stats);
  std::vector<std::string> header = {"measurement", "share", "min", "mean", "max", "stddev", ""};
  if (with_quantiles) header.insert(header.end(), {"p50", "p90", "p99"});
  header.insert(header.end(), {"imbalance", "max on"});
  TextTable table(std::move(header), TextTable::LastColumn::kLeft);
  if (stats.iteration().num_ranks() > 0) AddRow(stats.iteration(), "", with_quantiles, table);
  int num_left_out = 0;
  for (const ClusterMeasurement& measurement : stats.measurements()) {
    if (measurement.sampled() && measurement.share_of_iteration() < kMinSampledShare) {
      ++num_left_out;
    } else {
      AddRow(measurement, "  ", with_quantiles, table);
    }
  }
  absl::StrAppend(&text, table.ToString());
  if (num_left_out > 0) {
    absl::StrAppendFormat(&text, "and %d sampled measurements of less than %.0f%% each\n", num_left_out,
                          kMinSampledShare * 100);
  }
  if (AnyCollective(stats))
    absl::StrAppend(&text, "* collective: waiting for other ranks counts there, not as work\n");
  if (std::any_of(stats.measurements().begin(), stats.measurements().end(),
                  [](const ClusterMeasurement& row) { return row.name() == kObserverThreads; })) {
    absl::StrAppend(&text, kObserverThreads,
                    ": CPU time beside the training's, writing dumps and gathering\n");
  }
  for (const OneTimeOfRanks& one_time : stats.one_time()) {
    absl::StrAppend(&text, "once: ", EscapeControlCharacters(one_time.name()), ": mean ",
                    FormatSeconds(one_time.mean()), ", max ", FormatSeconds(one_time.max().seconds()), " on ",
                    Who(one_time.max()), "\n");
  }
  for (const ClusterMeasurement& measurement : stats.measurements()) {
    if (measurement.ranks_without().empty()) continue;
    absl::StrAppend(&text, "note: \"", EscapeControlCharacters(measurement.name()), "\" is not measured on ",
                    measurement.ranks_without(), "\n");
  }
  for (int i = 0; i < std::min(stats.notes_size(), kMaxNotesShown); ++i) {
    absl::StrAppend(&text, "note: ", EscapeControlCharacters(stats.notes(i)), "\n");
  }
  if (stats.notes_size() > kMaxNotesShown) {
    absl::StrAppend(&text, "note: and ", stats.notes_size() - kMaxNotesShown, " more notes\n");
  }
  return absl::StrCat(text, FormatGroups(stats), FormatHistory(stats.history()), FormatArrivals(stats));
}

std::string ClusterStatsToJson(const ClusterStats& stats) {
  return ProtoToJson(stats, JsonLayout::kIndented);
}

}  // namespace ott
