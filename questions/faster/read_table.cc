#include "questions/faster/read_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"

namespace ott::faster {
namespace {

absl::Status ErrorAt(const std::string& place, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(place, ": ", what));
}

absl::StatusOr<std::vector<std::string>> SplitCsvLine(const std::string& place, std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back().push_back(c);
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back().push_back(line[++i]);
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back().push_back(c);
    }
  }
  if (quoted) return ErrorAt(place, "a quote is not closed");
  return fields;
}

constexpr size_t kNoColumn = static_cast<size_t>(-1);

struct Columns {
  size_t process = kNoColumn;
  size_t iteration = kNoColumn;
  size_t measurement = kNoColumn;
  size_t seconds = kNoColumn;
  size_t count = 0;
};

absl::StatusOr<Columns> FindColumns(const std::string& place, const std::vector<std::string>& names) {
  Columns columns;
  columns.count = names.size();
  const std::map<std::string, size_t*> known = {{"process", &columns.process},
                                                {"iteration", &columns.iteration},
                                                {"measurement", &columns.measurement},
                                                {"seconds", &columns.seconds}};
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = known.find(absl::AsciiStrToLower(absl::StripAsciiWhitespace(names[i])));
    if (found == known.end()) continue;
    if (*found->second != kNoColumn)
      return ErrorAt(place, absl::StrCat("two columns are named ", found->first));
    *found->second = i;
  }
  if (columns.process == kNoColumn || columns.seconds == kNoColumn) {
    return ErrorAt(
        place, absl::StrCat("its columns are ", EscapeControlCharacters(absl::StrJoin(names, ", ")),
                            "; needed are process and seconds (times in another unit have to be converted), "
                            "and there may be iteration and measurement"));
  }
  return columns;
}

// Leaves the order as it is if an iteration is no number.
void SortByIteration(std::vector<TableRow>* rows) {
  std::vector<std::pair<double, size_t>> order;
  for (const TableRow& row : *rows) {
    double iteration = 0;
    if (!row.iteration.empty() && (!absl::SimpleAtod(row.iteration, &iteration) || std::isnan(iteration)))
      return;
    order.emplace_back(iteration, order.size());
  }
  std::sort(order.begin(), order.end());
  std::vector<TableRow> sorted;
  for (const auto& [iteration, index] : order) sorted.push_back(std::move((*rows)[index]));
  rows->swap(sorted);
}

}  // namespace

absl::StatusOr<std::vector<TableRow>> ReadCsv(const std::string& path, const std::string& text) {
  std::vector<TableRow> rows;
  Columns columns;
  int64_t number = 0;
  for (const absl::string_view part : absl::StrSplit(text, '\n')) {
    std::string_view line(part.data(), part.size());
    const std::string place = absl::StrCat(path, ":", ++number);
    if (number == 1 && line.substr(0, 3) == "\xEF\xBB\xBF") line.remove_prefix(3);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    OTT_ASSIGN_OR_RETURN(std::vector<std::string> fields, SplitCsvLine(place, line));
    if (columns.count == 0) {
      OTT_ASSIGN_OR_RETURN(columns, FindColumns(place, fields));
      continue;
    }
    if (fields.size() != columns.count) {
      return ErrorAt(place, absl::StrCat(fields.size(), " fields, and the first line names ", columns.count));
    }
    TableRow row;
    row.place = place;
    row.process = fields[columns.process];
    if (columns.iteration != kNoColumn) row.iteration = fields[columns.iteration];
    if (columns.measurement != kNoColumn) row.measurement = fields[columns.measurement];
    if (!absl::SimpleAtod(fields[columns.seconds], &row.seconds)) {
      return ErrorAt(place, absl::StrCat("\"", EscapeControlCharacters(fields[columns.seconds]),
                                         "\" is no number of seconds"));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::StatusOr<std::vector<Process>> CollectRows(const std::string& path, std::vector<TableRow> rows) {
  SortByIteration(&rows);
  std::vector<Process> processes;
  std::map<std::string, size_t> process_index;
  std::map<std::pair<size_t, std::string>, size_t> measurement_index;
  std::set<std::tuple<size_t, size_t, std::string>> seen;
  for (const TableRow& row : rows) {
    if (!std::isfinite(row.seconds) || row.seconds <= 0) {
      return ErrorAt(row.place, absl::StrCat(row.seconds, " seconds: a time is a positive number"));
    }
    const auto [found, is_new] = process_index.try_emplace(row.process, processes.size());
    if (is_new) {
      processes.emplace_back();
      processes.back().name = absl::StrCat(path, ", process ", EscapeControlCharacters(row.process));
    }
    std::vector<MeasurementSamples>& measurements = processes[found->second].measurements;
    const auto [at, is_new_measurement] =
        measurement_index.try_emplace({found->second, row.measurement}, measurements.size());
    if (is_new_measurement) {
      measurements.emplace_back();
      measurements.back().name = row.measurement;
    }
    if (!row.iteration.empty() && !seen.insert({found->second, at->second, row.iteration}).second) {
      return ErrorAt(row.place, absl::StrCat("process ", EscapeControlCharacters(row.process),
                                             " has iteration ", EscapeControlCharacters(row.iteration),
                                             " of \"", EscapeControlCharacters(row.measurement), "\" twice"));
    }
    measurements[at->second].seconds.push_back(row.seconds);
  }
  return processes;
}

}  // namespace ott::faster
