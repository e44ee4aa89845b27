#include "questions/faster/read_json.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "questions/faster/read_table.h"

namespace ott::faster {
namespace {

using Json = nlohmann::json;

absl::Status ErrorIn(const std::string& path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(path, ": ", what));
}

const Json& Null() {
  static const Json kNull;
  return kNull;
}

// Null if there is none.
const Json& Member(const Json& object, const char* name) {
  if (!object.is_object()) return Null();
  const auto found = object.find(name);
  return found == object.end() ? Null() : *found;
}

std::string TextOf(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : value.dump();
}

// nvbench writes numbers as texts.
std::optional<double> NumberOf(const Json& value) {
  double number = 0;
  if (value.is_number()) return value.get<double>();
  if (value.is_string() && absl::SimpleAtod(value.get<std::string>(), &number)) return number;
  return std::nullopt;
}

// `what` names the time in an error.
absl::StatusOr<double> TimeOf(const std::string& path, const std::string& what, const Json& value) {
  const std::optional<double> time = NumberOf(value);
  if (!time.has_value() || !std::isfinite(*time) || *time <= 0) {
    return ErrorIn(path, absl::StrCat(EscapeControlCharacters(what), " is ",
                                      value.is_null() ? "missing" : EscapeControlCharacters(TextOf(value)),
                                      ": a time is a positive number"));
  }
  return *time;
}

MeasurementSamples& FindOrAdd(Process& process, const std::string& name) {
  for (MeasurementSamples& measurement : process.measurements) {
    if (measurement.name == name) return measurement;
  }
  process.measurements.emplace_back();
  process.measurements.back().name = name;
  return process.measurements.back();
}

absl::StatusOr<double> SecondsOfUnit(const std::string& path, const std::string& unit) {
  const std::map<std::string, double> units = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
  const auto found = units.find(unit);
  if (found == units.end()) {
    return ErrorIn(
        path, absl::StrCat("time_unit \"", EscapeControlCharacters(unit), "\" is none of ns, us, ms, s"));
  }
  return found->second;
}

// Adds what the benchmarks ran on. The date is that of its beginning.
void AddGoogleContext(const Json& context, SideSamples* samples, Process* process) {
  if (!TextOf(Member(context, "host_name")).empty())
    process->conditions["machine"] = TextOf(Member(context, "host_name"));
  if (Member(context, "num_cpus").is_number()) {
    process->conditions["CPU"] = absl::StrCat(TextOf(Member(context, "num_cpus")), " CPUs");
  }
  if (!TextOf(Member(context, "library_build_type")).empty()) {
    process->conditions["library"] = "Google Benchmark " + TextOf(Member(context, "library_version")) + " " +
                                     TextOf(Member(context, "library_build_type"));
  }
  if (Member(context, "cpu_scaling_enabled") == true) {
    samples->notes.push_back(
        absl::StrCat(process->name, ": the CPU's frequency was scaled while it ran, says Google Benchmark"));
  }
  absl::Time date;
  std::string error;
  if (absl::ParseTime(absl::RFC3339_full, TextOf(Member(context, "date")), &date, &error)) {
    process->started = absl::ToDoubleSeconds(date - absl::UnixEpoch());
  }
}

absl::StatusOr<SideSamples> ReadGoogleBenchmark(const std::string& path, const Json& root, ClockKind clock) {
  SideSamples samples;
  Process process;
  process.name = path;
  AddGoogleContext(Member(root, "context"), &samples, &process);
  // If only aggregates were written, the median stands for the repetitions.
  Process of_medians;
  for (const Json& benchmark : Member(root, "benchmarks")) {
    const std::string full_name = TextOf(Member(benchmark, "name"));
    const std::string run_name = TextOf(Member(benchmark, "run_name"));
    const std::string& name = run_name.empty() ? full_name : run_name;
    if (name.empty()) return ErrorIn(path, "a benchmark without a name");
    if (Member(benchmark, "error_occurred") == true) {
      return ErrorIn(path, absl::StrCat(EscapeControlCharacters(name), " failed: ",
                                        EscapeControlCharacters(TextOf(Member(benchmark, "error_message")))));
    }
    if (Member(benchmark, "skipped") == true) continue;
    const bool is_aggregate = Member(benchmark, "run_type") == "aggregate";
    if (is_aggregate && Member(benchmark, "aggregate_name") != "median") continue;
    const char* const member = clock == ClockKind::kCpu ? "cpu_time" : "real_time";
    OTT_ASSIGN_OR_RETURN(const double time,
                         TimeOf(path, absl::StrCat(member, " of ", full_name), Member(benchmark, member)));
    const Json& time_unit = Member(benchmark, "time_unit");
    OTT_ASSIGN_OR_RETURN(const double unit,
                         SecondsOfUnit(path, time_unit.is_null() ? "ns" : TextOf(time_unit)));
    FindOrAdd(is_aggregate ? of_medians : process, name).seconds.push_back(time * unit);
  }
  for (const MeasurementSamples& median : of_medians.measurements) {
    MeasurementSamples& measurement = FindOrAdd(process, median.name);
    if (measurement.seconds.empty()) measurement.seconds = median.seconds;
  }
  if (process.measurements.empty()) return ErrorIn(path, "no benchmark has a time");
  samples.processes.push_back(std::move(process));
  return samples;
}

// The element whose `key` is `value`; null if there is none.
const Json& Find(const Json& list, const char* key, const char* value) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const Json& element) { return Member(element, key) == value; });
  return found == list.end() ? Null() : *found;
}

