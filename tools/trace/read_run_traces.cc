#include "tools/trace/read_run_traces.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/tensor/parallel_for.h"
#include "ott/dist/directory/run_directory.h"
#include "ott/run/training/rank_trace.h"

namespace ott::trace {
namespace {

// Lists the files of a rank, in the order of windows.
std::vector<std::string> ListTraceFiles(const std::string& rank_dir) {
  std::vector<std::string> files;
  for (int64_t window = 1;; ++window) {
    bool found = false;
    for (const bool gzip : {false, true}) {
      const std::string path = absl::StrCat(rank_dir, "/", TraceFileName(window, gzip));
      if (!PathExists(path)) continue;
      files.push_back(path);
      found = true;
    }
    if (!found) return files;
  }
}

}  // namespace

absl::StatusOr<RunTraces> RunTraces::Find(const std::vector<std::string>& paths,
                                          const TraceSelection& selection, const CaptureOptions& captures) {
  RunTraces result;
  result.selection_ = selection;
  const std::string& path = paths[0];
  result.captures_alone_ = CaptureEvents::IsCapture(path);
  for (const std::string& other : paths) {
    if (paths.size() > 1 && !CaptureEvents::IsCapture(other)) {
      return absl::InvalidArgumentError(
          absl::StrCat(other, ": of several files each must be a rank's trace of torch.profiler or capture"));
    }
  }
  const std::string run_dir = LatestAttempt(path);
  // RUN/attempt_1 is RUN itself.
  const bool is_directory = IsDirectory(path) || (!PathExists(path) && IsRunDirectory(run_dir));
  if (is_directory) {
    OTT_RETURN_IF_ERROR(CheckRunDirectory(run_dir));
    result.AddDirectory(run_dir, captures);
  } else if (result.captures_alone_) {
    OTT_RETURN_IF_ERROR(result.AddCaptures(paths, captures));
  } else {
    OTT_ASSIGN_OR_RETURN(const TraceInfo info, ReadTraceInfo(path));
    if (selection.ranks.empty() || selection.ranks.count(info.rank()) > 0) result.AddFile(path, info.rank());
  }
  for (const std::string& file : captures.files) OTT_RETURN_IF_ERROR(result.AddCapture(file, captures));
  for (const int rank : selection.ranks) {
    const auto is_of_rank = [rank](const TraceInfo& info) { return info.rank() == rank; };
    if (!is_directory &&
        std::none_of(result.info_.traces().begin(), result.info_.traces().end(), is_of_rank)) {
      result.AddNote(absl::StrCat("rank ", rank, ": has no trace among the files"));
    }
  }
  if (result.paths_.empty() && result.captures_alone_) {
    return absl::NotFoundError(absl::StrCat(path, ": has neither ranges nor device activity of the ranks"));
  }
  if (result.paths_.empty()) {
    const auto& notes = result.info_.notes();
    return absl::NotFoundError(
        absl::StrCat(path, ": no rank has a trace", notes.empty() ? "" : ": ",
                     notes.empty() ? "; was it run with `profile` in its ott.Config?" : notes[0]));
  }
  if (result.captures_alone_) {
    result.DropClocksOfSeveralMachines();
    result.AlignByCollectives();
  }
  result.FindBeginning();
  return result;
}

void RunTraces::AddDirectory(const std::string& run_dir, const CaptureOptions& captures) {
  const absl::StatusOr<std::vector<int>> found = ListRanks(run_dir);
  std::set<int> ranks;
  if (found.ok()) ranks.insert(found->begin(), found->end());
  if (const absl::StatusOr<RunInfo> info = ReadRunInfo(run_dir); info.ok()) {
    for (int rank = 0; rank < info->world_size(); ++rank) ranks.insert(rank);
  } else {
    AddNote(absl::StrCat("ranks beyond the folders there are may be missing: ",
                         std::string(info.status().message())));
  }
  for (const int rank : selection_.ranks) {
    if (ranks.count(rank) == 0) AddNote(absl::StrCat("rank ", rank, ": the run has no such rank"));
  }
  std::map<int, std::vector<std::string>> own, of_torch;
  for (const int rank : ranks) {
    if (!selection_.ranks.empty() && selection_.ranks.count(rank) == 0) continue;
    if (auto files = ListTraceFiles(RankDirectory(run_dir, rank)); !files.empty()) own[rank] = files;
    if (auto files = ListTorchTraces(run_dir, rank); !files.empty()) of_torch[rank] = files;
  }
  captures_alone_ = own.empty() && !of_torch.empty();
  for (const int rank : ranks) {
    if (!selection_.ranks.empty() && selection_.ranks.count(rank) == 0) continue;
    if ((captures_alone_ ? of_torch : own).count(rank) == 0)
      AddNote(absl::StrCat("rank ", rank, ": no trace in ", RankDirectory(run_dir, rank)));
    for (const std::string& file : own[rank]) AddFile(file, rank);
  }
  // Beside traces of the run's own they tell what devices did.
  for (const auto& [rank, files] : of_torch) {
    for (const std::string& file : files) AddTorchTrace(file, rank, captures);
  }
}

void RunTraces::AddTorchTrace(const std::string& file, int rank, const CaptureOptions& options) {
  absl::StatusOr<std::unique_ptr<CaptureEvents>> capture =
      CaptureEvents::Read(absl::StrCat(rank, "=", file), options, static_cast<int>(captures_.size()));
  if (!capture.ok()) return AddNote(std::string(capture.status().message()));
  if (captures_alone_) return Add(*std::move(capture));
  const kernels::Profile& profile = (*capture)->profile();
  if (profile.kernels.empty() && profile.transfers.empty()) return;
  const std::vector<TraceInfo> traces(info_.traces().begin(), info_.traces().end());
  if (const absl::Status found = (*capture)->FindRanks(traces); !found.ok())
    return AddNote(std::string(found.message()));
  captures_.push_back(*std::move(capture));
}

void RunTraces::AddFile(const std::string& path, int rank) {
  absl::StatusOr<TraceInfo> info = ReadTraceInfo(path);
  if (!info.ok()) return AddNote(std::string(info.status().message()));
  if (info->rank() != rank) {
    return AddNote(absl::StrCat(path, ": says it is rank ", info->rank(), "'s; was it copied here?"));
  }
  if (info->num_lost_events() > 0) {
    AddNote(absl::StrCat(path, ": ", info->num_lost_events(),
                         " events did not fit into their threads' buffers; raise thread_buffer_mib"));
  }
  *info_.add_traces() = *std::move(info);
  paths_.push_back(path);
}

absl::Status RunTraces::AddCapture(const std::string& file, const CaptureOptions& options) {
  OTT_ASSIGN_OR_RETURN(std::unique_ptr<CaptureEvents> capture,
                       CaptureEvents::Read(file, options, static_cast<int>(captures_.size())));
  if (captures_alone_) {
    Add(std::move(capture));
    return absl::OkStatus();
  }
  const std::vector<TraceInfo> traces(info_.traces().begin(), info_.traces().end());
  OTT_RETURN_IF_ERROR(capture->FindRanks(traces));
  const std::set<int>& ranks = selection_.ranks;
  const bool is_selected = ranks.empty() || std::any_of(ranks.begin(), ranks.end(),
                                                        [&](int rank) { return capture->HasRank(rank); });
  const std::string why_not = is_selected ? capture->Explain(traces) : "";
  if (!why_not.empty()) AddNote(why_not);
  captures_.push_back(std::move(capture));
  return absl::OkStatus();
}

void RunTraces::Add(std::unique_ptr<CaptureEvents> capture) {
  for (TraceInfo& info : capture->MakeTraces()) {
    if (!selection_.ranks.empty() && selection_.ranks.count(info.rank()) == 0) continue;
    *info_.add_traces() = std::move(info);
    paths_.push_back(capture->path());
  }
  for (const std::string& note : capture->profile().notes) AddNote(absl::StrCat(capture->path(), ": ", note));
  captures_.push_back(std::move(capture));
}

absl::Status RunTraces::AddCaptures(const std::vector<std::string>& files, const CaptureOptions& options) {
  std::vector<absl::StatusOr<std::unique_ptr<CaptureEvents>>> read(files.size());
  ParallelFor(static_cast<int64_t>(files.size()), NumThreads(0),
              [&](int64_t i) { read[i] = CaptureEvents::Read(files[i], options, static_cast<int>(i)); });
  std::set<int> told;
  for (const absl::StatusOr<std::unique_ptr<CaptureEvents>>& capture : read) {
    if (!capture.ok()) return capture.status();
    told.insert((*capture)->rank());
  }
  for (size_t i = 0; i < files.size(); ++i) {
    CaptureEvents& capture = **read[i];
    // By the order of the files, but none that another one tells.
    for (int free = static_cast<int>(i); capture.rank() < 0 && files.size() > 1; ++free) {
      if (told.insert(free).second) capture.SetRank(free);
    }
    Add(*std::move(read[i]));
  }
  return absl::OkStatus();
}

std::vector<waiting::RankProfile> RunTraces::RankTraces() const {
  std::vector<waiting::RankProfile> traces;
  if (!captures_alone_) return traces;
  for (int i = 0; i < info_.traces_size(); ++i) {
    for (const std::unique_ptr<CaptureEvents>& capture : captures_) {
      if (capture->path() == paths_[static_cast<size_t>(i)])
        traces.push_back({info_.traces(i).rank(), &capture->profile()});
    }
  }
  std::stable_sort(
      traces.begin(), traces.end(),
      [](const waiting::RankProfile& a, const waiting::RankProfile& b) { return a.rank < b.rank; });
  return traces;
}

// Clocks of several machines differ, which what the ranks did together tells.
void RunTraces::AlignByCollectives() {
  std::vector<waiting::TraceSummary> traces;
  for (const waiting::RankProfile& trace : RankTraces())
    traces.push_back(waiting::SummarizeCollectives(trace));
  const std::vector<waiting::Collective> collectives = waiting::MatchCollectives(traces);
  LookForTwoRuns(traces, collectives);
  const std::vector<waiting::ClockOffset> offsets = waiting::AlignClocks(traces, collectives);
  const auto num_known = std::count_if(offsets.begin(), offsets.end(),
                                       [](const waiting::ClockOffset& offset) { return offset.is_known; });
  if (num_known < 2) return;
  // Others of a rank, such as a capture beside its trace, have the clock of the first one that is known.
  for (const bool is_of_path : {true, false}) {
    for (size_t i = 0; i < traces.size(); ++i) {
      if (!offsets[i].is_known) continue;
      for (int k = 0; k < info_.traces_size(); ++k) {
        TraceInfo& info = *info_.mutable_traces(k);
        if (info.rank() != traces[i].rank || info.has_clock()) continue;
        if (is_of_path && paths_[static_cast<size_t>(k)] != traces[i].path) continue;
        const int64_t begin = info.begin_unix_nanoseconds();
        info.mutable_clock()->set_begin_nanoseconds(begin + offsets[i].at_begin);
        info.mutable_clock()->set_end_nanoseconds(begin + info.end_nanoseconds() - info.begin_nanoseconds() +
                                                  offsets[i].at_end);
        info.mutable_clock()->set_error_bound_nanoseconds(offsets[i].error_bound);
      }
    }
  }
}

// A rank is in a collective once. Windows of one run have none in common.
void RunTraces::LookForTwoRuns(const std::vector<waiting::TraceSummary>& traces,
                               const std::vector<waiting::Collective>& collectives) {
  for (const waiting::Collective& collective : collectives) {
    std::map<int, size_t> trace_of_rank;
    for (const waiting::Collective::Part& part : collective.parts) {
      const int rank = traces[part.trace].rank;
      const size_t other = trace_of_rank.emplace(rank, part.trace).first->second;
      if (other == part.trace) continue;
      two_runs_ = absl::StrCat(traces[other].path, " and ", traces[part.trace].path, " are both rank ", rank,
                               "'s, and have collectives in common: keep one run's");
      return AddNote(two_runs_);
    }
  }
}

// Drops clocks of captures unless all are of one machine: then alone they are of use.
void RunTraces::DropClocksOfSeveralMachines() {
  const auto is_of_machine = [this](const std::unique_ptr<CaptureEvents>& capture) {
    return capture->IsOfMachineOf(*captures_[0]);
  };
  if (std::all_of(captures_.begin(), captures_.end(), is_of_machine)) return;
  for (TraceInfo& info : *info_.mutable_traces()) info.clear_clock();
}

void RunTraces::AddNote(const std::string& note) {
  if (std::find(info_.notes().begin(), info_.notes().end(), note) == info_.notes().end())
    info_.add_notes(note);
}

void RunTraces::FindBeginning() {
  const auto compared = std::find_if(info_.traces().begin(), info_.traces().end(),
                                     [](const TraceInfo& info) { return info.has_clock(); });
  if (compared != info_.traces().end()) {
    unix_to_common_ = compared->clock().begin_nanoseconds() - compared->begin_unix_nanoseconds();
  }
  begin_ = std::numeric_limits<int64_t>::max();
  for (int i = 0; i < info_.traces_size(); ++i) {
    const TraceInfo& info = info_.traces(i);
    begin_ = std::min(begin_, ToCommon(info, 0));
    const bool has_others = std::any_of(paths_.begin(), paths_.end(),
                                        [this, i](const std::string& path) { return path != paths_[i]; });
    if (!info.has_clock() && has_others) {
      AddNote(
          absl::StrCat(paths_[i], ": its clock was not compared with rank 0's; placed by the time of day"));
    }
  }
}

int64_t RunTraces::ToCommon(const TraceInfo& info, int64_t time) const {
  if (!info.has_clock()) return info.begin_unix_nanoseconds() + unix_to_common_ + time;
  const ClockAlignment& clock = info.clock();
  const double duration = static_cast<double>(info.end_nanoseconds() - info.begin_nanoseconds());
  const double aligned = static_cast<double>(clock.end_nanoseconds() - clock.begin_nanoseconds());
  const double drift = duration > 0 ? (aligned - duration) / duration : 0;
  return clock.begin_nanoseconds() + time + static_cast<int64_t>(drift * static_cast<double>(time));
}

void RunTraces::Prepare(const TraceInfo& info, Trace& trace) const {
  const auto begin = static_cast<int64_t>(selection_.begin * 1e9);
  const auto end = static_cast<int64_t>(std::min(selection_.end, 9e9) * 1e9);
  for (TraceEvent& event : trace.events) {
    const int64_t event_end = ToCommon(info, event.start + event.duration) - begin_;
    event.start = ToCommon(info, event.start) - begin_;
    event.duration = std::max<int64_t>(0, event_end - event.start);
    event.process = info.rank();
  }
  const auto is_outside = [begin, end](const TraceEvent& event) {
    return event.start >= end || event.start + std::max<int64_t>(event.duration, 1) <= begin;
  };
  trace.events.erase(std::remove_if(trace.events.begin(), trace.events.end(), is_outside),
                     trace.events.end());
  for (TraceTrack& track : trace.tracks) track.process = info.rank();
  std::stable_sort(trace.events.begin(), trace.events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return std::tuple(a.track, a.start, -a.duration) < std::tuple(b.track, b.start, -b.duration);
  });
}

void RunTraces::Visit(const std::function<void(const Trace&)>& visitor) {
  for (size_t i = 0; i < paths_.size(); ++i) {
    absl::StatusOr<Trace> trace = captures_alone_ ? Trace() : ReadTrace(paths_[i]);
    if (!trace.ok()) {
      AddNote(std::string(trace.status().message()));
      continue;
    }
    if (!trace->cut.empty()) AddNote(trace->cut);
    trace->info = info_.traces(static_cast<int>(i));
    for (const std::unique_ptr<CaptureEvents>& capture : captures_) {
      if (!captures_alone_ || capture->path() == paths_[i]) capture->AddTo(captures_alone_, *trace);
    }
    Prepare(trace->info, *trace);
    visitor(*trace);
  }
}

}  // namespace ott::trace
