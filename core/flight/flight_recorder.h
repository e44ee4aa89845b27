// A flight recorder: the last things that a process did, in a file of fixed size that outlives it.

#ifndef OTT_CORE_FLIGHT_FLIGHT_RECORDER_H_
#define OTT_CORE_FLIGHT_FLIGHT_RECORDER_H_

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ott/core/base/clock.h"
#include "ott/core/flight/flight_layout.h"

namespace ott {

class HangConfig;  // config.proto

// Says who waits for whom in a measurement.
struct FlightOperation {
  FlightRole role = FlightRole::kWork;
  // The group, of all roles but kWork. "" is the world: all ranks.
  std::string group;
  // Ranks of the group; empty, or if one of them is not of the job: those that use a group of this name.
  std::vector<int> ranks;
  // "allreduce"; "" if the measurement's name says it.
  std::string kind;
  // In bytes, where it must be the same on all ranks; -1: not known, or need not be.
  int64_t size = -1;
  // The peer of kSend and kReceive.
  int peer = -1;
  // True if no rank can end it before all have begun; not so of a broadcast, say.
  bool synchronizes = true;

  static FlightOperation Collective(std::string group = "", std::vector<int> ranks = {},
                                    std::string kind = "", int64_t size = -1);
  static FlightOperation Send(int to);
  static FlightOperation Receive(int from);
};

// Writes the begin and end of measurements to a file that is mapped: what was written survives kill -9 and
// abort, though not the machine. The file's blocks are allocated at once, so that a full disk is an error of
// Create() and no signal later; it must not be cut while it is in use. A child that is forked writes nowhere.
//
// Thread-safe, and free of locks and allocation but for Add(). Never destroyed, as other threads may be about
// to write.
//
//   OTT_ASSIGN_OR_RETURN(FlightRecorder* recorder, FlightRecorder::Create({.path = "flight"}, clock));
//   FlightRecorder::Measurement* forward = recorder->Add("forward", {});
//   recorder->Begin(forward, clock.Ticks());
class FlightRecorder {
 public:
  static constexpr size_t kDefaultBytes = size_t{64} << 10;
  static constexpr size_t kMinBytes = size_t{32} << 10;
  static constexpr size_t kMaxBytes = size_t{16} << 20;

  struct Options {
    std::string path;
    int rank = 0;
    int world_size = 1;
    std::string host;
    // The scheduler's job, and when its time is over, in seconds since 1970; 0: not known.
    std::string job = {};
    int64_t job_ends_s = 0;
    size_t bytes = kDefaultBytes;
    // The number of the first iteration.
    int64_t first_iteration = 0;
  };

  // The measurement that Begin() and End() are about. Kept until the process ends.
  struct Measurement {
    FlightRecorder* recorder;
    internal::FlightSlot* slot;
    internal::FlightGroup* group;  // null for what is no collective measurement
    uint16_t index;
  };

  // Options of an ott.Config: the size.
  static Options FromConfig(const HangConfig& config);

  // Creates the file. RESOURCE_EXHAUSTED if the disk is full; INVALID_ARGUMENT for a size outside of
  // kMinBytes and kMaxBytes. The times that are given later must be of `clock`.
  static absl::StatusOr<FlightRecorder*> Create(const Options& options, const Clock& clock);
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;
  ~FlightRecorder() = delete;

  // Adds a measurement, or returns the one that was added before with the size set anew. Longer names are
  // cut. Null if 96 measurements or 32 groups are there already, or the job has no such peer.
  Measurement* Add(std::string_view name, const FlightOperation& operation);

  // Records a begin. The thread is a number that tells threads apart. The size is of this one operation; -1:
  // the measurement's.
  static void Begin(Measurement* measurement, uint64_t now, int thread, int64_t size = -1);
  static void End(Measurement* measurement, uint64_t now, int thread);
  void FinishIter(uint64_t now, int thread);

  // Says that the process is alive, how its clock stands to the time of day, and how much CPU time the
  // training's thread took: the one that ends iterations, before that the one that created this. To be called
  // every second or so.
  void Beat();
  // Says that training has ended: others that wait for this rank wait in vain.
  void SetFinished() { header().end.store(internal::FlightEnd::kFinished, std::memory_order_relaxed); }
  // Says that training has ended without being finished, if it has not finished and was not ended from
  // outside. A process whose training's thread calls exit() says so by itself.
  void SetLeft();
  // The process was sent SIGTERM, which ends it, by a process of that name ("": not known; cut to 15 bytes),
  // or the user interrupted it (kFlightInterrupt).
  // May be called in a signal handler.
  void SetTerminated(const char* sender);
  // Returns true if the calling thread is the training's.
  bool IsTrainingThread() const;
  // Returns the latest begin or end of a measurement, in ticks; 0: none.
  uint64_t LastEvent() const;
  // Asks the kernel to write the file out, for readers on other machines.
  void Flush();

