#include "tools/profile/recorder.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "tools/profile/channel.h"
#include "tools/profile/job_rank.h"

namespace ott::profile {
namespace {

// Names in the order of their ids, which begin at 1.
class Names {
 public:
  // Returns the id, and whether the name is new.
  std::pair<uint32_t, bool> Add(std::string_view name) {
    const auto [found, added] = ids_.emplace(name, static_cast<uint32_t>(names_.size() + 1));
    if (added) names_.push_back(&found->first);
    return {found->second, added};
  }

  const std::vector<const std::string*>& all() const { return names_; }

 private:
  std::unordered_map<std::string, uint32_t> ids_;
  std::vector<const std::string*> names_;
};

struct Process {
  std::mutex mutex;
  enum { kNotStarted, kStarted, kForked } state = kNotStarted;
  pthread_key_t thread_end;
  Names domains, strings;
};

// Never destroyed: threads send events until the very end of the process.
Process& process() {
  static auto* const process = new Process;
  return *process;
}

Recorder::Range RangeFromEnvironment() {
  const char* const range = std::getenv(kRangeVariable);
  const std::string_view name = range == nullptr ? "" : range;
  if (name == "cudaProfilerApi") return Recorder::Range::kCudaProfilerApi;
  if (name == "profiler") return Recorder::Range::kProfiler;
  return Recorder::Range::kWholeProgram;
}

size_t BufferBytesFromEnvironment() {
  const char* const mib = std::getenv(kBufferMibVariable);
  return (mib == nullptr ? size_t{64} : std::strtoul(mib, nullptr, 10)) << 20;
}

std::string ThreadName() {
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

NameRecord MakeName(uint32_t id, uint32_t owner) {
  NameRecord record{};
  record.time = Now();
  record.id = id;
  record.owner = owner;
  return record;
}

}  // namespace

Recorder::Recorder(std::unique_ptr<SharedBuffer> buffer, int connection, Range range)
    : buffer_(std::move(buffer)),
      connection_(connection),
      range_(range),
      is_recording_(range == Range::kWholeProgram),
      names_(this, buffer_.get(), buffer_->AddStream()) {}

bool Recorder::Start() {
  const std::lock_guard<std::mutex> lock(process().mutex);
  if (process().state == Process::kStarted) return Get() != nullptr;
  const bool is_first = process().state == Process::kNotStarted;
  process().state = Process::kStarted;
  const char* const address = std::getenv(kSocketVariable);
  if (address == nullptr) return false;
  if (is_first && (pthread_key_create(&process().thread_end, &LeaveThread) != 0 ||
                   pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild) != 0)) {
    return false;
  }
  std::unique_ptr<SharedBuffer> buffer = SharedBuffer::Create(BufferBytesFromEnvironment());
  if (buffer == nullptr) {
    close(SendBuffer(address, -1, errno));
    return false;
  }
  buffer->header().pid = getpid();
  buffer->header().rank = RankFromEnvironment();
  const std::string_view program = program_invocation_short_name;
  program.copy(buffer->header().program, sizeof(buffer->header().program) - 1);
  const int fd = buffer->fd();
  // Never destroyed, like Process.
  auto* const recorder = new Recorder(std::move(buffer), SendBuffer(address, fd), RangeFromEnvironment());
  if (recorder->connection_ < 0) return false;
  uint32_t id = 0;
  for (const std::string* name : process().domains.all()) {
    recorder->AddRecord(RecordKind::kDomain, ++id, 0, *name);
  }
  id = 0;
  for (const std::string* text : process().strings.all()) {
    recorder->AddRecord(RecordKind::kString, ++id, 0, *text);
  }
  current_.store(recorder, std::memory_order_release);
  return true;
}

// A fork waits until nobody is in the middle of what the mutex guards.
void Recorder::BeforeFork() { process().mutex.lock(); }

void Recorder::AfterForkInParent() { process().mutex.unlock(); }

// The buffer is the parent's. It stays mapped, since other fork handlers may still write to it; and the
// connection stays open, since the program may have closed it and use its number for a file of its own.
void Recorder::AfterForkInChild() {
  current_ = nullptr;
  process().state = Process::kForked;
  process().mutex.unlock();
}

uint32_t Recorder::DomainId(std::string_view name) {
  const std::lock_guard<std::mutex> lock(process().mutex);
  const auto [id, is_new] = process().domains.Add(name);
  if (Recorder* const recorder = Get(); is_new && recorder != nullptr) {
    recorder->AddRecord(RecordKind::kDomain, id, 0, name);
  }
  return id;
}

uint32_t Recorder::StringId(std::string_view text) {
  const std::lock_guard<std::mutex> lock(process().mutex);
  const auto [id, is_new] = process().strings.Add(text);
  if (Recorder* const recorder = Get(); is_new && recorder != nullptr) {
    recorder->AddRecord(RecordKind::kString, id, 0, text);
  }
  return id;
}

std::string_view Recorder::StringOf(uint32_t id) {
  const std::lock_guard<std::mutex> lock(process().mutex);
  const auto& all = process().strings.all();
  return id == 0 || id > all.size() ? std::string_view() : *all[id - 1];
}

void Recorder::RecordOnce(RecordKind kind, uint32_t id, uint32_t owner, std::string_view text) {
  const std::lock_guard<std::mutex> lock(process().mutex);
  if (Recorder* const recorder = Get()) recorder->AddRecord(kind, id, owner, text);
}

// Events are dropped where the buffer is full, but a name is waited for: thousands of events may need it.
void Recorder::AddRecord(RecordKind kind, uint32_t id, uint32_t owner, std::string_view text) {
  const NameRecord record = MakeName(id, owner);
  constexpr timespec kMillisecond = {0, 1'000'000};
  for (int attempt = 0; !names_.Append(kind, record, text) && attempt < 100; ++attempt) {
    nanosleep(&kMillisecond, nullptr);
  }
}

ThreadRecorder* ThreadRecorder::Enter(Recorder* recorder) {
  if (recorder == nullptr) {
    {
      const std::lock_guard<std::mutex> lock(process().mutex);
      if (process().state != Process::kForked) return nullptr;
    }
    if (!Recorder::Start()) return nullptr;
    recorder = Recorder::Get();
  }
  const std::lock_guard<std::mutex> lock(process().mutex);
  ThreadRecorder* thread = nullptr;
  if (!recorder->unused_.empty()) {
    thread = recorder->unused_.back();
    recorder->unused_.pop_back();
  } else {
    const uint32_t stream = recorder->buffer_->AddStream();
    if (stream == SharedBuffer::kMaxStreams) {
      recorder->names_.Dropped();
      return nullptr;
    }
    thread = new ThreadRecorder(recorder, recorder->buffer_.get(), stream);
  }
  this_thread_ = thread;
  pthread_setspecific(process().thread_end, thread);
  thread->Append(RecordKind::kThread, MakeName(static_cast<uint32_t>(syscall(SYS_gettid)), 0), ThreadName());
  return thread;
}

void Recorder::LeaveThread(void* left) {
  auto* const thread = static_cast<ThreadRecorder*>(left);
  ThreadRecorder::this_thread_ = nullptr;
  const std::lock_guard<std::mutex> lock(process().mutex);
  if (thread->recorder_ != Get()) return;
  thread->open_ranges_.clear();
  thread->recorder_->unused_.push_back(thread);
}

bool ThreadRecorder::Dropped() {
  buffer_->header().num_dropped.fetch_add(1, std::memory_order_relaxed);
  return false;
}

std::string_view ThreadRecorder::Fitting(std::string_view text, size_t head) {
  const size_t room = StreamWriter::kMaxRecord - head;
  if (__builtin_expect(text.size() <= room, 1)) return text;
  buffer_->header().num_truncated.fetch_add(1, std::memory_order_relaxed);
  return text.substr(0, room);
}

bool ThreadRecorder::AppendEvent(RecordKind kind, uint32_t domain, uint32_t level, const NvtxEvent& event,
                                 uint64_t time) {
  const bool has_attributes = event.attributes != nullptr;
  const size_t head = sizeof(NvtxEventRecord) + (has_attributes ? sizeof(EventAttributes) : 0);
  const std::string_view text = Fitting(event.text, head);
  const auto size = static_cast<uint32_t>(head + text.size());
  char* const place = writer_.Reserve(size);
  if (__builtin_expect(place == nullptr, 0)) return Dropped();
  std::memcpy(place + head, text.data(), text.size());
  if (has_attributes) std::memcpy(place + sizeof(NvtxEventRecord), event.attributes, sizeof(EventAttributes));
  const auto has = static_cast<uint8_t>(event.has | (has_attributes ? NvtxEventRecord::kAttributes : 0));
  // The time is taken last: what was done above is not the range's.
  const NvtxEventRecord record{
      {size, kind, has, event.payload_type}, time == 0 ? Now() : time, domain, level};
  std::memcpy(place, &record, sizeof(record));
  writer_.Commit(size);
  return true;
}

int ThreadRecorder::Push(uint32_t domain, const NvtxEvent& event) {
  std::vector<uint8_t>& open = OpenRanges(domain);
  const auto level = static_cast<uint32_t>(open.size());
  open.push_back(recorder_->is_recording() && AppendEvent(RecordKind::kPush, domain, level, event));
  return static_cast<int>(level);
}

int ThreadRecorder::Pop(uint32_t domain) {
  const uint64_t now = Now();
  std::vector<uint8_t>& open = OpenRanges(domain);
  if (open.empty()) return -1;
  const bool was_recorded = open.back() != 0;
  open.pop_back();
  const auto level = static_cast<uint32_t>(open.size());
  if (was_recorded) Append(RecordKind::kPop, NvtxEventRecord{{}, now, domain, level});
  return static_cast<int>(level);
}

void ThreadRecorder::Mark(uint32_t domain, const NvtxEvent& event) {
  if (recorder_->is_recording()) AppendEvent(RecordKind::kMark, domain, 0, event);
}

uint64_t ThreadRecorder::RangeStart(uint32_t domain, const NvtxEvent& event) {
  if (!recorder_->is_recording()) return 0;
  EventAttributes attributes = event.attributes == nullptr ? EventAttributes{} : *event.attributes;
  attributes.range = recorder_->NewRange();
  NvtxEvent with_range = event;
  with_range.attributes = &attributes;
  return AppendEvent(RecordKind::kRangeStart, domain, 0, with_range) ? attributes.range : 0;
}

void ThreadRecorder::RangeEnd(uint64_t range) {
  const uint64_t now = Now();
  if (range == 0) return;
  EventAttributes attributes{};
  attributes.range = range;
  NvtxEvent event;
  event.attributes = &attributes;
  AppendEvent(RecordKind::kRangeEnd, 0, 0, event, now);
}

}  // namespace ott::profile
