// The helpers leave here what happens while a profiler's window is open (profiler.h): events of each thread
// in a buffer of its own.

#ifndef OTT_CORE_EVENTS_EVENT_RECORDER_H_
#define OTT_CORE_EVENTS_EVENT_RECORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "ott/core/base/clock.h"
#include "ott/core/base/per_thread.h"

namespace ott {

// The maker of an event. EventCategoryName() is what a trace calls it.
enum class EventCategory : uint8_t {
  kStep,
  kMeasurement,
  kRange,
  kOp,
  kUser,
  kRuntime,
  kDevice,
  kKernelSection
};

const char* EventCategoryName(EventCategory category);

// An arrow from one range to another: from a forward operation to the backward one of the same sequence
// number, from the launch of a kernel to the kernel. `id` is the same at both ends and at no other arrow of
// the process: FlowId(thread of the forward operation, sequence number), or the launch's correlation id.
struct EventFlow {
  enum class End : uint8_t { kNone, kStart, kFinish };

  End end = End::kNone;
  uint64_t id = 0;
};

inline uint64_t FlowId(int thread, uint64_t sequence_number) {
  return (static_cast<uint64_t>(thread) << 40) ^ sequence_number;
}

// One event as it lies in a buffer; what else its type says and the bytes of its texts follow, then padding
// to a multiple of 8.
struct EventRecord {
  enum Type : uint32_t {
    // The events after it are of thread `value`, whose name is the text.
    kThread,
    kThreadEnd,
    // `value` is its end, 0 as long as it is open; with kOverlaps where a range around it ended before.
    kRange,
    // The same, followed by a uint64_t: the address of the domain's name, or a flow's id.
    kRangeOfDomain,
    kRangeFlowStart,
    kRangeFlowFinish,
    // Ends a range that did not begin in this window on this thread; `value` is its key.
    kEnd,
    kMark,
    // `value` has the bits of the double.
    kCounter,
    // Belongs to another track than the thread's; a SliceOfTrack follows.
    kSlice,
  };
  static constexpr uint64_t kOverlaps = uint64_t{1} << 63;

  uint64_t ticks;
  std::atomic<uint64_t> value;
  // Null: the name is in the text.
  const char* static_name;
  uint32_t name_size : 28;
  uint32_t type : 4;
  uint32_t args_size : 28;
  uint32_t category : 4;
};

struct SliceOfTrack {
  int64_t track;
  int64_t start_unix_nanoseconds;
  int64_t end_unix_nanoseconds;
  uint64_t flow_id;
  uint64_t flow_end;
};

// A moment on the clocks of this process.
struct ClockReading {
  uint64_t ticks = 0;
  int64_t steady_nanoseconds = 0;
  int64_t unix_nanoseconds = 0;
};

// Thread-safe. Recording takes no lock and allocates nothing, except for a thread's first event. What no
// longer fits into a thread's buffer is counted and dropped; ranges that have begun always get their end.
//
// A helper that has something to record has a function
//
//   void RecordInto(EventRecorder* recorder);   // null: no more
//
// which the profiler calls as a window opens and closes. In between the helper's calls must reach it even if
// the helper is not enabled, and then do nothing but record; its switch is on for as long, so that off stays
// one load and a branch. Ranges may have begun before the window and may end after it.
class EventRecorder {
 public:
  static constexpr size_t kDefaultThreadBufferBytes = size_t{16} << 20;

  // The events of one buffer in the order of their making, and how many did not fit.
  struct Buffer {
    std::string_view records;
    uint64_t num_lost = 0;
  };

  // clock: that of the helpers, Clock::Fastest() in production. read_clocks: what tests replace.
  explicit EventRecorder(const Clock& clock, std::function<ClockReading()> read_clocks = {});
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  // Sets the size for threads that have no buffer yet.
  void SetThreadBufferBytes(size_t bytes) { thread_buffer_bytes_ = bytes; }

  // Forgets what there is, and records until Close(). Neither may be called by two threads at once.
  void Open();
  void Close();
  bool is_open() const { return is_open_.load(std::memory_order_relaxed); }

  // Returns the buffers of the last window. REQUIRES: it is closed.
  std::vector<Buffer> Buffers() const;
  ClockReading opened() const { return opened_; }
  ClockReading closed() const { return closed_; }
  // Returns the names of AddTrack(), by number less kFirstTrack.
  std::vector<std::string> TrackNames() const;

  // Returns the time for the ticks below.
  uint64_t Now() const { return clock_.Ticks(); }

  // A range of the calling thread. `name` is kept, not copied: it must live as long as the process.
  // EndRange() ends the innermost range of the category and key, whatever else began inside of it. A key is
  // the address of its name for measurements, that of the domain's name for NVTX ranges, 0 for the default
  // domain and others.
  void BeginRange(EventCategory category, const char* name, uint64_t ticks, uint64_t key = 0) {
    ThreadBuffer& buffer = OwnBuffer();
    Push(buffer, Append(buffer, EventRecord::kRange, category, ticks, 0, name), category, key);
  }
  // Copies the name; for names that are made up as the program goes.
  void BeginRange(EventCategory category, std::string_view name, uint64_t ticks, uint64_t key = 0);
  // args: a JSON object, or nothing.
  void BeginRange(EventCategory category, std::string_view name, uint64_t ticks, std::string_view args,
                  EventFlow flow);
  void EndRange(EventCategory category, uint64_t ticks, uint64_t key = 0) {
    ThreadBuffer& buffer = OwnBuffer();
    const OpenRange* const innermost = buffer.innermost;
    if (__builtin_expect(
            innermost->key == key && innermost->category == category && innermost->record != nullptr, 1)) {
      innermost->record->value.store(ticks, std::memory_order_relaxed);
      --buffer.innermost;
    } else {
      EndOuterRange(buffer, category, ticks, key);
    }
  }

