#include "tools/trace/capture_events.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/events/event_recorder.h"
#include "ott/core/kineto/read_trace.h"
#include "ott/questions/kernels/profile_reader.h"

namespace ott::trace {
namespace {

// Behind those of the recorder: threads' launches, then devices' streams.
int64_t LaunchTrack(int64_t tid) {
  return EventRecorder::kFirstTrack + (int64_t{1} << 22) + (tid & 0x3fffff);
}
int64_t StreamTrack(int device, int stream) {
  return 2 * EventRecorder::kFirstTrack + (int64_t{device + 1} << 16) + (stream & 0xffff);
}

std::string List(const std::array<int64_t, 3>& sizes) {
  return absl::StrCat("[", sizes[0], ",", sizes[1], ",", sizes[2], "]");
}

std::string_view NameOf(const kernels::OpLabel& label) {
  if (label.kind == kernels::OpLabel::Kind::kMarker || label.kind == kernels::OpLabel::Kind::kOp)
    return label.description.op;
  return label.kind == kernels::OpLabel::Kind::kTrace ? label.source : label.text;
}

// Steps are what `ott trace` looks for; operations of one name are one in its trees.
std::string_view CategoryOf(const kernels::OpLabel& label) {
  if (label.text.substr(0, kernels::kStepName.size()) == kernels::kStepName) return "step";
  return label.kind == kernels::OpLabel::Kind::kOp && !label.shapes.empty() ? "op" : "nvtx";
}

void AddTrack(int64_t track, std::string name, int64_t sort_index, Trace& trace) {
  const bool known = std::any_of(trace.tracks.begin(), trace.tracks.end(),
                                 [track](const TraceTrack& other) { return other.track == track; });
  if (!known) trace.tracks.push_back({trace.info.rank(), track, std::move(name), sort_index});
}

// "3=run.sqlite" is rank 3's.
std::pair<int, std::string> SplitRank(const std::string& file) {
  int rank = -1;
  const char* const end = file.data() + file.size();
  const auto [rest, error] = std::from_chars(file.data(), end, rank);
  if (error != std::errc() || rest == end || *rest != '=' || rank < 0) return {-1, file};
  return {rank, std::string(rest + 1, end)};
}

}  // namespace

// A kernel or a transfer, from the beginning of the trace.
struct CaptureEvents::Activity {
  int64_t start;
  int64_t duration;
  int64_t track;
  uint32_t launch;
  const kernels::Profile::Kernel* kernel;
  const kernels::Profile::Transfer* transfer;
};

CaptureEvents::CaptureEvents(kernels::Profile profile, int given_rank, int64_t begin_unix, int number)
    : profile_(std::move(profile)),
      given_rank_(given_rank >= 0 ? given_rank : profile_.rank),
      begin_unix_(begin_unix),
      number_(number) {}

bool CaptureEvents::IsCapture(const std::string& path) {
  constexpr std::string_view kMagic = "SQLite format 3";
  std::string begin(kMagic.size(), '\0');
  if (!IsRegularFile(path)) return false;
  std::ifstream(path).read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == kMagic || kineto::IsTorchTrace(path);
}

absl::StatusOr<std::unique_ptr<CaptureEvents>> CaptureEvents::Read(const std::string& file,
                                                                   const CaptureOptions& options,
                                                                   int number) {
  const auto [rank, path] = SplitRank(file);
  kernels::ReadProfileOptions read;
  read.transfers = true;
  OTT_ASSIGN_OR_RETURN(kernels::Profile profile, kernels::ReadProfile(path, read));
  if (options.begin_unix_nanoseconds.has_value()) profile.begin_monotonic_nanoseconds.reset();
  const std::optional<int64_t> begin = options.begin_unix_nanoseconds.has_value()
                                           ? options.begin_unix_nanoseconds
                                           : profile.begin_unix_nanoseconds;
  if (!begin.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path,
                     ": does not say when it began (TARGET_INFO_SESSION_START_TIME); give the "
                     "nanoseconds since 1970 of its time 0 as --capture-offset"));
  }
  return std::unique_ptr<CaptureEvents>(new CaptureEvents(std::move(profile), rank, *begin, number));
}

bool CaptureEvents::IsOfMachineOf(const CaptureEvents& other) const {
  constexpr int64_t kMillisecond = 1'000'000;
  const std::optional<int64_t> mine = profile_.begin_monotonic_nanoseconds;
  const std::optional<int64_t> others = other.profile_.begin_monotonic_nanoseconds;
  return mine.has_value() && others.has_value() &&
         std::abs((begin_unix_ - *mine) - (other.begin_unix_ - *others)) < kMillisecond;
}

