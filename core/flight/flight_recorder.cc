#include "ott/core/flight/flight_recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file_limit.h"
#include "ott/core/flight/process.h"

namespace ott {
namespace {

using internal::FlightGroup;
using internal::FlightHeader;
using internal::FlightRange;
using internal::FlightSlot;

template <size_t kSize>
void CopyName(std::string_view name, char (&to)[kSize]) {
  const size_t size = std::min(name.size(), kSize - 1);
  std::memcpy(to, name.data(), size);
  to[size] = 0;
}

template <size_t kSize>
bool HasName(const char (&field)[kSize], std::string_view name) {
  return name.substr(0, kSize - 1) == field;
}

absl::Status FileError(const std::string& path, const char* what, int error) {
  const std::string message = absl::StrCat(path, ": ", what, ": ", std::strerror(error));
  return error == ENOSPC || error == EDQUOT ? absl::ResourceExhaustedError(message)
                                            : absl::UnavailableError(message);
}

// Since 1970.
int64_t NowNs() {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

// Ascending ranks as few ranges; empty if there are too many.
std::vector<FlightRange> ToRanges(const std::vector<int>& ranks) {
  std::vector<FlightRange> ranges;
  for (const int rank : ranks) {
    if (!ranges.empty()) {
      FlightRange& last = ranges.back();
      if (last.count == 1) last.stride = rank - last.first;
      if (rank == last.first + last.count * last.stride) {
        ++last.count;
        continue;
      }
    }
    ranges.push_back({rank, 1, 1});
  }
  if (ranges.size() > internal::kFlightRanges) ranges.clear();
  return ranges;
}

// Lists the recorders of this process, of which none is removed.
struct Recorders {
  FlightRecorder* recorder;
  pid_t process;
  Recorders* next;
};
std::atomic<Recorders*> first_recorder{nullptr};

// An exit() by another thread, such as one of MPI's, is no decision of the training.
void LeaveAtExit() {
  for (const Recorders* known = first_recorder; known != nullptr; known = known->next) {
    if (known->process == getpid() && known->recorder->IsTrainingThread()) known->recorder->SetLeft();
  }
}

void RememberForExit(FlightRecorder* recorder) {
  static const int registered = std::atexit(&LeaveAtExit);
  static_cast<void>(registered);
  auto* const known = new Recorders{recorder, getpid(), first_recorder.load()};
  while (!first_recorder.compare_exchange_weak(known->next, known)) {
  }
}

// Writes the name of a process, which may be of another name space and then has none.
void ReadNameOfProcess(pid_t process, char* name, size_t size) {
  char path[32] = "/proc/";
  size_t end = sizeof("/proc/") - 1;
  char digits[12];
  size_t num_digits = 0;
  for (pid_t rest = process; rest > 0; rest /= 10) digits[num_digits++] = static_cast<char>('0' + rest % 10);
  while (num_digits > 0) path[end++] = digits[--num_digits];
  std::memcpy(path + end, "/comm", sizeof("/comm"));
  const int fd = process > 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  const ssize_t bytes = fd < 0 ? 0 : read(fd, name, size - 1);
  if (fd >= 0) close(fd);
  name[bytes > 0 ? bytes - (name[bytes - 1] == '\n' ? 1 : 0) : 0] = 0;
}

// Handles SIGTERM where nobody else does: notes who ended the process and when, and lets it end as without.
// Calls what is safe in a signal handler alone.
void NoteTermination(int signal, siginfo_t* info, void* /*context*/) {
  const int saved_errno = errno;
  char sender[16] = "";
  if (info != nullptr && info->si_code <= 0) ReadNameOfProcess(info->si_pid, sender, sizeof(sender));
  for (const Recorders* known = first_recorder; known != nullptr; known = known->next) {
    if (known->process == getpid()) known->recorder->SetTerminated(sender);
  }
  struct sigaction end = {};
  end.sa_handler = SIG_DFL;
  sigaction(signal, &end, nullptr);
  errno = saved_errno;
  raise(signal);  // delivered as this returns
}

bool NotesTermination() {
  struct sigaction now = {};
  return sigaction(SIGTERM, nullptr, &now) == 0 && (now.sa_flags & SA_SIGINFO) != 0 &&
         now.sa_sigaction == &NoteTermination;
}

// Does nothing where the program has a handler of its own, or ignores it.
void WatchTermination() {
  struct sigaction now = {};
  if (sigaction(SIGTERM, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 || now.sa_handler != SIG_DFL)
    return;
  struct sigaction note = {};
  note.sa_sigaction = &NoteTermination;
  note.sa_flags = SA_SIGINFO | SA_RESTART;
  sigemptyset(&note.sa_mask);
  sigaction(SIGTERM, &note, nullptr);
}

// A forked child gets memory of its own in place of the file.
struct Mapping {
  char* data;
  size_t bytes;
  Mapping* next;
};
std::atomic<Mapping*> first_mapping{nullptr};

void LeaveMappings() {
  for (const Mapping* mapping = first_mapping; mapping != nullptr; mapping = mapping->next) {
    mmap(mapping->data, mapping->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
         0);
  }
}

void LeaveInForkedChildren(char* data, size_t bytes) {
  static const int registered = pthread_atfork(nullptr, nullptr, &LeaveMappings);
  static_cast<void>(registered);
  auto* const mapping = new Mapping{data, bytes, first_mapping.load()};
  while (!first_mapping.compare_exchange_weak(mapping->next, mapping)) {
  }
}

}  // namespace

FlightOperation FlightOperation::Collective(std::string group, std::vector<int> ranks, std::string kind,
                                            int64_t size) {
  FlightOperation operation;
  operation.role = FlightRole::kCollective;
  operation.group = std::move(group);
  operation.ranks = std::move(ranks);
  operation.kind = std::move(kind);
  operation.size = size;
  return operation;
}

FlightOperation FlightOperation::Send(int to) {
  FlightOperation operation;
  operation.role = FlightRole::kSend;
  operation.peer = to;
  return operation;
}

FlightOperation FlightOperation::Receive(int from) {
  FlightOperation operation;
  operation.role = FlightRole::kReceive;
  operation.peer = from;
  return operation;
}

absl::StatusOr<FlightRecorder*> FlightRecorder::Create(const Options& options, const Clock& clock) {
  if (options.bytes < kMinBytes || options.bytes > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat("a flight recorder of ", options.bytes,
                                                   " bytes; it has from ", kMinBytes, " to ", kMaxBytes));
  }
  const int fd = open(options.path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return FileError(options.path, "cannot be created", errno);
  const FileLimitIsAnError no_signal;
  // Blocks that are there from the start are what keeps a write to a full disk from ending the process.
  const int error = posix_fallocate(fd, 0, static_cast<off_t>(options.bytes));
  void* const data =
      error != 0 ? MAP_FAILED : mmap(nullptr, options.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  const int map_error = errno;
  close(fd);
  if (data == MAP_FAILED) {
    unlink(options.path.c_str());
    return FileError(options.path, "cannot be allocated", error != 0 ? error : map_error);
  }
  LeaveInForkedChildren(static_cast<char*>(data), options.bytes);
  const auto num_events =
      static_cast<uint32_t>((options.bytes - internal::kFlightEventsOffset) / sizeof(internal::FlightEvent));
  auto* const recorder = new FlightRecorder(static_cast<char*>(data), num_events, clock);
  FlightHeader& header = recorder->header();
  header.num_events = num_events;
  header.num_slots = internal::kFlightSlots;
  header.num_groups = internal::kFlightGroups;
  header.rank = options.rank;
  header.world_size = options.world_size;
  header.process = getpid();
  header.process_started = ReadProcess(getpid()).started;
  CopyName(options.host, header.host);
  CopyName(ThisMachine(), header.machine);
  CopyName(options.job, header.job);
  header.job_ends_s = options.job_ends_s;
  header.iteration = options.first_iteration;
  header.picoseconds_per_tick = clock.ToPicoseconds(uint64_t{1} << 32);
  WatchTermination();
  recorder->Beat();
  std::atomic_thread_fence(std::memory_order_release);
  // Last: from here on it is a recorder.
  std::memcpy(header.magic, internal::kFlightMagic, sizeof(header.magic));
  RememberForExit(recorder);
  return recorder;
}

FlightRecorder::FlightRecorder(char* data, uint32_t num_events, const Clock& clock)
    : data_(data),
      bytes_(internal::kFlightEventsOffset + num_events * sizeof(internal::FlightEvent)),
      num_events_(num_events),
      events_(reinterpret_cast<internal::FlightEvent*>(data + internal::kFlightEventsOffset)),
      clock_(clock),
      training_clock_(OwnCpuClock()) {}

bool FlightRecorder::IsTrainingThread() const {
  return training_clock_.load(std::memory_order_relaxed) == OwnCpuClock();
}

void FlightRecorder::SetLeft() {
  if (header().terminated_ns.load(std::memory_order_relaxed) != 0) return;
  auto runs = internal::FlightEnd::kRuns;
  if (header().end.compare_exchange_strong(runs, internal::FlightEnd::kLeft, std::memory_order_relaxed))
    Beat();
}

void FlightRecorder::SetTerminated(const char* sender) {
  FlightHeader& header = this->header();
  if (header.terminated_ns.load(std::memory_order_relaxed) != 0) return;
  for (size_t i = 0; i + 1 < sizeof(header.terminated_by) && sender[i] != 0; ++i) {
    header.terminated_by[i].store(sender[i], std::memory_order_relaxed);
  }
  header.terminated_ns.store(NowNs(), std::memory_order_release);
}

FlightGroup* FlightRecorder::groups() const {
  return reinterpret_cast<FlightGroup*>(data_ + internal::kFlightHeaderBytes +
                                        internal::kFlightSlots * sizeof(FlightSlot));
}

FlightGroup* FlightRecorder::FindGroup(const FlightOperation& operation) {
  const std::string_view name = operation.group.empty() ? kFlightWorld : std::string_view(operation.group);
  FlightGroup* const groups = this->groups();
  for (uint32_t i = 0; i < internal::kFlightGroups; ++i) {
    if (HasName(groups[i].name, name)) return &groups[i];
    if (groups[i].name[0] != 0) continue;
    std::vector<int> ranks = operation.ranks;
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    const bool are_of_the_job = ranks.empty() || (ranks.front() >= 0 && ranks.back() < header().world_size);
    std::vector<FlightRange> ranges = are_of_the_job ? ToRanges(ranks) : std::vector<FlightRange>();
    if (operation.group.empty()) ranges = {{0, header().world_size, 1}};
    std::copy(ranges.begin(), ranges.end(), groups[i].ranges);
    groups[i].num_ranges = static_cast<uint32_t>(ranges.size());
    CopyName(name, groups[i].name);
    return &groups[i];
  }
  return nullptr;
}

FlightRecorder::Measurement* FlightRecorder::Add(std::string_view name, const FlightOperation& operation) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool has_peer = operation.role == FlightRole::kSend || operation.role == FlightRole::kReceive;
  const bool is_of_the_job = !has_peer || (operation.peer >= 0 && operation.peer < header().world_size);
  FlightGroup* const group =
      operation.role == FlightRole::kWork || !is_of_the_job ? nullptr : FindGroup(operation);
  for (const auto& known : measurements_) {
    FlightSlot& slot = *known->slot;
    if (HasName(slot.name, name) && slot.role == operation.role && slot.peer == operation.peer &&
        HasName(slot.kind, operation.kind) &&
        (operation.role == FlightRole::kWork || &groups()[slot.group] == group)) {
      slot.size.store(operation.size, std::memory_order_relaxed);
      return known.get();
    }
  }
  const auto index = static_cast<uint32_t>(measurements_.size());
  if (index >= internal::kFlightSlots || name.empty() ||
      (group == nullptr && operation.role != FlightRole::kWork)) {
    header().num_dropped.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  FlightSlot& slot = reinterpret_cast<FlightSlot*>(data_ + internal::kFlightHeaderBytes)[index];
  CopyName(operation.kind, slot.kind);
  slot.role = operation.role;
  if (group != nullptr) slot.group = static_cast<uint32_t>(group - groups());
  slot.peer = operation.peer;
  slot.synchronizes = operation.synchronizes ? 1 : 0;
  slot.size.store(operation.size, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  CopyName(name, slot.name);
  const bool counts = operation.role == FlightRole::kCollective;
  measurements_.push_back(std::make_unique<Measurement>(
      Measurement{this, &slot, counts ? group : nullptr, static_cast<uint16_t>(index)}));
  return measurements_.back().get();
}

void FlightRecorder::Beat() {
  FlightHeader& header = this->header();
  header.notes_termination.store(NotesTermination() ? 1 : 0, std::memory_order_relaxed);
  const uint64_t ticks = clock_.Ticks();
  header.ns_offset.store(NowNs() - internal::FlightNanoseconds(ticks, header.picoseconds_per_tick),
                         std::memory_order_relaxed);
  header.beat_ticks.store(ticks, std::memory_order_relaxed);
  timespec cpu = {};
  // The thread may have ended.
  if (clock_gettime(training_clock_.load(std::memory_order_relaxed), &cpu) != 0) return;
  const uint64_t beat = header.next_beat.load(std::memory_order_relaxed);
  header.beats[beat % internal::kFlightBeats].ticks.store(ticks, std::memory_order_relaxed);
  header.beats[beat % internal::kFlightBeats].cpu_ns.store(int64_t{cpu.tv_sec} * 1000000000 + cpu.tv_nsec,
                                                           std::memory_order_relaxed);
  header.next_beat.store(beat + 1, std::memory_order_release);
}

uint64_t FlightRecorder::LastEvent() const {
  const auto* const slots = reinterpret_cast<const FlightSlot*>(data_ + internal::kFlightHeaderBytes);
  uint64_t last = 0;
  for (uint32_t i = 0; i < internal::kFlightSlots; ++i) {
    last = std::max(
        {last, slots[i].begin.load(std::memory_order_relaxed), slots[i].end.load(std::memory_order_relaxed)});
  }
  return last;
}

void FlightRecorder::Flush() { msync(data_, bytes_, MS_SYNC); }

}  // namespace ott
