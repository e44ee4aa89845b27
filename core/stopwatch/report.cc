#include "ott/core/stopwatch/report.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "ott/core/base/csv.h"
#include "ott/core/base/text_table.h"

namespace ott {
namespace {

using Measured = StopwatchSnapshot::Measurement;
using Scope = StopwatchSnapshot::Scope;

// "" if the table has no rows.
std::string FormatSection(const TextTable& table) { return table.empty() ? "" : "\n" + table.ToString(); }

std::string NameOf(const Measured& measurement) {
  return measurement.name + (measurement.collective ? " (collective)" : "");
}

std::string Percent(double value) { return absl::StrFormat("%.1f %%", value); }

std::string FormatQuantile(std::optional<double> seconds) {
  return seconds.has_value() ? FormatSecondsCell(*seconds) : "unknown";
}

void AppendSpread(const DurationStatistics& statistics, std::vector<std::string>& row) {
  row.insert(row.end(),
             {FormatSecondsCell(statistics.mean()), FormatSecondsCell(statistics.standard_deviation()),
              FormatSecondsCell(statistics.min()), FormatQuantile(statistics.Quantile(0.5)),
              FormatQuantile(statistics.Quantile(0.9)), FormatQuantile(statistics.Quantile(0.99)),
              FormatSecondsCell(statistics.max())});
}

// Shares and averages of one snapshot's iterations.
class PerIteration {
 public:
  explicit PerIteration(const StopwatchSnapshot& snapshot)
      : num_iterations_(static_cast<double>(snapshot.num_measured_iters)), all_(snapshot.iteration.total()) {}

  std::string Share(double seconds) const { return all_ > 0 ? Percent(seconds / all_ * 100) : "-"; }
  std::string Average(double seconds) const {
    return num_iterations_ > 0 ? FormatSecondsCell(seconds / num_iterations_) : "-";
  }