std::vector<TraceInfo> CaptureEvents::MakeTraces() {
  std::vector<size_t> by_pid;
  std::set<int> known;
  for (size_t i = 0; i < profile_.processes.size(); ++i) {
    by_pid.push_back(i);
    ranks_.push_back(given_rank_ >= 0 ? given_rank_ : profile_.processes[i].rank);
    known.insert(ranks_.back());
  }
  std::sort(by_pid.begin(), by_pid.end(),
            [this](size_t a, size_t b) { return profile_.processes[a].pid < profile_.processes[b].pid; });
  std::map<int, TraceInfo> traces;
  for (const size_t i : by_pid) {
    int& rank = ranks_[i];
    if (rank < 0) {
      rank = 0;
      while (!known.insert(rank).second) ++rank;
    }
    TraceInfo& info = traces[rank];
    info.set_rank(rank);
    info.set_host(profile_.processes[i].name);
    info.set_process_id(profile_.processes[i].pid);
    info.set_begin_nanoseconds(profile_.first_time);
    info.set_end_nanoseconds(profile_.last_time);
    info.set_begin_unix_nanoseconds(begin_unix_ + profile_.first_time);
    if (profile_.begin_monotonic_nanoseconds.has_value()) {
      info.mutable_clock()->set_begin_nanoseconds(*profile_.begin_monotonic_nanoseconds +
                                                  profile_.first_time);
      info.mutable_clock()->set_end_nanoseconds(*profile_.begin_monotonic_nanoseconds + profile_.last_time);
    }
  }
  std::vector<TraceInfo> result;
  for (auto& [rank, info] : traces) result.push_back(std::move(info));
  return result;
}

absl::Status CaptureEvents::FindRanks(const std::vector<TraceInfo>& traces) {
  std::string pids;
  for (const kernels::Profile::Process& process : profile_.processes) {
    std::set<int> found;
    for (const TraceInfo& info : traces) {
      if (given_rank_ < 0 && info.process_id() == process.pid) found.insert(info.rank());
    }
    ranks_.push_back(given_rank_ >= 0 ? given_rank_ : found.size() == 1 ? *found.begin() : -1);
    absl::StrAppend(&pids, pids.empty() ? "" : ", ", process.pid);
  }
  if (ranks_.empty() || std::any_of(ranks_.begin(), ranks_.end(), [](int rank) { return rank >= 0; })) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(path(), ": whose is it? Neither its name (rank_00003) nor its process ids (", pids,
                   ") belong to one rank; give it as RANK=", path()));
}

bool CaptureEvents::HasRank(int rank) const {
  return std::find(ranks_.begin(), ranks_.end(), rank) != ranks_.end();
}

std::string CaptureEvents::Explain(const std::vector<TraceInfo>& traces) const {
  if (profile_.kernels.empty() && profile_.transfers.empty()) {
    return absl::StrCat(path(), ": has no kernels, memory copies or memsets");
  }
  const TraceInfo* of_rank = nullptr;
  for (const TraceInfo& info : traces) {
    if (!HasRank(info.rank())) continue;
    if (!ActivitiesWithin(info).empty()) return "";
    of_rank = &info;
  }
  if (of_rank == nullptr) {
    return absl::StrCat(path(), ": is of rank ", *std::max_element(ranks_.begin(), ranks_.end()),
                        ", which has no trace in the run");
  }
  const auto seconds = [of_rank](int64_t unix_time) {
    return absl::StrCat(static_cast<double>(unix_time - of_rank->begin_unix_nanoseconds()) * 1e-9, " s");
  };
  return absl::StrCat(path(), ": no device activity begins within a window of rank ", of_rank->rank(),
                      "; the capture reaches from ", seconds(begin_unix_ + profile_.first_time), " to ",
                      seconds(begin_unix_ + profile_.last_time),
                      " after a window opened; is it of the same run, or --capture-offset wrong?");
}

std::vector<CaptureEvents::Activity> CaptureEvents::ActivitiesWithin(const TraceInfo& info) const {
  std::vector<Activity> result;
  const int64_t begin = info.begin_unix_nanoseconds() - begin_unix_;
  const int64_t end = begin + info.end_nanoseconds() - info.begin_nanoseconds();
  const auto add = [&](const auto& from, const kernels::Profile::Kernel* kernel,
                       const kernels::Profile::Transfer* transfer) {
    if (ranks_[from.process] != info.rank() || from.start < begin || from.start > end) return;
    result.push_back({from.start - begin, from.end - from.start, StreamTrack(from.device, from.stream),
                      from.launch, kernel, transfer});
  };
  for (const kernels::Profile::Kernel& kernel : profile_.kernels) add(kernel, &kernel, nullptr);
  for (const kernels::Profile::Transfer& transfer : profile_.transfers) add(transfer, nullptr, &transfer);
  std::stable_sort(result.begin(), result.end(),
                   [](const Activity& a, const Activity& b) { return a.start < b.start; });
  return result;
}

