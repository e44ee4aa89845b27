#include "ott/questions/learning/read_curves.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ott/core/base/expand_path.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/core/chrome_trace/byte_source.h"
#include "ott/core/json/json_cursor.h"
#include "ott/core/json/json_string.h"
#include "ott/dist/directory/run_directory.h"
#include "questions/learning/event_file.h"
#include "questions/learning/metric_rows.h"

namespace ott::learning {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = size_t{4} << 30;
constexpr int kMostLevels = 3;
constexpr char kMlperfMark[] = ":::MLLOG";

using Row = std::vector<std::pair<std::string_view, double>>;

absl::Status ErrorAt(const std::string& path, size_t line, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ":", line, ": ", what));
}

std::optional<double> ToNumber(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '+')) text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  double number = 0;
  if (!absl::SimpleAtod({text.data(), text.size()}, &number)) return std::nullopt;
  return number;
}

// Calls visit(line without its end, number from 1) until it fails.
template <typename Visitor>
absl::Status ForEachLine(std::string_view text, Visitor visit) {
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (!line.empty()) OTT_RETURN_IF_ERROR(visit(line, number));
  }
  return absl::OkStatus();
}

// The fields of a line, whose quotes are undone in `storage`. nullopt for a quote that is not closed.
std::optional<std::vector<std::string_view>> SplitCsv(std::string_view line,
                                                      std::vector<std::string>* storage) {
  std::vector<std::string_view> fields;
  if (line.find('"') == std::string_view::npos) {
    while (true) {
      const size_t comma = line.find(',');
      fields.push_back(line.substr(0, comma));
      if (comma == std::string_view::npos) return fields;
      line.remove_prefix(comma + 1);
    }
  }
  storage->assign(1, "");
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quoted && line[i] == '"' && i + 1 < line.size() && line[i + 1] == '"') {
      storage->back().push_back(line[++i]);
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      storage->emplace_back();
    } else {
      storage->back().push_back(line[i]);
    }
  }
  if (quoted) return std::nullopt;
  fields.assign(storage->begin(), storage->end());
  return fields;
}

// A column of a CSV: of a run that its name says, or of the one that the row says.
struct Column {
  std::string run;
  std::string metric;
  bool is_read = true;
  bool is_known_number = false;
};

// Reads a column as Weights & Biases exports it, "RUN - METRIC", with columns for the extremes of what it
// sampled.
Column ColumnOf(std::string_view name) {
  const size_t dash = name.rfind(" - ");
  if (dash == std::string_view::npos) return {"", std::string(name)};
  const std::string_view metric = name.substr(dash + 3);
  const auto ends_with = [&](std::string_view end) {
    return metric.size() > end.size() && metric.substr(metric.size() - end.size()) == end;
  };
  return {std::string(name.substr(0, dash)), std::string(metric), !ends_with("__MIN") && !ends_with("__MAX")};
}

bool IsRunColumn(std::string_view name) { return name == "run" || name == "run_id" || name == "process"; }

absl::Status ReadCsv(const std::string& path, std::string_view text, const ReadOptions& options,
                     MetricRows* rows) {
  if (text.substr(0, 3) == "\xEF\xBB\xBF") text.remove_prefix(3);
  std::vector<Column> columns;
  std::vector<std::string> storage;
  std::optional<size_t> x, run;
  return ForEachLine(text, [&](std::string_view line, size_t number) -> absl::Status {
    const std::optional<std::vector<std::string_view>> fields = SplitCsv(line, &storage);
    if (!fields.has_value()) return ErrorAt(path, number, "a quote is not closed");
    if (columns.empty()) {
      size_t best = std::size(kXNames);
      for (const std::string_view field : *fields) {
        if (options.x.empty() ? RankOfX(field) < best : field == options.x) {
          best = RankOfX(field);
          x = columns.size();
        }
        if (IsRunColumn(field)) run = columns.size();
        Column column = ColumnOf(field);
        if (RankOfX(field) < std::size(kXNames) || IsRunColumn(field)) column.is_read = false;
        const auto is_again = [&](const Column& other) {
          return column.is_read && other.run == column.run && other.metric == column.metric;
        };
        if (std::any_of(columns.begin(), columns.end(), is_again)) {
          return ErrorAt(path, number,
                         absl::StrCat("two columns are named \"", EscapeControlCharacters(std::string(field)),
                                      "\": give each run its own name"));
        }
        columns.push_back(std::move(column));
      }
      if (!x.has_value()) {
        return ErrorAt(
            path, number,
            absl::StrCat("no column is ", options.x.empty() ? "step, samples, epoch or the like" : options.x,
                         "; its columns are ", EscapeControlCharacters(std::string(line.substr(0, 200)))));
      }
      columns[*x].is_read = false;
      rows->set_x_name(std::string((*fields)[*x]));
      return absl::OkStatus();
    }
    if (fields->size() != columns.size()) {
      return ErrorAt(path, number,
                     absl::StrCat(fields->size(), " fields, and the first line names ", columns.size()));
    }
    const std::optional<double> at = ToNumber((*fields)[*x]);
    if (!at.has_value()) {
      return ErrorAt(path, number,
                     absl::StrCat("\"", EscapeControlCharacters(std::string((*fields)[*x])),
                                  "\" is no number of the column ", rows->x_name()));
    }
    for (size_t i = 0; i < columns.size(); ++i) {
      Column& column = columns[i];
      const std::string_view field = (*fields)[i];
      if (!column.is_read || field.empty()) continue;
      const std::optional<double> value = ToNumber(field);
      if (value.has_value()) {
        column.is_known_number = true;
        rows->AddPoint(run.has_value() ? std::string((*fields)[*run]) : column.run, column.metric, *at,
                       *value);
      } else if (column.is_known_number) {
        return ErrorAt(path, number,
                       absl::StrCat("\"", EscapeControlCharacters(std::string(field)),
                                    "\" is no number of the column ", column.metric));
      } else {
        column.is_read = false;  // of texts
      }
    }
    return absl::OkStatus();
  });
}

