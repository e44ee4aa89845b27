// Reads what a flight recorder's file holds, while its process runs or after that.

#ifndef OTT_CORE_FLIGHT_FLIGHT_RECORD_H_
#define OTT_CORE_FLIGHT_FLIGHT_RECORD_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ott/core/flight/flight_layout.h"

namespace ott {

// Times are nanoseconds since 1970 by the clock of the machine that recorded; 0: never. Names are valid
// UTF-8.
struct FlightRecord {
  struct Group {
    std::string name;
    // Ranges of the members; empty if they are not known. Thousands of ranks are few ranges.
    std::vector<internal::FlightRange> ranges;
    int64_t entered = 0;
    int64_t completed = 0;

    // Returns them ascending.
    std::vector<int> Ranks() const;
  };

  struct Measurement {
    std::string name;
    std::string kind;
    FlightRole role = FlightRole::kWork;
    int group = 0;  // index into groups; of all but kWork
    int peer = -1;
    bool synchronizes = true;
    int64_t size = -1;
    int64_t begin_ns = 0;
    int64_t end_ns = 0;
    int64_t sequence = 0;   // of the last begin
    int64_t iteration = 0;  // of it
    int thread = 0;
    bool runs = false;
  };

  struct Event {
    int64_t ns = 0;
    internal::FlightEventType type = internal::FlightEventType::kNone;
    int measurement = -1;  // index into measurements; -1 for kFinishIter
    int thread = 0;
    int64_t sequence = 0;
    int64_t iteration = 0;
    int64_t size = -1;
  };

  struct Beat {
    int64_t ns = 0;
    int64_t cpu_ns = 0;  // of the training's thread until then
  };

  int rank = 0;
  int world_size = 1;
  std::string host;
  std::string machine;  // as ThisMachine() of process.h
  int64_t process = 0;
  uint64_t process_started = 0;
  int64_t beat_ns = 0;
  int64_t last_event_ns = 0;
  int64_t iteration = 0;
  internal::FlightEnd end = internal::FlightEnd::kRuns;
  // When and by whom it was ended by SIGTERM, or by kFlightInterrupt; 0 and "": that was not noted. Whether
  // it would have been.
  int64_t terminated_ns = 0;
  std::string terminated_by;
  bool notes_termination = false;
  // The scheduler's job, and when its time is over, in seconds since 1970; "" and 0: not known.
  std::string job;
  int64_t job_ends_s = 0;
  int64_t num_dropped = 0;
  std::vector<Group> groups;
  std::vector<Measurement> measurements;
  // The last ones, oldest first. Those that were being written, or were written by a process that was killed
  // just then, are left out.
  std::vector<Event> events;
  // The last ones of which CPU times are known, oldest first.
  std::vector<Beat> beats;
};

// Returns DATA_LOSS for a file that was cut, INVALID_ARGUMENT for what is no recorder's file.
absl::StatusOr<FlightRecord> ParseFlightRecord(std::string_view bytes);

// Does the same of a file, which must be a regular one. Reads no more than a recorder's size.
absl::StatusOr<FlightRecord> ReadFlightRecord(const std::string& path);

}  // namespace ott

#endif  // OTT_CORE_FLIGHT_FLIGHT_RECORD_H_