  // Marks a moment. args: a JSON object, or nothing.
  void Mark(EventCategory category, std::string_view name, std::string_view args = {});
  // Lets the counter of this process show `value` from now on.
  void Counter(std::string_view name, double value);

  // Adds a track beside those of the threads, such as a stream of a device; the same name has the same
  // number. The track of a thread is its kernel's id.
  int64_t AddTrack(std::string_view name);
  // An interval on a track, recorded after it ended. Times are nanoseconds since 1970.
  struct Slice {
    int64_t track = 0;
    EventCategory category = EventCategory::kDevice;
    std::string_view name;
    int64_t start_unix_nanoseconds = 0;
    int64_t end_unix_nanoseconds = 0;
    // A JSON object, or nothing.
    std::string_view args;
    EventFlow flow;
  };
  void AddSlice(const Slice& slice);

  // Above every thread's id (Linux's PID_MAX_LIMIT is 2^22).
  static constexpr int64_t kFirstTrack = int64_t{1} << 23;

 private:
  // At most so many ranges inside of each other are recorded.
  static constexpr int kMaxDepth = 500;

  struct OpenRange {
    // Null if it was dropped.
    EventRecord* record = nullptr;
    uint64_t key = 0;
    EventCategory category = EventCategory::kUser;
  };

  struct ThreadBuffer {
    // Written by the thread whose buffer it is, read by who closes the window.
    std::atomic<uint64_t> window{0};
    std::atomic<size_t> size{0};
    std::atomic<uint64_t> num_lost{0};
    // Only the thread's.
    std::unique_ptr<char[]> bytes;
    size_t capacity = 0;
    // kMaxDepth of them, between one of no range and one for all that is deeper.
    std::unique_ptr<OpenRange[]> open;
    OpenRange* innermost = nullptr;
    // Beyond kMaxDepth.
    int num_too_deep = 0;
  };

  // Returns the calling thread's buffer, made ready for the window.
  ThreadBuffer& OwnBuffer() {
    ThreadBuffer& buffer = buffers_.Get();
    const uint64_t window = window_.load(std::memory_order_acquire);
    if (__builtin_expect(buffer.window.load(std::memory_order_relaxed) != window, 0)) {
      StartWindow(buffer, window);
    }
    return buffer;
  }
  [[gnu::cold]] void StartWindow(ThreadBuffer& buffer, uint64_t window);
  void AppendThread(ThreadBuffer& buffer);

  // Appends a record without texts; null, and counted, if it does not fit.
  static EventRecord* Append(ThreadBuffer& buffer, EventRecord::Type type, EventCategory category,
                             uint64_t ticks, uint64_t value, const char* static_name = nullptr) {
    const size_t size = buffer.size.load(std::memory_order_relaxed);
    if (__builtin_expect(size + sizeof(EventRecord) > buffer.capacity, 0)) return Lose(buffer);
    auto* const record = new (buffer.bytes.get() + size)
        EventRecord{ticks, {value}, static_name, 0, type & 15, 0, static_cast<uint32_t>(category) & 15};
    buffer.size.store(size + sizeof(EventRecord), std::memory_order_release);
    return record;
  }
  // Appends it with what follows it.
  static EventRecord* Append(ThreadBuffer& buffer, EventRecord::Type type, EventCategory category,
                             uint64_t ticks, uint64_t value, std::string_view extra, std::string_view name,
                             std::string_view args);
  [[gnu::cold]] static EventRecord* Lose(ThreadBuffer& buffer);

  static void Push(ThreadBuffer& buffer, EventRecord* record, EventCategory category, uint64_t key) {
    if (__builtin_expect(buffer.innermost >= buffer.open.get() + kMaxDepth, 0))
      return PushTooDeep(buffer, record);
    ++buffer.innermost;
    buffer.innermost->record = record;
    buffer.innermost->key = key;
    buffer.innermost->category = category;
  }
  [[gnu::cold]] static void PushTooDeep(ThreadBuffer& buffer, EventRecord* record);
  // Also of one that is not open on this thread.
  [[gnu::cold]] static void EndOuterRange(ThreadBuffer& buffer, EventCategory category, uint64_t ticks,
                                          uint64_t key);

  ClockReading ReadClocks() const;

  const Clock clock_;
  const std::function<ClockReading()> read_clocks_;
  std::atomic<size_t> thread_buffer_bytes_{kDefaultThreadBufferBytes};
  std::atomic<bool> is_open_{false};
  // Counted from 1.
  std::atomic<uint64_t> window_{0};
  ClockReading opened_;
  ClockReading closed_;
  mutable std::mutex tracks_mutex_;
  // Guarded by tracks_mutex_.
  std::vector<std::string> track_names_;
  internal::PerThread<ThreadBuffer> buffers_;
};

}  // namespace ott

#endif  // OTT_CORE_EVENTS_EVENT_RECORDER_H_