// Python writes NaN as it is, others as a string. nullopt for what is no number; false at the end of the
// text.
bool ReadNumber(JsonCursor& cursor, std::optional<double>* number) {
  if (cursor.Peek() == '"') {
    std::string_view text;
    if (!cursor.String(&text)) return false;
    if (text == "NaN" || text == "Infinity" || text == "-Infinity") *number = ToNumber(text);
    return true;
  }
  const bool is_scalar = cursor.Peek() != '{' && cursor.Peek() != '[';
  JsonScalar scalar;
  std::string_view skipped;
  if (!is_scalar) return cursor.Value(&skipped);
  if (!cursor.Scalar(&scalar)) return false;
  if (scalar.kind == JsonScalar::Kind::kInteger || scalar.kind == JsonScalar::Kind::kFloat) {
    *number = ToNumber(scalar.text);
  }
  return true;
}

// A text or a number.
bool ReadRun(JsonCursor& cursor, std::string* run) {
  std::string_view text;
  if (cursor.Peek() == '"') {
    if (!cursor.String(&text)) return false;
    *run = UnescapedJson(text);
    return true;
  }
  if (!cursor.Value(&text)) return false;
  if (ToNumber(text).has_value()) *run = std::string(text);
  return true;
}

// The numbers of an object, and its `run`. False for what is no object.
bool ReadRow(JsonCursor& cursor, Row* row, std::string* run) {
  return cursor.Object([&](std::string_view key) {
    if (IsRunColumn(key)) return ReadRun(cursor, run);
    std::optional<double> number;
    if (!ReadNumber(cursor, &number)) return false;
    if (number.has_value()) row->emplace_back(key, *number);
    return true;
  });
}

absl::Status ReadJsonLines(const std::string& path, std::string_view text, MetricRows* rows) {
  Row row;
  std::string run;
  return ForEachLine(text, [&](std::string_view line, size_t number) -> absl::Status {
    row.clear();
    run.clear();
    JsonCursor cursor(line, JsonDialect::kPython);
    if (!ReadRow(cursor, &row, &run)) {
      return ErrorAt(path, number, absl::StrCat("column ", cursor.position() + 1, ": this is no JSON"));
    }
    rows->Add(run, row);
    return absl::OkStatus();
  });
}

absl::Status ReadTrainerState(const std::string& path, std::string_view text, MetricRows* rows) {
  JsonCursor cursor(text, JsonDialect::kPython);
  Row row;
  std::string run;
  const bool is_read = cursor.Object([&](std::string_view key) {
    std::string_view skipped;
    if (key != "log_history") return cursor.Value(&skipped);
    return cursor.List([&] {
      row.clear();
      if (!ReadRow(cursor, &row, &run)) return false;
      rows->Add("", row);
      return true;
    });
  });
  if (is_read) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": byte ", cursor.position(), ": this is no JSON"));
}

// The numbers of `value`, whatever it is, as metrics that are called `key` or by their own names.
bool ReadMlperfEvent(JsonCursor& cursor, std::string* key, Row* values, Row* metadata) {
  return cursor.Object([&](std::string_view name) {
    std::string_view text;
    std::string ignored;
    if (name == "key") {
      if (!cursor.String(&text)) return false;
      *key = std::string(text);
      return true;
    }
    if (name == "metadata" && cursor.Peek() == '{') return ReadRow(cursor, metadata, &ignored);
    if (name == "value" && cursor.Peek() == '{') return ReadRow(cursor, values, &ignored);
    std::optional<double> number;
    if (!ReadNumber(cursor, &number)) return false;
    if (name == "value" && number.has_value()) values->emplace_back("", *number);
    return true;
  });
}