void CaptureEvents::AddTo(bool with_ranges, Trace& trace) const {
  const int64_t begin = trace.info.begin_unix_nanoseconds() - begin_unix_;
  const int64_t length = trace.info.end_nanoseconds() - trace.info.begin_nanoseconds();
  std::unordered_map<uint32_t, std::string_view> args_of_geometry;
  std::unordered_map<int64_t, int64_t> busy_until;  // by track
  std::unordered_set<uint32_t> launches;
  for (const Activity& activity : ActivitiesWithin(trace.info)) {
    TraceEvent event;
    event.category = "device";
    event.track = activity.track;
    event.start = activity.start;
    event.duration = activity.duration;
    int device, stream;
    if (activity.kernel != nullptr) {
      const kernels::Profile::Kernel& kernel = *activity.kernel;
      std::string_view& args = args_of_geometry[kernel.geometry];
      if (args.empty()) {
        const kernels::Profile::Geometry& geometry = profile_.geometries[kernel.geometry];
        args = trace.texts.emplace_back(
            absl::StrCat("{\"grid\":", List(geometry.grid), ",\"block\":", List(geometry.block), "}"));
      }
      event.name = profile_.kernel_names[kernel.name];
      event.args = args;
      device = kernel.device;
      stream = kernel.stream;
    } else {
      const kernels::Profile::Transfer& transfer = *activity.transfer;
      event.name = profile_.transfer_names[transfer.name];
      event.args = trace.texts.emplace_back(absl::StrCat("{\"bytes\":", transfer.bytes, "}"));
      device = transfer.device;
      stream = transfer.stream;
    }
    const auto [until, is_new] = busy_until.emplace(event.track, event.start);
    if (is_new) {
      AddTrack(event.track, absl::StrCat("GPU ", device, ", stream ", stream), event.track, trace);
    }
    if (event.start < until->second) event.type = TraceEvent::Type::kOverlappingSlice;
    until->second = std::max(until->second, event.start + event.duration);
    // The file tells only the op of some kernels, not the call.
    const bool has_call =
        activity.launch != kernels::kNone && profile_.launches[activity.launch].nanoseconds != kernels::kNone;
    if (has_call && event.type == TraceEvent::Type::kSlice) {
      const kernels::Profile::Launch& launch = profile_.launches[activity.launch];
      const bool within =
          launch.thread != kernels::kNone && launch.start >= begin && launch.start <= begin + length;
      // Draws only the first of a graph.
      if (within && launches.insert(activity.launch).second) {
        const kernels::Profile::Thread& thread = profile_.threads[launch.thread];
        TraceEvent call;
        call.category = "launch";
        call.name = "launch";
        call.track = LaunchTrack(thread.tid);
        call.start = launch.start - begin;
        call.duration = launch.nanoseconds;
        call.flow = TraceEvent::Flow::kStart;
        event.flow = TraceEvent::Flow::kFinish;
        call.flow_id = event.flow_id =
            uint64_t{1} << 63 | static_cast<uint64_t>(number_) << 32 | activity.launch;
        AddTrack(call.track, absl::StrCat("launches of thread ", thread.tid), call.track, trace);
        trace.events.push_back(call);
      }
    }
    trace.events.push_back(event);
  }
  if (with_ranges) AddRanges(trace);
}

void CaptureEvents::AddRanges(Trace& trace) const {
  const int64_t begin = trace.info.begin_unix_nanoseconds() - begin_unix_;
  for (const kernels::Profile::Thread& thread : profile_.threads) {
    if (ranks_[thread.process] != trace.info.rank() || thread.ranges.empty()) continue;
    const bool is_main = thread.tid == trace.info.process_id();
    AddTrack(thread.tid, thread.name.empty() ? absl::StrCat("thread ", thread.tid) : thread.name,
             is_main ? 0 : thread.tid, trace);
    for (const kernels::Profile::Range& range : thread.ranges) {
      TraceEvent event;
      const kernels::OpLabel& label = profile_.labels[range.label];
      event.name = NameOf(label);
      event.category = CategoryOf(label);
      event.track = thread.tid;
      event.start = range.start - begin;
      event.duration = range.end - range.start;
      trace.events.push_back(event);
    }
  }
}

}  // namespace ott::trace
