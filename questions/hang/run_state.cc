#include "ott/questions/hang/run_state.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"
#include "ott/dist/directory/run_directory.h"

namespace ott {
namespace {

using Process = RankState::Process;

constexpr int64_t kSecond = 1000000000;
// Heartbeats come every second here, and over a network every few.
constexpr int64_t kSilentHere = 3 * kSecond;
constexpr int64_t kSilentElsewhere = 10 * kSecond;
// By no more are the clocks of two machines apart.
constexpr int64_t kClocksApart = 3600 * kSecond;
constexpr std::chrono::seconds kTimeToBeat(5);
// So many operations of each rank are enough to see what went wrong before the job stood; of few ranks all
// are read that recorders hold.
constexpr size_t kMinOperations = 64;
constexpr size_t kOperationsOfJob = size_t{1} << 18;

int64_t LastSign(const FlightRecord& record) {
  return std::max({record.beat_ns, record.last_event_ns, record.terminated_ns});
}

// Takes one record after another, so that thousands need no memory at once.
class Builder {
 public:
  Builder(int num_ranks, const RunStateEnvironment& environment) : environment_(environment) {
    job_.has_times = true;
    job_.ranks.resize(num_ranks);
    last_signs_.resize(num_ranks);
  }

  // Returns true if its process, on another machine, may live although its heart seems silent, or seems to
  // beat in the future.
  bool IsDoubtful(const FlightRecord& record) const {
    const int64_t silent = std::abs(environment_.now_ns - record.beat_ns);
    return !IsHere(record) && record.end == internal::FlightEnd::kRuns && silent >= kSilentElsewhere &&
           silent < kClocksApart;
  }

  // beats: whether its heart was seen to beat.
  void Add(int rank, const absl::StatusOr<FlightRecord>& record, bool beats = false) {
    if (!record.ok()) {
      job_.ranks[rank].problem = ValidUtf8(std::string(record.status().message()));
      return;
    }
    num_dropped_ = std::max(num_dropped_, record->num_dropped);
    AddRank(rank, *record, beats);
  }

  JobState Finish() {
    SetTimes();
    if (num_dropped_ > 0) {
      job_.notes.push_back(
          absl::StrCat(num_dropped_, " measurements found no place in the recorders and are not seen"));
    }
    return std::move(job_);
  }

 private:
  // Those of which a rank tells the members are as it says; of the others, those that use the name are
  // members.
  int32_t FindGroup(int rank, const FlightRecord::Group& group) {
    std::string key = group.name;
    for (const internal::FlightRange& range : group.ranges) {
      absl::StrAppend(&key, " ", range.first, " ", range.count, " ", range.stride);
    }
    const auto [found, is_new] = group_of_.emplace(std::move(key), static_cast<int32_t>(job_.groups.size()));
    if (is_new) {
      // Operations are of all ranks unless a group was declared.
      const bool is_declared = !group.ranges.empty() && group.name != kFlightWorld;
      job_.groups.push_back({group.name, group.Ranks(), is_declared});
      std::vector<int>& ranks = job_.groups.back().ranks;
      while (!ranks.empty() && ranks.back() >= static_cast<int>(job_.ranks.size())) ranks.pop_back();
    }
    if (group.ranges.empty()) job_.groups[found->second].ranks.push_back(rank);
    return found->second;
  }

  // The thread that ends iterations trains; other threads, such as those that load data, may go on when it
  // stands.
  static int MainThread(const FlightRecord& record) {
    for (auto event = record.events.rbegin(); event != record.events.rend(); ++event) {
      if (event->type == internal::FlightEventType::kFinishIter) return event->thread;
    }
    for (const FlightRecord::Measurement& measurement : record.measurements) {
      if (measurement.role != FlightRole::kWork && measurement.begin_ns > 0) return measurement.thread;
    }
    return record.measurements.empty() ? 0 : record.measurements[0].thread;
  }

  JobOperation MakeOperation(const FlightRecord::Measurement& measurement) {
    JobOperation operation;
    operation.group = groups_of_rank_[measurement.group];
    operation.name = job_.Name(measurement.kind.empty() ? measurement.name : measurement.kind);
    operation.direction = measurement.role == FlightRole::kSend      ? JobOperation::Direction::kSend
                          : measurement.role == FlightRole::kReceive ? JobOperation::Direction::kReceive
                                                                     : JobOperation::Direction::kCollective;
    operation.peer = measurement.peer;
    operation.synchronizes = measurement.synchronizes;
    return operation;
  }

  bool IsHere(const FlightRecord& record) const {
    return !record.machine.empty() && record.machine == environment_.machine;
  }

