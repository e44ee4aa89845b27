#include "ott/core/stopwatch/stopwatch_files.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/stopwatch/report.h"
#include "ott/core/stopwatch/stopwatch_stats.pb.h"

namespace ott {

absl::Status WriteStopwatchFiles(const Stopwatch& stopwatch, const StopwatchFilesOptions& options) {
  const StopwatchSnapshot snapshot = stopwatch.Snapshot();
  StopwatchStats stats;
  stats.set_host(options.host);
  stats.set_rank(options.rank);
  stats.set_world_size(options.world_size);
  ToProto(snapshot, &stats);
  stats.set_start_iteration(options.start_iteration);
  if (options.observer_thread_seconds) stats.set_observer_thread_seconds(*options.observer_thread_seconds);
  OTT_RETURN_IF_ERROR(MakeDirectories(options.dir));
  const std::string stem = absl::StrCat(options.dir, "/stopwatch");
  OTT_RETURN_IF_ERROR(WriteFileAtomically(stem + ".pb", stats.SerializeAsString()));
  OTT_RETURN_IF_ERROR(WriteFileAtomically(stem + ".json", ProtoToJson(stats, JsonLayout::kIndented)));
  OTT_RETURN_IF_ERROR(WriteFileAtomically(stem + ".csv", FormatCsv(snapshot)));
  return WriteFileAtomically(stem + ".txt", FormatTable(snapshot));
}

std::function<void(const Stopwatch&)> WritingStopwatchFiles(const StopwatchFilesOptions& options) {
  return [options](const Stopwatch& stopwatch) {
    const absl::Status written = WriteStopwatchFiles(stopwatch, options);
    if (!written.ok()) std::fprintf(stderr, "ott: stopwatch: %s\n", std::string(written.message()).c_str());
  };
}

}  // namespace ott
