// The layout of a flight recorder's file. The process that records maps all of it; others read it, also after
// that process is gone. Little-endian; a file is for the architecture that wrote it.

#ifndef OTT_CORE_FLIGHT_FLIGHT_LAYOUT_H_
#define OTT_CORE_FLIGHT_FLIGHT_LAYOUT_H_

#include <atomic>
#include <cstdint>

namespace ott {

// Says whom ranks wait for in a measurement: for nobody, for all of a group, for the peer.
enum class FlightRole : uint32_t { kWork, kCollective, kSend, kReceive };

// The name of the group of all ranks, which operations are of where nothing is said.
inline constexpr char kFlightWorld[] = "world";

// FlightRecord::terminated_by of a process that the user interrupted.
inline constexpr char kFlightInterrupt[] = "Ctrl-C";

}  // namespace ott

namespace ott::internal {

inline constexpr char kFlightMagic[8] = {'O', 'T', 'T', 'F', 'L', 'T', '2', '\n'};

inline constexpr uint32_t kFlightHeaderBytes = 4096;
inline constexpr uint32_t kFlightSlots = 96;
inline constexpr uint32_t kFlightGroups = 32;
inline constexpr uint32_t kFlightRanges = 8;
inline constexpr uint32_t kFlightBeats = 64;

// A value that is written while others read it. On all platforms of this project these are plain loads and
// stores.
template <typename T>
using Shared = std::atomic<T>;

// A heartbeat, and the CPU time of the training's thread until then.
struct FlightBeat {
  Shared<uint64_t> ticks;
  Shared<int64_t> cpu_ns;
};

// Says how far training is.
enum class FlightEnd : uint32_t {
  kRuns,
  kFinished,
  kLeft,  // ended without being finished
};

struct FlightHeader {
  char magic[8];
  uint32_t num_events;
  uint32_t num_slots;
  uint32_t num_groups;
  int32_t rank;
  int32_t world_size;
  uint32_t unused;
  int64_t process;
  // When it started, in clock ticks since boot, as /proc/PID/stat has it: numbers of processes are used
  // again.
  uint64_t process_started;
  char host[64];
  // The machine's since it was booted, and the name space of process numbers.
  char machine[72];
  // With 32 binary digits after the point.
  uint64_t picoseconds_per_tick;
  // The heartbeat: when it was, and what a moment's nanoseconds since 1970 are more than
  // FlightNanoseconds() of its ticks.
  Shared<uint64_t> beat_ticks;
  Shared<int64_t> ns_offset;
  // The number of events that were ever written; event i lies at i modulo num_events.
  Shared<uint64_t> next_event;
  Shared<int64_t> iteration;
  Shared<FlightEnd> end;
  // Measurements that found no slot.
  Shared<uint32_t> num_dropped;
  // Counts the heartbeats with CPU times that were ever written; beat i lies at i modulo kFlightBeats.
  Shared<uint64_t> next_beat;
  FlightBeat beats[kFlightBeats];
  // SIGTERM, which ended the process: when, in nanoseconds since 1970 (0: it was not noted), and the name of
  // the process that sent it, empty where that is not known.
  Shared<int64_t> terminated_ns;
  Shared<char> terminated_by[16];
  // 1: at the last heartbeat a SIGTERM would have been noted.
  Shared<uint32_t> notes_termination;
  // The scheduler's job, such as "Slurm job 4711", and when its time is over, in seconds since 1970 (0: not
  // known).
  char job[64];
  int64_t job_ends_s;
};
static_assert(sizeof(FlightHeader) <= kFlightHeaderBytes);

// Returns the time of `ticks` since they were 0. `picoseconds_per_tick` is as in FlightHeader.
inline int64_t FlightNanoseconds(uint64_t ticks, uint64_t picoseconds_per_tick) {
  __extension__ typedef unsigned __int128 Product;
  return static_cast<int64_t>((static_cast<Product>(ticks) * picoseconds_per_tick >> 32) / 1000);
}

struct FlightRange {
  int32_t first;
  int32_t count;
  int32_t stride;
};

// Ranks that wait for each other in collective measurements.
struct FlightGroup {
  char name[64];  // empty: this one and those after it are free
  // 0: members are not known.
  uint32_t num_ranges;
  FlightRange ranges[kFlightRanges];
  uint32_t unused;
  // The number of its operations that this rank has begun, and that it has ended.
  Shared<uint64_t> entered;
  Shared<uint64_t> completed;
};
static_assert(sizeof(FlightGroup) == 184);

// A measurement.
struct FlightSlot {
  char name[64];  // empty: free
  char kind[24];  // of the operation; empty: the name says it
  FlightRole role;
  uint32_t group;  // of all but kWork
  int32_t peer;    // of kSend and kReceive
  uint32_t synchronizes;
  Shared<int64_t> size;
  // The last begin and end, in ticks; it runs while the begin is later.
  Shared<uint64_t> begin;
  Shared<uint64_t> end;
  Shared<uint64_t> sequence;
  Shared<int64_t> iteration;
  Shared<uint32_t> thread;
  uint32_t unused;
};
static_assert(sizeof(FlightSlot) == 152);

enum class FlightEventType : uint8_t { kNone, kBegin, kEnd, kFinishIter };

struct FlightEvent {
  Shared<uint64_t> ticks;
  // The low half of its number and one; anything else: being written, or lost as the process was killed.
  Shared<uint32_t> tag;
  Shared<uint16_t> slot;
  Shared<uint8_t> type;
  Shared<uint8_t> thread;
  Shared<uint32_t> sequence;
  Shared<int32_t> iteration;
  Shared<int64_t> size;
};
static_assert(sizeof(FlightEvent) == 32);

inline constexpr uint64_t kFlightEventsOffset =
    kFlightHeaderBytes + kFlightSlots * sizeof(FlightSlot) + kFlightGroups * sizeof(FlightGroup);

}  // namespace ott::internal

#endif  // OTT_CORE_FLIGHT_FLIGHT_LAYOUT_H_
