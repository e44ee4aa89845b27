#include "ott/core/events/event_recorder.h"

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
            if (buffer.window == window_) AppendThread(buffer);
          },
          [this](ThreadBuffer& buffer) {
            if (buffer.window != window_) return true;
            Append(buffer, EventRecord::kThreadEnd, EventCategory::kUser, clock_.Ticks(), 0);
            buffer.innermost = buffer.open.get();
            buffer.num_too_deep = 0;
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

void EventRecorder::StartWindow(ThreadBuffer& buffer, uint64_t window) {
  const size_t capacity = thread_buffer_bytes_.load(std::memory_order_relaxed);
  if (buffer.bytes == nullptr || buffer.capacity != capacity) {
    // Pages that are not reached stay untouched.
    buffer.bytes.reset(new (std::nothrow) char[capacity]);
    buffer.capacity = buffer.bytes == nullptr ? 0 : capacity;
  }
  if (buffer.open == nullptr) buffer.open = std::make_unique<OpenRange[]>(kMaxDepth + 2);
  buffer.innermost = buffer.open.get();
  buffer.num_too_deep = 0;
  buffer.num_lost.store(0, std::memory_order_relaxed);
  buffer.size.store(0, std::memory_order_relaxed);
  AppendThread(buffer);
  buffer.window.store(window, std::memory_order_release);
}

void EventRecorder::AppendThread(ThreadBuffer& buffer) {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  Append(buffer, EventRecord::kThread, EventCategory::kUser, clock_.Ticks(), internal::ThisThreadId(), {},
         name, {});
}

EventRecord* EventRecorder::Lose(ThreadBuffer& buffer) {
  buffer.num_lost.store(buffer.num_lost.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return nullptr;
}

EventRecord* EventRecorder::Append(ThreadBuffer& buffer, EventRecord::Type type, EventCategory category,
                                   uint64_t ticks, uint64_t value, std::string_view extra,
                                   std::string_view name, std::string_view args) {
  name = name.substr(0, kMaxTextSize);
  // JSON that is cut would be none.
  if (args.size() > kMaxTextSize) args = {};
  const size_t size = buffer.size.load(std::memory_order_relaxed);
  const size_t needed = (sizeof(EventRecord) + extra.size() + name.size() + args.size() + 7) / 8 * 8;
  if (size + needed > buffer.capacity) return Lose(buffer);
  char* place = buffer.bytes.get() + size;
  auto* const record = new (place) EventRecord{ticks,
                                               {value},
                                               nullptr,
                                               static_cast<uint32_t>(name.size()),
                                               type,
                                               static_cast<uint32_t>(args.size()),
                                               static_cast<uint32_t>(category)};
  place += sizeof(EventRecord);
  for (const std::string_view part : {extra, name, args}) {
    place = std::copy(part.begin(), part.end(), place);
  }
  buffer.size.store(size + needed, std::memory_order_release);
  return record;
}

void EventRecorder::PushTooDeep(ThreadBuffer& buffer, EventRecord* record) {
  // It has no end of its own.
  if (record != nullptr) record->value.store(record->ticks, std::memory_order_relaxed);
  Lose(buffer);
  ++buffer.num_too_deep;
  buffer.innermost = buffer.open.get() + kMaxDepth + 1;
}

void EventRecorder::EndOuterRange(ThreadBuffer& buffer, EventCategory category, uint64_t ticks,
                                  uint64_t key) {
  if (buffer.num_too_deep > 0) {
    if (--buffer.num_too_deep == 0) --buffer.innermost;
    return;
  }
  OpenRange* range = buffer.innermost;
  while (range != buffer.open.get() && (range->category != category || range->key != key)) --range;
  if (range == buffer.open.get()) {
    Append(buffer, EventRecord::kEnd, category, ticks, key);
    return;
  }
  const uint64_t overlaps = range == buffer.innermost ? 0 : EventRecord::kOverlaps;
  if (range->record != nullptr) range->record->value.store(ticks | overlaps, std::memory_order_relaxed);
  std::move(range + 1, buffer.innermost + 1, range);
  --buffer.innermost;
}

void EventRecorder::BeginRange(EventCategory category, std::string_view name, uint64_t ticks, uint64_t key) {
  ThreadBuffer& buffer = OwnBuffer();
  // A measurement is there only to find the end.
  const bool has_domain = category == EventCategory::kRange && key != 0;
  const std::string_view extra(reinterpret_cast<const char*>(&key), has_domain ? sizeof(key) : 0);
  const EventRecord::Type type = has_domain ? EventRecord::kRangeOfDomain : EventRecord::kRange;
  Push(buffer, Append(buffer, type, category, ticks, 0, extra, name, {}), category, key);
}

void EventRecorder::BeginRange(EventCategory category, std::string_view name, uint64_t ticks,
                               std::string_view args, EventFlow flow) {
  ThreadBuffer& buffer = OwnBuffer();
  const bool has_flow = flow.end != EventFlow::End::kNone;
  const std::string_view extra(reinterpret_cast<const char*>(&flow.id), has_flow ? sizeof(flow.id) : 0);
  const EventRecord::Type type = !has_flow                            ? EventRecord::kRange
                                 : flow.end == EventFlow::End::kStart ? EventRecord::kRangeFlowStart
                                                                      : EventRecord::kRangeFlowFinish;
  Push(buffer, Append(buffer, type, category, ticks, 0, extra, name, args), category, 0);
}

void EventRecorder::Mark(EventCategory category, std::string_view name, std::string_view args) {
  Append(OwnBuffer(), EventRecord::kMark, category, clock_.Ticks(), 0, {}, name, args);
}

void EventRecorder::Counter(std::string_view name, double value) {
  Append(OwnBuffer(), EventRecord::kCounter, EventCategory::kUser, clock_.Ticks(), Bits(value), {}, name, {});
}

int64_t EventRecorder::AddTrack(std::string_view name) {
  const std::lock_guard<std::mutex> lock(tracks_mutex_);
  const auto known = std::find(track_names_.begin(), track_names_.end(), name);
  const int64_t index = known - track_names_.begin();
  if (known == track_names_.end()) track_names_.emplace_back(name);
  return kFirstTrack + index;
}

void EventRecorder::AddSlice(const Slice& slice) {
  const SliceOfTrack extra = {slice.track, slice.start_unix_nanoseconds, slice.end_unix_nanoseconds,
                              slice.flow.id, static_cast<uint64_t>(slice.flow.end)};
  Append(OwnBuffer(), EventRecord::kSlice, slice.category, 0, 0,
         std::string_view(reinterpret_cast<const char*>(&extra), sizeof(extra)), slice.name, slice.args);
}

}  // namespace ott
