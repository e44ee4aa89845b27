#include "ott/core/flight/flight_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "ott/core/base/file.h"
#include "ott/core/base/status_macros.h"
#include "ott/core/base/utf8.h"
#include "ott/core/flight/flight_recorder.h"

namespace ott {
namespace {

using internal::FlightEnd;
using internal::FlightEvent;
using internal::FlightEventType;
using internal::FlightGroup;
using internal::FlightHeader;
using internal::FlightSlot;

constexpr int kMaxRanks = 1 << 20;

// Atomics in bytes that nobody else writes.
template <typename T>
T Load(const internal::Shared<T>& shared) {
  return shared.load(std::memory_order_relaxed);
}

// Names are of any bytes, and may have been cut within a character.
template <size_t kSize>
std::string ReadName(const char (&field)[kSize]) {
  return ValidUtf8({field, strnlen(field, kSize)});
}

absl::Status Invalid(std::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("no flight recorder's file: ", std::string(what)));
}

class Parser {
 public:
  explicit Parser(std::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<FlightRecord> Run() {
    OTT_RETURN_IF_ERROR(ReadHeader());
    for (uint32_t i = 0; i < internal::kFlightGroups; ++i) OTT_RETURN_IF_ERROR(ReadGroup(i));
    for (uint32_t i = 0; i < internal::kFlightSlots; ++i) OTT_RETURN_IF_ERROR(ReadSlot(i));
    ReadEvents();
    ReadBeats();
    return std::move(record_);
  }

 private:
  // `bytes` are aligned as the file is mapped.
  template <typename T>
  const T& At(size_t offset) const {
    return *reinterpret_cast<const T*>(bytes_.data() + offset);
  }

  const FlightHeader& header() const { return At<FlightHeader>(0); }

  int64_t ToNanoseconds(uint64_t ticks) const {
    if (ticks == 0) return 0;
    // An offset that is no recorder's may be of any size.
    const auto since_1970 =
        static_cast<uint64_t>(Load(header().ns_offset)) +
        static_cast<uint64_t>(internal::FlightNanoseconds(ticks, header().picoseconds_per_tick));
    return std::clamp<int64_t>(static_cast<int64_t>(since_1970), 1, std::numeric_limits<int64_t>::max() / 4);
  }

  absl::Status ReadHeader() {
    if (bytes_.size() < sizeof(internal::kFlightMagic) ||
        std::memcmp(bytes_.data(), internal::kFlightMagic, sizeof(internal::kFlightMagic)) != 0) {
      return bytes_.empty() ? absl::DataLossError("empty") : Invalid("it does not begin as one");
    }
    if (bytes_.size() < internal::kFlightEventsOffset) {
      return absl::DataLossError(absl::StrCat("truncated at byte ", bytes_.size()));
    }
    const FlightHeader& header = this->header();
    if (header.num_slots != internal::kFlightSlots || header.num_groups != internal::kFlightGroups ||
        header.num_events == 0) {
      return Invalid("of another version");
    }
    if (bytes_.size() < internal::kFlightEventsOffset + header.num_events * sizeof(FlightEvent)) {
      return absl::DataLossError(absl::StrCat("truncated at byte ", bytes_.size()));
    }
    if (header.world_size < 1 || header.world_size > kMaxRanks || header.rank < 0 ||
        header.rank >= header.world_size) {
      return Invalid(absl::StrCat("rank ", header.rank, " of ", header.world_size));
    }
    record_.rank = header.rank;
    record_.world_size = header.world_size;
    record_.host = ReadName(header.host);
    record_.machine = ReadName(header.machine);
    record_.process = header.process;
    record_.process_started = header.process_started;
    record_.beat_ns = ToNanoseconds(Load(header.beat_ticks));
    record_.iteration = std::clamp<int64_t>(Load(header.iteration), 0, std::numeric_limits<int32_t>::max());
    record_.end = Load(header.end) <= FlightEnd::kLeft ? Load(header.end) : FlightEnd::kFinished;
    record_.terminated_ns =
        std::clamp<int64_t>(Load(header.terminated_ns), 0, std::numeric_limits<int64_t>::max() / 4);
    char sender[sizeof(header.terminated_by)];
    for (size_t i = 0; i < sizeof(sender); ++i) sender[i] = Load(header.terminated_by[i]);
    record_.terminated_by = ReadName(sender);
    record_.notes_termination = Load(header.notes_termination) == 1;
    record_.job = ReadName(header.job);
    record_.job_ends_s =
        std::clamp<int64_t>(header.job_ends_s, 0, std::numeric_limits<int64_t>::max() / 4'000'000'000);
    record_.num_dropped = Load(header.num_dropped);
    return absl::OkStatus();
  }

  absl::Status ReadGroup(uint32_t index) {
    const auto& group =
        At<FlightGroup>(internal::kFlightHeaderBytes + internal::kFlightSlots * sizeof(FlightSlot) +
                        index * sizeof(FlightGroup));
    FlightRecord::Group read;
    read.name = ReadName(group.name);
    if (read.name.empty()) return absl::OkStatus();
    if (group.num_ranges > internal::kFlightRanges) return Invalid("a group of too many ranges");
    for (uint32_t i = 0; i < group.num_ranges; ++i) {
      const internal::FlightRange& range = group.ranges[i];
      if (range.first < 0 || range.count < 1 || range.stride < 1 ||
          range.first + (int64_t{range.count} - 1) * range.stride >= record_.world_size) {
        return Invalid(absl::StrCat("group ", read.name, " has ranks that the job has not"));
      }
      read.ranges.push_back(range);
    }
    read.entered = static_cast<int64_t>(Load(group.entered) & 0xffffffff);
    read.completed = std::min(read.entered, static_cast<int64_t>(Load(group.completed) & 0xffffffff));
    record_.groups.push_back(std::move(read));
    return absl::OkStatus();
  }

  absl::Status ReadSlot(uint32_t index) {
    const auto& slot = At<FlightSlot>(internal::kFlightHeaderBytes + index * sizeof(FlightSlot));
    FlightRecord::Measurement read;
    read.name = ReadName(slot.name);
    if (read.name.empty()) return absl::OkStatus();
    // Slots are taken one after another.
    if (record_.measurements.size() != index) return Invalid("a measurement after a free place");
    read.kind = ReadName(slot.kind);
    read.role = slot.role;
    if (read.role > FlightRole::kReceive) return Invalid("a measurement of an unknown role");
    read.group = static_cast<int>(std::min<uint32_t>(slot.group, internal::kFlightGroups));
    if (read.role != FlightRole::kWork && read.group >= static_cast<int>(record_.groups.size())) {
      return Invalid(absl::StrCat("measurement ", read.name, " of a group that is not there"));
    }
    if ((read.role == FlightRole::kSend || read.role == FlightRole::kReceive) &&
        (slot.peer < 0 || slot.peer >= record_.world_size)) {
      return Invalid(absl::StrCat("measurement ", read.name, " with a peer that is not there"));
    }
    read.peer = slot.peer;
    read.synchronizes = slot.synchronizes != 0;
    read.size = Load(slot.size);
    const uint64_t begin = Load(slot.begin);
    const uint64_t end = Load(slot.end);
    read.begin_ns = ToNanoseconds(begin);
    read.end_ns = ToNanoseconds(end);
    // Counters wrap no more than once in centuries, but two CPUs' may differ by a few.
    read.runs = begin != 0 && static_cast<int64_t>(begin - end) > 0;
    read.sequence = static_cast<int64_t>(Load(slot.sequence) & 0xffffffff);
    read.iteration = std::clamp<int64_t>(Load(slot.iteration), 0, std::numeric_limits<int32_t>::max());
    read.thread = static_cast<int>(Load(slot.thread) & 0xff);
    record_.last_event_ns = std::max({record_.last_event_ns, read.begin_ns, read.end_ns});
    record_.measurements.push_back(std::move(read));
    return absl::OkStatus();
  }

  void ReadBeats() {
    const uint64_t next = Load(header().next_beat);
    for (uint64_t i = next < internal::kFlightBeats ? 0 : next - internal::kFlightBeats; i != next; ++i) {
      const internal::FlightBeat& beat = header().beats[i % internal::kFlightBeats];
      const int64_t cpu_ns =
          std::clamp<int64_t>(Load(beat.cpu_ns), 0, std::numeric_limits<int64_t>::max() / 4);
      record_.beats.push_back({ToNanoseconds(Load(beat.ticks)), cpu_ns});
    }
  }

  void ReadEvents() {
    const uint64_t next = Load(header().next_event);
    const uint64_t num_events = header().num_events;
    record_.events.reserve(std::min(next, num_events));
    for (uint64_t number = next < num_events ? 0 : next - num_events; number != next; ++number) {
      const auto& event =
          At<FlightEvent>(internal::kFlightEventsOffset + number % num_events * sizeof(FlightEvent));
      if (Load(event.tag) != static_cast<uint32_t>(number) + 1) continue;
      FlightRecord::Event read;
      read.ns = ToNanoseconds(Load(event.ticks));
      read.type = static_cast<FlightEventType>(Load(event.type));
      read.measurement = Load(event.slot) < record_.measurements.size() ? Load(event.slot) : -1;
      const bool is_finish = read.type == FlightEventType::kFinishIter;
      if (read.type > FlightEventType::kFinishIter || (read.measurement < 0 && !is_finish)) continue;
      read.thread = Load(event.thread);
      read.sequence = Load(event.sequence);
      read.iteration = std::max(0, Load(event.iteration));
      read.size = Load(event.size);
      record_.last_event_ns = std::max(record_.last_event_ns, read.ns);
      record_.events.push_back(read);
    }
  }

  const std::string_view bytes_;
  FlightRecord record_;
};

}  // namespace

std::vector<int> FlightRecord::Group::Ranks() const {
  std::vector<int> ranks;
  for (const internal::FlightRange& range : ranges) {
    for (int i = 0; i < range.count; ++i) ranks.push_back(range.first + i * range.stride);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

absl::StatusOr<FlightRecord> ParseFlightRecord(std::string_view bytes) {
  // Aligned for the numbers in it.
  std::vector<uint64_t> words((bytes.size() + 7) / 8);
  if (!bytes.empty()) std::memcpy(words.data(), bytes.data(), bytes.size());
  return Parser(std::string_view(reinterpret_cast<const char*>(words.data()), bytes.size())).Run();
}

absl::StatusOr<FlightRecord> ReadFlightRecord(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 && errno == ENOENT && IsRegularFile(path)) {
    // The file is on another host.
    OTT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, FlightRecorder::kMaxBytes));
    return ParseFlightRecord(bytes);
  }
  if (fd < 0) {
    return errno == ENOENT ? absl::NotFoundError("no recorder: there is no such file")
                           : absl::UnavailableError(std::strerror(errno));
  }
  struct stat info = {};
  std::string bytes;
  ssize_t size = -1;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    bytes.resize(std::min<size_t>(info.st_size, FlightRecorder::kMaxBytes));
    size = pread(fd, &bytes[0], bytes.size(), 0);
  }
  close(fd);
  if (!S_ISREG(info.st_mode)) return absl::InvalidArgumentError("no regular file");
  if (size < 0) return absl::UnavailableError(std::strerror(errno));
  bytes.resize(size);
  return ParseFlightRecord(bytes);
}

}  // namespace ott
