#include "ott/questions/faster/read_samples.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/expand_path.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/questions/faster/read_run.h"
#include "questions/faster/read_json.h"
#include "questions/faster/read_table.h"

namespace ott::faster {
namespace {

namespace fs = std::filesystem;

// A larger file of times is damage.
constexpr uintmax_t kMostBytes = uintmax_t{1} << 30;

// The same for all names of one file.
std::string SourceOf(const std::string& path) {
  std::error_code error;
  const fs::path canonical = fs::canonical(path, error);
  return error ? path : canonical.string();
}

absl::StatusOr<SideSamples> ReadTimesFile(const std::string& path, ClockKind clock) {
  std::error_code error;
  // Opening a FIFO would wait for who writes it.
  if (!fs::is_regular_file(path, error))
    return absl::InvalidArgumentError(absl::StrCat(path, ": no regular file"));
  if (fs::file_size(path, error) > kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": more than 1 GiB, which no file of times has"));
  }
  OTT_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos)
    return absl::InvalidArgumentError(absl::StrCat(path, ": the file is empty"));
  if (text[first] == '{' || text[first] == '[') return ReadJson(path, text.substr(first), clock);
  if (clock == ClockKind::kCpu) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a table has one time, and whose it is, it does not say"));
  }
  OTT_ASSIGN_OR_RETURN(std::vector<TableRow> rows, ReadCsv(path, text));
  if (rows.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": names of columns, and no times"));
  SideSamples samples;
  samples.iterations_must_match = true;
  OTT_ASSIGN_OR_RETURN(samples.processes, CollectRows(path, std::move(rows)));
  return samples;
}

// A run directory, or the run directories in a folder, or RUN/attempt_1, which is RUN itself.
absl::StatusOr<SideSamples> ReadFolder(const std::string& path, ClockKind clock) {
  if (clock == ClockKind::kCpu) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": a run directory has no CPU time"));
  }
  std::vector<std::string> runs;
  const bool is_first_start = !PathExists(path);
  if (IsRunDirectory(path) || is_first_start) {
    runs.push_back(path);
  } else {
    std::error_code error;
    for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
      // `ott ab` keeps a run's directory in a folder of that run.
      for (const fs::path& folder : {entry->path(), entry->path() / "run"}) {
        if (IsRunDirectory(folder.string())) runs.push_back(folder.string());
      }
    }
    if (error) return absl::UnavailableError(absl::StrCat(path, ": ", error.message()));
    std::sort(runs.begin(), runs.end());
  }
  if (runs.empty()) {
    return absl::NotFoundError(
        absl::StrCat(path, ": neither a run directory nor a folder of run directories"));
  }
  SideSamples samples;
  samples.primary = kIteration;
  samples.iterations_must_match = true;
  for (std::string& run : runs) {
    if (!is_first_start) SayLatestAttempt("ab", run);
    run = LatestAttempt(run);
    OTT_ASSIGN_OR_RETURN(Process process, ReadRun(run));
    samples.processes.push_back(std::move(process));
    samples.sources.push_back(SourceOf(run));
  }
  return samples;
}

absl::StatusOr<SideSamples> ReadPath(const std::string& path, ClockKind clock) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status) && IsRunDirectory(LatestAttempt(path))) return ReadFolder(path, clock);
  if (!fs::exists(status)) {
    return absl::NotFoundError(absl::StrCat(EscapeControlCharacters(path), ": ",
                                            error ? error.message() : "No such file or directory"));
  }
  if (fs::is_directory(status)) return ReadFolder(path, clock);
  OTT_ASSIGN_OR_RETURN(SideSamples samples, ReadTimesFile(path, clock));
  samples.sources.push_back(SourceOf(path));
  for (const Process& process : samples.processes) {
    for (const MeasurementSamples& measurement : process.measurements) {
      if (measurement.name.empty())
        return absl::InvalidArgumentError(absl::StrCat(path, ": a measurement without a name"));
      if (measurement.name == kIteration) samples.primary = kIteration;
    }
  }
  return samples;
}

}  // namespace

absl::StatusOr<SideSamples> ReadSide(const std::vector<std::string>& paths, ClockKind clock) {
  SideSamples side;
  std::set<std::string> known;
  for (const std::string& pattern : paths) {
    for (const std::string& path : ExpandPath(pattern)) {
      OTT_ASSIGN_OR_RETURN(SideSamples samples, ReadPath(path, clock));
      for (const std::string& source : samples.sources) {
        if (known.insert(source).second) continue;
        return absl::InvalidArgumentError(absl::StrCat(EscapeControlCharacters(source),
                                                       ": is on one side twice, and one run is one sample"));
      }
      side.sources.insert(side.sources.end(), samples.sources.begin(), samples.sources.end());
      std::move(samples.processes.begin(), samples.processes.end(), std::back_inserter(side.processes));
      std::move(samples.notes.begin(), samples.notes.end(), std::back_inserter(side.notes));
      if (!samples.primary.empty()) side.primary = samples.primary;
      side.iterations_must_match |= samples.iterations_must_match;
    }
  }
  return side;
}

absl::StatusOr<Samples> ReadSides(const std::vector<std::string>& paths_a,
                                  const std::vector<std::string>& paths_b, ClockKind clock) {
  OTT_ASSIGN_OR_RETURN(SideSamples a, ReadSide(paths_a, clock));
  OTT_ASSIGN_OR_RETURN(SideSamples b, ReadSide(paths_b, clock));
  for (const std::string& source : b.sources) {
    if (std::find(a.sources.begin(), a.sources.end(), source) == a.sources.end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(EscapeControlCharacters(source),
                     ": is on both sides; compared with itself, a run is always the same"));
  }
  Samples samples;
  samples.a = std::move(a.processes);
  samples.b = std::move(b.processes);
  samples.primary = a.primary == b.primary ? a.primary : "";
  samples.iterations_must_match = a.iterations_must_match && b.iterations_must_match;
  samples.notes = std::move(a.notes);
  std::move(b.notes.begin(), b.notes.end(), std::back_inserter(samples.notes));
  return samples;
}

}  // namespace ott::faster