absl::Status ReadMlperf(const std::string& path, std::string_view text, const ReadOptions& options,
                        MetricRows* rows) {
  std::vector<std::string> x_names = {"samples_count", "epoch_num", "step"};
  if (!options.x.empty()) x_names = {options.x};
  std::string key;
  Row values, metadata;
  return ForEachLine(text, [&](std::string_view line, size_t number) -> absl::Status {
    const size_t mark = line.find(kMlperfMark);
    if (mark == std::string_view::npos) return absl::OkStatus();
    JsonCursor cursor(line.substr(mark + sizeof(kMlperfMark) - 1), JsonDialect::kPython);
    key.clear();
    values.clear();
    metadata.clear();
    if (!ReadMlperfEvent(cursor, &key, &values, &metadata)) {
      return ErrorAt(path, number, "what follows :::MLLOG is no JSON");
    }
    if (key != "eval_accuracy" && key != "tracked_stats") return absl::OkStatus();
    for (const std::string& name : x_names) {
      const auto x = std::find_if(metadata.begin(), metadata.end(),
                                  [&](const auto& field) { return field.first == name; });
      if (x == metadata.end()) continue;
      for (const auto& [metric, value] : values) {
        rows->AddPoint("", metric.empty() ? key : std::string(metric), x->second, value);
      }
      // Statistics call by another name what evaluations are counted in.
      if (key == "eval_accuracy") rows->set_x_name(name);
      break;
    }
    return absl::OkStatus();
  });
}

absl::StatusOr<std::string> ReadUnpacked(const std::string& path) {
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<chrome_trace::ByteSource> source,
                       chrome_trace::ByteSource::Open(path));
  std::string bytes;
  constexpr size_t kChunk = size_t{1} << 20;
  size_t read = kChunk;
  while (read == kChunk) {
    const size_t size = bytes.size();
    if (size > kMostBytes) return absl::InvalidArgumentError(absl::StrCat(path, ": more than 4 GiB"));
    bytes.resize(size + kChunk);
    read = source->Read(bytes.data() + size, kChunk);
    bytes.resize(size + read);
  }
  if (!source->error().empty()) return absl::DataLossError(absl::StrCat(path, ": ", source->error()));
  return bytes;
}

absl::Status ReadBytes(const std::string& path, std::string_view bytes, const ReadOptions& options,
                       MetricRows* rows) {
  if (IsEventFile(bytes)) {
    rows->set_x_name(options.x.empty() ? "step" : options.x);
    if (rows->x_name() != "step" && rows->x_name() != "wall_time") {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": has no ", options.x, ": an event file has step and wall_time"));
    }
    return ReadEventFile(path, bytes, options.x == "wall_time", rows);
  }
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    return absl::InvalidArgumentError(absl::StrCat(path, ": the file is empty"));
  if (bytes.find(kMlperfMark) != std::string_view::npos) return ReadMlperf(path, bytes, options, rows);
  if (bytes[first] != '{') return ReadCsv(path, bytes, options, rows);
  // One object of several lines, and not an object a line.
  const bool is_document = bytes.find("\"log_history\"") != std::string_view::npos;
  return is_document ? ReadTrainerState(path, bytes, rows) : ReadJsonLines(path, bytes, rows);
}

bool IsEventFileName(const std::string& name) { return name.find("tfevents") != std::string::npos; }

