#include "tools/report/trace_piece.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/kineto/read_trace.h"
#include "ott/dist/share/archive.h"
#include "ott/questions/kernels/host_time.h"
#include "ott/questions/kernels/kernel_join.h"
#include "ott/questions/kernels/profile_reader.h"
#include "ott/questions/kernels/profile_rows.h"
#include "ott/questions/saved/sampled_timeline.h"
#include "ott/questions/waiting/trace_archive.h"

namespace ott::report {

template <typename Archive>
void Fields(Archive& archive, OpSum& sum) {
  archive(sum.nanoseconds, sum.flops, sum.bytes, sum.flops_time, sum.peak, sum.peak_time, sum.compute_time);
}

template <typename Archive>
void Fields(Archive& archive, DeviceActivity& span) {
  archive(span.start, span.duration, span.name, span.depth, span.collective);
}

template <typename Archive>
void Fields(Archive& archive, TraceStep& step) {
  archive(step.number, step.begin, step.end, step.spans, step.num_left_out);
}

template <typename Archive>
void Fields(Archive& archive, TraceFindings& findings) {
  archive(findings.summary, findings.notes, findings.ops, findings.device, findings.host_times,
          findings.num_steps, findings.span_names, findings.steps);
}

namespace {

constexpr size_t kMaxSteps = 4;
constexpr size_t kTopHostTimes = 15;

struct TraceTask {
  std::string path;
  bool with_timeline = false;
};

template <typename Archive>
void Fields(Archive& archive, TraceTask& task) {
  archive(task.path, task.with_timeline);
}

// Empty where devices did something.
std::string FormatHostTimes(const kernels::Profile& profile) {
  if (!profile.kernels.empty() || !profile.transfers.empty()) return "";
  std::string text;
  const absl::Status status = kernels::WriteHostTimes(profile, kernels::TableLayout(), kTopHostTimes,
                                                      [&text](std::string_view part) { text += part; });
  return status.ok() ? text : "";
}

void AddOp(const kernels::KernelRow& row, std::map<std::string, OpSum>* ops) {
  if (row.join == "no_launch") return;
  OpSum& sum = (*ops)[absl::StrCat(row.op.empty() ? "(no op)" : std::string(row.op),
                                   row.dir == "bprop" ? " (backward)" : "")];
  sum.nanoseconds += row.sil;
  const int64_t call = row.call == kernels::kNoInteger ? row.sil : row.call;
  if (row.flops > 0) {
    sum.flops += row.flops;
    if (row.bytes > 0) sum.bytes += row.bytes;
    sum.flops_time += call;
  }
  if (!std::isnan(row.percent_peak)) {
    sum.peak += row.percent_peak * static_cast<double>(call);
    sum.peak_time += call;
    if (row.roof == "compute") sum.compute_time += call;
  }
}

// A step with the activities that begin in it.
class StepBuilder {
 public:
  StepBuilder(int64_t number, int64_t begin, int64_t end) {
    step_.number = number;
    step_.begin = begin;
    step_.end = end;
  }

  bool Has(int64_t start) const { return start >= step_.begin && start < step_.end; }
  // In the order of their starts.
  void Add(DeviceActivity span) {
    running_.erase(
        std::remove_if(running_.begin(), running_.end(), [&](int64_t end) { return end <= span.start; }),
        running_.end());
    span.depth = static_cast<int>(running_.size());
    running_.push_back(span.start + span.duration);
    step_.spans.push_back(span);
  }
  TraceStep Finish() {
    std::vector<DeviceActivity>& spans = step_.spans;
    if (spans.size() > saved::kMaxTimelineSpans) {
      step_.num_left_out = static_cast<int64_t>(spans.size() - saved::kMaxTimelineSpans);
      std::stable_sort(spans.begin(), spans.end(), [](const DeviceActivity& a, const DeviceActivity& b) {
        return a.duration > b.duration;
      });
      spans.resize(saved::kMaxTimelineSpans);
      std::stable_sort(spans.begin(), spans.end(),
                       [](const DeviceActivity& a, const DeviceActivity& b) { return a.start < b.start; });
    }
    return std::move(step_);
  }