 private:
  FlightRecorder(char* data, uint32_t num_events, const Clock& clock);

  internal::FlightHeader& header() const { return *reinterpret_cast<internal::FlightHeader*>(data_); }
  internal::FlightGroup* groups() const;
  // Tells threads of this process apart.
  static clockid_t OwnCpuClock() {
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
    pthread_getcpuclockid(pthread_self(), &clock);
    return clock;
  }
  internal::FlightGroup* FindGroup(const FlightOperation& operation);
  void AddEvent(const Measurement* measurement, internal::FlightEventType type, uint64_t now, int thread,
                uint64_t sequence, int64_t size);

  char* const data_;
  const size_t bytes_;
  const uint32_t num_events_;
  internal::FlightEvent* const events_;
  const Clock clock_;
  // The clock of the training's thread, which may end.
  std::atomic<clockid_t> training_clock_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<std::unique_ptr<Measurement>> measurements_;
};

// Implementation of the inline calls.

inline void FlightRecorder::AddEvent(const Measurement* measurement, internal::FlightEventType type,
                                     uint64_t now, int thread, uint64_t sequence, int64_t size) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  const uint64_t number = header().next_event.fetch_add(1, kRelaxed);
  internal::FlightEvent& event = events_[number % num_events_];
  // Whoever reads sees the tag of this number only with what it stands for: x86 keeps the order of stores,
  // and elsewhere the release does.
  event.tag.store(0, kRelaxed);
  std::atomic_thread_fence(std::memory_order_release);
  event.ticks.store(now, kRelaxed);
  event.slot.store(measurement == nullptr ? 0xffff : measurement->index, kRelaxed);
  event.type.store(static_cast<uint8_t>(type), kRelaxed);
  event.thread.store(static_cast<uint8_t>(thread), kRelaxed);
  event.sequence.store(static_cast<uint32_t>(sequence), kRelaxed);
  event.iteration.store(static_cast<int32_t>(header().iteration.load(kRelaxed)), kRelaxed);
  event.size.store(size, kRelaxed);
  event.tag.store(static_cast<uint32_t>(number) + 1, std::memory_order_release);
}

inline void FlightRecorder::Begin(Measurement* measurement, uint64_t now, int thread, int64_t size) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  internal::FlightSlot& slot = *measurement->slot;
  uint64_t sequence = 0;
  if (measurement->group != nullptr) {
    // A group's operations are called by one thread at a time, or their order would be up to chance.
    sequence = measurement->group->entered.load(kRelaxed) + 1;
    measurement->group->entered.store(sequence, kRelaxed);
    slot.iteration.store(measurement->recorder->header().iteration.load(kRelaxed), kRelaxed);
    if (size >= 0) slot.size.store(size, kRelaxed);
    slot.sequence.store(sequence, kRelaxed);
  }
  slot.thread.store(static_cast<uint32_t>(thread), kRelaxed);
  slot.begin.store(now, std::memory_order_release);
  measurement->recorder->AddEvent(measurement, internal::FlightEventType::kBegin, now, thread, sequence,
                                  slot.size.load(kRelaxed));
}

inline void FlightRecorder::End(Measurement* measurement, uint64_t now, int thread) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  internal::FlightSlot& slot = *measurement->slot;
  const uint64_t sequence = slot.sequence.load(kRelaxed);
  if (measurement->group != nullptr && sequence > measurement->group->completed.load(kRelaxed)) {
    measurement->group->completed.store(sequence, kRelaxed);
  }
  slot.end.store(now, std::memory_order_release);
  measurement->recorder->AddEvent(measurement, internal::FlightEventType::kEnd, now, thread, sequence,
                                  slot.size.load(kRelaxed));
}

inline void FlightRecorder::FinishIter(uint64_t now, int thread) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  training_clock_.store(OwnCpuClock(), kRelaxed);
  AddEvent(nullptr, internal::FlightEventType::kFinishIter, now, thread, 0, -1);
  header().iteration.store(header().iteration.load(kRelaxed) + 1, kRelaxed);
}

}  // namespace ott

#endif  // OTT_CORE_FLIGHT_FLIGHT_RECORDER_H_