const Json& Datum(const Json& summary, const char* name) {
  return Member(Find(Member(summary, "data"), "name", name), "value");
}

const Json& Summary(const Json& state, const char* tag) {
  return Find(Member(state, "summaries"), "tag", tag);
}

// The samples that --jsonbin wrote: 32-bit floats, little endian.
absl::StatusOr<std::vector<double>> ReadNvbenchSamples(const std::string& path, const Json& summary) {
  const std::filesystem::path name = TextOf(Datum(summary, "filename"));
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  std::filesystem::path file = folder / name;
  if (!std::filesystem::exists(file, error)) file = folder.parent_path() / name;
  if (!std::filesystem::is_regular_file(file, error)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": its samples, ", EscapeControlCharacters(name.string()), ", are not there"));
  }
  OTT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file.string()));
  const std::optional<double> size = NumberOf(Datum(summary, "size"));
  if (!size.has_value() || static_cast<double>(bytes.size()) != *size * sizeof(float)) {
    return absl::DataLossError(absl::StrCat(file.string(), ": ", bytes.size(), " bytes, and ", path, " says ",
                                            EscapeControlCharacters(TextOf(Datum(summary, "size"))),
                                            " samples of 4 bytes"));
  }
  std::vector<double> seconds;
  for (size_t offset = 0; offset < bytes.size(); offset += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + offset, sizeof(value));
    OTT_ASSIGN_OR_RETURN(const double time,
                         TimeOf(file.string(), absl::StrCat("sample ", seconds.size()), value));
    seconds.push_back(time);
  }
  return seconds;
}

absl::Status AddNvbenchState(const std::string& path, const std::string& name, const Json& state,
                             ClockKind clock, Process* process) {
  const Json& sample_times = Summary(state, "nv/json/bin:nv/cold/sample_times");
  if (clock == ClockKind::kWall && sample_times.is_object()) {
    OTT_ASSIGN_OR_RETURN(FindOrAdd(*process, name).seconds, ReadNvbenchSamples(path, sample_times));
    return absl::OkStatus();
  }
  for (const char* tag : {"nv/cold/time/gpu/mean", "nv/cpu_only/time/cpu/mean", "nv/cold/time/cpu/mean"}) {
    if (clock == ClockKind::kCpu && std::string_view(tag) == "nv/cold/time/gpu/mean") continue;
    const Json& mean = Summary(state, tag);
    if (!mean.is_object()) continue;
    OTT_ASSIGN_OR_RETURN(const double time,
                         TimeOf(path, absl::StrCat(tag, " of ", name), Datum(mean, "value")));
    FindOrAdd(*process, name).seconds.push_back(time);
    return absl::OkStatus();
  }
  return ErrorIn(path, absl::StrCat(EscapeControlCharacters(name), " has no time"));
}

absl::StatusOr<SideSamples> ReadNvbench(const std::string& path, const Json& root, ClockKind clock) {
  SideSamples samples;
  Process process;
  process.name = path;
  std::vector<std::string> devices;
  for (const Json& device : Member(root, "devices")) devices.push_back(TextOf(Member(device, "name")));
  if (!devices.empty()) process.conditions["machine"] = absl::StrJoin(devices, ", ");
  const std::string version =
      TextOf(Member(Member(Member(Member(root, "meta"), "version"), "nvbench"), "string"));
  if (!version.empty()) process.conditions["library"] = "nvbench " + version;
  for (const Json& benchmark : Member(root, "benchmarks")) {
    for (const Json& state : Member(benchmark, "states")) {
      if (Member(state, "is_skipped") == true) continue;
      const std::string name =
          absl::StrCat(TextOf(Member(benchmark, "name")), " ", TextOf(Member(state, "name")));
      OTT_RETURN_IF_ERROR(AddNvbenchState(path, name, state, clock, &process));
    }
  }
  if (process.measurements.empty()) return ErrorIn(path, "no state has a time; all were skipped?");
  samples.processes.push_back(std::move(process));
  return samples;
}