 private:
  TraceStep step_;
  std::vector<int64_t> running_;  // ends
};

// steps: not empty
std::vector<StepBuilder> ChooseSteps(const waiting::Steps& steps, int64_t base, int64_t last_time) {
  std::vector<StepBuilder> chosen;
  for (const size_t i : saved::EvenlySpread(steps.size(), kMaxSteps)) {
    const int64_t begin = steps[i].first;
    const int64_t end = i + 1 < steps.size() ? steps[i + 1].first : std::max(begin, last_time);
    chosen.emplace_back(steps[i].second, base + begin, base + end);
  }
  return chosen;
}

absl::StatusOr<std::string> ReadTraceTask(const std::string& argument, int /*num_threads*/) {
  TraceTask task;
  if (!FromBytes(argument, &task)) return absl::InternalError("no TraceTask");
  kernels::ReadProfileOptions options;
  options.transfers = true;
  OTT_ASSIGN_OR_RETURN(kernels::Profile profile, kernels::ReadProfile(task.path, options));
  TraceFindings findings;
  findings.notes = profile.notes;
  if (!profile.devices.empty()) findings.device = profile.devices.begin()->second.name;
  // Joining takes the ranges.
  findings.summary = waiting::SummarizeTrace({profile.rank, &profile});
  findings.host_times = FormatHostTimes(profile);
  waiting::Steps steps = waiting::StepsOf(profile);
  if (steps.empty()) steps.emplace_back(profile.first_time, 0);
  findings.num_steps = static_cast<int64_t>(steps.size());
  const int64_t base = profile.begin_unix_nanoseconds.value_or(0);
  std::vector<StepBuilder> chosen;
  if (task.with_timeline) chosen = ChooseSteps(steps, base, profile.last_time);

  const kernels::KernelJoin join = kernels::JoinKernels(&profile);
  const kernels::ProfileRows rows(profile, join, std::nullopt);
  std::map<std::string, size_t> index_of_name;
  kernels::KernelRow row;
  for (size_t i = 0; i < rows.size(); ++i) {
    rows.Get(i, &row);
    AddOp(row, &findings.ops);
    const int64_t start = base + profile.first_time + row.start;
    for (StepBuilder& step : chosen) {
      if (!step.Has(start)) continue;
      const auto [name, is_new] = index_of_name.try_emplace(std::string(row.op.empty() ? row.name : row.op),
                                                            findings.span_names.size());
      if (is_new) findings.span_names.push_back(name->first);
      step.Add({start, row.sil, name->second, 0, row.kernel.substr(0, 4) == "nccl"});
    }
  }
  for (StepBuilder& step : chosen) findings.steps.push_back(step.Finish());
  return ToBytes(findings);
}

absl::StatusOr<std::string> LookAtTraceTask(const std::string& path, int /*num_threads*/) {
  std::error_code error;
  NamedTrace what = kineto::IsTorchTrace(path) ? NamedTrace::kTrace : NamedTrace::kOther;
  if (std::filesystem::file_size(path, error) == 0 && !error) what = NamedTrace::kEmpty;
  return ToBytes(what);
}

constexpr ShareTask kReadTrace = {"report_trace", &ReadTraceTask};
constexpr ShareTask kLookAtTrace = {"look_at_trace", &LookAtTraceTask};

// In pieces of work, a trace is as heavy as it is long.
int64_t SizeOf(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(size);
}

}  // namespace

std::vector<absl::StatusOr<TraceFindings>> ReadTraces(const std::vector<std::string>& paths,
                                                      size_t num_timelines) {
  std::vector<SharePiece> pieces;
  for (size_t i = 0; i < paths.size(); ++i)
    pieces.push_back({ToBytes(TraceTask{paths[i], i < num_timelines}), {paths[i]}, SizeOf(paths[i])});
  std::vector<absl::StatusOr<TraceFindings>> read;
  for (const absl::StatusOr<std::string>& bytes : RunShared(kReadTrace, pieces)) {
    if (!bytes.ok()) {
      read.emplace_back(bytes.status());
    } else if (TraceFindings findings; FromBytes(*bytes, &findings)) {
      read.emplace_back(std::move(findings));
    } else {
      read.emplace_back(absl::InternalError("no TraceFindings"));
    }
  }
  return read;
}

std::map<std::string, NamedTrace> ListNamedTraces(const std::string& directory) {
  std::map<std::string, NamedTrace> traces;
  std::vector<SharePiece> pieces;
  for (const std::string& name : ListDirectory(directory).value_or(std::vector<std::string>())) {
    if (!absl::EndsWith(name, ".json") && !absl::EndsWith(name, ".json.gz")) continue;
    const std::string path = (std::filesystem::path(directory) / name).string();
    traces[path] = NamedTrace::kNoFile;
    if (IsRegularFile(path)) pieces.push_back({path, {path}, 0});
  }
  const std::vector<absl::StatusOr<std::string>> looks = RunShared(kLookAtTrace, pieces);
  for (size_t i = 0; i < pieces.size(); ++i) {
    NamedTrace& what = traces[pieces[i].argument];
    // Whoever reads it says what is wrong.
    if (!looks[i].ok() || !FromBytes(*looks[i], &what)) what = NamedTrace::kTrace;
  }
  return traces;
}

std::vector<ShareTask> ShareTasks() { return {kReadTrace, kLookAtTrace}; }

}  // namespace ott::report
