#include "ott/core/trace/write_trace.h"

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ott/core/base/file.h"
#include "ott/core/base/proto_json.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/text_table.h"
#include "ott/core/events/recorded_window.h"
#include "ott/core/trace/trace_file.h"

namespace ott {

TraceProcess ProcessOf(const TraceInfo& info) {
  TraceProcess process;
  process.process = info.rank();
  process.sort_index = info.rank();
  process.name = absl::StrCat("rank ", info.rank());
  if (!info.host().empty()) absl::StrAppend(&process.name, " (", info.host(), ")");
  // Both read one clock if the bound is 0.
  if (info.clock().error_bound_nanoseconds() > 0) {
    const int64_t offset = info.clock().begin_nanoseconds() - info.begin_nanoseconds();
    process.labels =
        absl::StrCat("clock ", offset < 0 ? "-" : "+",
                     FormatSeconds(static_cast<double>(std::abs(offset)) * 1e-9), " to rank 0's, +- ",
                     FormatSeconds(static_cast<double>(info.clock().error_bound_nanoseconds()) * 1e-9));
  }
  return process;
}

absl::Status WriteTrace(const Profiler::Window& window, const std::string& path, TraceInfo info) {
  const RecordedWindow recorded(window.recorder, info.rank());
  info.set_process_id(getpid());
  info.set_window(window.number);
  info.set_first_step(window.first_step);
  info.set_last_step(window.last_step);
  info.set_cut(window.cut);
  info.set_begin_nanoseconds(recorded.opened().steady_nanoseconds);
  info.set_end_nanoseconds(recorded.closed().steady_nanoseconds);
  info.set_begin_unix_nanoseconds(recorded.opened().unix_nanoseconds);
  info.set_num_lost_events(recorded.num_lost_events());
  info.set_num_unfinished_ranges(recorded.num_unfinished_ranges());
  info.set_num_ends_without_begin(recorded.num_ends_without_begin());

  std::string json = ProtoToJson(info, JsonLayout::kOneLine);
  json.pop_back();  // the newline
  OTT_ASSIGN_OR_RETURN(const std::unique_ptr<TraceFile> file, TraceFile::Create(path, json));
  file->Add(ProcessOf(info));
  for (const TraceTrack& track : recorded.Tracks()) file->Add(track);
  recorded.Visit([&file](const TraceEvent& event) { file->Add(event); });
  return file->Commit();
}

std::function<absl::Status(const Profiler::Window&)> TensorBoardTraceHandler(std::string dir,
                                                                             std::string worker, bool gzip) {
  if (worker.empty()) {
    char host[256] = "host";
    gethostname(host, sizeof(host) - 1);
    worker = absl::StrCat(host, "_", getpid());
  }
  return [dir = std::move(dir), worker = std::move(worker),
          gzip](const Profiler::Window& window) -> absl::Status {
    OTT_RETURN_IF_ERROR(MakeDirectories(dir));
    const int64_t milliseconds = absl::ToUnixMillis(absl::Now());
    return WriteTrace(window,
                      absl::StrCat(dir, "/", worker, ".", milliseconds, ".pt.trace.json", gzip ? ".gz" : ""));
  };
}

}  // namespace ott