// Each run is a process. The sides' commands differ, so that only several in one file are told apart by them.
absl::StatusOr<SideSamples> ReadHyperfine(const std::string& path, const Json& results, ClockKind clock) {
  if (clock == ClockKind::kCpu) {
    return ErrorIn(path, "hyperfine writes the CPU time of all runs together, not of each");
  }
  SideSamples samples;
  for (const Json& result : results) {
    const std::string name = results.size() == 1 ? "wall time" : TextOf(Member(result, "command"));
    for (const Json& code : Member(result, "exit_codes")) {
      if (code == 0) continue;
      return ErrorIn(path,
                     absl::StrCat("a run of ", EscapeControlCharacters(TextOf(Member(result, "command"))),
                                  " ended with exit code ", TextOf(code)));
    }
    size_t run = 0;
    for (const Json& value : Member(result, "times")) {
      OTT_ASSIGN_OR_RETURN(const double time,
                           TimeOf(path, absl::StrCat("time ", run + 1, " of ", name), value));
      if (samples.processes.size() == run) {
        samples.processes.emplace_back();
        samples.processes.back().name = absl::StrCat(path, ", run ", run + 1);
      }
      FindOrAdd(samples.processes[run++], name).seconds.push_back(time);
    }
  }
  if (samples.processes.empty())
    return ErrorIn(path, "no run has a time; \"times\" are there unless a summary alone was written");
  return samples;
}

absl::StatusOr<SideSamples> ReadJsonLines(const std::string& path, const std::string& text, ClockKind clock) {
  if (clock == ClockKind::kCpu)
    return ErrorIn(path, "a table has one time, and whose it is, it does not say");
  std::vector<TableRow> rows;
  int64_t number = 0;
  for (const absl::string_view part : absl::StrSplit(text, '\n')) {
    const std::string_view line(part.data(), part.size());
    const std::string place = absl::StrCat(path, ":", ++number);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json object = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) return ErrorIn(place, "no JSON object");
    TableRow row;
    row.place = place;
    row.process = TextOf(Member(object, "process"));
    row.iteration = TextOf(Member(object, "iteration"));
    if (!Member(object, "measurement").is_null()) row.measurement = TextOf(Member(object, "measurement"));
    if (row.process.empty() || !Member(object, "seconds").is_number()) {
      return ErrorIn(place,
                     "a line has process and seconds, a number (times in another unit have to be converted), "
                     "and may have iteration and measurement");
    }
    row.seconds = Member(object, "seconds").get<double>();
    rows.push_back(std::move(row));
  }
  SideSamples samples;
  samples.iterations_must_match = true;
  OTT_ASSIGN_OR_RETURN(samples.processes, CollectRows(path, std::move(rows)));
  return samples;
}

bool IsJsonLines(const std::string& text) {
  const std::string_view first = std::string_view(text).substr(0, text.find('\n'));
  const Json object = Json::parse(first.begin(), first.end(), nullptr, /*allow_exceptions=*/false);
  return object.is_object() && (object.contains("process") || object.contains("seconds"));
}

absl::StatusOr<SideSamples> Read(const std::string& path, const std::string& text, ClockKind clock) {
  if (IsJsonLines(text)) return ReadJsonLines(path, text, clock);
  const Json root = Json::parse(text);
  if (Member(root, "results").is_array()) return ReadHyperfine(path, root["results"], clock);
  if (Member(root, "benchmarks").is_array() && root.contains("devices"))
    return ReadNvbench(path, root, clock);
  if (Member(root, "benchmarks").is_array()) return ReadGoogleBenchmark(path, root, clock);
  return ErrorIn(
      path, "JSON of none of Google Benchmark, nvbench, hyperfine, and no lines with process and seconds");
}

}  // namespace

absl::StatusOr<SideSamples> ReadJson(const std::string& path, const std::string& text, ClockKind clock) {
  try {
    return Read(path, text, clock);
  } catch (const Json::exception& error) {
    return ErrorIn(path, absl::StrCat("no JSON that can be read: ", error.what()));
  }
}

}  // namespace ott::faster