 private:
  double num_iterations_;
  double all_;
};

std::vector<const Measured*> LargestFirst(const StopwatchSnapshot& snapshot) {
  std::vector<const Measured*> result;
  for (const Measured& measurement : snapshot.measurements) {
    if (measurement.per_interval.count() > 0) result.push_back(&measurement);
  }
  std::stable_sort(result.begin(), result.end(), [](const Measured* a, const Measured* b) {
    return a->per_interval.total() > b->per_interval.total();
  });
  return result;
}

std::string Heading(const StopwatchSnapshot& snapshot) {
  std::string result = absl::StrCat("Stopwatch: ", snapshot.num_measured_iters, " measured iterations");
  if (snapshot.num_warmup_iters_done < snapshot.num_warmup_iters) {
    absl::StrAppend(&result, "; ", snapshot.num_warmup_iters_done, " of ", snapshot.num_warmup_iters,
                    " of warm-up are done");
  } else if (snapshot.num_warmup_iters > 0) {
    absl::StrAppend(&result, " after ", snapshot.num_warmup_iters, " of warm-up");
  }
  if (snapshot.iteration.count() > 0) {
    absl::StrAppend(&result, ", ", FormatSecondsCell(snapshot.iteration.mean()), " each");
  }
  return result + "\n";
}

std::string IterationSection(const StopwatchSnapshot& snapshot) {
  TextTable table(
      {"per iteration", "share", "average", "ran in", "mean", "stddev", "min", "p50", "p90", "p99", "max"});
  const PerIteration per_iteration(snapshot);
  const auto add = [&](const std::string& name, double total, const DurationStatistics& statistics) {
    if (statistics.count() == 0) return;
    std::vector<std::string> row = {name, per_iteration.Share(total), per_iteration.Average(total),
                                    absl::StrCat(statistics.count())};
    AppendSpread(statistics, row);
    table.AddRow(std::move(row));
  };
  for (const Measured* measurement : LargestFirst(snapshot)) {
    add(NameOf(*measurement), measurement->per_iteration.total(), measurement->per_iteration);
  }
  add("whole iteration", snapshot.iteration.total(), snapshot.iteration);
  return FormatSection(table);
}

std::string IntervalSection(const StopwatchSnapshot& snapshot, const char* heading,
                            DurationStatistics Measured::*statistics) {
  TextTable table({heading, "intervals", "total", "mean", "stddev", "min", "p50", "p90", "p99", "max"});
  for (const Measured* measurement : LargestFirst(snapshot)) {
    const DurationStatistics& of_interval = measurement->*statistics;
    if (of_interval.count() == 0) continue;
    std::vector<std::string> row = {NameOf(*measurement), absl::StrCat(of_interval.count()),
                                    FormatSecondsCell(of_interval.total())};
    AppendSpread(of_interval, row);
    table.AddRow(std::move(row));
  }
  return FormatSection(table);
}

void AddScopes(std::vector<Scope> scopes, const PerIteration& per_iteration, const std::string& indent,
               TextTable& table) {
  std::stable_sort(scopes.begin(), scopes.end(),
                   [](const Scope& a, const Scope& b) { return a.inclusive > b.inclusive; });
  for (const Scope& scope : scopes) {
    table.AddRow({indent + scope.name, per_iteration.Share(scope.inclusive), absl::StrCat(scope.count),
                  FormatSecondsCell(scope.inclusive), FormatSecondsCell(scope.exclusive),
                  per_iteration.Average(scope.inclusive), per_iteration.Average(scope.exclusive)});
    AddScopes(scope.inner, per_iteration, indent + "  ", table);
  }
}

// "" if no scope is inside of another.
std::string ScopeSection(const StopwatchSnapshot& snapshot) {
  const bool any_nested = std::any_of(snapshot.scopes.begin(), snapshot.scopes.end(),
                                      [](const Scope& scope) { return !scope.inner.empty(); });
  if (!any_nested) return "";
  TextTable table({"nested scopes", "share", "intervals", "inclusive", "exclusive", "incl./iteration",
                   "excl./iteration"});
  AddScopes(snapshot.scopes, PerIteration(snapshot), "", table);
  return FormatSection(table);
}

std::string CpuSection(const StopwatchSnapshot& snapshot) {
  if (snapshot.cpu_usage_measurement.empty()) return "";
  const CpuUsage& usage = snapshot.cpu_usage;
  TextTable table({"CPU usage", "all CPUs", "process user", "process system", "watched"});
  if (usage.duration() == 0) {
    table.AddRow({"during " + snapshot.cpu_usage_measurement, "-", "-", "-", "never ran"});
    return FormatSection(table);
  }
  table.AddRow({"during " + snapshot.cpu_usage_measurement, Percent(usage.all_percent()),
                Percent(usage.process_user_percent()), Percent(usage.process_system_percent()),
                FormatSecondsCell(usage.duration())});
  return FormatSection(table);
}

std::string OneTimeSection(const StopwatchSnapshot& snapshot) {
  TextTable table({"one-time", "duration", ""});
  for (const StopwatchSnapshot::OneTime& one_time : snapshot.one_time) {
    table.AddRow({one_time.name, FormatSecondsCell(one_time.seconds), one_time.running ? "running" : ""});
  }
  return FormatSection(table);
}

std::string Notes(const StopwatchSnapshot& snapshot) {
  std::string result;
  int64_t num_intervals = 0;
  for (const Measured& measurement : snapshot.measurements) num_intervals += measurement.per_interval.count();
  const double cost = snapshot.observer_seconds_per_interval * static_cast<double>(num_intervals);
  if (num_intervals > 0) {
    const double all = snapshot.iteration.total();
    const std::string share = all > 0 ? absl::StrFormat("%.4f %%", 100 * cost / all) : "unknown";
    absl::StrAppend(&result, "Observer cost: ", num_intervals, " intervals of ",
                    FormatSecondsCell(snapshot.observer_seconds_per_interval), " are ", share,
                    " of the measured time\n");
  }
  if (snapshot.iteration_series.stride() > 1) {
    absl::StrAppend(&result, "Times of single iterations: one in ", snapshot.iteration_series.stride(),
                    " was kept\n");
  }
  if (snapshot.num_pending_device_intervals > 0) {
    absl::StrAppend(
        &result, "Intervals that the device has not finished: ", snapshot.num_pending_device_intervals, "\n");
  }
  for (const MisuseCount& misuse : snapshot.misuses) {
    absl::StrAppend(&result, "Refused as misuse, and missing above: ", EscapeControlCharacters(misuse.kind),
                    ", ", misuse.count, misuse.count == 1 ? " time\n" : " times\n");
  }
  return result.empty() ? "" : "\n" + result;
}

std::string CsvNumber(double value) { return absl::StrFormat("%.9g", value); }

void AppendCsv(const char* kind, const std::string& name, bool collective,
               const DurationStatistics& statistics, std::string& result) {
  if (statistics.count() == 0) return;
  absl::StrAppend(&result, kind, ",", CsvField(name), ",", collective ? "true" : "false", ",",
                  statistics.count());
  for (const double value :
       {statistics.total(), statistics.mean(), statistics.standard_deviation(), statistics.min()}) {
    absl::StrAppend(&result, ",", CsvNumber(value));
  }
  for (const double q : {0.5, 0.9, 0.99}) {
    const std::optional<double> quantile = statistics.Quantile(q);
    absl::StrAppend(&result, ",", quantile.has_value() ? CsvNumber(*quantile) : "");
  }
  absl::StrAppend(&result, ",", CsvNumber(statistics.max()), "\r\n");
}

}  // namespace

std::string FormatTable(const StopwatchSnapshot& snapshot) {
  return absl::StrCat(
      Heading(snapshot), IterationSection(snapshot),
      IntervalSection(snapshot, "per interval", &Measured::per_interval),
      IntervalSection(snapshot, "per interval, on the device", &Measured::device_per_interval),
      ScopeSection(snapshot), CpuSection(snapshot), OneTimeSection(snapshot), Notes(snapshot));
}

std::string FormatCsv(const StopwatchSnapshot& snapshot) {
  std::string result = "kind,name,collective,count,total,mean,stddev,min,p50,p90,p99,max\r\n";
  AppendCsv("iteration", "", false, snapshot.iteration, result);
  for (const Measured& measurement : snapshot.measurements) {
    const auto append = [&](const char* kind, const DurationStatistics& statistics) {
      AppendCsv(kind, measurement.name, measurement.collective, statistics, result);
    };
    append("per_iteration", measurement.per_iteration);
    append("per_interval", measurement.per_interval);
    append("device_per_interval", measurement.device_per_interval);
  }
  return result;
}

}  // namespace ott
