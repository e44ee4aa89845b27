#include "ott/core/stopwatch/report.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ott/core/base/check.h"

namespace ott {
namespace {

// Four significant digits in the largest unit that leaves at least one before the point.
std::string FormatDuration(double seconds) {
  struct Unit {
    double seconds;
    const char* name;
  };
  constexpr Unit kUnits[] = {{1, "s "}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
  const Unit* unit = std::find_if(std::begin(kUnits), std::end(kUnits) - 1,
                                  [seconds](const Unit& unit) { return seconds >= unit.seconds; });
  if (seconds == 0) unit = &kUnits[0];
  const double value = seconds / unit->seconds;
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f %s", value < 10 ? 3 : value < 100 ? 2 : 1, value, unit->name);
  return text;
}

// Rows of text, the first column to the left and the others to the right.
class Columns {
 public:
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  std::string Format() const {
    std::vector<size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
    }
    std::string result;
    for (const auto& row : rows_) {
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string padding(widths[i] - Width(row[i]), ' ');
        absl::StrAppend(&result, i == 0 ? "  " : "  ", i == 0 ? row[i] : padding, i == 0 ? padding : row[i]);
      }
      while (!result.empty() && result.back() == ' ') result.pop_back();
      result += '\n';
    }
    return result;
  }

 private:
  // Code points of UTF-8.
  static size_t Width(const std::string& text) {
    return static_cast<size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
  }

  std::vector<std::vector<std::string>> rows_;
};

std::string OnOneLine(std::string_view name) {
  std::string result(name);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; },
      ' ');
  return result;
}

double PerIteration(const Measurement& measurement, const StopwatchStats& stats) {
  return stats.num_measured_iters() == 0
             ? 0
             : measurement.per_interval().total() / static_cast<double>(stats.num_measured_iters());
}

double StandardDeviation(const Statistics& statistics) {
  return statistics.count() == 0
             ? 0
             : std::sqrt(statistics.squared_deviations() / static_cast<double>(statistics.count()));
}

std::vector<const Measurement*> LargestFirst(const StopwatchStats& stats) {
  std::vector<const Measurement*> result;
  for (const Measurement& measurement : stats.measurements()) result.push_back(&measurement);
  std::stable_sort(result.begin(), result.end(), [](const Measurement* a, const Measurement* b) {
    return a->per_interval().total() > b->per_interval().total();
  });
  return result;
}

std::string MeasurementRows(const StopwatchStats& stats) {
  Columns columns;
  columns.Add({"measurement", "share", "per iteration", "per interval", "stddev", "min", "max", "intervals",
               "total"});
  const double iteration = stats.iteration().mean();
  for (const Measurement* measurement : LargestFirst(stats)) {
    const Statistics& interval = measurement->per_interval();
    const double per_iteration = PerIteration(*measurement, stats);
    char share[32];
    std::snprintf(share, sizeof(share), "%.1f %%", iteration > 0 ? per_iteration / iteration * 100 : 0.0);
    columns.Add({OnOneLine(measurement->name()) + (measurement->collective() ? " (collective)" : ""), share,
                 FormatDuration(per_iteration), FormatDuration(interval.mean()),
                 FormatDuration(StandardDeviation(interval)), FormatDuration(interval.min()),
                 FormatDuration(interval.max()), absl::StrCat(interval.count()),
                 FormatDuration(interval.total())});
  }
  return columns.Format();
}

std::string OneTimeRows(const StopwatchStats& stats) {
  Columns columns;
  for (const OneTimeMeasurement& one_time : stats.one_time()) {
    columns.Add({OnOneLine(one_time.name()), FormatDuration(one_time.seconds()),
                 one_time.running() ? "running" : ""});
  }
  return columns.Format();
}

}  // namespace

std::string FormatTable(const StopwatchStats& stats) {
  std::string result = absl::StrCat("Stopwatch: ", stats.num_measured_iters(), " measured iterations after ",
                                    stats.num_warmup_iters(), " of warm-up, ",
                                    FormatDuration(stats.iteration().mean()), " each\n");
  if (stats.measurements_size() > 0) absl::StrAppend(&result, MeasurementRows(stats));
  if (stats.one_time_size() > 0) absl::StrAppend(&result, "One-time measurements\n", OneTimeRows(stats));
  if (stats.num_misuses() > 0)
    absl::StrAppend(&result, "Calls refused as misuse: ", stats.num_misuses(), "\n");
  return result;
}

std::string FormatJson(const StopwatchStats& stats) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string result;
  const auto status = google::protobuf::util::MessageToJsonString(stats, &result, options);
  OTT_CHECK(status.ok()) << status.ToString();
  return result;
}

}  // namespace ott
