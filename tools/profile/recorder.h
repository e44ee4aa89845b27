// Appends the events of a captured process to the memory it shares with `ott
// profile`. Whoever sends events, NVTX or CUPTI, calls this. Here is no thread, no file and no lock on the
// way of an event.

#ifndef OTT_TOOLS_PROFILE_RECORDER_H_
#define OTT_TOOLS_PROFILE_RECORDER_H_

#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tools/profile/records.h"
#include "tools/profile/shared_buffer.h"

namespace ott::profile {

class Recorder;

// Returns CLOCK_MONOTONIC in nanoseconds: kept right by the kernel, so that ranks' captures of hours do not
// drift apart.
inline uint64_t Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// An NVTX event's name and attributes.
struct NvtxEvent {
  std::string_view text = "";
  uint8_t has = 0;  // NvtxEventRecord::Has, without kAttributes
  uint8_t payload_type = 0;
  const EventAttributes* attributes = nullptr;
};

// The stream that one thread appends to.
class ThreadRecorder {
 public:
  // Returns the calling thread's; null while the process is not captured.
  static ThreadRecorder* Get();

  Recorder& recorder() { return *recorder_; }

  // Both return the level of the range, as NVTX wants it: 0 is the outermost; negative for a pop without
  // push.
  int Push(uint32_t domain, const NvtxEvent& event);
  int Pop(uint32_t domain);

  void Mark(uint32_t domain, const NvtxEvent& event);
  // Returns 0 if the range is not recorded.
  uint64_t RangeStart(uint32_t domain, const NvtxEvent& event);
  void RangeEnd(uint64_t range);

  // Any record that begins with a Record, and its text; sets size and kind. A text too long is cut. Returns
  // whether there was room; what is cut or dropped is counted.
  template <typename T>
  bool Append(RecordKind kind, T record, std::string_view text = "") {
    text = Fitting(text, sizeof(T));
    record.record.kind = kind;
    record.record.size = static_cast<uint32_t>(sizeof(T) + text.size());
    char* const place = writer_.Reserve(record.record.size);
    if (__builtin_expect(place == nullptr, 0)) return Dropped();
    std::memcpy(place, &record, sizeof(T));
    std::memcpy(place + sizeof(T), text.data(), text.size());
    writer_.Commit(record.record.size);
    return true;
  }

 private:
  friend class Recorder;

  ThreadRecorder(Recorder* recorder, SharedBuffer* buffer, uint32_t stream)
      : recorder_(recorder), buffer_(buffer), writer_(buffer, stream) {}

  static ThreadRecorder* Enter(Recorder* recorder);

  // time 0: now.
  bool AppendEvent(RecordKind kind, uint32_t domain, uint32_t level, const NvtxEvent& event,
                   uint64_t time = 0);
  std::string_view Fitting(std::string_view text, size_t head);
  bool Dropped();

  // Says for each open range of a domain whether it was recorded, outermost first.
  std::vector<uint8_t>& OpenRanges(uint32_t domain) {
    if (__builtin_expect(domain >= open_ranges_.size(), 0)) open_ranges_.resize(domain + 1);
    return open_ranges_[domain];
  }

  static inline thread_local ThreadRecorder* this_thread_ = nullptr;

  Recorder* const recorder_;
  SharedBuffer* const buffer_;
  StreamWriter writer_;
  std::vector<std::vector<uint8_t>> open_ranges_;  // of each domain
};

class Recorder {
 public:
  enum class Range { kWholeProgram, kCudaProfilerApi, kProfiler };

  // Starts recording if `ott profile` asks for it; once a process, however often it is called. A child of
  // fork starts anew at its first event. Returns whether the process is captured.
  static bool Start();

  // Returns the process's; null while it is not captured.
  static Recorder* Get() { return current_.load(std::memory_order_relaxed); }

  Range range() const { return range_; }
  bool is_recording() const { return is_recording_.load(std::memory_order_relaxed); }
  void set_recording(bool on) {
    if (is_recording_.exchange(on) == on) return;
    if (const auto listener = listener_.load()) listener(on);
  }
  // Calls listener now, if events are recorded, and whenever that changes.
  void OnRecording(void (*listener)(bool)) {
    listener_ = listener;
    if (is_recording()) listener(true);
  }
  uint64_t NewRange() { return last_range_.fetch_add(1, std::memory_order_relaxed) + 1; }
  SharedBuffer::Header& header() { return buffer_->header(); }

  // Names that hold for the whole process, and in children of fork. One name has one id, from 1.
  static uint32_t DomainId(std::string_view name);
  static uint32_t StringId(std::string_view text);
  static std::string_view StringOf(uint32_t id);

  // Records what is rare, outside of the ring of events.
  static void RecordOnce(RecordKind kind, uint32_t id, uint32_t owner, std::string_view text);

 private:
  friend class ThreadRecorder;

  Recorder(std::unique_ptr<SharedBuffer> buffer, int connection, Range range);

  // REQUIRES: the process's mutex is held.
  void AddRecord(RecordKind kind, uint32_t id, uint32_t owner, std::string_view text);

  static void BeforeFork();
  static void AfterForkInParent();
  static void AfterForkInChild();
  static void LeaveThread(void* thread);

  static inline std::atomic<Recorder*> current_{nullptr};

  const std::unique_ptr<SharedBuffer> buffer_;
  const int connection_;
  const Range range_;
  std::atomic<bool> is_recording_;
  std::atomic<void (*)(bool)> listener_{nullptr};
  // Counts over all processes: a child of fork may end a range that its parent started.
  static inline std::atomic<uint64_t> last_range_{0};
  ThreadRecorder names_;                 // stream 0
  std::vector<ThreadRecorder*> unused_;  // left by threads that ended
};

inline ThreadRecorder* ThreadRecorder::Get() {
  ThreadRecorder* const thread = this_thread_;
  Recorder* const recorder = Recorder::Get();
  if (__builtin_expect(thread != nullptr && thread->recorder_ == recorder, 1)) return thread;
  return Enter(recorder);
}

}  // namespace ott::profile

#endif  // OTT_TOOLS_PROFILE_RECORDER_H_
