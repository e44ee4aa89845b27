#include "ott/core/profile/event_recorder.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <utility>

#include "ott/core/base/misuse.h"

namespace ott {
namespace {

constexpr size_t kMaxTextSize = size_t{1} << 20;

int64_t Nanoseconds(std::chrono::nanoseconds since_epoch) { return since_epoch.count(); }

size_t PaddedSize(size_t text_size) { return (sizeof(EventRecord) + text_size + 7) / 8 * 8; }

EventRecord MakeRecord(EventRecord::Type type, EventCategory category, uint64_t ticks, uint64_t value) {
  EventRecord record{};
  record.ticks = ticks;
  record.value = value;
  record.type = type;
  record.category = static_cast<uint32_t>(category);
  return record;
}

uint64_t Bits(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

}  // namespace

const char* EventCategoryName(EventCategory category) {
  switch (category) {
    case EventCategory::kStep:
      return "step";
    case EventCategory::kMeasurement:
      return "stopwatch";
    case EventCategory::kRange:
      return "nvtx";
    case EventCategory::kOp:
      return "op";
    case EventCategory::kUser:
      return "user";
    case EventCategory::kRuntime:
      return "runtime";
    case EventCategory::kDevice:
      return "device";
    case EventCategory::kKernelSection:
      return "kernel section";
  }
  return "unknown";
}

EventRecorder::EventRecorder(const Clock& clock, std::function<ClockReading()> read_clocks)
    : clock_(clock),
      read_clocks_(std::move(read_clocks)),
      // A thread that takes over the buffer of one that ended goes on in it.
      buffers_(
          [this](ThreadBuffer& buffer) {
            if (buffer.window == window_ && buffer.bytes != nullptr) AppendThread(buffer);
          },
          [this](ThreadBuffer& buffer) {
            if (buffer.window == window_ && buffer.bytes != nullptr) {
              Append(buffer, MakeRecord(EventRecord::kThreadEnd, EventCategory::kUser, clock_.Ticks(), 0), {},
                     {}, {}, 0);
            }
            return true;
          }) {}

// The readings are as close together as a few attempts allow.
ClockReading EventRecorder::ReadClocks() const {
  if (read_clocks_) return read_clocks_();
  ClockReading best;
  uint64_t least = std::numeric_limits<uint64_t>::max();
  for (int attempt = 0; attempt < 20; ++attempt) {
    const uint64_t before = clock_.Ticks();
    const int64_t steady = Nanoseconds(std::chrono::steady_clock::now().time_since_epoch());
    const int64_t unix = Nanoseconds(std::chrono::system_clock::now().time_since_epoch());
    const uint64_t between = clock_.Ticks() - before;
    if (between >= least) continue;
    least = between;
    best = {before + between / 2, steady, unix};
  }
  return best;
}

void EventRecorder::Open() {
  opened_ = ReadClocks();
  window_.fetch_add(1, std::memory_order_release);
  is_open_.store(true, std::memory_order_release);
}

void EventRecorder::Close() {
  is_open_.store(false, std::memory_order_release);
  closed_ = ReadClocks();
}

std::vector<EventRecorder::Buffer> EventRecorder::Buffers() const {
  std::vector<Buffer> result;
  const std::lock_guard<std::mutex> lock(buffers_.mutex());
  for (const ThreadBuffer* buffer : buffers_.all()) {
    if (buffer->window.load(std::memory_order_acquire) != window_.load(std::memory_order_relaxed)) continue;
    const size_t size = buffer->size.load(std::memory_order_acquire);
    result.push_back(
        {std::string_view(buffer->bytes.get(), size), buffer->num_lost.load(std::memory_order_relaxed)});
  }
  return result;
}

std::vector<std::string> EventRecorder::TrackNames() const {
  const std::lock_guard<std::mutex> lock(tracks_mutex_);
  return track_names_;
}

EventRecorder::ThreadBuffer& EventRecorder::OwnBuffer() {
  ThreadBuffer& buffer = buffers_.Get();
  const uint64_t window = window_.load(std::memory_order_acquire);
  if (__builtin_expect(buffer.window.load(std::memory_order_relaxed) != window, 0))
    StartWindow(buffer, window);
  return buffer;
}

void EventRecorder::StartWindow(ThreadBuffer& buffer, uint64_t window) {
  const size_t capacity = thread_buffer_bytes_.load(std::memory_order_relaxed);
  if (buffer.bytes == nullptr || buffer.capacity != capacity) {
    // Pages that are not reached stay untouched.
    buffer.bytes.reset(new (std::nothrow) char[capacity]);
    buffer.capacity = buffer.bytes == nullptr ? 0 : capacity;
  }
  buffer.num_open = 0;
  buffer.num_open_dropped = 0;
  buffer.num_lost.store(0, std::memory_order_relaxed);
  buffer.size.store(0, std::memory_order_relaxed);
  AppendThread(buffer);
  buffer.window.store(window, std::memory_order_release);
}

void EventRecorder::AppendThread(ThreadBuffer& buffer) {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  Append(buffer,
         MakeRecord(EventRecord::kThread, EventCategory::kUser, clock_.Ticks(), internal::ThisThreadId()), {},
         name, {}, 0);
}

bool EventRecorder::Append(ThreadBuffer& buffer, const EventRecord& record, std::string_view extra,
                           std::string_view name, std::string_view args, size_t reserved) {
  const size_t size = buffer.size.load(std::memory_order_relaxed);
  const size_t needed = PaddedSize(extra.size() + name.size() + args.size());
  if (__builtin_expect(size + needed + reserved > buffer.capacity, 0)) {
    buffer.num_lost.store(buffer.num_lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    return false;
  }
  char* const place = buffer.bytes.get() + size;
  std::memcpy(place, &record, sizeof(record));
  if (__builtin_expect(needed != sizeof(record), 0)) {
    auto* const stored = reinterpret_cast<EventRecord*>(place);
    stored->name_size = static_cast<uint32_t>(name.size());
    stored->args_size = static_cast<uint32_t>(args.size());
    char* text = place + sizeof(record);
    for (const std::string_view part : {extra, name, args}) {
      std::memcpy(text, part.data(), part.size());
      text += part.size();
    }
  }
  buffer.size.store(size + needed, std::memory_order_release);
  return true;
}

void EventRecorder::Begin(EventRecord::Type type, EventCategory category, const char* static_name,
                          std::string_view name, std::string_view args, uint64_t ticks, uint64_t value) {
  ThreadBuffer& buffer = OwnBuffer();
  EventRecord record = MakeRecord(type, category, ticks, value);
  record.static_name = static_name;
  // JSON that is cut would be none.
  if (args.size() > kMaxTextSize) args = {};
  const size_t reserved = sizeof(EventRecord) * (buffer.num_open + 1);
  if (buffer.num_open_dropped == 0 &&
      Append(buffer, record, {}, name.substr(0, kMaxTextSize), args, reserved)) {
    ++buffer.num_open;
  } else {
    // What is inside of a dropped range is dropped too, so that it is known whose the next end is.
    if (buffer.num_open_dropped++ > 0) buffer.num_lost.fetch_add(1, std::memory_order_relaxed);
  }
}

void EventRecorder::BeginRange(EventCategory category, std::string_view name, uint64_t ticks,
                               std::string_view args, EventFlow flow) {
  const EventRecord::Type type = flow.end == EventFlow::End::kStart    ? EventRecord::kBeginFlowStart
                                 : flow.end == EventFlow::End::kFinish ? EventRecord::kBeginFlowFinish
                                                                       : EventRecord::kBegin;
  Begin(type, category, nullptr, name, args, ticks, flow.id);
}

void EventRecorder::EndRange(EventCategory category, uint64_t ticks, uint64_t key) {
  ThreadBuffer& buffer = OwnBuffer();
  if (__builtin_expect(buffer.num_open_dropped > 0, 0)) {
    --buffer.num_open_dropped;
    return;
  }
  const size_t reserved = buffer.num_open > 0 ? sizeof(EventRecord) * (buffer.num_open - 1) : 0;
  Append(buffer, MakeRecord(EventRecord::kEnd, category, ticks, key), {}, {}, {}, reserved);
  if (buffer.num_open > 0) --buffer.num_open;
}

void EventRecorder::Mark(EventCategory category, std::string_view name, std::string_view args) {
  ThreadBuffer& buffer = OwnBuffer();
  Append(buffer, MakeRecord(EventRecord::kMark, category, clock_.Ticks(), 0), {},
         name.substr(0, kMaxTextSize), args.size() > kMaxTextSize ? std::string_view() : args,
         sizeof(EventRecord) * buffer.num_open);
}

void EventRecorder::Counter(std::string_view name, double value) {
  ThreadBuffer& buffer = OwnBuffer();
  Append(buffer, MakeRecord(EventRecord::kCounter, EventCategory::kUser, clock_.Ticks(), Bits(value)), {},
         name.substr(0, kMaxTextSize), {}, sizeof(EventRecord) * buffer.num_open);
}

int64_t EventRecorder::AddTrack(std::string_view name) {
  const std::lock_guard<std::mutex> lock(tracks_mutex_);
  const auto known = std::find(track_names_.begin(), track_names_.end(), name);
  const int64_t index = known - track_names_.begin();
  if (known == track_names_.end()) track_names_.emplace_back(name);
  return kFirstTrack + index;
}

void EventRecorder::AddSlice(const Slice& slice) {
  ThreadBuffer& buffer = OwnBuffer();
  const SliceOfTrack extra = {slice.track, slice.start_unix_nanoseconds, slice.end_unix_nanoseconds,
                              slice.flow.id, static_cast<uint64_t>(slice.flow.end)};
  Append(buffer, MakeRecord(EventRecord::kSlice, slice.category, 0, 0),
         std::string_view(reinterpret_cast<const char*>(&extra), sizeof(extra)),
         slice.name.substr(0, kMaxTextSize),
         slice.args.size() > kMaxTextSize ? std::string_view() : slice.args,
         sizeof(EventRecord) * buffer.num_open);
}

}  // namespace ott