  void AddRank(int rank, const FlightRecord& record, bool beats) {
    RankState& state = job_.ranks[rank];
    state.problem.clear();
    state.host = record.host;
    state.finished = record.end == internal::FlightEnd::kFinished;
    state.left = record.end == internal::FlightEnd::kLeft;
    state.terminated_ns = record.terminated_ns;
    state.terminated_by = record.terminated_by;
    if (!record.job.empty()) job_.job = record.job;
    job_.job_ends_s = std::max(job_.job_ends_s, record.job_ends_s);
    state.iteration = record.iteration;
    const int main_thread = MainThread(record);
    groups_of_rank_.clear();
    for (const FlightRecord::Group& group : record.groups) {
      groups_of_rank_.push_back(FindGroup(rank, group));
      state.positions.push_back({groups_of_rank_.back(), group.entered, group.entered, group.completed});
    }
    std::sort(state.positions.begin(), state.positions.end(),
              [](const GroupPosition& a, const GroupPosition& b) { return a.group < b.group; });
    for (const FlightRecord::Event& event : record.events) AddEvent(rank, record, event, main_thread);
    const size_t most = std::max(kMinOperations, kOperationsOfJob / job_.ranks.size());
    if (state.operations.size() > most) {
      state.operations.erase(state.operations.begin(),
                             state.operations.end() - static_cast<std::ptrdiff_t>(most));
    }
    for (const FlightRecord::Measurement& measurement : record.measurements) {
      AddMeasurement(rank, measurement, main_thread);
    }
    state.cpu_share = CpuShareSince(record, std::max(state.place_since_ns, state.last_event_ns));
    state.operations.shrink_to_fit();
    state.process = FindProcess(record, beats);
    last_signs_[rank] = {LastSign(record), IsHere(record), record.notes_termination};
    if (record.terminated_ns > 0) {
      int64_t& first = first_termination_.try_emplace(state.host, record.terminated_ns).first->second;
      first = std::min(first, record.terminated_ns);
    }
  }

  // Heartbeats tell it, the first one after that moment on.
  static double CpuShareSince(const FlightRecord& record, int64_t since_ns) {
    const auto first = std::find_if(record.beats.begin(), record.beats.end(),
                                    [&](const FlightRecord::Beat& beat) { return beat.ns >= since_ns; });
    if (first == record.beats.end() || record.beats.back().ns <= first->ns) return -1;
    return static_cast<double>(record.beats.back().cpu_ns - first->cpu_ns) /
           static_cast<double>(record.beats.back().ns - first->ns);
  }

  // Adds collective operations that are over; those that run are known from the measurements.
  void AddEvent(int rank, const FlightRecord& record, const FlightRecord::Event& event, int main_thread) {
    RankState& state = job_.ranks[rank];
    if (event.thread == main_thread) state.last_event_ns = std::max(state.last_event_ns, event.ns);
    if (event.measurement < 0) return;
    const FlightRecord::Measurement& measurement = record.measurements[event.measurement];
    const bool collective = measurement.role == FlightRole::kCollective;
    if (event.type == internal::FlightEventType::kEnd && event.thread == main_thread) {
      state.last_completed =
          collective ? absl::StrCat(measurement.name, " #", event.sequence) : measurement.name;
    }
    if (event.type != internal::FlightEventType::kBegin || !collective) return;
    if (measurement.runs && measurement.sequence == event.sequence) return;
    JobOperation operation = MakeOperation(measurement);
    operation.sequence = event.sequence;
    operation.iteration = event.iteration;
    operation.size = event.size;
    operation.entered_ns = event.ns;
    operation.progress = JobOperation::Progress::kCompleted;
    state.operations.push_back(operation);
  }

  void AddMeasurement(int rank, const FlightRecord::Measurement& measurement, int main_thread) {
    RankState& state = job_.ranks[rank];
    if (measurement.thread == main_thread) {
      state.last_event_ns = std::max({state.last_event_ns, measurement.begin_ns, measurement.end_ns});
    }
    if (!measurement.runs) return;
    if (measurement.thread == main_thread && measurement.begin_ns > state.place_since_ns) {
      state.place = measurement.name;
      state.place_since_ns = measurement.begin_ns;
    }
    if (measurement.role == FlightRole::kWork) return;
    JobOperation operation = MakeOperation(measurement);
    operation.sequence = measurement.sequence;
    operation.iteration = measurement.role == FlightRole::kCollective ? measurement.iteration : -1;
    operation.size = measurement.size;
    operation.entered_ns = measurement.begin_ns;
    operation.progress = JobOperation::Progress::kEntered;
    state.operations.push_back(operation);
  }

  Process FindProcess(const FlightRecord& record, bool beats) const {
    if (!IsHere(record)) {
      const int64_t silent = environment_.now_ns - record.beat_ns;
      return beats || silent < kSilentElsewhere ? Process::kAlive : Process::kSilent;
    }
    const ProcessStatus status = environment_.read_process(record.process);
    if (status.state == 0 || status.started != record.process_started || status.state == 'Z' ||
        status.state == 'X') {
      return Process::kDead;
    }
    return status.state == 'T' || status.state == 't' ? Process::kStopped : Process::kAlive;
  }

  // The others of its host were ended by SIGTERM, after its last sign of life, which that would have been,
  // too: it was gone before them.
  bool WentBeforeTermination(int rank) const {
    const auto first = first_termination_.find(job_.ranks[rank].host);
    return first != first_termination_.end() && last_signs_[rank].notes_termination &&
           last_signs_[rank].ns < first->second;
  }