std::vector<std::string> ListFolder(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    paths.push_back(entry->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// The trainer_state.json of the last of Trainer's checkpoint-N, which holds what those before hold; empty if
// there is none.
std::string LastTrainerState(const std::string& folder) {
  std::string last;
  int64_t latest = -1;
  for (const std::string& path : ListFolder(folder)) {
    const std::string file_name = fs::path(path).filename().string();
    absl::string_view name = file_name;
    int64_t number = 0;
    if (!absl::ConsumePrefix(&name, "checkpoint-") || !absl::SimpleAtoi(name, &number)) continue;
    const std::string state = path + "/trainer_state.json";
    if (number <= latest || !IsRegularFile(state)) continue;
    last = state;
    latest = number;
  }
  return last;
}

// The files of one run in a folder: the metrics of a run directory, event files, a trainer_state.json.
std::vector<std::string> FilesOfRun(const std::string& folder) {
  const absl::StatusOr<std::vector<int>> ranks = ListRanks(folder);
  for (const int rank : ranks.ok() ? *ranks : std::vector<int>()) {
    if (const std::string metrics = MetricsPath(folder, rank); IsRegularFile(metrics)) return {metrics};
  }
  if (const std::string state = folder + "/trainer_state.json"; IsRegularFile(state)) return {state};
  if (const std::string state = LastTrainerState(folder); !state.empty()) return {state};
  const std::vector<std::string> paths = ListFolder(folder);
  std::vector<std::string> events;
  std::copy_if(paths.begin(), paths.end(), std::back_inserter(events), [](const std::string& path) {
    return IsEventFileName(fs::path(path).filename().string()) && IsRegularFile(path);
  });
  return events;
}

class SideReader {
 public:
  explicit SideReader(const ReadOptions& options) : options_(options) {}

  absl::Status Read(const std::string& path, int level = 0) {
    // RUN/attempt_1 is RUN itself.
    if (const std::string first = LatestAttempt(path); !PathExists(path) && IsRunDirectory(first))
      return ReadRunDirectory(first);
    if (!PathExists(path)) {
      return absl::NotFoundError(absl::StrCat(EscapeControlCharacters(path), ": No such file or directory"));
    }
    if (!IsDirectory(path)) return ReadRunOf({path}, path, "");
    if (IsRunDirectory(path)) {
      SayLatestAttempt("curves", path);
      return ReadRunDirectory(LatestAttempt(path));
    }
    if (const std::vector<std::string> files = FilesOfRun(path); !files.empty())
      return ReadRunOf(files, path, "");
    if (level == kMostLevels) return absl::OkStatus();
    const size_t before = side_.runs.size();
    for (const std::string& entry : ListFolder(path)) OTT_RETURN_IF_ERROR(Read(entry, level + 1));
    if (level == 0 && side_.runs.size() == before) {
      return absl::NotFoundError(absl::StrCat(path, ": no file of metrics in it"));
    }
    return absl::OkStatus();
  }

  ReadRuns Finish() && { return std::move(side_); }

 private:
  absl::Status ReadRunDirectory(const std::string& run) {
    if (const std::vector<std::string> files = FilesOfRun(run); !files.empty())
      return ReadRunOf(files, run, run);
    return absl::NotFoundError(
        absl::StrCat(run, ": a run without metrics: the program logs them by run.metric(\"loss\", value)"));
  }

  absl::Status ReadRunOf(const std::vector<std::string>& files, const std::string& name,
                         const std::string& directory) {
    MetricRows rows(name, options_.x);
    for (const std::string& file : files) {
      std::error_code error;
      if (!side_.files.insert(fs::canonical(file, error).string()).second) return absl::OkStatus();
      OTT_ASSIGN_OR_RETURN(const std::string bytes, ReadUnpacked(file));
      OTT_RETURN_IF_ERROR(ReadBytes(file, bytes, options_, &rows));
    }
    const size_t before = side_.runs.size();
    OTT_RETURN_IF_ERROR(rows.Finish(&side_.runs));
    for (size_t i = before; i < side_.runs.size(); ++i) side_.runs[i].directory = directory;
    if (before == 0) side_.x_name = rows.x_name();
    if (RankOfX(side_.x_name) != RankOfX(rows.x_name())) {
      return absl::InvalidArgumentError(absl::StrCat(name, ": its metrics are over ", rows.x_name(),
                                                     ", and those of others over ", side_.x_name,
                                                     "; --x names what all have"));
    }
    return absl::OkStatus();
  }

  const ReadOptions& options_;
  ReadRuns side_;
};

}  // namespace

absl::StatusOr<ReadRuns> ReadSide(const std::vector<std::string>& paths, const ReadOptions& options) {
  SideReader reader(options);
  for (const std::string& pattern : paths) {
    for (const std::string& path : ExpandPath(pattern)) OTT_RETURN_IF_ERROR(reader.Read(path));
  }
  return std::move(reader).Finish();
}

absl::StatusOr<SidesRead> ReadSides(const std::vector<std::string>& paths_a,
                                    const std::vector<std::string>& paths_b, const ReadOptions& options) {
  OTT_ASSIGN_OR_RETURN(ReadRuns a, ReadSide(paths_a, options));
  OTT_ASSIGN_OR_RETURN(ReadRuns b, ReadSide(paths_b, options));
  for (const std::string& file : b.files) {
    if (a.files.count(file) == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(file, ": is on both sides; compared with itself, a run is always as good"));
  }
  if (RankOfX(a.x_name) != RankOfX(b.x_name)) {
    return absl::InvalidArgumentError(absl::StrCat("the metrics of A are over ", a.x_name,
                                                   ", and those of B over ", b.x_name,
                                                   "; --x names what all have"));
  }
  return SidesRead{std::move(a.runs), std::move(b.runs), a.x_name};
}

}  // namespace ott::learning