  void SetTimes() {
    bool any_alive = false;
    int64_t last = 0;
    const auto lives = [](const RankState& state) {
      return state.process == Process::kAlive || state.process == Process::kStopped;
    };
    for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      any_alive = any_alive || lives(job_.ranks[rank]);
      last = std::max(last, last_signs_[rank].ns);
    }
    for (size_t rank = 0; rank < job_.ranks.size(); ++rank) {
      RankState& state = job_.ranks[rank];
      if (!state.known()) continue;
      const Sign& own = last_signs_[rank];
      // With those that ended the job.
      const bool is_last = last - own.ns < (own.is_here ? kSilentHere : kSilentElsewhere);
      if (!any_alive && (is_last || state.terminated_ns > 0) &&
          !WentBeforeTermination(static_cast<int>(rank))) {
        state.process = Process::kUnknown;
      }
      // Elsewhere, its clock may be apart from the one here.
      state.now_ns = lives(state) && own.is_here ? std::max(environment_.now_ns, own.ns) : own.ns;
    }
  }

  struct Sign {
    int64_t ns = 0;
    bool is_here = false;
    bool notes_termination = false;
  };

  const RunStateEnvironment& environment_;
  JobState job_;
  std::map<std::string, int32_t> group_of_;
  // By the record's own numbers, of the rank that is being added.
  std::vector<int32_t> groups_of_rank_;
  std::vector<Sign> last_signs_;
  // By host, the first that a rank noted.
  std::map<std::string, int64_t> first_termination_;
  int64_t num_dropped_ = 0;
};

absl::StatusOr<FlightRecord> ReadRecordOf(const std::string& run_dir, int rank,
                                          const RunStateEnvironment& environment) {
  const std::string path = FlightPath(run_dir, rank);
  absl::StatusOr<FlightRecord> record = ReadFlightRecord(path);
  if (absl::IsNotFound(record.status()) && environment.ask_for_recorder) {
    const absl::StatusOr<std::string> bytes = environment.ask_for_recorder(rank);
    record = bytes.ok()
                 ? ParseFlightRecord(*bytes)
                 : absl::Status(bytes.status().code(),
                                absl::StrCat(record.status().message(), ", and ", bytes.status().message()));
  }
  if (!record.ok()) {
    return absl::Status(record.status().code(), absl::StrCat(path, ": ", record.status().message()));
  }
  if (record->rank != rank) return absl::DataLossError(absl::StrCat(path, ": of rank ", record->rank));
  return record;
}

}  // namespace

std::string FlightPath(const std::string& run_dir, int rank) {
  return RankDirectory(run_dir, rank) + "/flight";
}

RunStateEnvironment RunStateEnvironment::Real() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  RunStateEnvironment environment;
  environment.now_ns = int64_t{now.tv_sec} * kSecond + now.tv_nsec;
  environment.wait_for_beats = [] { std::this_thread::sleep_for(kTimeToBeat); };
  return environment;
}

JobState MakeJobState(const std::vector<absl::StatusOr<FlightRecord>>& records,
                      const RunStateEnvironment& environment) {
  Builder builder(static_cast<int>(records.size()), environment);
  for (size_t rank = 0; rank < records.size(); ++rank) builder.Add(static_cast<int>(rank), records[rank]);
  return builder.Finish();
}

absl::StatusOr<JobState> ReadRunState(const std::string& run_dir, const RunStateEnvironment& environment) {
  int world_size = 0;
  if (const absl::StatusOr<RunInfo> info = ReadRunInfo(run_dir); info.ok()) {
    world_size = info->world_size();
  } else {
    OTT_ASSIGN_OR_RETURN(const std::vector<int> ranks, ListRanks(run_dir));
    if (ranks.empty()) return absl::NotFoundError(absl::StrCat(run_dir, ": no run directory"));
    world_size = ranks.back() + 1;
    // Ranks that left nothing are known to the others.
    for (const int rank : ranks) {
      const absl::StatusOr<FlightRecord> record = ReadFlightRecord(FlightPath(run_dir, rank));
      if (record.ok()) world_size = std::max(world_size, std::min(record->world_size, kMaxWorldSize));
    }
  }
  Builder builder(world_size, environment);
  std::map<int, int64_t> doubtful;  // when their hearts beat
  for (int rank = 0; rank < world_size; ++rank) {
    const absl::StatusOr<FlightRecord> record = ReadRecordOf(run_dir, rank, environment);
    if (record.ok() && environment.wait_for_beats && builder.IsDoubtful(*record)) {
      doubtful[rank] = record->beat_ns;
    } else {
      builder.Add(rank, record);
    }
  }
  if (!doubtful.empty()) environment.wait_for_beats();
  for (const auto& [rank, beat_ns] : doubtful) {
    const absl::StatusOr<FlightRecord> record = ReadRecordOf(run_dir, rank, environment);
    builder.Add(rank, record, record.ok() && record->beat_ns != beat_ns);
  }
  return builder.Finish();
}

}  // namespace ott
